"""HPatches strips from photos with known homographies: right places, stated overlaps, read and scored as any."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from build_fixtures import Told, content
from numpy.typing import NDArray
from PIL import Image

import keypatch as kp
from keypatch.benchmarks.contamination import Contamination, seen_photos
from keypatch.benchmarks.evaluation import evaluate
from keypatch.building import sequences
from keypatch.building.sequences import Sequences, cut_strips, strip_name
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.images import find_photos
from keypatch.patches import open_patches
from keypatch.patches.hpatches import STRIPS, read_sequences
from keypatch.patches.planar_sequences import read_planar_sequences
from keypatch.patches.sources import remember

Write = Callable[..., None]
FEW = Sequences(points=60, smallest_sigma=2.0, contrast=0.01)


@pytest.fixture(scope="module")
def oxford(write_sequence: Write, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A camera that moves in Oxford's layout, a still one in that of HPatches."""
    folder = tmp_path_factory.mktemp("oxford")
    write_sequence(folder / "wall", 1.0)
    write_sequence(folder / "dusk", 0.0, hpatches=True, seed=6)
    return folder


@pytest.fixture(scope="module")
def strips(oxford: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("strips") / "set"
    kp.build([oxford], out, FEW, kp.Building(terms="CC0"))
    return out


def likeness(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.float64]:
    """(n,) correlation of patches."""
    rows = [each.reshape(len(each), -1).astype(np.float64) for each in (first, second)]
    rows = [each - each.mean(axis=1, keepdims=True) for each in rows]
    one, other = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in rows)
    return np.asarray(np.sum(one * other, axis=1))


def test_strips_are_in_the_layout_of_hpatches(strips: Path) -> None:
    named = ["build.html", "build.json", "card.json", "i_dusk", "v_wall"]
    assert sorted(path.name for path in strips.iterdir()) == named
    for name in ("i_dusk", "v_wall"):
        assert {path.name for path in (strips / name).iterdir()} == {f"{strip}.png" for strip in STRIPS}
        with Image.open(strips / name / "ref.png") as image:
            assert image.mode == "L" and image.width == 65 and image.height % 65 == 0 and image.height >= 20 * 65


