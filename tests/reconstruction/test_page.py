"""The 3D page: what is in it, and that a real browser draws it."""

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.geometry.poses import Pose
from keypatch.reconstruction import Camera, PosedCamera, page
from keypatch.reconstruction.page import write_page
from keypatch.reconstruction.text_models import Points

HOSTILE = '</script><img src=x onerror=alert(1)>"&.jpg'
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
CAMERA = Camera("PINHOLE", 640, 480, (600, 600, 320, 240))


def cameras() -> dict[str, PosedCamera]:
    names = [HOSTILE, "b.jpg", "c.jpg"]
    return {name: PosedCamera(CAMERA, Pose(np.eye(3), np.array([1.5 - 1.5 * i, 0, 6]))) for i, name in enumerate(names)}


def points(count: int = 3000) -> Points:
    xyz = np.random.default_rng(0).uniform((-3, -2, -0.5), (3, 2, 0.5), (count, 3)) + np.array([1000, 0, 0])
    posed = np.tile(np.uint8((30, 90, 200)), (count, 1))
    return Points(xyz - np.array([1000, 0, 0]), posed, np.zeros(count), np.arange(count) % 7 + 2)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write_page(tmp_path / "model.html", "my <scene>", {"points": "3,000"}, points(), cameras())
    return tmp_path / "model.html"


def content(path: Path) -> dict:
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script id="model" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_names_cannot_leave_their_place_in_the_page(written: Path) -> None:
    assert content(written)["names"][0] == HOSTILE and content(written)["title"] == "my <scene>"
    assert "<img" not in written.read_text(encoding="utf-8")


def test_nothing_is_loaded_from_elsewhere(written: Path) -> None:
    text = re.sub(r'(<script id="model"[^>]*>).*?(</script>)', r"\1\2", written.read_text(encoding="utf-8"), flags=re.S)
    assert "default-src 'none'" in text and "://" not in text
    assert not re.search(r"(src|href|url)\s*[=(]|innerHTML|fetch\(|XMLHttp|import\(", text)


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
    assert np.allclose((eyes - xyz[0]) * scale, [c.pose.centre - truth[0] for c in cameras().values()], atol=1e-4)


def test_of_too_many_points_those_seen_most_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_POINTS", 400)
    write_page(tmp_path / "model.html", "", {}, points(), cameras())
    xyz = np.frombuffer(base64.b64decode(content(tmp_path / "model.html")["xyz"]), "<f4").reshape(-1, 3)
    assert len(xyz) == 400
    kept = points().xyz[np.flatnonzero(points().track_lengths == 8)[:400]]
    assert np.allclose(np.argsort(xyz[:, 0]), np.argsort(kept[:, 0]))


def test_a_full_page_stays_below_five_megabytes(tmp_path: Path) -> None:
    write_page(tmp_path / "model.html", "", {}, points(page.MOST_POINTS + 10), cameras())
    assert (tmp_path / "model.html").stat().st_size < 5_000_000


def browse(path: Path, *options: str) -> str:
    """What Chromium prints; without a graphics card it draws in software."""
    words = ["--headless=new", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader"]
    words += ["--enable-unsafe-swiftshader"]
    words += ["--window-size=1000,700", "--virtual-time-budget=3000", f"--user-data-dir={path.parent / 'profile'}"]
    assert BROWSER is not None
    done = subprocess.run([BROWSER, *words, *options, path.as_uri()], capture_output=True, text=True, timeout=300)
    return done.stdout


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_a_browser_draws_points_and_cameras(written: Path) -> None:
    shot = written.with_name("shot.png")
    browse(written, f"--screenshot={shot}", "--hide-scrollbars")
    drawn = np.asarray(Image.open(shot).convert("RGB")).astype(int)
    blue = (drawn[..., 2] > 120) & (drawn[..., 0] < 0.6 * drawn[..., 2])
    orange = (drawn[..., 0] > 150) & (drawn[..., 2] < 120) & (drawn[..., 1] < 0.85 * drawn[..., 0])
    assert blue.sum() > 2000 and orange.sum() > 300


ACTIONS = """
<script>
addEventListener("load", () => setTimeout(() => {
  const said = {};
  const at = (type, x, y, more) =>
    canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: x, clientY: y, ...more }));
  canvas.setPointerCapture = () => {};
  const before = [...view.eye], height = () => Math.hypot(...add(view.eye, view.target, -1)), far = height();
  at("pointerdown", 500, 300, { buttons: 1 }); at("pointermove", 560, 300, { buttons: 1 }); at("pointerup", 560, 300);
  said.turned = Math.hypot(...add(view.eye, before, -1)) > 0.1 && Math.abs(height() - far) < 1e-6;
  canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -300, cancelable: true }));
  said.zoomed = height() < 0.8 * far;
  const target = [...view.target];
  at("pointerdown", 500, 300, { buttons: 2 }); at("pointermove", 540, 320, { buttons: 2 }); at("pointerup", 540, 320);
  said.moved = Math.hypot(...add(view.target, target, -1)) > 0.01;
  view = { ...home };
  const place = onScreen(corner(0, 0), matrix());
  at("pointermove", place[0], place[1]);
  said.name = element("name").textContent; said.shown = !element("name").hidden;
  const theme = root.dataset.theme; element("theme").click();
  said.theme = root.dataset.theme !== theme;
  at("pointerdown", place[0], place[1], { buttons: 1 }); at("pointerup", place[0], place[1]);
  said.flying = flight !== null && Math.hypot(...add(flight.goal.eye, corner(0, 0), -1)) < 1e-6;
  const pixels = new Uint8Array(4 * canvas.width * canvas.height);
  flight = null; view = { ...home }; element("cameras").checked = true; paint(1);
  gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
  const lines = p => { let n = 0; for (let i = 0; i < p.length; i += 4) n += p[i] > 150 && p[i + 2] < 120; return n; };
  const with_ = lines(pixels); element("cameras").checked = false; paint(1);
  gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
  said.hidden = with_ > 100 && lines(pixels) === 0;
  said.title = document.title; said.images = document.images.length;
  said.facts = document.querySelector("dl").textContent;
  const box = document.createElement("pre");
  box.id = "said"; box.textContent = btoa(JSON.stringify(said)); document.body.append(box);
}, 300));
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_the_model_turns_zooms_moves_and_names_its_cameras(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    acted = written.with_name("acted.html")
    acted.write_text(text.replace("</body>", ACTIONS + "</body>"), encoding="utf-8")
    found = re.search(r'<pre id="said">([^<]*)</pre>', browse(acted, "--dump-dom"))
    assert found is not None
    said = json.loads(base64.b64decode(found[1]))
    assert all(said[what] for what in ("turned", "zoomed", "moved", "shown", "theme", "flying", "hidden")), said
    assert said["name"] == HOSTILE and said["title"] == "my <scene>" and said["images"] == 0
    assert said["facts"] == "points3,000"
