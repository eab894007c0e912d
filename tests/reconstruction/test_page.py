"""The 3D page: what is in it, and that a real browser draws it."""

import base64
import json
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from chromium import Browser
from PIL import Image

from keypatch.colmap import Camera, PosedCamera
from keypatch.colmap.models import Points
from keypatch.geometry.poses import Pose
from keypatch.reconstruction import page
from keypatch.reconstruction.page import write_model_page

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&{{ 7 * 7 }}{% raw %} é東.jpg"
CAMERA = Camera("PINHOLE", 640, 480, (600, 600, 320, 240))


def cameras() -> dict[str, PosedCamera]:
    names = ["c.jpg", HOSTILE, "b.jpg"]
    return {name: PosedCamera(CAMERA, Pose(np.eye(3), np.array([1.5 - 1.5 * i, 0, 6]))) for i, name in enumerate(names)}


def points(count: int = 3000) -> Points:
    xyz = np.random.default_rng(0).uniform((-3, -2, -0.5), (3, 2, 0.5), (count, 3)) + np.array([1000, 0, 0])
    posed = np.tile(np.uint8((30, 90, 200)), (count, 1))
    return Points(xyz - np.array([1000, 0, 0]), posed, np.zeros(count), np.arange(count) % 7 + 2)


def photo(path: Path, size: tuple[int, int] = (640, 480)) -> Path:
    """A green JPEG with a note in it of where it was taken."""
    tags = Image.Exif()
    tags[0x010E] = "taken at home"
    Image.new("RGB", size, (20, 160, 60)).save(path, exif=tags, comment=b"taken at home")
    return path


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Of three photos the first can be read, the second is broken, the third is not there."""
    (tmp_path / "broken.jpg").write_bytes(photo(tmp_path / "a.jpg").read_bytes()[:400])
    photos = {HOSTILE: tmp_path / "a.jpg", "b.jpg": tmp_path / "broken.jpg", "c.jpg": tmp_path / "missing.jpg"}
    write_model_page(tmp_path / "model.html", "my <scene>", {"points": "3,000"}, points(), cameras(), photos)
    return tmp_path / "model.html"


def content(path: Path) -> dict:
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script id="model" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_names_cannot_leave_their_place_in_the_page(written: Path) -> None:
    assert content(written)["names"] == [HOSTILE, "b.jpg", "c.jpg"] and content(written)["title"] == "my <scene>"
    assert "<img src" not in written.read_text(encoding="utf-8")


def test_nothing_is_loaded_from_elsewhere(written: Path) -> None:
    text = re.sub(r'(<script id="model"[^>]*>).*?(</script>)', r"\1\2", written.read_text(encoding="utf-8"), flags=re.S)
    assert "default-src 'none'; img-src data:;" in text and "://" not in text
    assert not re.search(r"src=|src\s*=\s*[\"'`]|(href|url)\s*[=(]|innerHTML|fetch\(|XMLHttp|import\(", text)


def test_a_photo_that_can_be_read_is_small_and_says_nothing_of_its_origin(written: Path) -> None:
    first, second, third = content(written)["thumbnails"]
    assert second is None and third is None
    encoded = base64.b64decode(first)
    with Image.open(BytesIO(encoded)) as small:
        assert (small.format, small.size) == ("JPEG", (320, 240))
        assert np.allclose(np.asarray(small).mean(axis=(0, 1)), (20, 160, 60), atol=4)
    assert b"taken at home" not in encoded


def test_without_photos_there_are_no_thumbnails(tmp_path: Path) -> None:
    write_model_page(tmp_path / "model.html", "", {}, points(), cameras())
    assert content(tmp_path / "model.html")["thumbnails"] == [None] * 3


def test_the_points_come_back_up_to_one_scale_and_shift(written: Path) -> None:
    model = content(written)
    xyz = np.frombuffer(base64.b64decode(model["xyz"]), "<f4").reshape(-1, 3)
    truth = points().xyz
    scale = np.ptp(truth, axis=0) / np.ptp(xyz, axis=0)
    assert np.allclose(scale, scale[0], rtol=1e-5)
    assert np.allclose((xyz - xyz[0]) * scale, truth - truth[0], atol=1e-5)
    colours = np.frombuffer(base64.b64decode(model["colours"]), np.uint8).reshape(-1, 3)
    assert colours.shape == xyz.shape and np.all(colours[:, 2] > colours[:, 0])
    eyes = np.frombuffer(base64.b64decode(model["frusta"]), "<f4").reshape(-1, 5, 3)[:, 0]
    inside = [cameras()[name].pose.centre - truth[0] for name in model["names"]]
    assert np.allclose((eyes - xyz[0]) * scale, inside, atol=1e-4)


def test_of_too_many_points_those_seen_most_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_POINTS", 400)
    write_model_page(tmp_path / "model.html", "", {}, points(), cameras())
    xyz = np.frombuffer(base64.b64decode(content(tmp_path / "model.html")["xyz"]), "<f4").reshape(-1, 3)
    assert len(xyz) == 400
    kept = points().xyz[np.flatnonzero(points().track_lengths == 8)[:400]]
    assert np.allclose(np.argsort(xyz[:, 0]), np.argsort(kept[:, 0]))


def test_a_full_page_stays_below_five_megabytes(tmp_path: Path) -> None:
    write_model_page(tmp_path / "model.html", "", {}, points(page.MOST_POINTS + 10), cameras())
    assert (tmp_path / "model.html").stat().st_size < 5_000_000


def test_a_browser_draws_points_and_cameras(browser: Browser, written: Path) -> None:
    show(browser, written)
    browser.shot(written.with_name("shot.png"), whole=False)
    drawn = np.asarray(Image.open(written.with_name("shot.png")).convert("RGB")).astype(int)
    blue = (drawn[..., 2] > 120) & (drawn[..., 0] < 0.6 * drawn[..., 2])
    orange = (drawn[..., 0] > 150) & (drawn[..., 2] < 120) & (drawn[..., 1] < 0.85 * drawn[..., 0])
    assert blue.sum() > 2000 and orange.sum() > 300


def show(browser: Browser, page: Path) -> None:
    """Open the page and wait until it has drawn all its photos."""
    browser.open(page, 1000, 700)
    drawn = "!wanted && textures.size === model.names.filter((_, camera) => picture(camera)).length"
    browser.run(f"new Promise(done => setInterval(() => {{ if ({drawn}) done(); }}, 20))")


PREFACE = """
const said = {}, card = element("card"), pixels = new Uint8Array(4 * 1000 * 700);
canvas.setPointerCapture = () => {};
const at = (type, x, y, more) =>
  canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: x, clientY: y, ...more }));
