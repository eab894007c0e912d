"""Scenes with known cameras: the layouts that are read, and what is wrong with others."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from keypatch.benchmarks.imc.scenes import read_posed_scene, read_posed_scenes
from keypatch.errors import DataError
from keypatch.files import hash_folder


def test_all_layouts_give_the_same_cameras(ring: Any, tmp_path: Path) -> None:
    ring.write_challenge(tmp_path / "challenge")
    folders = [ring.write_strecha(tmp_path / "strecha"), tmp_path / "challenge", tmp_path / "challenge" / "set_100"]
    folders += [write_colmap(ring, tmp_path / "text")]
    scenes = [read_posed_scene(folder) for folder in folders]
    assert [scene.name for scene in scenes] == ["strecha", "challenge", "challenge", "text"]
    for scene in scenes:
        assert scene.names == ring.names
        for name, rotation, centre in zip(ring.names, ring.rotations, ring.centres, strict=True):
            camera, pose = scene.cameras[name]
            np.testing.assert_allclose(pose.rotation, rotation, atol=1e-9)
            np.testing.assert_allclose(pose.centre, centre, atol=1e-9)
            np.testing.assert_allclose(camera.matrix, [[700, 0, 323.25], [0, 703, 236.75], [0, 0, 1]])


def write_colmap(ring: Any, folder: Path) -> Path:
    from scipy.spatial.transform import Rotation

    ring.write_photos(folder / "images")
    (folder / "poses").mkdir()
    (folder / "poses" / "cameras.txt").write_text("1 PINHOLE 640 480 700 703 323.75 237.25\n")  # from the corner
    lines = []
    for number, (name, rotation, centre) in enumerate(zip(ring.names, ring.rotations, ring.centres, strict=True)):
        x, y, z, w = Rotation.from_matrix(rotation).as_quat()
        values = " ".join(repr(float(value)) for value in (w, x, y, z, *(-rotation @ centre)))
        lines.append(f"{number + 1} {values} 1 {name}\n\n")
    (folder / "poses" / "images.txt").write_text("".join(lines))
    return folder


def test_a_folder_of_scenes_names_photos_after_them(ring: Any, tmp_path: Path) -> None:
    ring.write_strecha(tmp_path / "b")
    ring.write_challenge(tmp_path / "a")
    (tmp_path / "notes").mkdir()
    scenes = read_posed_scenes(tmp_path)
    assert [scene.name for scene in scenes] == ["a", "b"]
    assert scenes[0].names[0] == "a/0.png" and "a/0.png" in scenes[0].cameras
    assert scenes[0].by_stem["0"] == "a/0.png"


def test_pairs_are_all_or_those_within_reach(ring: Any, tmp_path: Path) -> None:
    scene = read_posed_scene(ring.write_strecha(tmp_path / "ring"))
    assert len(scene.pairs()) == 15
    assert scene.pairs(1) == [("0.png", "1.png"), ("1.png", "2.png"), ("2.png", "3.png"), ("3.png", "4.png"),
                              ("4.png", "5.png")]  # fmt: skip


def test_a_photo_without_a_camera_is_left_out(ring: Any, tmp_path: Path) -> None:
    folder = ring.write_strecha(tmp_path / "ring")
    (folder / "cameras" / "3.png.camera").unlink()
    assert read_posed_scene(folder).names == ["0.png", "1.png", "2.png", "4.png", "5.png"]


def test_withdrawn_photos_do_not_count(ring: Any, tmp_path: Path) -> None:
    folder = ring.write_challenge(tmp_path / "london_bridge")
    withdrawn = "21416139_3508932720"
    (folder / "images" / "2.png").rename(folder / "images" / f"{withdrawn}.png")
    (folder / "calibration" / "calibration_2.h5").rename(folder / "calibration" / f"calibration_{withdrawn}.h5")
    assert read_posed_scene(folder).names == ["0.png", "1.png", "3.png", "4.png", "5.png"]


def rewrite(path: Path, key: str, value: Any) -> None:
    with h5py.File(path, "r+") as file:
        del file[key]
        if value is not None:
            file[key] = value


WRONG: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "no photo": (lambda f: (f / "images" / "4.png").unlink(), ["calibration_4.h5", "camera without a photo"]),
    "no calibration": (lambda f: (f / "calibration" / "calibration_4.h5").unlink(), ["has no calibration_4.h5"]),
    "no folder": (lambda f: shutil.rmtree(f / "calibration"), ["no cameras"]),
    "nan": (lambda f: rewrite(f / "calibration" / "calibration_1.h5", "K", 9 * [np.nan]), ["K is not finite"]),
    "no T": (lambda f: rewrite(f / "calibration" / "calibration_1.h5", "T", None), ["T with 3 numbers"]),
    "rotation": (lambda f: rewrite(f / "calibration" / "calibration_1.h5", "R", np.ones((3, 3))), ["not a rotation"]),
    "skew": (lambda f: rewrite(f / "calibration" / "calibration_1.h5", "K", [[9, 2, 1], [0, 9, 1], [0, 0, 1.0]]),
             ["calibration_1.h5", "no skew"]),
    "cut off": (lambda f: (f / "calibration" / "calibration_1.h5").write_bytes(b"\x89HDF"), ["not a readable"]),
}  # fmt: skip


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_with_the_challenges_files_is_one_sentence(ring: Any, tmp_path: Path, fault: str) -> None:
    folder = ring.write_challenge(tmp_path / "scene")
    spoil, words = WRONG[fault]
    spoil(folder)
    with pytest.raises(DataError) as error:
        read_posed_scene(folder)
    assert all(word in str(error.value) for word in words), error.value


def test_a_camera_without_its_photo_is_told(ring: Any, tmp_path: Path) -> None:
    folder = ring.write_strecha(tmp_path / "ring")
    (folder / "images" / "2.png").unlink()
    with pytest.raises(DataError, match=r"a camera for 2\.png, but .* has no such photo"):
        read_posed_scene(folder)


def test_one_photo_makes_no_pair(ring: Any, tmp_path: Path) -> None:
    folder = ring.write_strecha(tmp_path / "ring")
    for camera in list((folder / "cameras").iterdir())[1:]:
        camera.unlink()
    with pytest.raises(DataError, match="a pair needs two"):
        read_posed_scene(folder)


def test_a_folder_without_scenes_is_told(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    with pytest.raises(DataError, match="is not a scene"):
        read_posed_scenes(tmp_path)


def test_the_hash_of_the_data_covers_the_cameras(ring: Any, tmp_path: Path) -> None:
    folder = ring.write_strecha(tmp_path / "ring")
    before = hash_folder(read_posed_scene(folder).files)
    camera = folder / "cameras" / "0.png.camera"
    camera.write_text(camera.read_text().replace("700.0", "701.0", 1))
    assert hash_folder(read_posed_scene(folder).files) != before
