"""`keypatch report`, and where the quickstart says its page is."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def result(keypatch: Callable, phototour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "results").mkdir()
    out = tmp_path / "results" / "rootsift.json"
    assert keypatch("evaluate", "rootsift", "--data", phototour, "--out", out).code == 0
    return out


def test_a_result_file_becomes_a_page(keypatch: Callable, result: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    shown = keypatch("report", result, "--out", page, "--title", "My <page>")
    assert (shown.code, shown.out, shown.err) == (0, f"Written: {page}\n", "")
    text = page.read_text(encoding="utf-8")
    score = json.loads(result.read_text())["scores"]["fpr95.m50_120_120_0"]
    assert f">{100 * score:.2f}<" in text and "<h1>My &lt;page&gt;</h1>" in text


def test_a_folder_of_results_and_a_baseline(keypatch: Callable, result: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    value = json.loads(result.read_text())
    (result.parent / "other.json").write_text(json.dumps({**value, "descriptor": "other"}))
    assert keypatch("report", result.parent, "--baseline", "other", "--out", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "minus other" in text and "no difference shown" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{result}", "--out", "{folder}/page.pdf"], "The page must be an .html file, not page.pdf."),
        (["{result}", "--out", "{result}/page.html"], "page.html cannot be written"),
        (["{folder}/none.json", "--out", "{folder}/page.html"], "There is no file or folder"),
        (["{data}/info.txt", "--out", "{folder}/page.html"], "is not a readable JSON file"),
        (["{data}", "--out", "{folder}/page.html"], "has neither a result"),
        (["{result}", "--baseline", "orb", "--out", "{folder}/page.html"], 'no result for the baseline "orb"'),
    ],
)
def test_wrong_input_is_one_sentence(
    keypatch: Callable, result: Path, phototour: Path, tmp_path: Path, words: list[str], sentence: str
) -> None:
    shown = keypatch("report", *(word.format(result=result, folder=tmp_path, data=phototour) for word in words))
    assert shown.code == 2 and sentence in shown.err and shown.err.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_the_quickstart_says_where_its_picture_and_page_are(
    keypatch: Callable, result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keypatch.benchmarks import load_result
    from keypatch.commands.quickstart import Quickstart

    done = Quickstart(tmp_path, (load_result(result),), tmp_path / "match.png", tmp_path / "report.html")
    monkeypatch.setattr("keypatch.commands.quickstart.quickstart", lambda *_, **__: done)
    *_, picture, page = keypatch("quickstart", "--out", tmp_path).out.splitlines()
    assert picture.endswith(f": {tmp_path / 'match.png'}") and page.endswith(f": {tmp_path / 'report.html'}")
