"""The door to the benchmarks: what each one is, and what is refused before anything is described."""

import dataclasses
import inspect
from pathlib import Path

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from keypatch.benchmarks.evaluation import evaluate
from keypatch.benchmarks.result import Result, load_result
from keypatch.benchmarks.table import BENCHMARKS, headline_scores, kind_of
from keypatch.benchmarks.ubc import Ubc
from keypatch.detection import DETECTOR_TYPES, DETECTORS, Orb
from keypatch.errors import KeypatchError
from keypatch.patches.layouts import open_patches
from keypatch.provenance import provenance
from keypatch.settings import apply_settings, list_settings

DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"


class Pixels:
    """Rows of pixels, and how many patches were described in calls of more than one: the probe is of one."""

    name, dim, patch_size, patch_sigmas, unit_length, weights_hash = "pixels", 64, 64, 12.0, False, "abc"

    def __init__(self) -> None:
        self.described = 0

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        self.described += len(patches) if len(patches) > 1 else 0
        return patches[:, 32, :64].astype(np.float32)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """12 points of two patches each on one sheet, and a list of pairs."""
    from PIL import Image

    folder = tmp_path / "small"
    folder.mkdir()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (1024, 1024), np.uint8)).save(folder / "patches0000.bmp")
    (folder / "info.txt").write_text("".join(f"{i // 2} 0\n" for i in range(24)))
    pairs = [(2 * p, p, 2 * q + 1, q) for p in range(12) for q in (p, (p + 5) % 12)]
    (folder / "m50_24_24_0.txt").write_text("".join(f"{a} {p} 0 {b} {q} 0 0\n" for a, p, b, q in pairs))
    return folder


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_keeps_the_same_form(name: str) -> None:
    benchmark = BENCHMARKS[name]
    assert dataclasses.is_dataclass(benchmark.settings)
    defaults = benchmark.settings()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(defaults, dataclasses.fields(defaults)[0].name, None)
    parameters = list(inspect.signature(benchmark.run).parameters.values())
    assert [each.name for each in parameters[1:4]] == ["data", "settings", "progress"]
    assert parameters[2].default == defaults and parameters[3].default is None
    assert benchmark.line and "\n" not in benchmark.line and benchmark.headline


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_setting_says_what_it_means_and_can_be_set_to_its_default(name: str) -> None:
    kind = BENCHMARKS[name].settings
    listed = list(list_settings(kind(), DETECTOR_TYPES))
    assert [each.path for each in listed if not each.about and "." not in each.path] == []
    assert apply_settings(kind(), [f"{each.path}={each.default}" for each in listed], DETECTOR_TYPES) == kind()


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_has_a_page_that_names_its_settings(name: str) -> None:
    path = DOCS / f"{name}.md"
    assert path.exists(), f"docs/benchmarks/{name}.md is missing: write what it measures, its settings and its scores"
    page = path.read_text(encoding="utf-8")
    fields = [each.name for each in dataclasses.fields(BENCHMARKS[name].settings) if each.name != "extraction"]
    assert [field for field in fields if f"`{field}" not in page] == []
    assert f"({name}.md)" in (DOCS / "README.md").read_text(encoding="utf-8")


def test_settings_go_through_parts_and_a_detector_is_chosen_by_name() -> None:
    words = ["extraction.detector=orb", "extraction.detector.fast_threshold=9", "extraction.keypoints=8000", "step=90"]
    chosen = apply_settings(BENCHMARKS["rotation"].settings(), words, DETECTOR_TYPES)
    assert chosen.extraction.detector == Orb(fast_threshold=9)
    assert chosen.extraction.keypoints == 8000 and chosen.step == 90


def test_a_plain_word_is_a_tuple_of_one() -> None:
    kind = BENCHMARKS["hpatches"].settings
    assert apply_settings(kind(), ["sequences=boat"]).sequences == ("boat",)
    assert apply_settings(kind(), ['sequences=["boat", "wall"]']).sequences == ("boat", "wall")


