"""The camera of a photo, from its file."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.colmap import Camera
from keypatch.colmap.cameras import choose_cameras, header_camera, photo_camera
from keypatch.errors import DataError
from keypatch.features import Photo
from keypatch.images import read_header

EXIF, FILM, ORIENTATION = 0x8769, 0xA405, 0x0112


def save(path: Path, size: tuple[int, int] = (80, 60), film: int | None = None, turn: int | None = None) -> Photo:
    tags = Image.Exif()
    if film is not None:
        tags.get_ifd(EXIF)[FILM] = film
    if turn is not None:
        tags[ORIENTATION] = turn
    Image.fromarray(np.zeros((size[1], size[0]), np.uint8)).save(path, exif=tags)
    return Photo(path.name, path)


def test_the_focal_length_of_exif_data_is_that_of_colmap(tmp_path: Path) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    photo = save(tmp_path / "a.jpg", (800, 600), film=28)
    ours, theirs = photo_camera(photo.path, "SIMPLE_RADIAL"), pycolmap.infer_camera_from_image(str(photo.path))
    assert ours.focal_known and theirs.has_prior_focal_length
    assert ours.focal[0] == pytest.approx(theirs.focal_length, rel=2e-4)  # COLMAP rounds the film's diagonal
    assert ours.params[1:] == tuple(theirs.params[1:])


def test_a_turned_photo_has_the_size_of_its_pixels_as_stored(tmp_path: Path) -> None:
    camera = photo_camera(save(tmp_path / "a.jpg", (80, 60), turn=6).path, "PINHOLE")
    assert (camera.width, camera.height) == (80, 60)


@pytest.mark.parametrize("film", [None, 0])
def test_without_a_focal_length_it_is_a_guess(tmp_path: Path, film: int | None) -> None:
    camera = photo_camera(save(tmp_path / "a.jpg", film=film).path, "SIMPLE_PINHOLE")
    assert not camera.focal_known and camera.params == (96, 40, 30)


def test_a_header_that_was_read_before_gives_the_same_camera(tmp_path: Path) -> None:
    path = save(tmp_path / "a.jpg", film=28).path
    for focal in (None, 77.0):
        assert header_camera(read_header(path), "RADIAL", focal) == photo_camera(path, "RADIAL", focal)


def test_a_given_focal_length_goes_before_the_exif_data(tmp_path: Path) -> None:
    camera = photo_camera(save(tmp_path / "a.jpg", film=28).path, "SIMPLE_PINHOLE", 77.0)
    assert camera.focal_known and camera.params[0] == 77


def test_a_known_camera_goes_before_everything(tmp_path: Path) -> None:
    photos = [save(tmp_path / "a.jpg"), save(tmp_path / "b.jpg")]
    known = {"a.jpg": Camera("PINHOLE", 80, 60, (70, 71, 41, 29))}
    found = choose_cameras(photos, known, "SIMPLE_PINHOLE", 77.0, shared=True)
    assert found["a.jpg"] == known["a.jpg"]
    assert found["b.jpg"].params == (77, 40, 30)


def test_a_shared_camera_takes_the_first_focal_length_there_is(tmp_path: Path) -> None:
    photos = [save(tmp_path / "a.jpg"), save(tmp_path / "b.jpg", film=35), save(tmp_path / "c.jpg", film=50)]
    own = choose_cameras(photos, {}, "SIMPLE_PINHOLE", None, shared=False)
    assert len(set(own.values())) == 3
    shared = choose_cameras(photos, {}, "SIMPLE_PINHOLE", None, shared=True)
    assert set(shared.values()) == {own["b.jpg"]}


def test_photos_of_two_sizes_have_no_shared_camera(tmp_path: Path) -> None:
    photos = [save(tmp_path / "a.jpg"), save(tmp_path / "b.jpg", (60, 80))]
    with pytest.raises(DataError, match=r"b.jpg has 60 x 80 pixels, but the shared camera has 80 x 60"):
        choose_cameras(photos, {}, "PINHOLE", None, shared=True)
    with pytest.raises(DataError, match=r"a.jpg has 80 x 60 pixels, but its known camera has 160 x 120"):
        choose_cameras(photos, {"a.jpg": Camera("PINHOLE", 160, 120, (1, 1, 1, 1))}, "PINHOLE", None, shared=False)


@pytest.mark.parametrize("content", [b"", b"not a photo", b"\xff\xd8\xff\xe0"])
def test_a_file_that_is_no_photo_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(DataError, match=r"a.jpg is .* Leave the photo out to continue without it\.$"):
        photo_camera(tmp_path / "a.jpg", "PINHOLE")


def test_the_size_of_a_huge_photo_is_read_without_a_complaint(tmp_path: Path) -> None:
    header = b"P5 20000 20000 255\n"
    (tmp_path / "huge.pgm").write_bytes(header)
    assert photo_camera(tmp_path / "huge.pgm", "SIMPLE_PINHOLE").width == 20000
