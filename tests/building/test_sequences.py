"""HPatches strips from photos with known homographies: right places, stated overlaps, read and scored as any."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks.contamination import Contamination, seen_photos
from keypatch.benchmarks.evaluation import evaluate
from keypatch.building import sequences
from keypatch.building.sequences import Sequences, build_from_sequences, cut_strips, strip_name
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.images import find_photos
from keypatch.patches import open_patches
from keypatch.patches.hpatches import STRIPS, read_sequences
from keypatch.patches.planar_sequences import read_planar_sequences
from keypatch.patches.sources import remember
from keypatch.progress import Progress

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
    build_from_sequences([oxford], out, FEW, terms="CC0")
    return out


def likeness(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.float64]:
    """(n,) correlation of patches."""
    rows = [each.reshape(len(each), -1).astype(np.float64) for each in (first, second)]
    rows = [each - each.mean(axis=1, keepdims=True) for each in rows]
    one, other = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in rows)
    return np.asarray(np.sum(one * other, axis=1))


def test_strips_are_in_the_layout_of_hpatches(strips: Path) -> None:
    assert sorted(path.name for path in strips.iterdir() if not path.name.startswith(".")) == [
        "card.json",
        "i_dusk",
        "v_wall",
    ]
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
    built = build_from_sequences([oxford, tmp_path / "more"], tmp_path / "set", FEW)
    assert list(built.left_out) == ["v_pair"] and "has 2 photos" in built.left_out["v_pair"]
    assert sorted(built.card["strips"]) == ["i_dusk", "v_wall"]
    with pytest.raises(KeypatchError, match="has 2 photos"):
        build_from_sequences([tmp_path / "more"], tmp_path / "none", FEW)


def test_a_photo_that_cannot_be_read_costs_its_sequence_alone(
    oxford: Path, write_sequence: Write, tmp_path: Path
) -> None:
    write_sequence(tmp_path / "more" / "broken", 1.0)
    (tmp_path / "more" / "broken" / "img3.png").write_bytes(b"\x89PNG cut off")
    built = build_from_sequences([oxford, tmp_path / "more"], tmp_path / "set", FEW)
    assert list(built.left_out) == ["v_broken"] and "img3.png" in built.left_out["v_broken"]
    assert not (tmp_path / "set" / "v_broken").exists()


def test_sequences_of_one_name_are_refused(oxford: Path, write_sequence: Write, tmp_path: Path) -> None:
    write_sequence(tmp_path / "again" / "wall", 1.0)
    with pytest.raises(DataError, match="Two sequences would be named v_wall"):
        build_from_sequences([oxford, tmp_path / "again"], tmp_path / "set", FEW)


def test_a_folder_with_other_files_is_refused(oxford: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(KeypatchError, match=r"not empty \(notes\.txt\)"):
        build_from_sequences([oxford], tmp_path, FEW)


def test_an_interrupted_build_is_resumed_to_the_same_bytes(
    oxford: Path, strips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopping(Progress):
        def count(self, done: int, total: int, unit: str, note: str = "") -> None:
            if done == 1:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted, match="keeps the strips of 1 sequences"):
        build_from_sequences([oxford], tmp_path / "set", FEW, progress=Stopping())
    made, cut = list[str](), sequences.cut_strips
    monkeypatch.setattr(sequences, "cut_strips", lambda each, how: made.append(each.name) or cut(each, how))
    build_from_sequences([oxford], tmp_path / "set", FEW)
    assert made == ["wall"]
    for path in strips.rglob("*.png"):
        assert (tmp_path / "set" / path.relative_to(strips)).read_bytes() == path.read_bytes()


def test_oxford_gives_strips_that_are_read_and_scored(shared: Path, tmp_path: Path) -> None:
    for name in ("graf", "ubc"):
        (tmp_path / "oxford").mkdir(exist_ok=True)
        (tmp_path / "oxford" / name).symlink_to(shared / "data" / "oxford" / name)
    built = build_from_sequences([tmp_path / "oxford"], tmp_path / "set", Sequences(points=150))
    assert sorted(built.card["strips"]) == ["i_ubc", "v_graf"]
    scores = evaluate("rootsift", "hpatches", tmp_path / "set").scores
    assert scores["rank1.e"] > scores["rank1.h"] > scores["rank1.t"] > 0.3
