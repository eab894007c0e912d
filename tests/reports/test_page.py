"""`report`: which files it takes, which it refuses, and what stands on the page."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from keypatch.benchmarks.result import Replicates, Result
from keypatch.errors import KeypatchError
from keypatch.metrics import Curve
from keypatch.reports import page as pages
from keypatch.reports import report
from keypatch.reports.protocols import read_sources
from keypatch.training.statistics import TABLE_II

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
VOID = {"br", "img", "input", "meta"}


class Strict(HTMLParser):
    """Every element is closed in order; keeps tags, text and tables as lists of rows of texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.tables: list[list[list[str]]] = []
        self.bold: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"script", "style"} & set(self.open):
            return
        self.text += data
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += f" {data}".rstrip()
        if "strong" in self.open:
            self.bold.append(data)


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Strict]:
    def read(*places: object, **options: object) -> Strict:
        reader = Strict()
        reader.feed(report(places, tmp_path / "page.html", **options).read_text(encoding="utf-8"))
        reader.close()
        assert reader.open == []
        return reader

    return read


def test_scores_stand_with_their_intervals_and_the_best_is_bold(page: Callable, make: Callable) -> None:
    shown = page(make("sift", 0.3), make("hynet", 0.1))
    head, first, second = shown.tables[0]
    assert head[1].split()[:2] == ["FPR95", "%"] and "lower is better" in head[1]
    low, high = make("hynet", 0.1).interval("fpr95.easy")
    assert first[:2] == [" hynet", f" 10.00 {100 * low:.2f} {DASH} {100 * high:.2f}"]
    assert second[0] == " sift" and second[2] == " 70.00"
    assert shown.bold == ["10.00", "90.00"]
    assert "over 800 pairs" in shown.text


def test_a_difference_is_shown_only_where_the_interval_leaves_out_zero(page: Callable, make: Callable) -> None:
    noise = np.random.default_rng(0).normal(size=(3, 1000))
    results = [make("best", 0.1), make("near", 0.101), make("far", 0.3)]
    drawn = [
        replace(result, replicates={"fpr95.easy": Replicates(result.scores["fpr95.easy"] + 0.01 * each, "pairs", 800)})
        for result, each in zip(results, noise, strict=True)
    ]
    _, *rows = page(*drawn).tables[1]
    assert [row[1].split()[0] for row in rows] == ["reference", "no", "+20.00"]
    assert rows[1][1].startswith(f" no difference shown {MINUS}") and " to +" in rows[1][1]
    _, *rows = page(*drawn, baseline="far").tables[1]
    assert [row[1].split()[0] for row in rows] == [f"{MINUS}20.00", f"{MINUS}19.90", "reference"]


def test_results_without_intervals_are_shown_and_said_to_have_none(page: Callable, make: Callable) -> None:
    old = [make(name, 0.1, scores={"fpr95.easy": score}) for name, score in (("a", 0.1), ("b", float("nan")))]
    shown = page(*old)
    assert "no bootstrap intervals" in shown.text and "Is there a difference?" not in shown.text
    assert shown.tables[0][2] == [" b", f" {DASH}"] and shown.bold == []


def test_figures_of_papers_stand_apart_and_only_beside_the_same_set(page: Callable, make: Callable) -> None:
    scores = {"fpr95.m50_100000_100000_0": 0.3}
    shown = page(*(make(name, 0.3, scores=scores, data="liberty") for name in ("sift", "hynet-notredame", "mine")))
    table = {row[0]: row[2] for row in shown.tables[0][1:]}
    assert "not measured here" in shown.tables[0][0][2]
    assert table == {" sift": " 29.84 HyNet, Table 1", " hynet-notredame": " 0.89 HyNet, Table 1", " mine": ""}
    assert "What papers print for liberty" in shown.text
    assert "AdaSample, Table 1" in shown.text and "GOR, Table 1" not in shown.text  # in part another definition
    for other in ({"data": "castle"}, {"data": "liberty", "rule": "discovery"}):
        assert "papers" not in page(make("sift", 0.3, scores=scores, **other)).text


