"""Wide pairs: what counts as solved."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from wide_pairs import WidePair, epipolar_errors, evaluate_wide_pairs, read_wide_pairs

from keypatch.errors import DataError
from keypatch.features import Features, Photo
from keypatch.geometry import Keypoints
from keypatch.matching.matches import Matches

SIDEWAYS = np.array([[0, 0, 0], [0, 0, -1.0], [0, 1, 0]])  # a camera that moved along x: partners have equal y
SCALED = np.diag([2.0, 2.0, 1.0])


def test_the_error_is_the_distance_to_the_epipolar_line_in_the_worse_photo() -> None:
    matches = np.array([[10, 20, 90, 20], [10, 20, 90, 23], [10, 20, 10, 10.0]])
    np.testing.assert_allclose(epipolar_errors(SIDEWAYS, matches), [0, 3, 10])
    doubled = matches * (1, 1, 2, 2)
    fundamental = np.linalg.inv(SCALED).T @ SIDEWAYS
    np.testing.assert_allclose(epipolar_errors(fundamental, doubled), [0, 6, 20])
    np.testing.assert_allclose(epipolar_errors(fundamental.T, doubled[:, [2, 3, 0, 1]]), [0, 6, 20])
    assert np.isinf(epipolar_errors(None, matches)).all()


def pair(truth: NDArray[np.float64]) -> WidePair:
    return WidePair("toy", (Photo("1.jpg", Path("1.jpg")), Photo("2.jpg", Path("2.jpg"))), truth, ())


def test_over_half_of_the_true_matches_must_lie_near_their_lines() -> None:
    rows = np.arange(4.0)
    truth = np.stack([10 * rows, 20 * rows, 90 + rows, 20 * rows], axis=1)
    truth[:1, 3] += 9
    assert pair(truth).is_solved([SIDEWAYS], (100, 100))
    truth[:2, 3] += 9
    assert not pair(truth).is_solved([SIDEWAYS], (100, 100))
    assert not pair(truth).is_solved([None], (100, 100))


def test_the_median_of_the_seeds_decides() -> None:
    homography = np.array([[1, 0, 5], [0, 1, 3], [0, 0, 1.0]])
    near, far = homography.copy(), homography.copy()
    near[0, 2] += 9
    far[0, 2] += 11
    assert pair(homography).is_solved([near, homography, far], (100, 80))
    assert not pair(homography).is_solved([far, homography, far], (100, 80))
    assert not pair(homography).is_solved([None, homography, None], (100, 80))


def test_pairs_are_found_below_a_folder(tmp_path: Path) -> None:
    for folder, stems in (("WGBS/kremlin", ("01", "02")), ("adam", ("1", "2"))):
        (tmp_path / folder).mkdir(parents=True)
        for stem in stems:
            cv2.imwrite(str(tmp_path / folder / f"{stem}.jpg"), np.zeros((8, 8), np.uint8))
    (tmp_path / "WGBS/kremlin/corrs.txt").write_text("1 2 3 4\n5 6 7 8\n")
    (tmp_path / "adam/H_1_2").write_text("1 0 0\n0 1 0\n0 0 1\n")
    first, second = read_wide_pairs(tmp_path)
    assert first.name == "WGBS/kremlin" and first.truth.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert [photo.name for photo in second.photos] == ["adam/1.jpg", "adam/2.jpg"]
    (tmp_path / "WGBS/kremlin/corrs.txt").write_text("1 2 3\n5 6 x\n")
    with pytest.raises(DataError, match="four numbers in each line"):
        read_wide_pairs(tmp_path)
    with pytest.raises(DataError, match="has no pairs"):
        read_wide_pairs(tmp_path / "adam" / "none")


def test_solved_pairs_are_counted_for_every_estimator(tmp_path: Path) -> None:
    path = tmp_path / "H_1_2"
    path.touch()
    photos = Photo("1.jpg", path), Photo("2.jpg", path)
    pairs = [WidePair(name, photos, truth, (path,)) for name, truth in (("easy", np.eye(3)), ("wrong", SCALED))]
    xy = np.random.default_rng(0).uniform(0, 200, (40, 2)).astype(np.float32)
    ones = np.ones(40, np.float32)
    features = Features(Keypoints(xy[:, 0], xy[:, 1], ones, 0 * ones), np.zeros((40, 1), np.float32), (200, 200), "toy")

    def match(first: Features, second: Features) -> Matches:
        return Matches(np.stack([np.arange(40)] * 2, axis=1).astype(np.int32), ones)

    scores = evaluate_wide_pairs({"1.jpg": features, "2.jpg": features}, pairs, match, threshold=1.0).scores
    assert scores["solved.magsac"] == scores["solved.poselib"] == 1
    assert scores["magsac.easy"] == scores["poselib.easy"] == 1


def test_the_shared_pairs_are_there(shared: Path) -> None:
    pairs = shared / "data" / "pairs"
    assert [len(read_wide_pairs(pairs / name)) for name in ("wxbs", "evd")] == [21, 7]
