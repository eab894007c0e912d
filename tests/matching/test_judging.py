"""Right and wrong by a true homography, and matrices in text files."""

from pathlib import Path

import numpy as np
import pytest

from keypatch.errors import DataError, KeypatchError
from keypatch.matching.judging import read_matrix, transfer_errors


def test_errors_are_distances_in_the_second_photo() -> None:
    homography = [[2.0, 0, 10], [0, 2, 20], [0, 0, 1]]
    errors = transfer_errors(homography, [[0, 0], [5, 5]], [[10, 20], [20, 34]])
    assert errors.tolist() == [0, 4]


def test_a_homography_known_up_to_its_scale_is_the_same() -> None:
    homography = np.array([[1, 0.1, 3], [-0.1, 1, 2], [1e-3, 0, 1]])
    points = np.random.default_rng(0).uniform(0, 100, (2, 20, 2))
    assert transfer_errors(-7 * homography, *points) == pytest.approx(transfer_errors(homography, *points))


def test_a_point_on_the_horizon_is_infinitely_wrong() -> None:
    assert transfer_errors([[1, 0, 0], [0, 1, 0], [1, 0, 0]], [[0, 5]], [[0, 5]]).tolist() == [np.inf]


def test_no_points_have_no_errors() -> None:
    assert transfer_errors(np.eye(3), np.empty((0, 2)), np.empty((0, 2))).shape == (0,)


def test_only_a_matrix_is_a_homography() -> None:
    with pytest.raises(KeypatchError, match="3x3"):
        transfer_errors(np.eye(2), [[0, 0]], [[0, 0]])


@pytest.mark.parametrize(
    "text", ["1 0 3\n0 1 4\n0 0 1\n", "1.0e0,0,3\n0,1,4\n0,0,1", "  1 0 3\n\n 0 1 4 \n0 0 1  \n\n"]
)
def test_matrices_are_read_as_people_write_them(tmp_path: Path, text: str) -> None:
    (tmp_path / "H").write_text(text)
    assert read_matrix(tmp_path / "H").tolist() == [[1, 0, 3], [0, 1, 4], [0, 0, 1]]


@pytest.mark.parametrize("text", ["", "1 2 3", "1 0 0 0 1 0 0 0 one", "1 0 0 0 1 0 0 0 nan", "\xff\x00"])
def test_other_files_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "H.txt").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=r"H\.txt"):
        read_matrix(tmp_path / "H.txt")


@pytest.mark.parametrize("text", ["0 0 0 0 0 0 0 0 0", "1 2 3 2 4 6 0 0 1", "1e-3 0 5 0 1e-3 7 0 0 0"])
def test_singular_matrices_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "H_1_3").write_text(text)
    with pytest.raises(DataError, match="H_1_3 is a singular matrix"):
        read_matrix(tmp_path / "H_1_3")


@pytest.mark.parametrize("text", ["1e-9 0 3e-6 0 1e-9 0 0 0 1e-9", "1e-3 0 5000 0 1e-3 5000 1e-7 0 1"])
def test_any_scale_and_strong_perspective_are_no_singularity(tmp_path: Path, text: str) -> None:
    (tmp_path / "H").write_text(text)
    assert read_matrix(tmp_path / "H").shape == (3, 3)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="H_1_2"):
        read_matrix(tmp_path / "H_1_2")