def test_beside_a_papers_figure_stands_whether_ours_was_trained_as_published(page: Callable, make: Callable) -> None:
    scores = {"fpr95.m50_100000_100000_0": 0.3}
    sift, hynet, hardnet = (
        make(name, 0.3, scores=scores, data="liberty") for name in ("sift", "hynet-notredame", "hardnet-notredame")
    )
    forms = "as published", "with our detector noise (1)"
    ours = [replace(each, notes={"trained": form}) for each, form in zip((hynet, hardnet), forms, strict=True)]
    shown = page(sift, *ours)
    assert {row[0]: row[1] for row in shown.tables[0]} == {
        " descriptor": " trained",
        " sift": f" {DASH}",
        " hynet-notredame": " as published",
        " hardnet-notredame": " with our detector noise (1)",
    }
    assert "by the text of its paper" in shown.text
    assert page(sift, hynet).tables[0][0][1].startswith(" FPR95")  # nothing is known


def test_the_papers_figure_for_hpatches_stands_only_beside_the_whole_split(page: Callable, make: Callable) -> None:
    def shown(split: str, sequences: int) -> str:
        settings = {"split": split, "sequences": [f"v_{number}" for number in range(sequences)]}
        scores = {"matching.map": 0.5}
        return page(make("hynet-liberty", 0.1, benchmark="hpatches", scores=scores, **settings)).text

    assert "53.97" in shown("a", 40)
    assert not any("53.97" in shown(*other) for other in (("a", 8), ("b", 40), ("full", 116)))


def test_curves_of_a_name_share_a_figure_and_their_lines_belong_to_descriptors(page: Callable, make: Callable) -> None:
    shown = page(make("sift", 0.3), make("hynet", 0.1))
    lines = [attributes for tag, attributes in shown.tags if tag == "polyline"]
    assert [line["data-name"] for line in lines] == ["hynet", "sift"]
    assert len({line["class"] for line in lines}) == 2
    assert "Similarity of pairs, easy" in shown.text
    assert sum(tag == "polygon" for tag, _ in shown.tags) == 4


def test_pictures_are_inside_the_page_and_titles_with_the_same_ones_stand_together(
    page: Callable, make: Callable, png: bytes
) -> None:
    shown = page(make("sift", 0.3, pictures={"hardest pairs, a": png, "hardest pairs, b": png, "matches": png + b" "}))
    pictures = [attributes for tag, attributes in shown.tags if tag == "img"]
    assert "Hardest pairs, a and b" in shown.text and "Matches" in shown.text
    assert len(pictures) == 2 and all(picture["src"].startswith("data:image/png;base64,") for picture in pictures)
    assert (pictures[0]["width"], pictures[0]["height"]) == ("40", "30")


def test_settings_card_and_origin_are_told(page: Callable, make: Callable) -> None:
    text = page(make("sift", 0.3, card={"about": "noise in blocks"}, patch_sigmas=12)).text
    for said in ("noise in blocks", "keypatch 0.1.0, torch 2.5", "patch_sigmas 12", "2026-01-02T03:04:05", "rank"):
        assert said in text


def test_of_very_many_results_the_best_are_drawn_and_all_are_in_the_table(page: Callable, make: Callable) -> None:
    shown = page(*(make(f"d{number}", 0.001 + number / 1000) for number in range(300)))
    assert len(shown.tables[0]) == 301
    assert sum(tag == "polyline" for tag, _ in shown.tags) == pages.MOST_DRAWN
    assert "first 12 of 300 rows" in shown.text


def test_an_empty_curve_and_one_of_nan_do_no_harm(page: Callable, make: Callable) -> None:
    curves = {"roc.a": Curve(np.zeros(0), np.zeros(0)), "odd": Curve(np.full(3, np.nan), np.full(3, np.inf))}
    curves |= {f"similarity.{kind}": Curve(np.zeros(0), np.zeros(0)) for kind in ("matching", "nonmatching")}
    assert "odd" in page(replace(make("sift", 0.3), curves=curves)).text


def test_the_log_of_a_run_becomes_training_curves(page: Callable, make: Callable, tmp_path: Path) -> None:
    run = tmp_path / "my-run"
    run.mkdir()
    records = [{"pairs": 100 * k, "loss": 1 / (k + 1), "positive": 0.7, "negative": None} for k in range(5)]
    records += [{"pairs": "many", "loss": 0.1}, {"pairs": 900, "loss": "low"}]
    (run / "log.jsonl").write_text("\n".join(map(json.dumps, records)) + '\n{"pairs": 5', encoding="utf-8")
    (run / "card.json").write_text('{"format": "keypatch-card"}', encoding="utf-8")
    make("trained", 0.1).save(run / "trained.json")
    shown = page(run)
    assert [attributes["data-name"] for tag, attributes in shown.tags if tag == "polyline"] == ["trained"] + 2 * [
        "my-run"
    ]
    assert "1 result · 1 table · 1 run" in shown.text