const tap = (x, y) => { for (const type of ["pointerdown", "pointerup"]) at(type, x, y, { pointerType: "touch" }); };
const press = (goal, key) => goal.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const placeOf = camera => onScreen(corner(camera, 0), matrix());
const through = camera => flight !== null && Math.hypot(...add(flight.goal.eye, corner(camera, 0), -1)) < 1e-6;
const shows = name => { paint(1); return !card.hidden && card.textContent === name; };
const counted = like => {
  paint(1); gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
  let n = 0;
  for (let i = 0; i < pixels.length; i += 4) n += like(pixels[i], pixels[i + 1], pixels[i + 2]);
  return n;
};
"""


def act(browser: Browser, page: Path, script: str) -> dict:
    """What the script puts into `said`, run in the page; it asks for nothing and complains of nothing."""
    show(browser, page)
    said = browser.run(f"(() => {{ {PREFACE} {script} return said; }})()")
    told = {event["method"]: event["params"] for event in browser.events}
    assert not told.keys() & {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}, told
    sent = [event["params"]["request"]["url"] for event in browser.events if "request" in event.get("params", {})]
    assert [url for url in sent if not url.startswith("data:")] == [page.as_uri()]
    return dict(said)


MOUSE = """
  const before = [...view.eye], height = () => Math.hypot(...add(view.eye, view.target, -1)), far = height();
  at("pointerdown", 500, 300, { buttons: 1 }); at("pointermove", 560, 300, { buttons: 1 }); at("pointerup", 560, 300);
  said.turned = Math.hypot(...add(view.eye, before, -1)) > 0.1 && Math.abs(height() - far) < 1e-6;
  canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -300, cancelable: true }));
  said.zoomed = height() < 0.8 * far;
  const target = [...view.target];
  at("pointerdown", 500, 300, { buttons: 2 }); at("pointermove", 540, 320, { buttons: 2 }); at("pointerup", 540, 320);
  said.moved = Math.hypot(...add(view.target, target, -1)) > 0.01;
  view = { ...home };
  at("pointermove", ...placeOf(0)); paint(1);
  const box = card.getBoundingClientRect();
  said.shown = !card.hidden && !card.firstChild.hidden && box.left >= 0 && box.right <= 1000 && box.bottom <= 700;
  said.name = card.textContent; said.thumbnail = [card.firstChild.naturalWidth, card.firstChild.naturalHeight];
  at("pointermove", ...placeOf(1));
  said.unreadable = shows("b.jpg") && card.firstChild.hidden;
  const corners = cornersOnScreen(2, matrix());
  at("pointermove", ...mix([...corners[0], 0], [...corners[2], 0], 0.1).slice(0, 2));
  said.corner = shows("c.jpg");
  at("pointermove", 990, 690); paint(1);
  said.gone = card.hidden;
  const theme = root.dataset.theme; element("theme").click();
  said.theme = root.dataset.theme !== theme;
  const place = placeOf(0);
  at("pointerdown", ...place, { buttons: 1 }); at("pointerup", ...place);
  said.flying = through(0);
  flight = null; inside = -1; view = { ...home };
  const line = (r, g, b) => r > 150 && b < 120, green = (r, g, b) => g > 130 && r < 60 && b < 100;
  const drawn = [counted(line), counted(green)];
  element("photos").checked = false;
  said.bare = drawn[1] > 200 && counted(green) === 0 && counted(line) > 100;
  element("cameras").checked = false;
  said.hidden = drawn[0] > 100 && counted(line) === 0;
  said.title = document.title; said.strange = document.querySelectorAll("img:not(#card img)").length;
  said.facts = document.querySelector("dl").textContent;