@pytest.mark.parametrize(
    ("on", "word", "parts"),
    [
        ("ubc", "rul=rank", ['Ubc has no field "rul"', "Its fields: rule", 'Did you mean "rule"']),
        ("ubc", "rule=rnak", ["rnak", "rank, optimistic, hynet"]),
        ("ubc", "rule", ["--set rule: expected path=value", "rule"]),
        ("ubc", "rule.x=1", ["has no fields"]),
        ("stereo", "matching.estimator=ransac", ["ransac", "magsac", "degensac"]),
        ("stereo", "seeds.0=1", ["has no fields"]),
        ("rotation", "extraction.keypoint=1", ["Extraction has no field", 'Did you mean "keypoints"']),
        ("rotation", "extraction.keypoints=many", ["keypoints=many"]),
        ("rotation", "extraction.detector=harris", [f"one of {', '.join(DETECTORS)}"]),
        ("rotation", "extraction.detector=keynet", ["KeyNet needs weights", "--set extraction.detector.weights="]),
        ("rotation", "extraction.detector.contrast=1", ["Dog has no field"]),
        ("rotation", 'extraction.detector={type="grid", stp=3}', ["stp"]),
    ],
)
def test_a_wrong_setting_lists_what_there_is(on: str, word: str, parts: list[str]) -> None:
    with pytest.raises(KeypatchError) as caught:
        apply_settings(BENCHMARKS[on].settings(), [word], DETECTOR_TYPES)
    assert all(part in str(caught.value) for part in parts)


def test_settings_are_a_value_a_list_or_nothing(small: Path) -> None:
    for settings in (Ubc(rule="hynet", pictures=False), ["rule=hynet", "pictures=false"], "rule=hynet"):
        assert evaluate(Pixels(), "ubc", small, settings=settings).settings["rule"] == "hynet"
    assert evaluate(Pixels(), "ubc", small).settings["rule"] == "rank"


def write_features(folder: Path) -> Path:
    with h5py.File(folder / "features.h5", "w") as file:
        file["a.png/keypoints"] = np.ones((3, 2))
        file["a.png/descriptors"] = np.ones((8, 3))
    return folder / "features.h5"


def write_csv(folder: Path) -> Path:
    (folder / "csv" / "v_boat").mkdir(parents=True)
    (folder / "csv" / "v_boat" / "ref.csv").write_text("1,2\n")
    return folder / "csv"


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"benchmark": "ucb"}, ["ucb", 'Did you mean "ubc"', "embedding"]),
        ({"settings": ["rule=rnak"]}, ["rnak", "rank"]),
        ({"settings": Orb()}, ["Orb", "Ubc"]),
        ({"settings": [1]}, ["[1]", "Ubc"]),
        ({"out": "features.h5/r.json"}, ["features.h5/r.json cannot be written"]),
        ({"out": "."}, ["is a folder"]),
        ({"descriptor": "sfit"}, ['Did you mean "sift"']),
        ({"descriptor": "features.h5"}, ["features.h5 is a feature file", "ubc cannot score", "homography", "stereo"]),
        ({"descriptor": "csv"}, ["csv is a folder of csv descriptors", "ubc cannot score", "hpatches can"]),
        ({"descriptor": "none.h5", "benchmark": "homography"}, ["There is no feature file none.h5"]),
        ({"benchmark": "rotation", "descriptor": "features.h5"}, ["rotation cannot score"]),
        ({"benchmark": "hpatches", "data": "embedded-test"}, ["embedded-test", "--on ubc"]),
        ({"benchmark": "stereo", "data": "embedded"}, ["embedded", "--on ubc"]),
        ({"benchmark": "hpatches", "allow_partial": True}, ["--allow-partial", "hpatches"]),
        ({"data": "missing"}, ["missing"]),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_described(
    small: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], parts: list[str]
) -> None:
    monkeypatch.chdir(small.parent)
    write_features(small.parent)
    write_csv(small.parent)
    describer = Pixels()
    arguments: dict[str, object] = {"descriptor": describer, "benchmark": "ubc", "data": small} | changes
    with pytest.raises(KeypatchError) as caught:
        evaluate(**arguments)  # type: ignore[arg-type]
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert not describer.described


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody may write to")
def test_a_place_that_cannot_be_written_is_told_before_anything_is_described(small: Path) -> None:
    describer = Pixels()
    with pytest.raises(KeypatchError, match=r"/proc/r\.json cannot be written"):
        evaluate(describer, "ubc", small, "/proc/r.json")
    assert not describer.described


