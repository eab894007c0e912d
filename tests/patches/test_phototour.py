"""The PhotoTour layout: files of others are read, ours come back, and every wrong file is named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from keypatch.errors import DataError, KeypatchError
from keypatch.geometry.keypoints import Keypoints
from keypatch.patches.patch_set import Pairs
from keypatch.patches.phototour import find_pair_lists, read_phototour, write_phototour

Make = Callable[..., Any]


@pytest.mark.parametrize("n", [1, 255, 256, 257, 600])
def test_a_set_made_by_others_is_read_pixel_by_pixel(phototour: Make, n: int) -> None:
    made = phototour(n=n)
    for _ in range(2):  # first from the sheets, then from the cache
        found = read_phototour(made.folder)
        assert found.name == "liberty" and found.folder == made.folder
        assert np.array_equal(found.patches, made.patches)
        assert np.array_equal(found.point_id, made.point_id) and found.point_id.dtype == np.int64
        assert found.image_id is None and found.keypoints is None and found.card == {}


def test_patches_are_mapped_not_loaded(phototour: Make) -> None:
    found = read_phototour(phototour().folder)
    assert isinstance(found.patches, np.memmap)
    assert not found.patches.flags.writeable


def test_points_need_not_be_dense_and_images_come_from_the_second_column(phototour: Make) -> None:
    made = phototour(n=4)
    (made.folder / "info.txt").write_text("900000000000 7\n900000000000 8\n-3 7\n-3 9\n\n\n")
    found = read_phototour(made.folder)
    assert found.point_id.tolist() == [900000000000, 900000000000, -3, -3]
    assert found.image_id is not None and found.image_id.tolist() == [7, 8, 7, 9]
    assert found.classes().count == 2


def test_interest_points_are_read_in_our_convention(phototour: Make) -> None:
    made = phototour(n=3)
    (made.folder / "interest.txt").write_text("9 573.5 475.25 0.5 2\n10 1.5 2.5 -3 0\n11 0 0 0 -1\n")
    found = read_phototour(made.folder)
    assert found.keypoints is not None and found.image_id is not None
    assert found.image_id.tolist() == [9, 10, 11]
    assert found.keypoints.x.tolist() == [573.5, 1.5, 0] and found.keypoints.y.tolist() == [475.25, 2.5, 0]
    assert found.keypoints.angle.tolist() == [0.5, -3, 0] and found.keypoints.sigma.tolist() == [4, 1, 0.5]


def test_what_we_write_comes_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    n = 300
    patches = rng.integers(0, 256, (n, 64, 64)).astype(np.uint8)
    point_id = rng.permutation(np.arange(n) // 2) * 3
    image_id = rng.integers(1, 9, n)
    xy, sigma, angle = rng.uniform(0, 4000, (2, n)), rng.uniform(0.5, 40, n), rng.uniform(-4, 4, n)
    keypoints = Keypoints(*(v.astype(np.float32) for v in (*xy, sigma, angle)))
    first, second = rng.integers(0, n, (2, 50))
    lists = [
        Pairs(name, first, second, point_id[first] == point_id[second]) for name in ("hard_50_50_0", "m50_50_50_0")
    ]
    write_phototour(
        tmp_path / "ours",
        patches,
        point_id,
        image_id=image_id,
        keypoints=keypoints,
        pairs=lists,
        card={"source": "noise"},
    )
    found = read_phototour(tmp_path / "ours")
    assert np.array_equal(found.patches, patches) and np.array_equal(found.point_id, point_id)
    assert found.image_id is not None and np.array_equal(found.image_id, image_id)
    assert found.keypoints is not None
    for name in ("x", "y", "angle"):
        assert np.array_equal(getattr(found.keypoints, name), getattr(keypoints, name))
    assert np.allclose(found.keypoints.sigma, keypoints.sigma, rtol=1e-7)  # through log2, one unit of float32
    assert found.card["source"] == "noise" and "log2(sigma)" in found.card["interest"]
    pairs = find_pair_lists(found)
    assert [each.name for each in pairs] == ["hard_50_50_0", "m50_50_50_0"]
    assert all(np.array_equal(each.is_match, point_id[first] == point_id[second]) for each in pairs)


def test_what_we_write_is_what_others_expect(tmp_path: Path) -> None:
    patches = np.random.default_rng(2).integers(1, 256, (257, 64, 64)).astype(np.uint8)
    pairs = Pairs("m50_2_2_0", np.array([0, 0]), np.array([1, 256]), np.array([True, False]))
    write_phototour(tmp_path / "s", patches, np.arange(257) // 2, pairs=[pairs])
    with Image.open(tmp_path / "s" / "patches0001.bmp") as image:
        sheet = np.array(image)
        assert image.format == "BMP" and image.mode == "L" and image.size == (1024, 1024)
    assert np.array_equal(sheet[:64, :64], patches[256]) and sheet[:, 64:].max() == 0 and sheet[64:].max() == 0
    with Image.open(tmp_path / "s" / "patches0000.bmp") as image:
        assert np.array_equal(np.array(image)[64:128, 128:192], patches[18])
    assert (tmp_path / "s" / "info.txt").read_text().splitlines()[:3] == ["0 0", "0 0", "1 0"]
    assert (tmp_path / "s" / "m50_2_2_0.txt").read_text() == "0 0 0 1 0 0 0\n0 0 0 256 128 0 0\n"
    assert not (tmp_path / "s" / "interest.txt").exists()


def test_writing_refuses_what_the_layout_cannot_hold(tmp_path: Path, phototour: Make) -> None:
    ids = np.zeros(2, np.int64)
    with pytest.raises(KeypatchError, match="each 64x64"):
        write_phototour(tmp_path / "a", np.zeros((2, 65, 65), np.uint8), ids)
    with pytest.raises(KeypatchError, match="at least one patch"):
        write_phototour(tmp_path / "a", np.zeros((0, 64, 64), np.uint8), ids[:0])
    with pytest.raises(KeypatchError, match="2 patches but 1 values of image_id"):
        write_phototour(tmp_path / "a", np.zeros((2, 64, 64), np.uint8), ids, image_id=ids[:1])
    with pytest.raises(KeypatchError, match="already holds a patch set"):
        write_phototour(phototour().folder, np.zeros((2, 64, 64), np.uint8), ids)
    lying = Pairs("m50", np.array([0]), np.array([1]), np.array([False]))
    with pytest.raises(KeypatchError, match="match exactly if both patches show the same point"):
        write_phototour(tmp_path / "b", np.zeros((2, 64, 64), np.uint8), ids, pairs=[lying])
    (tmp_path / "file").write_text("")
    with pytest.raises(KeypatchError, match="cannot be created"):
        write_phototour(tmp_path / "file" / "c", np.zeros((2, 64, 64), np.uint8), ids)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:500_000])


WRONG_SHEETS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "of the wrong size": (
        lambda p: Image.new("L", (1024, 960)).save(p),
        r"patches0001\.bmp is 1024x960 pixels, but a sheet of patches has 1024x1024",
    ),
    "cut off": (cut, r"patches0001\.bmp is not a readable image"),
    "cut off in its head": (lambda p: p.write_bytes(p.read_bytes()[:20]), r"patches0001\.bmp is "),
    "empty": (lambda p: p.write_bytes(b""), r"patches0001\.bmp is empty"),
    "not an image": (lambda p: p.write_text("<html>404</html>" * 99), r"patches0001\.bmp is not an image"),
}


@pytest.mark.parametrize("kind", WRONG_SHEETS)
def test_a_wrong_sheet_is_named(phototour: Make, kind: str) -> None:
    spoil, message = WRONG_SHEETS[kind]
    folder = phototour().folder
    spoil(folder / "patches0001.bmp")
    with pytest.raises(DataError, match=message):
        read_phototour(folder)
    assert not list(folder.glob("*.npy")) and not list(folder.glob(".*"))


LINES = [f"{i // 3} 0" for i in range(300)]
WRONG_INFO = {
    "missing": (None, r"info\.txt is missing"),
    "empty": ([], r"info\.txt is empty; every line should hold two integers"),
    "shorter": (LINES[:256], r"info\.txt has 256 lines, but the 2 sheets beside it hold more than 256 patches"),
    "longer": (LINES + LINES, r"info\.txt has 600 lines, but the 2 sheets beside it have room for only 512 patches"),
    "with a word": (["0 0", "0 x", *LINES[2:]], r'info\.txt, line 2: expected two integers .*, found "0 x"'),
    "with a comma": (["0,0", *LINES[1:]], r'info\.txt, line 1: expected two integers .*, found "0,0"'),
    "with one column": ([*LINES[:41], "14", *LINES[42:]], r'info\.txt, line 42: expected two integers .*, found "14"'),
    "with a fraction": ([*LINES[:41], "1.5 0", *LINES[42:]], r'info\.txt, line 42: .*, found "1\.5 0"'),
    "with nan": ([*LINES[:41], "nan 0", *LINES[42:]], r'info\.txt, line 42: .*, found "nan 0"'),
    "with a blank line": ([*LINES[:41], "", *LINES[42:]], r'info\.txt, line 42: .*, found ""'),
    "with a huge number": (["9" * 30 + " 0", *LINES[1:]], r"info\.txt, line 1: expected two integers"),
    "cut off": (
        [*LINES[:41], "12,"],
        r'line 42: expected two integers \(point id, unused\), found "12,"\.\nThe file looks cut off; the 2 sheets '
        r"have room for 512 patches but only 41 lines are whole\. Copy it again or pass --allow-partial\.",
    ),
}


@pytest.mark.parametrize("kind", WRONG_INFO)
def test_a_wrong_info_is_named_with_its_line(phototour: Make, kind: str) -> None:
    lines, message = WRONG_INFO[kind]
    folder = phototour().folder
    if lines is None:
        (folder / "info.txt").unlink()
    else:
        (folder / "info.txt").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(DataError, match=message):
        read_phototour(folder)


WRONG_INTEREST = {
    "of another length": ("1 2 3 4 5\n" * 299, r"interest\.txt has 299 lines for 300 patches.*it is optional"),
    "not finite": (
        "1 2 3 4 5\n" * 99 + "1 inf 3 4 5\n" + "1 2 3 4 5\n" * 200,
        r'line 100: .*finite, found "1 inf 3 4 5"',
    ),
    "nan": ("1 2 nan 4 5\n" * 300, r"interest\.txt, line 1: numbers must be finite"),
    "too narrow": (
        "1 2 3 4 5\n" * 7 + "1 2 3 4\n" + "1 2 3 4 5\n" * 292,
        r"interest\.txt, line 8: expected five numbers",
    ),
    "beyond all scales": ("1 2 3 4 5\n" * 299 + "1 2 3 4 500\n", r"interest\.txt: Keypoint 299.*inf"),
    "a word": ("1 2 3 4 x\n" * 300, r'interest\.txt, line 1: expected five numbers .*, found "1 2 3 4 x"'),
}


@pytest.mark.parametrize("kind", WRONG_INTEREST)
def test_a_wrong_interest_file_is_named(phototour: Make, kind: str) -> None:
    text, message = WRONG_INTEREST[kind]
    folder = phototour().folder
    (folder / "interest.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        read_phototour(folder)


def test_folders_without_sheets_are_told_apart(tmp_path: Path, phototour: Make) -> None:
    with pytest.raises(DataError, match="There is no folder"):
        read_phototour(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="is empty"):
        read_phototour(tmp_path / "empty")
    (tmp_path / "empty" / "info.txt").write_text("0 0\n")
    with pytest.raises(DataError, match="has no sheets of patches"):
        read_phototour(tmp_path / "empty")
    folder = phototour(n=700).folder
    (folder / "patches0001.bmp").unlink()
    with pytest.raises(DataError, match=r"sheet 1, the one after patches0000\.bmp, is missing"):
        read_phototour(folder, allow_partial=True)


def test_sheets_follow_their_numbers_even_without_leading_zeros(phototour: Make) -> None:
    made = phototour(n=256 * 11)
    for sheet in made.folder.glob("*.bmp"):
        sheet.rename(sheet.with_name(f"patches{int(sheet.stem[-4:])}.BMP"))
    assert np.array_equal(read_phototour(made.folder).patches, made.patches)


def test_a_part_of_a_set_is_read_when_asked_for(phototour: Make) -> None:
    made = phototour(n=700)
    lines = (made.folder / "info.txt").read_text().splitlines()
    (made.folder / "info.txt").write_text("\n".join([*lines[:100], "12,"]))
    found = read_phototour(made.folder, allow_partial=True)
    assert np.array_equal(found.patches, made.patches[:100]) and np.array_equal(found.point_id, made.point_id[:100])
    (made.folder / "info.txt").write_text("\n".join(lines))
    (made.folder / "patches0002.bmp").unlink()
    with pytest.raises(DataError, match="700 lines, but the 2 sheets"):
        read_phototour(made.folder)
    assert len(read_phototour(made.folder, allow_partial=True)) == 512


WRONG_CARDS = {
    "{": "is not a readable JSON file",
    "[1]": "is not a card of a patch set",
    '{"format": "keypatch-patch-set", "format_number": 2}': "newer keypatch .format 2, this one reads up to 1.: update",
}


@pytest.mark.parametrize("text", WRONG_CARDS)
def test_a_wrong_card_is_named(phototour: Make, text: str) -> None:
    folder = phototour().folder
    (folder / "card.json").write_text(text)
    with pytest.raises(DataError, match=WRONG_CARDS[text]):
        read_phototour(folder)
