"""`inspect` of photos: what the heads of their files tell, and which cannot be used."""

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.commands.inspect.inspection import inspect
from keypatch.errors import DataError
from keypatch.patches.image_folders import read_square

NOISE = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)


def save(path: Path, image: np.ndarray = NOISE, orientation: int = 1, film_focal: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif[0x0112] = orientation
    if film_focal:
        exif.get_ifd(0x8769)[0xA405] = film_focal
    Image.fromarray(image).save(path, exif=exif)
    return path


def test_a_folder_of_photos_is_counted(tmp_path: Path) -> None:
    save(tmp_path / "a.jpg")
    save(tmp_path / "b.JPG")
    save(tmp_path / "more" / "c.png", NOISE[:30, :40, 0])
    save(tmp_path / "d.png", NOISE[..., 0].astype(np.uint16))
    found = inspect(tmp_path)
    assert (found.kind, found.problems) == ("folder of photos", ())
    assert found.facts["photos"] == "4 (2 JPEG, 2 PNG)"
    assert found.facts["sizes"] == "40 x 30 to 80 x 60 pixels (0.0 megapixels), 2 different"
    assert found.facts["pixels"] == "2 in colour, 2 grey; 1 with 16 bits, converted to 8"
    assert found.facts["orientation"] == "as stored: no photo is rotated by an EXIF tag"
    assert found.facts["focal length"].startswith("not in the EXIF data; reconstruct guesses 1.2 times")
    assert found.facts["next"] == f"keypatch describe {tmp_path} --out features.h5"
    assert "left out" not in found.facts


def test_megapixels_are_those_of_the_smallest_and_the_largest(tmp_path: Path) -> None:
    save(tmp_path / "a.png", np.zeros((1000, 1200), np.uint8))
    save(tmp_path / "b.png", np.zeros((2000, 1500), np.uint8))
    assert inspect(tmp_path).facts["sizes"] == "1200 x 1000 to 1500 x 2000 pixels (1.2 to 3.0 megapixels), 2 different"
    assert inspect(tmp_path / "b.png").facts["sizes"] == "1500 x 2000 pixels (3.0 megapixels)"


def test_nothing_is_written(tmp_path: Path) -> None:
    for name in ("a.jpg", "b/c.png", "b/d.tif", "e/f.jpg", "e/g.jpg"):
        Path(tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(NOISE).save(tmp_path / name)
    before = sorted(tmp_path.rglob("*"))
    assert inspect(tmp_path).facts["photos"] == "5 (3 JPEG, 1 PNG, 1 TIFF)"
    (tmp_path / "a.jpg").unlink()
    assert inspect(tmp_path).kind == "images in class folders"
    assert sorted(tmp_path.rglob("*")) == [path for path in before if path.name != "a.jpg"]


def test_a_single_photo(tmp_path: Path) -> None:
    found = inspect(save(tmp_path / "it's.jpg", orientation=6, film_focal=26))
    assert (found.kind, found.problems) == ("photo", ())
    assert found.facts["photos"] == "1 (1 JPEG)"
    assert found.facts["orientation"].startswith("Rotated by an EXIF tag: 1 of 1 photos, it's.jpg (6). ")
    assert found.facts["focal length"] == "60 pixels (EXIF)"  # 26 / 43.27 of a diagonal of 100
    assert found.facts["next"].startswith("keypatch describe '")  # quoted for a shell


def test_photos_that_a_tag_turns_are_named(tmp_path: Path) -> None:
    for number in range(14):
        save(tmp_path / f"{number:02d}.jpg", orientation=8 if number else 1)
    told = inspect(tmp_path).facts["orientation"]
    assert told.startswith("Rotated by an EXIF tag: 13 of 14 photos, 01.jpg (8), 02.jpg (8)")
    assert told.count(".jpg (8)") == 10 and "and 3 more. " in told and "--turn-by-exif" in told


def test_known_focal_lengths_are_those_reconstruct_takes(tmp_path: Path) -> None:
    save(tmp_path / "a.jpg", film_focal=26)
    save(tmp_path / "b.jpg", film_focal=52)
    assert inspect(tmp_path).facts["focal length"] == "60 to 120 pixels (EXIF)"
    save(tmp_path / "c.jpg")
    known = inspect(tmp_path).facts["focal length"]
    assert known.startswith("60 to 120 pixels (EXIF) for 2 of 3; for the others, reconstruct guesses")


def test_broken_photos_are_named_and_the_others_counted(tmp_path: Path) -> None:
    whole = save(tmp_path / "a.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("no photo")
    found = inspect(tmp_path)
    assert found.facts["photos"] == "4 (1 JPEG, 3 cannot be read)"
    assert len(found.problems) == 3
    for problem, words in zip(found.problems, ["cut.jpg is not", "empty.png is empty", "text.png is not"], strict=True):
        assert words in problem
    for number in range(20):
        shutil.copy(tmp_path / "text.png", tmp_path / f"text{number}.png")
    problems = inspect(tmp_path).problems
    assert len(problems) == 11 and problems[-1] == "13 more photos cannot be read."


def test_a_folder_of_broken_photos_has_nothing_else_to_tell(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    found = inspect(tmp_path)
    assert found.kind == "folder of photos" and len(found.problems) == 1
    assert found.facts["photos"] == "1 (1 cannot be read)"
    assert "sizes" not in found.facts


def test_files_that_are_no_photos_are_counted_by_kind(tmp_path: Path) -> None:
    save(tmp_path / "a.jpg")
    for name in ("b.MOV", "c.mov", "notes", ".hidden"):
        (tmp_path / name).touch()
    assert inspect(tmp_path).facts["left out"] == "3 other files (2 .mov, 1 notes)"


def test_photos_of_a_kind_that_is_not_read_are_to_be_converted(tmp_path: Path) -> None:
    (tmp_path / "a.NEF").touch()
    found = inspect(tmp_path)
    assert found.kind == "folder of photos" and "No photos found" in found.problems[0]
    assert "convert photos in .nef to .jpg or .png to use them" in found.facts["left out"]
    save(tmp_path / "b.jpg")
    assert inspect(tmp_path).problems == ()


@pytest.mark.skipif(sys.platform != "linux", reason="needs names that are no text")
def test_a_name_that_is_no_text_is_a_problem_and_hides_no_other(tmp_path: Path) -> None:
    save(tmp_path / "a.jpg")
    save(tmp_path / os.fsdecode(b"b\xff.jpg"))
    found = inspect(tmp_path)
    assert found.facts["photos"] == "1 (1 JPEG)"
    assert len(found.problems) == 1 and r"the name 'b\udcff.jpg'" in found.problems[0]


def test_a_list_of_photos(tmp_path: Path) -> None:
    save(tmp_path / "sub" / "a.jpg")
    save(tmp_path / "b c.jpg")
    listed = tmp_path / "list.txt"
    listed.write_text("# mine\n\nsub/a.jpg\nb c.jpg\n")
    found = inspect(listed)
    assert (found.kind, found.problems) == ("list of photos", ())
    assert found.facts["photos"] == "2 (2 JPEG)"
    assert found.facts["next"] == f"keypatch describe {listed} --out features.h5"
    listed.write_text("b c.jpg\nsub/x.jpg\n")
    (problem,) = inspect(listed).problems
    assert problem.startswith(f"{listed}, line 2: ") and "x.jpg cannot be read: no such file" in problem
    listed.write_text("a.jpg\n../b.jpg\n")
    assert "line 2" in inspect(listed).problems[0]


@pytest.mark.parametrize(
    "text", ["", "hello\n", "a.jpg b.jpg\n", "1 0.5 0.5 0 0 1 2 3 1 a.jpg\n", "see a.jpg and more"]
)
def test_other_texts_are_no_lists_of_photos(tmp_path: Path, text: str) -> None:
    save(tmp_path / "a.jpg")
    (tmp_path / "t.txt").write_text(text)
    assert inspect(tmp_path / "t.txt").kind == "file of an unknown kind"
    (tmp_path / "t.txt").write_bytes(b"\xff\xfea.jpg")
    assert inspect(tmp_path / "t.txt").kind == "file of an unknown kind"


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a " * 200 + "x.jpg\n")
    assert inspect(tmp_path / "t.txt").kind == "file of an unknown kind"
    (tmp_path / "t.txt").write_text("a" * 400 + ".jpg\n")
    found = inspect(tmp_path / "t.txt")
    assert found.kind == "list of photos" and "line 1" in found.problems[0] and "name too long" in found.problems[0]
    (tmp_path / "t.txt").write_text("a b\0.jpg\n")
    assert inspect(tmp_path / "t.txt").kind == "file of an unknown kind"


def test_the_beginning_of_a_text_tells_that_it_is_a_list(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"a.jpg\n" + b"# and so on\n" * 20_000 + b"\xff")
    found = inspect(tmp_path / "t.txt")
    assert found.kind == "list of photos" and "not UTF-8 text" in found.problems[0]


def test_photos_in_bmp_files_or_beside_a_note_are_no_patch_set(tmp_path: Path) -> None:
    for name in ("holiday.bmp", "beach.bmp"):
        Image.fromarray(NOISE).save(tmp_path / name)
    assert inspect(tmp_path).facts["photos"] == "2 (2 BMP)"
    (tmp_path / "sub").mkdir()
    save(tmp_path / "sub" / "a.jpg")
    (tmp_path / "sub" / "info.txt").write_text("the beach in May")
    assert inspect(tmp_path / "sub").kind == "folder of photos"
    (tmp_path / "sub" / "a.jpg").unlink()
    assert inspect(tmp_path / "sub").kind == "patch set (PhotoTour layout)"
    Image.fromarray(NOISE).save(tmp_path / "patches0000.bmp")
    assert inspect(tmp_path).kind == "patch set (PhotoTour layout)"


def test_photos_in_folders_are_told_as_classes_and_as_photos_where_they_can_be_both(tmp_path: Path) -> None:
    for name in ("x/a.jpg", "x/b.jpg", "y/a.jpg"):
        save(tmp_path / name)
    assert inspect(tmp_path).kind == "folder of photos"  # a single class of two
    save(tmp_path / "y" / "b.jpg", orientation=6)
    found = inspect(tmp_path)
    assert (found.kind, found.problems) == ("images in class folders", ())
    assert found.facts["classes"] == "2, 2.0 images each (2 to 2)"
    assert found.facts["photos"] == "4 (4 JPEG)" and found.facts["pixels"] == "4 in colour"
    assert not {"orientation", "focal length"} & set(found.facts)  # training turns them, and knows no camera
    assert found.facts["next"].endswith("if these are photos to match")
    save(tmp_path / "above.jpg")
    assert inspect(tmp_path).kind == "folder of photos"  # of no class


def test_images_of_classes_are_refused_as_training_refuses_them(tmp_path: Path) -> None:
    for name in ("x/a.png", "x/c.png", "y/b.png", "y/c.png"):
        save(tmp_path / name)
    Image.fromarray(NOISE[..., 0].astype(np.float32)).save(tmp_path / "x" / "b.tif")
    (tmp_path / "y" / "a.pgm").write_bytes(b"P5 20000 20000 255\n")
    found = inspect(tmp_path)
    assert found.kind == "images in class folders" and found.facts["photos"] == "6 (4 PNG, 2 cannot be read)"
    for problem, name in zip(found.problems, ("x/b.tif", "y/a.pgm"), strict=True):
        with pytest.raises(DataError) as refused:
            read_square(tmp_path / name, 64)
        assert problem == str(refused.value)
    assert "floating-point" in found.problems[0] and "above the limit" in found.problems[1]


def test_photos_below_that_no_class_can_have_are_photos(tmp_path: Path) -> None:
    for name in ("day1/a.pnm", "day2/b.pnm"):
        (tmp_path / name).parent.mkdir()
        Image.fromarray(NOISE).save(tmp_path / name, "PPM")
    assert inspect(tmp_path).facts["photos"] == "2 (2 PPM)"


def test_a_folder_of_patch_sets_is_not_told_to_have_no_photos(tmp_path: Path) -> None:
    (tmp_path / "liberty").mkdir()
    Image.fromarray(NOISE).save(tmp_path / "liberty" / "patches0000.bmp")
    found = inspect(tmp_path)
    assert found.kind == "folder of an unknown kind" and found.problems[0].endswith(f"as {tmp_path / 'liberty'}.")


def test_a_damaged_photo_does_not_end_the_look_at_the_others(tmp_path: Path) -> None:
    save(tmp_path / "b.jpg", film_focal=26)
    Image.fromarray(NOISE).save(tmp_path / "a.tif")
    content = (tmp_path / "a.tif").read_bytes()
    offsets = struct.pack("<HH", 273, 4)
    assert content.count(offsets) == 1
    (tmp_path / "a.tif").write_bytes(content.replace(offsets, struct.pack("<HH", 273, 2)))  # a text
    found = inspect(tmp_path)
    assert (
        found.facts["photos"] == "2 (1 JPEG, 1 cannot be read)" and "a.tif is not a readable image" in found.problems[0]
    )
    assert found.facts["focal length"] == "60 pixels (EXIF)"


def test_every_photo_is_opened_once_and_the_folder_walked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.jpg", "b/c.png", "b/d.png", "e/f.jpg", "e/g.jpg"):
        save(tmp_path / name)
    opened, walked = list[object](), list[object]()
    was_open, was_walk = Image.open, Path.rglob
    monkeypatch.setattr(Image, "open", lambda file, **how: (opened.append(file), was_open(file, **how))[1])
    monkeypatch.setattr(Path, "rglob", lambda path, which: (walked.append(path), was_walk(path, which))[1])
    assert inspect(tmp_path).facts["photos"] == "5 (3 JPEG, 2 PNG)"
    assert (len(opened), len(walked)) == (5, 1)
    (tmp_path / "a.jpg").unlink()
    assert inspect(tmp_path).kind == "images in class folders"
    assert (len(opened), len(walked)) == (9, 1)


def test_photos_are_looked_at_without_torch(tmp_path: Path) -> None:
    save(tmp_path / "a.jpg")
    code = (
        "import sys; from keypatch.commands.inspect.inspection import inspect; print(inspect(sys.argv[1]).kind);"
        "print('torch' in sys.modules)"
    )
    words = [sys.executable, "-c", code, str(tmp_path)]
    shown = subprocess.run(words, capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines() == ["folder of photos", "False"]


def test_a_photo_that_is_missing_raises(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        inspect(tmp_path / "x.jpg")
