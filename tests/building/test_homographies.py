"""Patches from single photos: pure classes, one photo in memory, resumed to the same bytes."""

import signal
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from keypatch.building import homographies
from keypatch.building.homographies import Homographies, build_from_homographies, iterate_classes, scaled_jitter
from keypatch.errors import Interrupted, KeypatchError
from keypatch.geometry import Keypoints, frame_overlap, jitter_keypoints
from keypatch.images import find_photos
from keypatch.patches import open_patches
from keypatch.patches.phototour import find_pair_lists
from keypatch.patches.sources import find_sources, sources_of
from keypatch.progress import Progress

SMALL = Homographies(points=25, views=3, contrast=0.01, list_size=60)
STILL = replace(SMALL, jitter=0, blur=0, darkest=1, brightest=1, gamma=1, slope=0, noise=0, quality=95)


class Told(Progress):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, message: str) -> None:
        self.said.append(message)


class Stopping(Progress):
    """Ctrl-C after the second photo."""

    def count(self, done: int, total: int, unit: str, note: str = "") -> None:
        if (done, unit) == (2, "photos"):
            signal.raise_signal(signal.SIGINT)


def content(folder: Path) -> dict[str, bytes]:
    """What a build writes, but for the card's date and command."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".bmp", ".txt")}


def normalized(patches: NDArray[np.uint8]) -> NDArray[np.float64]:
    rows = patches.reshape(len(patches), -1).astype(np.float64)
    rows -= rows.mean(axis=1, keepdims=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_set_is_written_that_every_reader_can_use(photo_folder: Path, tmp_path: Path) -> None:
    photos = find_photos([photo_folder])
    built = build_from_homographies(photos, tmp_path / "set", SMALL, terms="CC0", card={"held_out": 0})
    patches = open_patches(tmp_path / "set")
    assert patches.card["points"] * 3 == len(patches) == built.card["patches"] and not built.left_out
    np.testing.assert_array_equal(np.bincount(patches.point_id), 3)
    assert patches.keypoints is not None and patches.image_id is not None
    assert set(patches.image_id.tolist()) == set(range(9))  # three photos of three views
    lists = find_pair_lists(patches)
    assert sorted(pairs.name.split("_")[0] for pairs in lists) == ["hard", "m50"]
    assert all(pairs.is_match.mean() == 0.5 for pairs in lists)
    assert sources_of(patches) == find_sources(photos, "CC0") and patches.card["held_out"] == 0
    assert not any(path.name == ".building" for path in (tmp_path / "set").iterdir())


def test_every_class_is_pure(photo_folder: Path) -> None:
    """Without errors and changes the views of a point are one picture, up to what resampling does to it."""
    for _, made in iterate_classes(find_photos([photo_folder]), STILL):
        rows = normalized(made.patches)
        likeness = rows @ rows.T
        same = made.point_id[:, None] == made.point_id
        assert likeness[same].min() > 0.93
        assert np.quantile(likeness[~same], 0.99) < 0.9


def test_changes_and_errors_make_a_class_harder(photo_folder: Path) -> None:
    def mean_likeness(options: Homographies) -> float:
        _, made = next(iter(iterate_classes(find_photos([photo_folder]), options)))
        rows = normalized(made.patches)
        return float((rows @ rows.T)[made.point_id[:, None] == made.point_id].mean())

    easy, changed, shaken = map(mean_likeness, (STILL, replace(SMALL, jitter=0), replace(SMALL, jitter=1.5)))
    assert easy > changed + 0.002 and changed > shaken + 0.05


@pytest.mark.parametrize("patch_sigmas", [10.0, 24.0])
def test_errors_of_hardness_one_overlap_as_hpatches_hard_patches_do(patch_sigmas: float) -> None:
    column = np.ones(4000, np.float32)
    frames = Keypoints(column, column, 3 * column, 0 * column)
    used = jitter_keypoints(frames, scaled_jitter(1.0, patch_sigmas), np.random.default_rng(0))
    assert np.median(frame_overlap(frames, used, patch_sigmas / 2)) == pytest.approx(0.72, abs=0.01)


def test_the_same_seed_gives_the_same_bytes_another_seed_others(photo_folder: Path, tmp_path: Path) -> None:
    photos = find_photos([photo_folder])
    for name, seed in (("one", 0), ("same", 0), ("other", 1)):
        build_from_homographies(photos, tmp_path / name, replace(SMALL, seed=seed))
    assert content(tmp_path / "one") == content(tmp_path / "same")
    assert content(tmp_path / "one")["patches0000.bmp"] != content(tmp_path / "other")["patches0000.bmp"]


def test_an_interrupted_build_is_resumed_to_the_same_bytes(
    photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = find_photos([photo_folder])
    build_from_homographies(photos, tmp_path / "whole", SMALL)
    with pytest.raises(Interrupted, match="keeps the patches of 2 photos"):
        build_from_homographies(photos, tmp_path / "set", SMALL, progress=Stopping())
    made = list[Any]()
    make = homographies.make_classes
    monkeypatch.setattr(homographies, "make_classes", lambda *given: made.append(given) or make(*given))
    build_from_homographies(photos, tmp_path / "set", SMALL)
    assert len(made) == 1  # the third photo
    assert content(tmp_path / "set") == content(tmp_path / "whole")


def test_a_build_killed_while_it_wrote_is_written_again(
    photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = find_photos([photo_folder])
    build_from_homographies(photos, tmp_path / "whole", SMALL)

    def killed(made: Path, out: Path) -> None:
        (made / "patches0000.bmp").rename(out / "patches0000.bmp")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(homographies, "_move", killed)
        build_from_homographies(photos, tmp_path / "set", SMALL)
    build_from_homographies(photos, tmp_path / "set", SMALL)
    assert content(tmp_path / "set") == content(tmp_path / "whole")


def test_a_photo_that_cannot_be_read_is_named_and_left_out(photo_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for path in sorted(photo_folder.iterdir())[:2]:
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut off")
    Image.fromarray(np.full((100, 100), 90, np.uint8)).save(folder / "blank.png")
    told = Told()
    built = build_from_homographies(find_photos([folder]), tmp_path / "set", SMALL, progress=told)
    assert set(built.left_out) == {"broken.jpg", "blank.png"} and built.left_out["blank.png"] == "no points"
    assert any("broken.jpg" in said for said in told.said)
    assert [source["name"] for source in built.card["sources"]] == ["0.png", "1.png"]
    assert set(open_patches(tmp_path / "set").card["left_out"]) == {"broken.jpg", "blank.png"}


def test_photos_without_points_are_told_in_a_sentence(tmp_path: Path) -> None:
    Image.fromarray(np.full((100, 100), 90, np.uint8)).save(tmp_path / "blank.png")
    with pytest.raises(KeypatchError, match=r"None of the 1 photos gave a point .* blank\.png"):
        build_from_homographies(find_photos([tmp_path / "blank.png"]), tmp_path / "set", SMALL)


def test_a_folder_with_other_files_is_refused_and_kept(photo_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(KeypatchError, match=r"not empty \(notes\.txt\)"):
        build_from_homographies(find_photos([photo_folder]), tmp_path, SMALL)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_large_photos_are_reduced_first(photo_folder: Path) -> None:
    photos = find_photos([photo_folder])[:1]
    [(_, made)] = iterate_classes(photos, replace(SMALL, longest_side=160))
    assert made.keypoints.x[made.is_reference].max() < 160


def test_memory_does_not_grow_with_the_number_of_photos(
    photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """18 more photos need less room than the patches of three. Pair lists look among 20,000 patches: left out here."""
    same_size = replace(SMALL, turn=0, zoom=1, stretch=1, perspective=0)  # of all views
    monkeypatch.setattr(homographies, "draw_pair_lists", lambda *_: ())

    def peak(copies: int) -> int:
        folder = tmp_path / str(copies)
        folder.mkdir()
        for number in range(copies):
            (folder / f"{number}.png").write_bytes((photo_folder / "0.png").read_bytes())
        photos = find_photos([folder])
        tracemalloc.start()
        try:
            build_from_homographies(photos, tmp_path / f"set{copies}", same_size)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)  # what is made once stays
    _, made = next(iter(iterate_classes(find_photos([photo_folder]), SMALL)))
    assert peak(20) - peak(2) < 3 * made.patches.nbytes