def test_without_errors_every_strip_shows_what_the_reference_shows(
    oxford: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the right direction and at the right place: a pixel off at this scale would be seen."""
    monkeypatch.setattr(sequences, "LEVELS", {"e": 0.0, "h": 0.0, "t": 0.0})
    for sequence in read_planar_sequences(oxford):
        cut, overlaps = cut_strips(sequence, FEW)
        assert overlaps == {"e": 1.0, "h": 1.0, "t": 1.0}
        for strip in STRIPS[1:]:
            assert likeness(cut["ref"], cut[strip]).min() > 0.98


def test_the_overlaps_are_those_that_hpatches_states(strips: Path) -> None:
    card = json.loads((strips / "card.json").read_text())
    for facts in card["strips"].values():
        found = facts["median_overlap"]
        assert [found[level] for level in "eht"] == pytest.approx([0.85, 0.72, 0.60], abs=0.03)


def test_tough_patches_are_less_alike_than_hard_and_hard_than_easy(strips: Path) -> None:
    for _, patches in read_sequences(strips):
        means = [
            np.mean([likeness(patches["ref"], patches[f"{level}{k}"]).mean() for k in range(1, 6)]) for level in "eht"
        ]
        assert means[0] > means[1] + 0.02 > means[2] + 0.04


def test_the_set_is_scored_as_any_of_hpatches(strips: Path) -> None:
    scores = evaluate("rootsift", "hpatches", strips).scores
    assert scores["rank1.e"] > 0.9 and scores["rank1.e"] > scores["rank1.t"]
    assert {"matching.map.e.i_dusk", "matching.map.e.v_wall", "verification.ap", "retrieval.map"} <= set(scores)


def test_who_trains_on_the_strips_is_marked_on_the_photos(strips: Path, oxford: Path, tmp_path: Path) -> None:
    class Trained:
        training = remember(open_patches(strips))

    assert Trained.training[0].sources[0].terms == "CC0"
    assert seen_photos(Trained(), find_photos([oxford / "wall"])) == Contamination(
        6, 6, tuple(f"img{number}.png" for number in range(1, 6))
    )


def test_a_sequence_keeps_the_name_that_says_what_changes(oxford: Path, write_sequence: Write, tmp_path: Path) -> None:
    write_sequence(tmp_path / "i_wall", 1.0)
    assert [strip_name(each) for each in read_planar_sequences(tmp_path)] == ["i_wall"]
    assert [strip_name(each) for each in read_planar_sequences(oxford)] == ["i_dusk", "v_wall"]


def test_a_sequence_of_fewer_photos_is_named_and_left_out(oxford: Path, write_sequence: Write, tmp_path: Path) -> None:
    write_sequence(tmp_path / "more" / "pair", 1.0, photos=2)
    told = Told()
    card = kp.build([oxford, tmp_path / "more"], tmp_path / "set", FEW, progress=told).cards[""]
    left_out = card["sequences_left_out"]
    assert list(left_out) == ["v_pair"] and "has 2 photos" in left_out["v_pair"] and "has 2 photos" in told.messages[0]
    assert (
        sorted(card["strips"]) == ["i_dusk", "v_wall"] and "has 2 photos" in (tmp_path / "set/build.html").read_text()
    )
    with pytest.raises(KeypatchError, match="has 2 photos"):
        kp.build([tmp_path / "more"], tmp_path / "none", FEW, progress=Told())
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("number", [1, 3])
def test_a_photo_that_cannot_be_read_costs_its_sequence_alone(
    oxford: Path, write_sequence: Write, tmp_path: Path, number: int
) -> None:
    write_sequence(tmp_path / "more" / "broken", 1.0)
    (tmp_path / "more" / "broken" / f"img{number}.png").write_bytes(b"\x89PNG cut off")
    made = kp.build([oxford, tmp_path / "more"], tmp_path / "set", FEW, progress=Told())
    left_out = made.cards[""]["sequences_left_out"]
    assert list(left_out) == ["v_broken"] and f"img{number}.png" in left_out["v_broken"]
    assert len(made.skipped) == 1 and not (tmp_path / "set" / "v_broken").exists()


def test_sequences_of_one_name_are_refused(oxford: Path, write_sequence: Write, tmp_path: Path) -> None:
    write_sequence(tmp_path / "again" / "wall", 1.0)
    with pytest.raises(DataError, match="Two sequences would be named v_wall"):
        kp.build([oxford, tmp_path / "again"], tmp_path / "set", FEW)


def test_another_homography_is_another_build(oxford: Path, write_sequence: Write, tmp_path: Path) -> None:
    write_sequence(tmp_path / "in" / "wall", 1.0)
    kp.build(tmp_path / "in", tmp_path / "set", FEW)
    np.savetxt(tmp_path / "in" / "wall" / "H1to3p", np.diag([1.0, 1.0, 1.0]))
    with pytest.raises(KeypatchError, match=r"was built otherwise: photos\.hash"):
        kp.build(tmp_path / "in", tmp_path / "set", FEW)


@pytest.mark.parametrize(("unit", "at", "cut"), [("sequences", 1, ["wall"]), ("photos hashed", 2, [])])
def test_an_interrupted_build_is_resumed_to_the_same_bytes(
    oxford: Path, strips: Path, tmp_path: Path, unit: str, at: int, cut: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    building = kp.Building(terms="CC0")
    with pytest.raises(Interrupted):
        kp.build([oxford], tmp_path / "set", FEW, building, progress=Told(unit, at))
    assert "not finished" in kp.inspect(tmp_path / "set").problems[0]
    made, original = list[str](), sequences.cut_strips
    monkeypatch.setattr(sequences, "cut_strips", lambda each, *how: made.append(each.name) or original(each, *how))
    kp.build([oxford], tmp_path / "set", FEW, building)
    assert made == cut and content(tmp_path / "set") == content(strips)


def test_a_build_killed_while_it_moved_its_strips_is_made_whole(
    oxford: Path, strips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, replaced = tmp_path / "set", Path.replace

    def killed(path: Path, target: Path) -> Path:
        if path.name == "v_wall":
            raise KeyboardInterrupt
        return replaced(path, target)

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(Path, "replace", killed)
        kp.build([oxford], out, FEW, kp.Building(terms="CC0"))
    assert (out / "i_dusk").exists() and not (out / "v_wall").exists()
    kp.build([oxford], out, FEW, kp.Building(terms="CC0"))
    assert content(out) == content(strips)


def test_oxford_gives_strips_that_are_read_and_scored(shared: Path, tmp_path: Path) -> None:
    for name in ("graf", "ubc"):
        (tmp_path / "oxford").mkdir(exist_ok=True)
        (tmp_path / "oxford" / name).symlink_to(shared / "data" / "oxford" / name)
    built = kp.build(tmp_path / "oxford", tmp_path / "set", Sequences(points=150))
    assert sorted(built.cards[""]["strips"]) == ["i_ubc", "v_graf"]
    scores = evaluate("rootsift", "hpatches", tmp_path / "set").scores
    assert scores["rank1.e"] > scores["rank1.h"] > scores["rank1.t"] > 0.3