"""
FINGERS_AND_KEYS = """
  tap(...placeOf(1));
  said.tapped = shows("b.jpg") && flight === null;
  tap(...placeOf(2));
  said.other = shows("c.jpg") && flight === null;
  tap(990, 690); paint(1);
  said.away = card.hidden;
  const place = placeOf(1);
  tap(...place); tap(...place);
  said.twice = through(1);
  flight = null; inside = -1; view = { ...home };
  press(canvas, "PageDown"); said.first = through(0) && shows(model.names[0]);
  press(canvas, "PageDown"); said.second = through(1) && shows("b.jpg");
  press(canvas, "PageUp"); press(canvas, "PageUp"); said.last = through(2);
  press(canvas, "Home"); said.home = flight !== null && flight.goal.eye === home.eye && inside === -1;
  flight = null; view = { ...home };
  press(canvas, "ArrowLeft"); said.turned = Math.hypot(...add(view.eye, home.eye, -1)) > 0.01;
  element("list").open = true;
  element("find").focus();
  press(document.activeElement, "ArrowUp"); said.stays = document.activeElement === element("find");
  press(document.activeElement, "ArrowDown"); said.into = document.activeElement === rows[0].firstChild;
  press(document.activeElement, "ArrowUp"); said.top = document.activeElement === rows[0].firstChild;
  said.listed = rows[0].textContent === model.names[0] && shows(model.names[0]);
  press(document.activeElement, "ArrowDown");
  said.down = document.activeElement === rows[1].firstChild && shows("b.jpg");
  document.activeElement.click(); said.clicked = through(1);
  element("find").value = "C.J"; element("find").dispatchEvent(new Event("input"));
  said.found = rows.filter(row => row.getClientRects().length).map(row => row.textContent).join() === "c.jpg";
