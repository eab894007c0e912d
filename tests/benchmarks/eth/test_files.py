"""The ETH evaluation's binary files: read as `struct` writes them, and written as `struct` reads them."""

import struct
from pathlib import Path

import numpy as np
import pytest

from keypatch.benchmarks.eth.files import (
    image_file,
    pair_file,
    read_eth_descriptors,
    read_eth_keypoints,
    read_eth_matches,
    write_eth_descriptors,
    write_eth_keypoints,
    write_eth_matches,
)
from keypatch.errors import DataError, KeypatchError
from keypatch.geometry import Keypoints

KEYPOINTS = struct.pack("<ii8f", 2, 4, 10.5, 20.25, 1.5, 0.5, 0.0, 7.0, 3.0, -2.0)
DESCRIPTORS = struct.pack("<ii6f", 2, 3, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
MATCHES = struct.pack("<ii6I", 3, 2, 0, 4, 1, 0, 2, 3)


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_keypoints_are_read_in_our_convention_without_a_shift(tmp_path: Path) -> None:
    keypoints = read_eth_keypoints(put(tmp_path / "a.bin", KEYPOINTS))
    assert keypoints.x.tolist() == [10.5, 0.0] and keypoints.y.tolist() == [20.25, 7.0]
    assert keypoints.sigma.tolist() == [1.5, 3.0] and keypoints.angle.tolist() == [0.5, -2.0]


def test_descriptors_and_matches_are_read_row_by_row(tmp_path: Path) -> None:
    descriptors = read_eth_descriptors(put(tmp_path / "a.bin", DESCRIPTORS), 2)
    assert descriptors.dtype == np.float32 and descriptors.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert read_eth_matches(put(tmp_path / "m.bin", MATCHES), (3, 5)).tolist() == [[0, 4], [1, 0], [2, 3]]


def test_what_is_written_is_what_struct_writes(tmp_path: Path) -> None:
    write_eth_keypoints(tmp_path / "k.bin", Keypoints([10.5, 0.0], [20.25, 7.0], [1.5, 3.0], [0.5, -2.0]))
    write_eth_descriptors(tmp_path / "d.bin", np.arange(1, 7, dtype=np.float32).reshape(2, 3))
    write_eth_matches(tmp_path / "m.bin", np.array([[0, 4], [1, 0], [2, 3]], np.int32))
    assert (tmp_path / "k.bin").read_bytes() == KEYPOINTS
    assert (tmp_path / "d.bin").read_bytes() == DESCRIPTORS
    assert (tmp_path / "m.bin").read_bytes() == MATCHES


def test_a_place_survives_writing_and_reading_bit_by_bit(tmp_path: Path) -> None:
    x = np.random.default_rng(0).uniform(0, 6000, 1000).astype(np.float32)
    write_eth_keypoints(tmp_path / "k.bin", Keypoints(x, x[::-1], np.ones(1000), np.zeros(1000)))
    again = read_eth_keypoints(tmp_path / "k.bin")
    assert np.array_equal(again.x, x) and np.array_equal(again.y, x[::-1])


def test_nothing_is_a_file_of_no_rows(tmp_path: Path) -> None:
    write_eth_matches(tmp_path / "m.bin", np.empty((0, 2), np.int32))
    assert (tmp_path / "m.bin").read_bytes() == struct.pack("<ii", 0, 2)
    assert read_eth_matches(tmp_path / "m.bin", (5, 5)).shape == (0, 2)
    assert len(read_eth_keypoints(put(tmp_path / "k.bin", struct.pack("<ii", 0, 4)))) == 0
    assert read_eth_descriptors(put(tmp_path / "d.bin", struct.pack("<ii", 0, 128)), 0).shape == (0, 128)


def test_names_keep_their_endings_and_folders(tmp_path: Path) -> None:
    assert image_file(tmp_path, "0000.png").name == "0000.png.bin"
    assert pair_file(tmp_path, "0000.png", "0001.png").name == "0000.png---0001.png.bin"
    write_eth_matches(pair_file(tmp_path, "left/a.jpg", "right/b.jpg"), np.array([[1, 2]]))
    assert read_eth_matches(pair_file(tmp_path, "left/a.jpg", "right/b.jpg"), (2, 3)).tolist() == [[1, 2]]


KEYPOINT_FAULTS = {
    "missing": (None, "cannot be read: no such file"),
    "empty": (b"", "has 0 bytes"),
    "head only in part": (KEYPOINTS[:7], "has 7 bytes"),
    "cut off": (KEYPOINTS[:-1], "40 bytes with its header, but has 39"),
    "too long": (KEYPOINTS + b"\0", "but has 41"),
    "a count beyond all memory": (struct.pack("<ii", 2**31 - 1, 4), "2147483647 rows"),
    "a negative count": (struct.pack("<ii", -1, 4), "-1 rows"),
    "six columns": (struct.pack("<ii6f", 1, 6, *[1.0] * 6), "expected 4 columns"),
    "big endian": (struct.pack(">ii4f", 1, 4, 1, 1, 1, 1), "expected 4 columns"),
    "nan": (struct.pack("<ii4f", 1, 4, float("nan"), 1, 1, 1), "must be finite"),
    "scale zero": (struct.pack("<ii4f", 1, 4, 1, 1, 0, 1), "must be above 0"),
}


@pytest.mark.parametrize("fault", KEYPOINT_FAULTS)
def test_keypoints_that_are_damaged_are_refused_with_the_file_and_the_reason(tmp_path: Path, fault: str) -> None:
    content, words = KEYPOINT_FAULTS[fault]
    path = tmp_path / "a.png.bin"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_eth_keypoints(path)
    assert words in str(error.value) and "a.png.bin" in str(error.value) and "\n" not in str(error.value)


DESCRIPTOR_FAULTS = {
    "other count": (DESCRIPTORS, 3, "has 2 descriptors, but the image has 3 keypoints"),
    "no columns": (struct.pack("<ii", 2, 0), 2, "one column or more"),
    "nan": (struct.pack("<ii4f", 2, 2, 1, 1, 1, float("nan")), 2, "descriptor 1 is not finite"),
    "infinite": (struct.pack("<ii2f", 1, 2, float("inf"), 1), 1, "descriptor 0 is not finite"),
    "cut off": (DESCRIPTORS[:20], 2, "32 bytes with its header, but has 20"),
}


@pytest.mark.parametrize("fault", DESCRIPTOR_FAULTS)
def test_descriptors_that_do_not_fit_are_refused(tmp_path: Path, fault: str) -> None:
    content, count, words = DESCRIPTOR_FAULTS[fault]
    with pytest.raises(DataError, match=words):
        read_eth_descriptors(put(tmp_path / "d.bin", content), count)


def test_matches_of_keypoints_that_are_not_there_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "m.bin", MATCHES)
    with pytest.raises(DataError, match="match 0 names keypoint 4 of the second image, which has 4"):
        read_eth_matches(path, (3, 4))
    with pytest.raises(DataError, match="match 2 names keypoint 2 of the first image, which has 2"):
        read_eth_matches(path, (2, 5))
    with pytest.raises(DataError, match="keypoint 4294967295"):
        read_eth_matches(put(path, struct.pack("<iiIi", 1, 2, 0, -1)), (3, 5))
    with pytest.raises(DataError, match="expected 2 columns"):
        read_eth_matches(put(path, DESCRIPTORS), (3, 5))


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "matches").write_text("a file where the folder should be")
    with pytest.raises(KeypatchError, match="matches is a file, not a folder"):
        write_eth_matches(tmp_path / "matches" / "m.bin", np.array([[0, 1]]))
