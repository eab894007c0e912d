"""The benchmark as a whole: strips and csv, splits, lists, whitening, the cache; what is refused before describing."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks import Hpatches, Result, evaluate_hpatches, evaluate_rank1
from keypatch.benchmarks.hpatches.descriptors import StripPatches
from keypatch.errors import DataError, KeypatchError
from keypatch.patches.hpatches import STRIPS, read_strip, split_sequences
from keypatch.patches.patch_set import reduce_patches
from keypatch.zoo import load

NAMES = ("i_dark", "v_turn", "v_walk")
ROWS = {"i_dark": 9, "v_turn": 14, "v_walk": 12}
HEADLINE = ("verification.ap", "verification.auc", "matching.map", "retrieval.map")


@dataclass(frozen=True)
class Pixels:
    """A few pixels of a patch, and how many patches were asked for in calls of more than one: a probe is of one."""

    name: str = "pixels"
    dim: int = 16
    patch_size: int = 64
    patch_sigmas: float = 24.0
    unit_length: bool = False
    weights_hash: str = "abc"
    asked: list[int] = field(default_factory=list)

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        if len(patches) > 1:
            self.asked.append(len(patches))
        return patches[:, 8::16, 8::16].reshape(-1, 16).astype(np.float32)


def write_strips(folder: Path, rows: dict[str, int], side: int = 65) -> Path:
    """Blocky noise of each point, with more noise from e to t."""
    rng = np.random.default_rng(0)
    for name, count in rows.items():
        (folder / name).mkdir(parents=True)
        points = rng.integers(40, 216, (count, 4, 4)).repeat(side // 4, axis=1).repeat(side // 4, axis=2)
        points = np.pad(points, ((0, 0), (0, side % 4), (0, side % 4)), "edge")
        for strip in STRIPS:
            noise = rng.normal(0, {"r": 0, "e": 40, "h": 70, "t": 100}[strip[0]], points.shape)
            pixels = np.clip(points + noise, 0, 255).astype(np.uint8)
            Image.fromarray(pixels.reshape(-1, side)).save(folder / name / f"{strip}.png")
    return folder


@pytest.fixture(scope="session")
def strips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_strips(tmp_path_factory.mktemp("strips"), ROWS)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))


def test_any_set_is_scored_with_lists_of_its_own(strips: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    result = evaluate_hpatches(Pixels(), strips, progress=lambda *step: steps.append(step))
    assert steps[-1] == (16 * 35, 16 * 35, "patches")
    assert result.settings["tasks"] == "drawn, seed 0" and result.settings["sequences"] == list(NAMES)
    assert result.conditions() == (
        "split all, tasks drawn, seed 0, distance L2, ap trapezoid, ties pessimistic, pca no"
    )
    assert (result.settings["positives"], result.settings["queries"], result.settings["distractors"]) == (700, 7, 14)
    for name in HEADLINE:
        assert 0.3 < result.scores[name] < 1 and name in result.replicates, name
    for name in ("verification.ap.{}.intra", "matching.map.{}", "matching.sr.{}.v", "rank1.{}.i"):
        easy, hard, tough = (result.scores[name.format(level)] for level in "eht")
        assert easy >= hard >= tough and easy > tough
    assert np.mean([result.scores[f"matching.map.{e}.{n}"] for e in "eht" for n in NAMES]) == pytest.approx(
        result.scores["matching.map"]
    )
    assert {"roc.e.inter", "pr.t.intra"} <= set(result.curves)
    assert Result.from_json(result.to_json()).scores == result.scores


def test_rank1_is_that_of_the_study(strips: Path) -> None:
    alone = evaluate_rank1(Pixels(), strips).scores
    whole = evaluate_hpatches(Pixels(), strips).scores
    assert {name: whole[name] for name in alone} == pytest.approx(alone)


def test_patches_reach_the_describer_strip_after_strip(strips: Path) -> None:
    names = [(name, strip) for name in ("v_turn", "i_dark") for strip in ("ref", "t5")]
    patches = StripPatches(strips, names, np.array([14, 14, 9, 9]))
    expected = np.concatenate([reduce_patches(read_strip(strips, *name), 64) for name in names])
    order = np.random.default_rng(0).permutation(len(patches))
    np.testing.assert_array_equal(patches.take(np.arange(46)), expected)
    np.testing.assert_array_equal(patches.take(order), expected[order])


def test_written_descriptors_score_the_same_on_the_same_data(strips: Path, tmp_path: Path) -> None:
    written = tmp_path / "pixels"
    result = evaluate_hpatches(Pixels(), strips, Hpatches(write=str(written)))
    again = evaluate_hpatches(written, strips)
    assert again.scores == result.scores and again.descriptor == "pixels"
    assert again.provenance.hashes["data"] == result.provenance.hashes["data"], "so that the two can be compared"
    assert "write" not in result.settings
    without = evaluate_hpatches(str(written), str(written))
    assert without.scores == result.scores, "the lists depend on names and numbers alone"
    with pytest.raises(KeypatchError, match="not an empty folder"):
        evaluate_hpatches(Pixels(), strips, Hpatches(write=str(written)))


def test_the_network_runs_once_for_two_rules(strips: Path) -> None:
    pixels = Pixels()
    first = evaluate_hpatches(pixels, strips)
    asked = sum(pixels.asked)
    second = evaluate_hpatches(pixels, strips, Hpatches(ap="classic", ties="public", distance="L1"))
    assert asked == sum(pixels.asked) == 16 * 35
    assert first.scores["matching.map"] != second.scores["matching.map"]
    part = evaluate_hpatches(pixels, strips, Hpatches(sequences=("turn", "dark")))
    assert sum(pixels.asked) == asked + 16 * 23 and part.settings["sequences"] == ["i_dark", "v_turn"]
    assert part.provenance.hashes["data"] != first.provenance.hashes["data"]


def test_patches_that_another_opencv_reduces_otherwise_are_described_again(
    split_a: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels, settings = Pixels(), Hpatches(split="a", pca=True)
    first = evaluate_hpatches(pixels, split_a, settings)
    asked, resize = sum(pixels.asked), cv2.resize

    def darker(patch: NDArray[np.uint8], *size: Any, dst: NDArray[np.uint8], **how: Any) -> None:
        dst[:] = resize(patch, *size, **how) // 2

    monkeypatch.setattr(cv2, "resize", darker)
    second = evaluate_hpatches(pixels, split_a, settings)
    assert sum(pixels.asked) == 2 * asked, "of the test part and of the training part"
    assert second.provenance.hashes["data"] == first.provenance.hashes["data"], "the files are the same"


def test_one_sequence_has_no_scores_that_need_another(strips: Path) -> None:
    result = evaluate_hpatches(Pixels(), strips, Hpatches(sequences=("walk",)))
    scores = result.scores
    assert np.isnan([scores["verification.ap.e.inter"], scores["verification.ap"], scores["retrieval.map"]]).all()
    assert scores["verification.ap.e.intra"] > 0.3 and scores["matching.map"] > 0.3
    assert set(result.replicates) == {"matching.map"} and result.interval("matching.map") is None


def test_the_smallest_set_has_scores(tmp_path: Path) -> None:
    result = evaluate_hpatches(Pixels(), write_strips(tmp_path / "s", {"i_a": 2, "b": 2}))
    assert 0 <= result.scores["matching.map"] <= 1 and 0 <= result.scores["verification.ap"] <= 1
    assert (result.settings["queries"], result.settings["distractors"]) == (1, 1)
    assert "matching.map.v" not in result.scores and "matching.map.e.b" in result.scores


@pytest.fixture
def split_a(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("keypatch.benchmarks.hpatches.lists.PAIRS", 2000)
    names = split_sequences("a", "test") + split_sequences("a", "train")
    return write_strips(tmp_path / "hpatches-release", dict.fromkeys(names, 3), side=8)


def test_a_public_split_is_scored_by_its_lists_and_whitened_by_its_training_part(split_a: Path) -> None:
    pixels = Pixels()
    plain = evaluate_hpatches(pixels, split_a, Hpatches(split="a"))
    assert plain.settings["tasks"] == "drawn as published, seed 42"
    assert plain.settings["sequences"] == list(split_sequences("a", "test"))
    assert sum(pixels.asked) == 40 * 16 * 3
    whitened = evaluate_hpatches(pixels, split_a, Hpatches(split="a", pca=True))
    assert sum(pixels.asked) == 40 * 16 * 3 + 76 * 3, "only ref of the training part"
    assert whitened.scores["verification.ap"] != plain.scores["verification.ap"]
    (split_a / "v_there" / "ref.png").unlink()
    with pytest.raises(DataError, match=r"ref\.png"):
        evaluate_hpatches(pixels, split_a, Hpatches(split="a", pca=True))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ties": "kind"}, "ties must be one of pessimistic, public, not 'kind'"),
        ({"ap": "vlfeat"}, "ap must be one of trapezoid, classic, not 'vlfeat'"),
        ({"distance": "cosine"}, "distance must be one of L2, L1, not 'cosine'"),
        ({"split": "a", "sequences": ("boat",)}, 'the split is "a". Leave one of them out'),
        ({"tasks": "lists", "sequences": ("boat",)}, "Leave out sequences or tasks"),
        ({"pca": True}, "Choose split a, b or c"),
    ],
)
def test_wrong_settings_are_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(KeypatchError, match=words):
        Hpatches(**changed)


def test_wrong_data_are_refused_before_anything_is_described(strips: Path, mini: Any, tmp_path: Path) -> None:
    cases = [
        (strips, {"split": "a"}, "lacks 40 of the 40 sequences of the split a"),
        (strips, {"split": "d"}, 'no split "d". Its splits: a, b'),
        (strips, {"split": "view", "pca": True}, "lacks 59 of the 59|no training part"),
        (strips, {"sequences": ("trun",)}, 'no sequence "trun". Did you mean "turn"'),
        (strips, {"tasks": str(tmp_path / "nowhere")}, "There is no folder"),
        (strips, {"tasks": str(mini.tasks)}, "tasks name none of the 3 sequences of .*strips"),
        (mini.descriptors["mini"], {}, "holds csv descriptors, not strips to describe"),
        (tmp_path / "nowhere", {}, "There is no folder"),
    ]
    pixels = Pixels()
    for folder, changed, words in cases:
        with pytest.raises(DataError, match=words):
            evaluate_hpatches(pixels, folder, Hpatches(**changed))
    assert not pixels.asked


def test_lists_chosen_by_contrast_need_patches(mini: Any, tmp_path: Path) -> None:
    for name in split_sequences("b", "test"):
        (tmp_path / "d" / name).mkdir(parents=True)
        (tmp_path / "d" / name / "ref.csv").write_text("1,2\n3,4\n")
    with pytest.raises(DataError, match=r"choose patches by contrast, .* tasks=DIR"):
        evaluate_hpatches(tmp_path / "d", tmp_path / "d", Hpatches(split="b"))


def test_lists_of_a_split_choose_the_sequences_of_a_folder_with_more(mini: Any) -> None:
    folder, tasks = mini.descriptors["mini"], str(mini.tasks)
    every = evaluate_hpatches(folder, folder, Hpatches(tasks=tasks))
    split = evaluate_hpatches(folder, folder, Hpatches(tasks=tasks, split="mini"))
    assert {"i_crownday", "v_graffiti"} == {path.name for path in folder.iterdir()} - set(every.settings["sequences"])
    assert every.scores == split.scores and every.settings["sequences"] == split.settings["sequences"]
    assert {each.count for each in every.replicates.values()} == {6}


def test_csv_that_does_not_fit_the_strips_is_named(strips: Path, mini: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="mini lacks 3 of the 3 sequences of the data: i_dark, v_turn, v_walk"):
        evaluate_hpatches(mini.descriptors["mini"], strips)
    evaluate_hpatches(Pixels(), strips, Hpatches(write=str(tmp_path / "w")))
    path = tmp_path / "w" / "v_turn" / "ref.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    with pytest.raises(DataError, match=r"ref\.csv has 13 rows, but v_turn has 14 patches"):
        evaluate_hpatches(tmp_path / "w", strips)


@pytest.mark.slow
def test_sift_on_the_oxford_strips(shared: Path) -> None:
    folder = shared / "data" / "patches" / "oxford-hpatches"
    describer = load("sift", device="cpu")
    whole, alone = evaluate_hpatches(describer, folder), evaluate_rank1(describer, folder)
    assert {name: whole.scores[name] for name in alone.scores} == pytest.approx(alone.scores)
    assert whole.scores["matching.sr"] == pytest.approx(np.mean([whole.scores[f"rank1.{e}"] for e in "eht"]))
    for name in HEADLINE:
        low, high = whole.interval(name) or (1, 0)
        assert low < whole.scores[name] < high
