"""Pose errors and mean average accuracy: figures of the Image Matching Challenge's own code, and the edges of bins."""

from pathlib import Path

import numpy as np
import pytest

from keypatch.errors import KeypatchError
from keypatch.geometry import Pose
from keypatch.metrics import angular_error, are_accurate, average_accuracies


def poses(rotations: np.ndarray, translations: np.ndarray) -> list[Pose]:
    return [Pose(*pair) for pair in zip(rotations, translations, strict=True)]


def test_the_error_is_the_challenges(reference: Path) -> None:
    """Its code keeps 1e-15 inside an arccos, hence 1e-6 radians."""
    figures = np.load(reference / "mining_poses.npz")
    estimates, truths = poses(figures["R"], figures["t"]), poses(figures["R_gt"], figures["t_gt"])
    errors = [angular_error(*pair) for pair in zip(estimates, truths, strict=True)]
    wanted = np.maximum(figures["err_q_rad"], figures["err_t_rad"])
    np.testing.assert_allclose(np.radians(errors), wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("rows", ["first340", "all", "edge"])
def test_mean_average_accuracy_is_the_challenges(reference: Path, rows: str) -> None:
    """340 pairs; all 400 with failures of stereo (180 and 90 degrees) and multiview (inf); errors on edges of bins."""
    figures = np.load(reference / "mining_poses.npz")
    errors = {
        "first340": np.degrees(np.maximum(figures["err_q_rad"], figures["err_t_rad"])[:340]),
        "all": np.degrees(np.maximum(figures["list_all_err_q"], figures["list_all_err_t"])),
        "edge": figures["edge_err_deg_as_binned"],
    }[rows]
    shares = are_accurate(errors).mean(axis=0)
    np.testing.assert_allclose(shares, np.cumsum(figures[f"{rows}_hist_1_10"]), rtol=0, atol=1e-12)
    assert average_accuracies(errors, 10).mean() == pytest.approx(float(figures[f"{rows}_maa10"]), abs=1e-12)
    assert average_accuracies(errors, 5).mean() == pytest.approx(float(figures[f"{rows}_maa5"]), abs=1e-12)


def test_bins_are_open_above_but_for_the_last() -> None:
    counted = are_accurate([0, 1, 5, 9.999, 10, 10.0001, 180, np.inf]).sum(axis=1)
    assert counted.tolist() == [10, 9, 5, 1, 1, 0, 0, 0]
    assert average_accuracies([5.0], 5).tolist() == [0]  # 5 is no last bin, even for mAA(5)
    assert average_accuracies([4.0], 5).tolist() == [0.2]


@pytest.mark.parametrize("errors", [[np.nan], [-1.0], [[1.0]]])
def test_what_is_no_error_is_told(errors: list[float]) -> None:
    with pytest.raises(KeypatchError, match="inf for a failure"):
        are_accurate(errors)


@pytest.mark.parametrize("degrees", [0, 11])
def test_there_is_no_accuracy_beyond_ten_degrees(degrees: int) -> None:
    with pytest.raises(KeypatchError, match="is defined up to"):
        average_accuracies([1.0], degrees)
