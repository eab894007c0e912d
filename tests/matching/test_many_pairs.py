"""Many pairs of a feature file."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.features import FeatureReader, read_features
from keypatch.matching import pairs
from keypatch.matching.image_matches import match_features
from keypatch.matching.match_files import MatchReader, read_matches
from keypatch.matching.matching import Matching
from keypatch.matching.pairs import match_pairs

PHOTOS = {"a.jpg": 60, "b.jpg": 50, "sub/c.jpg": 40, "sub/d e.jpg": 30}


def count(path: Path) -> int:
    with MatchReader(path) as reader:
        return len(reader)


def test_every_pair_has_the_matches_of_its_features(write_features: Callable[..., Path], tmp_path: Path) -> None:
    features = write_features(PHOTOS)
    out = match_pairs(features, "exhaustive", tmp_path / "m.h5", Matching(ratio=0.95))
    assert count(out) == 6
    first, second = (read_features(features, name) for name in ("b.jpg", "sub/c.jpg"))
    _, expected = match_features(first, second, Matching(ratio=0.95))
    found = read_matches(out, "b.jpg", "sub/c.jpg")
    assert len(found) > 30 and found.verified
    assert np.array_equal(found.indices, expected.indices)
    assert found.matrix is not None and np.array_equal(found.matrix, expected.matrix)  # type: ignore[arg-type]


def test_plain_h5py_reads_it_as_hloc_would(write_features: Callable[..., Path], tmp_path: Path) -> None:
    out = match_pairs(write_features(PHOTOS), "sequence:1", tmp_path / "m.h5", Matching(model=None))
    with h5py.File(out) as file:
        group = file["b.jpg"]["sub-c.jpg"]
        partners, scores = group["matches0"][()], group["matching_scores0"][()]
        assert partners.dtype == np.int32 and partners.shape == scores.shape == (50,)
        assert np.mean(partners[:40] == np.arange(40)) > 0.9
        assert (scores[partners >= 0] > 0.5).all()
        assert group.attrs["candidates"] == (partners >= 0).sum()


def test_a_later_call_adds_pairs_and_makes_none_again(
    write_features: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, out = write_features(PHOTOS), tmp_path / "m.h5"
    (tmp_path / "pairs.txt").write_text("sub/c.jpg a.jpg\n")
    match_pairs(features, tmp_path / "pairs.txt", out)
    made = []
    monkeypatch.setattr(pairs, "match_features", lambda *all_, **how: made.append(1) or match_features(*all_, **how))
    match_pairs(features, "exhaustive", out)
    assert len(made) == 5 and count(out) == 6
    assert len(read_matches(out, "a.jpg", "sub/c.jpg")) > 30


@pytest.mark.parametrize("other", [{"ratio": 0.8}, {"model": "H"}, {"mode": "one-way"}, {"seed": 1}])
def test_other_settings_are_refused(
    write_features: Callable[..., Path], tmp_path: Path, other: dict[str, object]
) -> None:
    match_pairs(write_features(PHOTOS), "sequence:1", tmp_path / "m.h5")
    with pytest.raises(KeypatchError, match=f"other settings: {next(iter(other))}"):
        match_pairs(write_features(PHOTOS), "exhaustive", tmp_path / "m.h5", Matching(**other))  # type: ignore[arg-type]
    assert count(tmp_path / "m.h5") == 3


@pytest.mark.parametrize("mode", ["mutual", "one-way"])
@pytest.mark.parametrize("ratio", [None, 0.9])
@pytest.mark.parametrize("model", [None, "F", "E", "H"])
def test_photos_with_no_keypoint_and_with_one(
    write_features: Callable[..., Path], tmp_path: Path, model: str | None, ratio: float | None, mode: str
) -> None:
    features = write_features({"none.jpg": 0, "one.jpg": 1, "two.jpg": 2, "many.jpg": 30})
    cameras = [[500, 0, 300], [0, 500, 300], [0, 0, 1]] if model == "E" else None
    matching = Matching(mode=mode, ratio=ratio, model=model, filter=None)  # type: ignore[arg-type]
    out = match_pairs(features, "exhaustive", tmp_path / "m.h5", matching, intrinsics=cameras)
    assert count(out) == 6
    assert len(read_matches(out, "none.jpg", "many.jpg")) == 0
    found = read_matches(out, "many.jpg", "one.jpg")
    assert len(found) == (0 if model else 1 if mode == "mutual" else 30)  # 30 lines to one place prove no geometry


def test_only_the_photos_named_are_paired(write_features: Callable[..., Path], tmp_path: Path) -> None:
    features, every_second = write_features(PHOTOS), ["sub/c.jpg", "a.jpg"]
    out = match_pairs(features, "sequence:1", tmp_path / "m.h5", names=every_second)
    assert count(out) == 1 and len(read_matches(out, "a.jpg", "sub/c.jpg")) > 30
    with pytest.raises(DataError, match=r"no features for z\.jpg"):
        match_pairs(features, "exhaustive", out, names=["a.jpg", "z.jpg"])


@pytest.mark.parametrize("model", [None, "F", "H"])
def test_intrinsics_that_would_do_nothing_are_refused(
    write_features: Callable[..., Path], tmp_path: Path, model: str | None
) -> None:
    matching = Matching(model=model)  # type: ignore[arg-type]
    with pytest.raises(KeypatchError, match="only used for an essential matrix"):
        match_pairs(write_features(PHOTOS), "exhaustive", tmp_path / "m.h5", matching, intrinsics=np.eye(3))
    assert not (tmp_path / "m.h5").exists()


def test_names_that_share_a_key_are_refused_before_anything_is_written(
    write_features: Callable[..., Path], tmp_path: Path
) -> None:
    features = write_features({"x/y.jpg": 20, "x-y.jpg": 20})
    with pytest.raises(DataError, match="cannot be told apart"):
        match_pairs(features, "exhaustive", tmp_path / "m.h5")
    assert not (tmp_path / "m.h5").exists()


def test_a_name_that_leads_out_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["../evil.jpg/keypoints"] = np.zeros((1, 2), np.float32)
        file["../evil.jpg/descriptors"] = np.ones((4, 1), np.float32)
    with pytest.raises(DataError, match="evil"):
        match_pairs(tmp_path / "f.h5", "exhaustive", tmp_path / "m.h5")


def test_a_broken_photo_is_told_at_the_end_and_the_pairs_of_others_kept(
    write_features: Callable[..., Path], tmp_path: Path
) -> None:
    features = write_features(PHOTOS)
    with h5py.File(features, "a") as file:
        file["sub/d e.jpg/descriptors"][0, 0] = np.nan
    with pytest.raises(DataError, match=r"sub/d e\.jpg"):
        match_pairs(features, "exhaustive", tmp_path / "m.h5")
    assert count(tmp_path / "m.h5") == 3  # a-b, a-c, b-c


def test_ctrl_c_keeps_what_is_done(
    write_features: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os
    import signal

    def stop(*all_: Any, **how: Any) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return match_features(*all_, **how)

    monkeypatch.setattr(pairs, "match_features", stop)
    features = write_features(PHOTOS)
    with pytest.raises(Interrupted, match="keeps the 1 pair matched"):
        match_pairs(features, "exhaustive", tmp_path / "m.h5")
    monkeypatch.undo()
    assert count(match_pairs(features, "exhaustive", tmp_path / "m.h5")) == 6


def test_a_killed_process_leaves_a_readable_file_that_is_completed(
    write_features: Callable[..., Path], tmp_path: Path
) -> None:
    features, out = write_features({f"{k:02d}.jpg": 100 for k in range(40)}), tmp_path / "m.h5"
    code = (
        "import sys; from keypatch.matching import pairs; pairs.EVERY = 0.0;"
        "pairs.match_pairs(sys.argv[1], 'exhaustive', sys.argv[2])"
    )
    for saved in (3, 60):  # the second kill meets a file and parts of the first
        child = subprocess.Popen([sys.executable, "-c", code, str(features), str(out)])
        parts = tmp_path / ".m.h5.parts"
        while child.poll() is None and len(list(parts.glob("*.h5"))) + (count(out) if out.exists() else 0) < saved:
            time.sleep(0.01)
        child.kill()
        assert child.wait() == -9
        assert count(out) < 780
    assert count(match_pairs(features, "exhaustive", out)) == 780
    assert not parts.exists()


def test_a_folder_that_cannot_be_written_is_named(write_features: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KeypatchError, match="cannot be written"):
        match_pairs(write_features(PHOTOS), "exhaustive", tmp_path / "file" / "m.h5")


def test_progress_counts_pairs(write_features: Callable[..., Path], tmp_path: Path) -> None:
    told = list[tuple[int, int, str]]()
    match_pairs(write_features(PHOTOS), "sequence:1", tmp_path / "m.h5", progress=lambda *count: told.append(count))
    assert told == [(done, 3, "pairs") for done in range(4)]


def test_features_stay_in_memory_up_to_a_number_of_bytes(
    write_features: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = write_features({f"{k}.jpg": 50 for k in range(4)})
    read = list[str]()
    plain = FeatureReader.read
    monkeypatch.setattr(FeatureReader, "read", lambda self, name: read.append(name) or plain(self, name))
    match_pairs(features, "exhaustive", tmp_path / "all.h5")
    assert sorted(read) == ["0.jpg", "1.jpg", "2.jpg", "3.jpg"]  # each once
    read.clear()
    monkeypatch.setattr(pairs, "KEPT_BYTES", 2 * 50 * 16 * 4)  # of two photos
    match_pairs(features, "exhaustive", tmp_path / "two.h5")
    assert read == [f"{k}.jpg" for k in (0, 1, 2, 3, 1, 2, 3, 2)]  # 01 02 03 12 13 23, the oldest forgotten
    two, all_ = (read_matches(tmp_path / name, "1.jpg", "3.jpg").indices for name in ("two.h5", "all.h5"))
    assert np.array_equal(two, all_)
