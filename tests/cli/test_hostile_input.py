"""Whatever `match`, `reconstruct` and `doctor` are given: a sentence and exit code 2, or an empty result.

Rows of `describe` are in tests/features/test_hostile_input.py, more of `match` in test_match.py.
"""

import sqlite3
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image
from skimage import data

from keypatch.files import lock

RESULT, REFUSED = 0, 2


def huge_png(side: int) -> bytes:
    """A whole PNG of black pixels, one bit each, packed row by row."""
    packer = zlib.compressobj(1)
    rows = b"".join(packer.compress(bytes(1 + side // 8)) for _ in range(side)) + packer.flush()
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", rows), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def write_features(path: Path, names: tuple[str, ...] = ("a.png", "b.png"), count: int = 5, **changes: object) -> None:
    """hloc's layout; groups are made part by part, for HDF5 takes ".." and "" in a path for no names."""
    places = np.random.default_rng(0).uniform(10, 100, (count, 2))
    arrays = {"keypoints": places, "descriptors": np.eye(8)[:, :count], **changes}
    with h5py.File(path, "w") as file:
        for name in names:
            group = file
            for part in name.split("/"):
                group = group.require_group(part)
            for key, array in arrays.items():
                group[key] = array


def write_matches(path: Path, values: object) -> None:
    with h5py.File(path, "w") as file:
        file["a.png/b.png/matches0"] = values


def write_database(path: Path, name: object = "a.png", rows: object = 3) -> None:
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE images (image_id INTEGER PRIMARY KEY, name TEXT)")
        for table in ("keypoints", "descriptors"):
            file.execute(f"CREATE TABLE {table} (image_id INTEGER, rows INTEGER, cols INTEGER, data BLOB)")
        file.execute("INSERT INTO images VALUES (1, ?)", (name,))
        file.execute("INSERT INTO keypoints VALUES (1, ?, 4, ?)", (rows, np.ones((3, 4), np.float32).tobytes()))
    file.close()


def write_photos(folder: Path) -> None:
    photo = data.camera()[100:228, 100:240]
    Image.fromarray(photo[:, :128]).save(folder / "a.png")
    Image.fromarray(photo[:, 12:]).save(folder / "b.png")
    Image.fromarray(data.camera()).save(folder / "cut.jpg")
    (folder / "cut.jpg").write_bytes((folder / "cut.jpg").read_bytes()[:5000])
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "text.png").write_text("no photo")
    (folder / "huge.png").write_bytes(huge_png(20_000))
    (folder / "folder.png").mkdir()
    for name in ("dot.png", "dot2.png"):
        Image.new("L", (1, 1)).save(folder / name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    write_photos(folder)
    for kind, name in (("up", "../a.png"), ("root", "/a.png"), ("drive", "C:\\a.png")):
        (folder / f"{kind}.txt").write_text(f"b.png\n{name}\n")
        (folder / f"{kind}-pairs.txt").write_text(f"b.png {name}\n")
        write_database(folder / f"{kind}.db", name)
    write_features(folder / "good.h5")
    with h5py.File(folder / "other.h5", "w") as file:
        file["net/weights"] = np.ones(3)
    with h5py.File(folder / "empty.h5", "w") as file:
        file.attrs.update({"format": "keypatch-features", "format_number": 1, "descriptor": "sift", "settings": "{}"})
    write_features(folder / "up.h5", ("a.png", "../b.png"))
    write_features(folder / "drive.h5", ("a.png", "C:\\b.png"))
    write_features(folder / "head.h5")
    with h5py.File(folder / "head.h5", "a") as file:
        file.attrs.update({"format": "keypatch-features", "format_number": 1, "descriptor": "x", "settings": "{"})
    write_features(folder / "none.h5", count=0)
    write_features(folder / "one.h5", count=1)
    write_features(folder / "flat.h5", keypoints=np.ones(5))
    write_features(folder / "wide.h5", descriptors=np.ones((8, 7)))
    write_matches(folder / "table.h5", np.zeros((5, 2), int))
    write_matches(folder / "beyond.h5", np.array([0, 1, 9, -1, -1]))
    write_database(folder / "words.db", rows="many")
    write_database(folder / "nameless.db", name=None)
    write_database(folder / "bytes.db", name=b"\xff")
    (folder / "file").write_text("no folder")
    return folder


MATCH = [
    ("a.png folder.png", REFUSED, "Matches of many photos go to a match file"),
    ("a.png folder.png --out OUT.h5", REFUSED, "at least two photos; there is only a.png"),
    ("a.png b.png --out /proc/m.csv", REFUSED, "/proc/m.csv cannot be written"),
    ("a.png b.png --draw file/m.png", REFUSED, "file/m.png cannot be written"),
    ("dot.png dot.png --draw OUT.png", RESULT, "0 keypoints"),
    ("a.png b.png --keypoints 1", RESULT, "too few to verify"),
    ("--features good.h5 --pairs exhaustive --out /proc/m.h5", REFUSED, "/proc/m.h5 cannot be written"),
    ("--features good.h5 --pairs exhaustive --out file/m.h5", REFUSED, "file/m.h5 cannot be written"),
    ("--features up.h5 --pairs exhaustive --out OUT", REFUSED, "up.h5: the name '../b.png'"),
    ("--features drive.h5 --pairs exhaustive --out OUT", REFUSED, "drive.h5: the name 'C:"),
    ("--features head.h5 --pairs exhaustive --out OUT", REFUSED, "head.h5"),
    (
        "--features other.h5 --pairs exhaustive --out OUT",
        REFUSED,
        "other.h5 is not a feature file: it has no array",
    ),
    ("--features empty.h5 --pairs exhaustive --out OUT", REFUSED, "empty.h5 has no features"),
    ("--features none.h5 --pairs exhaustive --out OUT", RESULT, "1 pair"),
    ("--features one.h5 --pairs exhaustive --out OUT", RESULT, "1 pair"),
]
RECONSTRUCT = [
    ("a.png b.png cut.jpg", REFUSED, "cut.jpg is not a readable image"),
    ("a.png empty.jpg", REFUSED, "empty.jpg"),
    ("a.png text.png", REFUSED, "text.png"),
    ("a.png huge.png", REFUSED, "huge.png has 20000 x 20000 pixels"),
    ("dot.png dot2.png", REFUSED, "COLMAP found no geometry of the two photos: no two photos have matches"),
    ("folder.png", REFUSED, "No photos found"),
    ("a.png folder.png", REFUSED, "at least two photos"),
    ("up.txt", REFUSED, "up.txt, line 2: the name '../a.png'"),
    ("root.txt", REFUSED, "root.txt, line 2: /a.png is not inside"),
    ("drive.txt", REFUSED, "drive.txt, line 2: the name 'C:"),
    ("a.png b.png --features good.h5 --pairs up-pairs.txt", REFUSED, "up-pairs.txt, line 1"),
    ("a.png b.png --features good.h5 --pairs root-pairs.txt", REFUSED, "root-pairs.txt, line 1"),
    ("a.png b.png --features other.h5", REFUSED, "other.h5 is not a feature file: it has no array"),
    (
        "a.png b.png --features good.h5 --matches other.h5",
        REFUSED,
        "other.h5 is not a match file: it has no array",
    ),
    ("a.png b.png --features up.h5", REFUSED, "up.h5: the name '../b.png'"),
    ("a.png b.png --features flat.h5", REFUSED, "flat.h5: a.png"),
    ("a.png b.png --features wide.h5", REFUSED, "wide.h5: a.png has 5 keypoints but descriptors of shape (8, 7)"),
    ("a.png b.png --features head.h5", REFUSED, "head.h5"),
    ("a.png b.png --features none.h5", REFUSED, "no two photos have matches that agree"),
    ("a.png b.png --features one.h5", REFUSED, "no two photos have matches that agree"),
    ("a.png b.png --features good.h5 --matches table.h5", REFUSED, "matches0 is not a list of whole numbers"),
    ("a.png b.png --features good.h5 --matches beyond.h5", REFUSED, "name keypoint 9 of b.png, which has 5"),
    ("a.png b.png --out /proc/out", REFUSED, "/proc/out cannot be created"),
    ("a.png b.png --out file/out", REFUSED, "file/out cannot be created"),
    ("a.png b.png --out file", REFUSED, "file is a file, not a folder"),
]
DOCTOR = [
    ("cut.jpg", REFUSED, "cut.jpg is not a readable image"),
    ("empty.jpg", REFUSED, "empty.jpg is empty"),
    ("text.png", REFUSED, "text.png is not an image"),
    ("huge.png", REFUSED, "--pixel-limit"),
    ("a.png --pixel-limit 16383", REFUSED, "128 x 128 pixels"),
    ("folder.png", REFUSED, "folder.png cannot be read: is a directory."),
    ("dot.png", REFUSED, "cannot tell: there are no keypoints of this photo"),
    ("a.png --features none.h5", REFUSED, "cannot tell: there are no keypoints of this photo"),
    ("a.png --features one.h5", REFUSED, "cannot tell: 1 keypoints in the photo are too few"),
    ("a.png --features other.h5", REFUSED, "other.h5 is not a feature file: it has no array"),
    ("a.png --features empty.h5", REFUSED, "empty.h5 has no keypoints"),
    ("a.png --features flat.h5", REFUSED, "flat.h5, a.png: the keypoints should be an (n, 2) array"),
    ("a.png --features wide.h5", REFUSED, "5 keypoints but descriptors of shape (8, 7)"),
    ("a.png --features head.h5", REFUSED, "head.h5"),
    ("a.png --features folder.png", REFUSED, "There is no feature file folder.png"),
    ("a.png --features good.h5 --name ../a.png", REFUSED, 'good.h5 has no keypoints for "../a.png"'),
    ("a.png --features good.h5 --name /a.png", REFUSED, 'good.h5 has no keypoints for "/a.png"'),
    ("a.png --database up.db", REFUSED, "3 keypoints in the photo"),  # a name is looked up, and leads nowhere
    ("a.png --database root.db", REFUSED, "3 keypoints in the photo"),
    ("a.png --database words.db", REFUSED, "words.db: the keypoints of a.png are cut off"),
    ("a.png --database nameless.db", REFUSED, "nameless.db has no keypoints"),
    ("a.png --database bytes.db", REFUSED, "bytes.db has no keypoints"),
    ("a.png --database folder.png", REFUSED, "There is no database folder.png"),
]
ROWS = [
    *(("match", *row) for row in MATCH),
    *(("reconstruct", *row) for row in RECONSTRUCT),
    *(("doctor", *row) for row in DOCTOR),
]


@pytest.mark.parametrize(("command", "line", "code", "told"), ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_it_is_told_in_a_sentence(
    keypatch: Callable,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    line: str,
    code: int,
    told: str,
) -> None:
    if command == "reconstruct":
        pytest.importorskip("pycolmap")
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    words = line.replace("OUT", str(tmp_path / "out")).split()
    words += ["--out", str(tmp_path / "out")] if command == "reconstruct" and "--out" not in words else []
    words += [] if "--features" in words or "--database" in words else ["--descriptor", "sift"]
    said = keypatch(command, *words)
    assert said.code == code, said.err
    assert told in (said.out if code == RESULT else said.out + said.err)  # the doctor's verdict is on stdout
    if "other.h5" in words or "empty.h5" in words:
        assert not (tmp_path / "out").exists()
    assert "Traceback" not in said.err and "not your fault" not in said.err
    assert sorted(folder.rglob("*")) == before


def test_two_processes_do_not_reconstruct_into_one_folder(keypatch: Callable, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("pycolmap")
    with lock(tmp_path / ".lock", "the other one"):
        said = keypatch("reconstruct", folder / "a.png", folder / "b.png", "--out", tmp_path)
    assert said.code == REFUSED and f"{tmp_path} is being written by another process" in said.err
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_two_processes_do_not_describe_into_one_file(keypatch: Callable, folder: Path, tmp_path: Path) -> None:
    (tmp_path / ".f.h5.parts").mkdir()
    with lock(tmp_path / ".f.h5.parts" / "lock", "the other one"):
        said = keypatch("describe", folder / "a.png", "--out", tmp_path / "f.h5", "--descriptor", "sift")
    assert said.code == REFUSED and "f.h5 is being written by another process" in said.err
    assert not (tmp_path / "f.h5").exists()