"""
SEARCH = """
  const find = element("find"), ask = text => { find.value = text; find.dispatchEvent(new Event("input")); };
  const none = () => element("none").getClientRects().length > 0;
  said.there = find.getClientRects().length > 0 && !element("list").open;
  ask("b."); said.opened = element("list").open && !none();
  said.room = element("panel").getBoundingClientRect().bottom >= element("list").getBoundingClientRect().bottom;
  press(find, "Enter"); said.entered = through(1);
  flight = null; ask("nowhere"); said.none = none();
  press(find, "Enter"); said.stays = flight === null;
  ask(""); said.all = !none() && rows.every(row => row.getClientRects().length);
  inside = -1;
  for (const key of ["PageDown", "Home", "Escape"]) press(find, key);
  said.typing = flight === null;
  for (const place of [document.body, element("size"), rows[2].firstChild]) {
    flight = null; inside = -1; place.focus();
    press(place, "PageDown"); said["next " + place.tagName] = through(0);
    flight = null; press(place, "Escape"); said["away " + place.tagName] = flight.goal.eye === home.eye;
  }
  flight = null; view = { ...home };
  press(element("size"), "ArrowLeft"); said.slider = Math.hypot(...add(view.eye, home.eye, -1)) === 0;
  press(document.body, "ArrowLeft"); said.turned = Math.hypot(...add(view.eye, home.eye, -1)) > 0.01;
"""
LOOKING_THROUGH = """
  const panel = element("panel").getBoundingClientRect().right, arrive = () => { view = flight.goal; flight = null; };
  const green = (r, g, b) => g > 130 && r < 60 && b < 100, edges = () => cornersOnScreen(inside, matrix()).flat();
  const middle = onScreen(home.target, matrix());
  said.beside = Math.abs(middle[0] - (1000 + panel) / 2) < 1 && placeOf(0)[0] > panel;
  lookThrough(0); arrive();
  const [left, top, right, , , bottom] = edges();
  said.margin = left - panel > 40 && top > 40 && 1000 - right > 40 && canvas.clientHeight - bottom > 40;
  said.large = right - left > 0.9 * (1000 - panel - 112) || bottom - top > 0.9 * (canvas.clientHeight - 112);
  element("opacity").value = 1; const full = counted(green);
  said.laid = full > 0.7 * (right - left) * (bottom - top);
  element("opacity").value = 0; said.clear = counted(green) < 0.1 * full;
  element("opacity").value = 1; element("photos").checked = false; said.still = counted(green) > 0.9 * full;
  said.small = card.firstChild.hidden && shows(model.names[0] + ", 1,234 points");
  inside = -1; choose(2); said.one = shows("c.jpg\\n1 point");
  choose(1); said.unknown = shows("b.jpg");
"""


def test_a_mouse_turns_zooms_moves_and_shows_the_photo_of_a_camera(browser: Browser, written: Path) -> None:
    said = act(browser, written, MOUSE)
    assert (said.pop("name"), said.pop("title"), said.pop("strange")) == (HOSTILE, "my <scene>", 0)
    assert said.pop("thumbnail") == [320, 240] and said.pop("facts") == "points3,000"
    assert all(said.values()) and len(said) == 11, said


def test_fingers_and_keys_reach_every_photo(browser: Browser, written: Path) -> None:
    said = act(browser, written, FINGERS_AND_KEYS)
    assert all(said.values()) and len(said) == 16, said


def test_the_search_field_finds_and_keys_work_everywhere_else(browser: Browser, written: Path) -> None:
    said = act(browser, written, SEARCH)
    assert all(said.values()) and len(said) == 16, said


def test_a_photo_that_is_looked_through_lies_over_the_points_beside_the_panel(browser: Browser, tmp_path: Path) -> None:
    photos = {HOSTILE: photo(tmp_path / "a.jpg")}
    sights = {HOSTILE: 1234, "c.jpg": 1}
    write_model_page(tmp_path / "model.html", "", {}, points(), cameras(), photos, sights)
    said = act(browser, tmp_path / "model.html", LOOKING_THROUGH)
    assert all(said.values()) and len(said) == 9, said


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_points_like_the_ground_have_a_rim(browser: Browser, tmp_path: Path, theme: str) -> None:
    colours = np.full((3000, 3), 255, np.uint8)  # most are light, so that dark ones are not lightened
    colours[::3] = {"light": (244, 245, 247), "dark": (16, 20, 28)}[theme]
    write_model_page(tmp_path / "model.html", "", {}, Points(points().xyz, colours, *np.zeros((2, 3000))), cameras())
    script = f'setTheme("{theme}"); element("cameras").checked = false;'
    script += "said.rims = counted((r, g, b) => Math.max(r, g, b) < 180 && Math.min(r, g, b) > 80);"
    assert act(browser, tmp_path / "model.html", script)["rims"] > 1000