def test_epochs_and_running_statistics_of_runs_are_shown(page: Callable, tmp_path: Path) -> None:
    for name, form in (("raw", "as published"), ("other", "")):
        (tmp_path / name).mkdir()
        lines = [
            {
                "pairs": 100 * n,
                "validation": {"castle": {"fpr95.hard": 0.5 - 0.01 * n}, "oxford": {"matching.map": 0.01 * n}},
                "statistics": {each: float(n) for each in TABLE_II} | {"sampler/loss": 1.0 / n, "odd": "text"},
            }
            for n in range(1, 21)
        ]
        (tmp_path / name / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
        if form:
            (tmp_path / name / "card.json").write_text(json.dumps({"trained": form}))
    shown = page(tmp_path)
    epochs, *tables = shown.tables
    assert epochs[1][:2] == [" other", " \N{EN DASH}"]
    assert epochs[3] == [
        " raw", " as published", " castle", " FPR95 % hard",
        " 30.00 after 2,000 pairs", " 30.00 after 2,000 pairs", " 34.50",
    ]  # fmt: skip
    assert epochs[4][4:] == [" 20.00 after 2,000 pairs", " 20.00 after 2,000 pairs", " 15.50"]
    assert len(epochs) == 5 and len(tables) == 2
    assert tables[0][0][1:] == [f" {pairs:,} pairs" for pairs in (300, 700, 1100, 1500, 1900)]
    assert tables[0][1] == [" E[theta_r]", " 3", " 7", " 11", " 15", " 19"]
    for title in ("FPR95 on castle", "matching mAP on oxford", "SDGMNet: E[P+]", "AdaSample: L_avg"):
        assert title in shown.text
    assert "Table II, raw, as published" in shown.text and "odd" not in shown.text


def test_a_file_named_twice_or_with_its_folder_counts_once(make: Callable, tmp_path: Path) -> None:
    make("sift", 0.3).save(tmp_path / "a.json")
    (tmp_path / "deeper").mkdir()
    make("hynet", 0.1).save(tmp_path / "deeper" / "b.json")
    found = read_sources([tmp_path / "a.json", tmp_path, tmp_path / "a.json"])
    assert [source.file for source in found.results] == ["a.json", "b.json"]


HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\u2028\u2029--><script>alert(2)</script>"


def hostile(make: Callable, png: bytes) -> Result:
    """A result with a script wherever a result has a text."""
    result = make(HOSTILE, 0.3, card={HOSTILE: HOSTILE}, **{HOSTILE: HOSTILE, "data": HOSTILE})
    curve = result.curves["roc.easy"]
    origin = replace(result.provenance, command=HOSTILE, machine=HOSTILE, date=HOSTILE, hashes={HOSTILE: HOSTILE})
    return replace(
        result,
        benchmark=HOSTILE,
        scores={**result.scores, HOSTILE: 0.5},
        curves={**result.curves, HOSTILE: curve, f"roc.{HOSTILE}": curve, f"similarity.matching{HOSTILE}": curve},
        replicates={HOSTILE: Replicates(np.linspace(0, 1, 1000), HOSTILE, 9)},
        pictures={HOSTILE: png},
        provenance=origin,
    )


def test_whatever_a_result_holds_stays_text(page: Callable, make: Callable, png: bytes, tmp_path: Path) -> None:
    file = tmp_path / "<b>&.json"
    hostile(make, png).save(file)
    shown = page(file, title=HOSTILE)
    names = [tag for tag, _ in shown.tags]
    assert names.count("script") == 1 and names.count("img") == 1 and "b" not in names
    assert not [a for _, attributes in shown.tags for a in attributes if a.startswith("on")]
    assert shown.text.count(HOSTILE) > 10


def test_half_a_surrogate_pair_in_a_name_becomes_a_question_mark(page: Callable, make: Callable) -> None:
    assert "sift?" in page(make("sift\ud800", 0.3)).text


def test_the_policy_allows_one_style_one_script_and_pictures_inside(page: Callable, make: Callable) -> None:
    shown = page(make("sift", 0.3))
    policy = next(a["content"] for tag, a in shown.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert re.fullmatch(
        r"default-src 'none'; img-src data:; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; base-uri 'none'",
        policy,
    )
    assert not [a for _, attributes in shown.tags for a in attributes if a in ("style", "href", "srcset")]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("missing.json", None, "There is no file or folder"),
        ("empty", "folder", "has neither a result"),
        ("a.json", "[1, 2]", "is not a result file"),
        ("a.json", "{", "is not a readable JSON file"),
        ("a.json", '{"format": "keypatch-result", "format_number": 99}', "update keypatch"),
        ("a.json", '{"format": "keypatch-result", "format_number": 2}', "is not a readable result file"),
    ],
)
def test_what_is_no_result_is_refused_with_a_sentence(
    tmp_path: Path, name: str, content: str | None, sentence: str
) -> None:
    place = tmp_path / name
    if content == "folder":
        place.mkdir()
    elif content is not None:
        place.write_text(content, encoding="utf-8")
    with pytest.raises(KeypatchError, match=sentence):
        report([place], tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("named", ["folder", "files"])
def test_a_damaged_file_is_left_out_and_named(make: Callable, tmp_path: Path, named: str) -> None:
    make("sift", 0.3).save(tmp_path / "a.json")
    (tmp_path / "b.json").write_text("{", encoding="utf-8")
    places = [tmp_path] if named == "folder" else [tmp_path / "a.json", tmp_path / "b.json"]
    with pytest.warns(UserWarning, match=rf"Left out: {tmp_path}/b\.json is not a readable JSON file"):
        page = report(places, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Left out: b.json is not a readable JSON file" in page and ">30.00<" in page
    assert str(tmp_path) not in page


def test_runs_and_results_in_folders_below_are_found_and_told_apart(make: Callable, tmp_path: Path) -> None:
    for run, fpr95 in (("first", 0.3), ("second", 0.2)):
        folder = tmp_path / "runs" / run / "net"
        folder.mkdir(parents=True)
        lines = [{"pairs": 512 * n, "loss": 1 / n, "positive": 1.0} for n in (1, 2, 3)]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (folder / "log.jsonl").write_text(f"3\n{text}[1]\n{{cut")  # lines that are no records are passed over
        (folder / "card.json").write_text("{}")
        make("net", fpr95).save(folder / "ubc.json")
    page = report([tmp_path / "runs"], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "2 results" in page and "2 runs" in page
    assert all(f"<span>{name}</span>" in page for name in ("net (first)", "net (second)", "first/net", "second/net"))
    assert str(tmp_path) not in page


def test_a_folder_without_results_beside_one_with_them_is_named(make: Callable, tmp_path: Path) -> None:
    make("sift", 0.3).save(tmp_path / "a.json")
    (tmp_path / "empty").mkdir()
    with pytest.warns(UserWarning, match="empty has neither a result"):
        page = report([tmp_path / "a.json", tmp_path / "empty"], tmp_path / "page.html")
    assert "empty has neither a result" in page.read_text(encoding="utf-8")


def test_a_provenance_of_other_things_than_texts_is_refused(make: Callable, tmp_path: Path) -> None:
    value = make("sift", 0.3).to_json()
    for damage in ({"date": 5}, {"hashes": []}, {"hashes": {"data": 5}}):
        broken = {**value, "provenance": {**value["provenance"], **damage}}
        (tmp_path / "a.json").write_text(json.dumps(broken), encoding="utf-8")
        with pytest.raises(KeypatchError, match=r"a\.json is not a readable result file"):
            report([tmp_path / "a.json"], tmp_path / "page.html")


@pytest.mark.parametrize(
    ("out", "sentence"),
    [("page.json", "must be an .html file"), ("file/page.html", "cannot be written"), ("folder.html", "is a folder")],
)
def test_a_page_that_cannot_be_written_is_refused_before_reading(tmp_path: Path, out: str, sentence: str) -> None:
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(KeypatchError, match=sentence):
        report([tmp_path / "missing.json"], tmp_path / out)


def test_no_places_and_an_unknown_baseline_are_refused(make: Callable, tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match="no results to report"):
        report([], tmp_path / "page.html")
    with pytest.raises(KeypatchError, match=r'baseline "orb"\. Choose one of sift'):
        report([make("sift", 0.3)], tmp_path / "page.html", baseline="orb")


def test_an_old_page_stays_when_the_new_one_cannot_be_made(make: Callable, tmp_path: Path) -> None:
    page = report(make("sift", 0.3), tmp_path / "page.html")
    before = page.read_bytes()
    with pytest.raises(KeypatchError):
        report([tmp_path / "missing.json"], page)
    assert page.read_bytes() == before and [path.name for path in tmp_path.iterdir()] == ["page.html"]