def test_a_folder_of_products_is_its_test_list_with_partial_sets_allowed_too(tmp_path: Path) -> None:
    from PIL import Image

    rows = ["image_id class_id super_class_id path"]
    for number in range(1, 7):
        pixels = np.random.default_rng(number).integers(0, 256, (64, 64), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
        rows.append(f"{number} {(number + 1) // 2} 1 {number}.png")
    (tmp_path / "Ebay_test.txt").write_text("\n".join(rows) + "\n")
    results = [evaluate(Pixels(), "embedding", tmp_path, allow_partial=partial) for partial in (False, True)]
    assert results[0].settings["images"] == 6 and results[0].scores == results[1].scores


def test_a_second_evaluation_describes_nothing_unless_it_should(small: Path) -> None:
    describer, steps = Pixels(), list[tuple[int, int, str]]()
    results = [evaluate(describer, "ubc", small, progress=lambda *step: steps.append(step)) for _ in range(2)]
    assert describer.described == 24 and steps == [(0, 24, "patches"), (24, 24, "patches")]
    assert results[0].scores == results[1].scores
    evaluate(describer, "ubc", small, settings=["rule=hynet"])
    assert describer.described == 24
    evaluate(describer, "ubc", small, cache=False)
    assert describer.described == 48


def test_the_result_is_written(small: Path, tmp_path: Path) -> None:
    result = evaluate(Pixels(), "ubc", small, tmp_path / "r.json")
    assert load_result(tmp_path / "r.json").scores == result.scores


def result_with(benchmark: str, *names: str) -> Result:
    return Result(benchmark, "x", {}, dict.fromkeys(names, 0.5), {}, provenance())


def test_headline_scores_stand_in_the_order_of_the_table() -> None:
    found = headline_scores(result_with("ubc", "ap.m50", "rank1", "fpr95.m50", "fpr95.hard", "spread.m1"))
    assert found == ["fpr95.m50", "fpr95.hard", "rank1"]


def test_a_result_of_an_unknown_benchmark_has_only_headlines() -> None:
    assert headline_scores(result_with("of tomorrow", "a", "b")) == ["a", "b"]


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (["x.h5"], "feature file"),
        (["x/scene/keypoints.h5"], "folder of keypoints.h5"),
        (["x/keypoints.h5", "x/descriptors.h5"], "folder of keypoints.h5"),
        (["x/descriptors/a.png.bin"], "folder of descriptors/*.bin"),
        (["x/v_boat/ref.csv"], "folder of csv descriptors"),
        (["x/recipe.toml", "x/checkpoints/log.csv"], None),
        (["x.safetensors"], None),
    ],
)
def test_what_others_have_computed_is_recognized(tmp_path: Path, made: list[str], kind: str | None) -> None:
    for name in made:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (path,) = tmp_path.iterdir()
    assert kind_of(path) == kind


def test_an_open_patch_set_is_scored_as_its_folder_is(small: Path) -> None:
    opened = evaluate(Pixels(), "ubc", open_patches(small))
    assert opened.scores == evaluate(Pixels(), "ubc", small).scores
    with pytest.raises(KeypatchError, match=r"patch set with pair lists\. Score it with --on ubc, not rotation"):
        evaluate(Pixels(), "rotation", open_patches(small))
