"""Planar sequences: layouts as released, what is missing, and what resizing does to a homography."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import skimage.data
from PIL import Image

from keypatch.benchmarks.caching import resized
from keypatch.errors import DataError
from keypatch.geometry import apply_homography
from keypatch.patches.planar_sequences import read_planar_sequences

LAYOUTS = {
    "HPatches": (["1.ppm", "2.ppm", "3.ppm"], ["H_1_2", "H_1_3"]),
    "Oxford": (["img1.ppm", "img2.ppm", "img3.ppm"], ["H1to2p", "H1to3p"]),
    "Oxford's boat": (["img1.pgm", "img2.pgm", "img3.pgm"], ["H1to2p", "H1to3p"]),
    "Oxford as HPatches": (["img1.png", "img2.png", "img3.png"], ["H_1_2", "H_1_3"]),
}


def write_sequence(folder: Path, name: str, photos: list[str], homographies: list[str]) -> Path:
    (folder / name).mkdir(parents=True)
    for photo in photos:
        Image.fromarray(np.zeros((6, 8), np.uint8)).save(folder / name / photo)
    for number, homography in enumerate(homographies, start=2):  # spaces and blank lines as in some files of HPatches
        (folder / name / homography).write_text(f"1  0 {number}\n0 1 0\n 0 0   1\n\n")
    return folder


@pytest.fixture
def oxford(tmp_path: Path) -> Path:
    return write_sequence(tmp_path, "plane", *LAYOUTS["Oxford as HPatches"])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_read_as_released_and_photos_named_as_describe_names_them(tmp_path: Path, layout: str) -> None:
    photos, homographies = LAYOUTS[layout]
    write_sequence(tmp_path, "v_plane", photos, homographies)
    [sequence] = read_planar_sequences(tmp_path)
    assert [photo.name for photo in sequence.photos] == [f"v_plane/{photo}" for photo in photos]
    np.testing.assert_array_equal(sequence.homographies, [[[1, 0, x], [0, 1, 0], [0, 0, 1]] for x in (2, 3)])
    assert {path.name for path in sequence.files} == {*photos, *homographies}


def test_ten_photos_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    numbers = range(1, 12)
    write_sequence(tmp_path, "long", [f"{n}.ppm" for n in numbers], [f"H_1_{n}" for n in numbers[1:]])
    [sequence] = read_planar_sequences(tmp_path)
    assert [photo.path.stem for photo in sequence.photos] == [str(number) for number in numbers]
    assert [homography[0, 2] for homography in sequence.homographies] == list(numbers[1:])


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("H_1_2", "1 0 0 0 1 0 0 0", r"H_1_2 has 8 numbers; expected a 3x3 matrix"),
        ("H_1_2", "1 0 0 0 1 0 0 0 nan", "matrix of finite numbers"),
        ("H_1_2", "1 0 0 0 1 zero 0 0 1", "not a readable matrix of nine numbers"),
        ("H_1_3", "0 0 0 0 0 0 0 0 0", "H_1_3 holds a singular matrix"),
        ("H_1_7", "1 0 0 0 1 0 0 0 1", r"plane has no photo 7 \(img7\.png, 7\.ppm"),
        ("img1.ppm", "", r"img1\.png and .*img1\.ppm are both photo 1|img1\.ppm and .*img1\.png are both photo 1"),
    ],
)
def test_a_damaged_sequence_is_told(oxford: Path, file: str, text: str, message: str) -> None:
    (oxford / "plane" / file).write_text(text)
    with pytest.raises(DataError, match=message):
        read_planar_sequences(oxford)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("img1.png", "plane has no photo 1"),
        ("img3.png", "plane has no photo 3"),
        ("H_1_2", "plane has a photo 2 but no homography H_1_2 or H1to2p"),
        ("H_1_3", "plane has a photo 3 but no homography H_1_3"),
    ],
)
def test_a_missing_file_is_told(oxford: Path, file: str, message: str) -> None:
    (oxford / "plane" / file).unlink()
    with pytest.raises(DataError, match=message):
        read_planar_sequences(oxford)


def test_a_sequence_without_any_homography_is_told(oxford: Path) -> None:
    write_sequence(oxford, "second", ["1.ppm", "2.ppm"], [])
    with pytest.raises(DataError, match="second has a photo 2 but no homography"):
        read_planar_sequences(oxford)


def test_a_sequence_of_which_only_some_photos_are_there_is_told(oxford: Path) -> None:
    write_sequence(oxford, "v_cut_off", ["2.ppm", "3.ppm"], [])
    with pytest.raises(DataError, match=r"v_cut_off has no photo 1 \(img1\.png, 1\.ppm"):
        read_planar_sequences(oxford)


def test_other_folders_beside_sequences_are_left_alone(oxford: Path) -> None:
    write_sequence(oxford, "notes", ["cover.png"], [])
    assert [sequence.name for sequence in read_planar_sequences(oxford)] == ["plane"]


def test_a_folder_without_sequences_is_told(tmp_path: Path) -> None:
    (tmp_path / "holiday").mkdir()
    with pytest.raises(DataError, match="no sequences"):
        read_planar_sequences(tmp_path)


def test_a_resized_homography_carries_the_resized_points(tmp_path: Path) -> None:
    """Corners of photos stay corners, and what is drawn at a point is found where the new homography says."""
    truth = np.array([[0.9, 0.1, 12.0], [-0.05, 1.1, 7.0], [1e-4, 5e-5, 1.0]])
    first = np.asarray(cv2.GaussianBlur(skimage.data.camera()[:240, 100:420], (0, 0), 3))
    second = np.asarray(cv2.warpPerspective(first, truth, (400, 300)))
    (tmp_path / "plane").mkdir()
    for number, photo in enumerate((first, second), start=1):
        Image.fromarray(photo).save(tmp_path / "plane" / f"{number}.ppm")
    (tmp_path / "plane" / "H_1_2").write_text("\n".join(" ".join(map(str, row)) for row in truth.tolist()))
    [sequence] = read_planar_sequences(tmp_path)
    [small] = sequence.resized(120).homographies
    outer = np.array([[-0.5, -0.5], [319.5, 239.5]])  # the outer corners of the first photo, at a half of the size
    moved = (apply_homography(truth, outer) + 0.5) * [160 / 400, 120 / 300] - 0.5
    np.testing.assert_allclose(apply_homography(small, [[-0.5, -0.5], [159.5, 119.5]]), moved, atol=1e-9)
    warped = np.asarray(cv2.warpPerspective(resized(first, 120), small, (160, 120)))
    seen = np.asarray(cv2.warpPerspective(np.ones((120, 160), np.uint8), small, (160, 120), flags=cv2.INTER_NEAREST))
    inside = cv2.erode(seen, np.ones((9, 9), np.uint8), borderValue=0) == 1
    apart = np.abs(warped.astype(float) - resized(second, 120))[inside]
    assert apart.mean() < 0.4, "0.69 where the first centre, not the corner, stays in place"
