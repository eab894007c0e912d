"""The page in a real browser: sorting, hiding, pointing, hostile names, the phone, paper, and no request."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keypatch.reports import report

HOSTILE = "</script><img src=x onerror=alert(1)><script>alert(2)</script>\"'"
ROWS = "[...document.querySelector('table').tBodies[0].rows].filter(row => !row.matches('.off'))"
COLUMN = f"{ROWS}.map(row => row.cells[0].textContent)"
SECOND = "table th:nth-child(2)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages") / "page.html"


@pytest.fixture
def opened(browser: Any, page: Path, make: Callable, png: bytes) -> Any:
    results = [make("sift", 0.3), make("hynet", 0.1, pictures={"matches": png}), make("tfeat", 0.2)]
    report([*results, make("none", float("nan"), scores={"fpr95.easy": float("nan")})], page)
    browser.open(page)
    return browser


def complaints(browser: Any) -> list[dict]:
    kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening")
    return [event for event in browser.events if event["method"] in kinds]


def requests(browser: Any) -> list[str]:
    sent = [event for event in browser.events if event["method"] == "Network.requestWillBeSent"]
    return [event["params"]["request"]["url"] for event in sent]


def test_the_page_asks_for_nothing_and_complains_of_nothing(opened: Any, page: Path) -> None:
    asked = [url for url in requests(opened) if not url.startswith("data:image/png;base64,")]
    assert asked == [page.as_uri()]
    assert complaints(opened) == []
    assert opened.run("document.images[0].naturalWidth") == 40


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_the_order(opened: Any) -> None:
    assert opened.run(COLUMN) == ["hynet", "tfeat", "sift", "none"]
    opened.click(f"{SECOND} button")
    assert opened.run(COLUMN) == ["sift", "tfeat", "hynet", "none"]
    assert opened.run(f"document.querySelector('{SECOND}').ariaSort") == "descending"
    opened.click(f"{SECOND} button")
    assert opened.run(COLUMN) == ["hynet", "tfeat", "sift", "none"]
    opened.click("table th button")
    assert opened.run(COLUMN) == ["hynet", "none", "sift", "tfeat"]
    assert opened.run(f"document.querySelector('{SECOND}').ariaSort") == "none"
    opened.click(f"{SECOND} button")
    assert opened.run(COLUMN) == ["hynet", "tfeat", "sift", "none"]  # what has no score is last from any order


def test_a_heading_sorts_by_the_keyboard_too(opened: Any) -> None:
    opened.run(f"document.querySelector('{SECOND} button').focus()")
    opened.press("Enter")
    assert opened.run(COLUMN) == ["sift", "tfeat", "hynet", "none"]


def test_a_box_hides_the_row_the_curves_and_the_pictures_of_a_descriptor(opened: Any) -> None:
    def shown() -> list[int]:
        return opened.run(
            "['polyline[data-name=hynet]', 'polyline[data-name=sift]', 'img', 'polygon', 'tbody tr']"
            ".map(s => [...document.querySelectorAll(s)].filter(e => e.getClientRects().length).length)"
        )

    before = shown()
    opened.click(".legend input")
    assert opened.run(COLUMN) == ["tfeat", "sift", "none"]
    after = shown()
    assert before[:4] == [1, 1, 1, 8] and after[:4] == [0, 1, 0, 6] and after[4] < before[4]
    opened.click(".legend input")
    assert shown() == before


BOX = "document.querySelector('.reading')"
READING = f"{BOX}.hidden ? null : {BOX}.innerText.split(/\\s*\\n\\s*/)"


def test_pointing_at_a_curve_reads_every_line_there(opened: Any) -> None:
    x, y = opened.middle("svg.curves")
    opened.move(x, y)
    rate, *values = opened.run(READING)
    assert rate.startswith("false-positive rate ")
    at = float(rate.split()[-2]) / 100
    read = dict(zip(values[::2], values[1::2], strict=True))
    assert list(read) == ["hynet", "tfeat", "sift"]
    for name, power in (("hynet", 0.1), ("tfeat", 0.2), ("sift", 0.3)):
        # two digits of the rate are written, and lines are straight between the points of the curve
        assert float(read[name].split()[0]) == pytest.approx(100 * at**power, abs=2)
    opened.move(1, 1)
    assert opened.run(READING) is None


def test_what_is_hidden_is_not_read(opened: Any) -> None:
    opened.click(".legend input")
    opened.move(*opened.middle("svg.curves"))
    assert "hynet" not in opened.run(READING) and "sift" in opened.run(READING)


def test_arrow_keys_read_along_the_curves(opened: Any) -> None:
    opened.run("document.querySelector('svg.curves').focus()")
    opened.press("ArrowRight")
    first = opened.run(READING)
    opened.press("ArrowRight")
    second = opened.run(READING)
    assert float(second[0].split()[-2]) > float(first[0].split()[-2])
    opened.press("Escape")
    assert opened.run(READING) is None


def test_a_finger_reads_too_and_the_reading_stays_inside_the_figure(opened: Any, page: Path) -> None:
    opened.open(page, width=390, height=844)
    x, y = opened.middle("svg.curves")
    for place in (x - 120, x, x + 140):
        opened.touch(place, y)
        assert "hynet" in opened.run(READING)
        left, right = opened.run(f"['left', 'right'].map(side => {BOX}.getBoundingClientRect()[side])")
        assert left >= 0 and right <= 390


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_page_never_scrolls_sideways_and_tables_scroll_in_their_boxes(
    browser: Any, make: Callable, tmp_path: Path, width: int
) -> None:
    wide = {f"fpr95.list_of_pairs_{number}": 0.1 for number in range(10)}
    written = report([make("w" * 90, 0.1, scores=wide), make("a", 0.2, scores=wide)], tmp_path / "page.html")
    browser.open(written, width=width, height=800)
    browser.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelector('.box').scrollWidth > document.querySelector('.box').clientWidth")


def test_dark_and_light_follow_the_reader(opened: Any, page: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert min(opened.run(ground)) > 200
    opened.open(page, dark=True)
    assert max(opened.run(ground)) < 60


def test_on_paper_everything_is_open_and_nothing_is_to_be_clicked(opened: Any) -> None:
    opened.run("window.dispatchEvent(new Event('beforeprint'))")
    opened.ask("Emulation.setEmulatedMedia", media="print")
    assert opened.run("document.querySelectorAll('details:not([open])').length") == 0
    assert opened.run("getComputedStyle(document.querySelector('.legend input')).display") == "none"
    opened.run("window.dispatchEvent(new Event('afterprint'))")
    assert opened.run("document.querySelectorAll('details[open]').length") == 0
    opened.ask("Emulation.setEmulatedMedia", media="")


def test_scripts_in_names_stay_text(browser: Any, make: Callable, png: bytes, tmp_path: Path) -> None:
    results = [make(HOSTILE, 0.3, pictures={HOSTILE: png}, **{HOSTILE: HOSTILE, "data": HOSTILE}), make("sift", 0.2)]
    browser.open(report(results, tmp_path / "page.html", title=HOSTILE))
    browser.move(*browser.middle("svg.curves"))
    assert HOSTILE in browser.run("document.querySelector('.reading').textContent")
    browser.click("table th button")
    assert browser.run("document.title") == HOSTILE == browser.run("document.querySelector('h1').textContent")
    assert browser.run("document.scripts.length") == 1 and browser.run("document.images.length") == 1
    assert complaints(browser) == []


def test_the_policy_stops_a_script_that_got_in_anyway(browser: Any, make: Callable, tmp_path: Path) -> None:
    written = report(make("sift", 0.3), tmp_path / "page.html")
    text = written.read_text(encoding="utf-8")
    written.write_text(text.replace("<main>", "<main><script>window.in = 1</script>", 1), encoding="utf-8")
    browser.open(written)
    assert browser.run("'in' in window && window.in === 1") is False
    assert complaints(browser)
