"""`reconstruct`: from photos, features and matches to a model, its numbers and its files."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image
from scene_fixtures import K
from skimage import data

from keypatch import reconstruct
from keypatch.colmap import Camera
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Extraction
from keypatch.geometry.poses import rotation_angle
from keypatch.matching.matching import Matching
from keypatch.reconstruction import Inputs, Mapping
from keypatch.reconstruction.pipeline import _settings
from keypatch.reconstruction.result import PhotoCamera, guess_warning

pycolmap = pytest.importorskip("pycolmap")


@pytest.fixture(scope="module")
def made(scene, tmp_path_factory: pytest.TempPathFactory):
    out = tmp_path_factory.mktemp("made") / "out"
    return run(scene, out, cameras=scene.cameras)


def run(scene, out: Path, photos=None, **options: object):
    """`reconstruct` from the scene's files; options are fields of `Inputs` and of `Mapping`."""
    inputs = {"features": scene.features, "matches": scene.matches_file}
    inputs |= {field.name: options.pop(field.name) for field in fields(Inputs) if field.name in options}
    return reconstruct(photos or scene.photos, out, Mapping(**options), inputs=Inputs(**inputs))


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "models" / "0" / "points3D.txt").read_bytes()).hexdigest()


def test_exact_places_give_the_exact_model(made, scene) -> None:
    """Without noise every half pixel in the wrong place would show: in the reprojection or in the poses."""
    assert made.statistics.registered == 6 and made.statistics.points == 260
    assert made.statistics.track_length == 6 and made.statistics.observations == 6 * 260
    assert made.statistics.reprojection_error < 2e-3  # float32 places
    errors = made.pose_errors.summary()
    assert errors["rotation_max_degrees"] < 1e-3 and errors["position_max_percent"] < 1e-3
    assert errors["span"] == pytest.approx(np.linalg.norm(scene.centres[0] - scene.centres[-1]))


def test_the_model_is_read_by_pycolmap_and_has_the_statistics_that_are_reported(made) -> None:
    model = pycolmap.Reconstruction(str(made.model))
    report = json.loads((made.folder / "reconstruction.json").read_text())
    numbers = report["statistics"]
    assert model.num_reg_images() == numbers["registered"] == 6
    assert model.num_points3D() == numbers["points"]
    assert model.compute_num_observations() == numbers["observations"]
    assert model.compute_mean_track_length() == pytest.approx(numbers["track_length"])
    assert model.compute_mean_reprojection_error() == pytest.approx(numbers["reprojection_error"])
    assert report["finished"] and report["registered"] == report["photos"]
    assert report["pairs"] == {"matched": 15, "verified": 15, "matches": 15 * 260, "inliers": 15 * 260}
    text = pycolmap.Reconstruction()
    text.read_text(str(made.model))
    assert text.num_points3D() == model.num_points3D()


def test_every_file_is_there_and_nothing_unfinished(made) -> None:
    lock = {".lock"} if sys.platform == "win32" else set()  # where an open file cannot be removed
    names = {path.name for path in made.folder.iterdir()} - lock
    assert names == {"database.db", "models", "model.html", "model.png", "reconstruction.json"}
    assert all(path.exists() for path in made.files)
    with Image.open(made.folder / "model.png") as picture:
        assert picture.size == (1600, 1000)


def test_one_seed_gives_one_model(made, scene, tmp_path: Path) -> None:
    again = run(scene, tmp_path / "again", cameras=scene.cameras)
    assert digest(again.folder) == digest(made.folder)
    assert (again.folder / "database.db").stat().st_size == (made.folder / "database.db").stat().st_size


def test_a_folder_of_an_earlier_run_is_resumed(made, scene, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(made.folder, out)
    shutil.rmtree(out / "models")
    for stale in ("models/1", "model"):  # "model" as 0.1 wrote it
        (out / stale).mkdir(parents=True)
        (out / stale / "stale.txt").write_text("of the earlier run")
    (out / "unfinished" / "colmap").mkdir(parents=True)
    run(scene, out, cameras=scene.cameras)
    assert digest(out) == digest(made.folder)
    assert not list(out.rglob("stale.txt")) and not (out / "model").exists() and not (out / "unfinished").exists()


def test_the_settings_tell_how_matches_were_made_where_it_is_not_the_usual_way() -> None:
    one_way = Matching(mode="one-way", ratio=0.7)
    usual, other = (_settings(Mapping(), Inputs(), matching) for matching in (Matching(), one_way))
    assert usual["ratio"] == Matching().ratio and "mode" not in usual
    assert (other["ratio"], other["mode"]) == (0.7, "one-way")


def test_a_folder_of_other_things_is_not_touched(scene, tmp_path: Path) -> None:
    (tmp_path / "database.db").write_text("my project")
    with pytest.raises(DataError, match="not empty and is not a keypatch reconstruction"):
        run(scene, tmp_path)
    assert (tmp_path / "database.db").read_text() == "my project"
    (tmp_path / "reconstruction.json").write_text('{"format": "keypatch-reconstruction", "format_number": 99}')
    with pytest.raises(DataError, match="newer keypatch"):
        run(scene, tmp_path)


def test_two_processes_cannot_work_in_one_folder(scene, tmp_path: Path) -> None:
    hold = (
        "import sys, time; from pathlib import Path\n"
        "from keypatch.reconstruction.result import hold_reconstruction\n"
        "with hold_reconstruction(Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
    )
    other = subprocess.Popen([sys.executable, "-c", hold, tmp_path], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "held\n"
    try:
        with pytest.raises(KeypatchError, match="another process"):
            run(scene, tmp_path)
    finally:
        other.kill()
        other.communicate()
    assert run(scene, tmp_path).statistics.registered == 6  # what the killed process left is no hindrance


def test_a_killed_run_is_completed_by_the_same_call(made, scene, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = (
        "import sys; from keypatch import reconstruct; from keypatch.reconstruction import Inputs\n"
        "inputs = Inputs(features=sys.argv[3], matches=sys.argv[4], cameras=sys.argv[5])\n"
        "tell = lambda done, total, unit: print(done, unit, flush=True)\n"
        "reconstruct(sys.argv[1], sys.argv[2], inputs=inputs, progress=tell)"
    )
    paths = map(str, (scene.photos, out, scene.features, scene.matches_file, scene.cameras))
    process = subprocess.Popen([sys.executable, "-c", code, *paths], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert any(line == "3 photos registered\n" for line in process.stdout)
    process.kill()
    process.communicate()
    assert not (out / "models").exists() and not json.loads((out / "reconstruction.json").read_text())["finished"]
    run(scene, out, cameras=scene.cameras)
    assert digest(out) == digest(made.folder)


def test_without_true_cameras_there_are_no_pose_errors(scene, tmp_path: Path) -> None:
    found = run(scene, tmp_path / "out", focal=701.0, share_camera=True, camera_model="SIMPLE_PINHOLE")
    assert found.pose_errors is None and found.statistics.registered == 6
    model = pycolmap.Reconstruction(str(found.model))
    (camera,) = model.cameras.values()
    assert camera.model_name == "SIMPLE_PINHOLE"


def test_two_photos_give_their_geometry_and_no_model(scene, tmp_path: Path) -> None:
    photos = [scene.photos / name for name in ("1.png", "3.png")]
    found = run(scene, tmp_path / "out", photos, cameras=scene.cameras)
    assert found.model is None and found.statistics is None and found.two_view is not None
    truth = scene.rotations[3] @ scene.rotations[1].T
    assert np.allclose(found.two_view.rotation, truth, atol=1e-3)
    way = scene.rotations[3] @ (scene.centres[1] - scene.centres[3])
    assert np.allclose(found.two_view.direction, way / np.linalg.norm(way), atol=1e-2)
    assert found.two_view.rotation_degrees == pytest.approx(np.degrees(np.arccos((np.trace(truth) - 1) / 2)), abs=0.1)
    assert 25 < found.two_view.triangulation_degrees < 40  # 32 degrees apart on a circle around the points
    report = json.loads((tmp_path / "out" / "reconstruction.json").read_text())
    assert report["statistics"] is None and report["two_view"]["direction"] == list(found.two_view.direction)
    assert not (tmp_path / "out" / "models").exists()


def test_two_photos_are_told_the_focal_length_and_warned_of_a_guess(scene, tmp_path: Path) -> None:
    photos = [scene.photos / name for name in ("3.png", "1.png")]
    guessed = run(scene, tmp_path / "guessed", photos)
    (warning,) = guessed.notes
    assert "2 of 2 photos is a guess (1.2 times the longer side), so the pose may be degrees off" in warning
    assert guessed.facts()["focal length"] == "768.0 px (guessed: 1.2 x the longer side)"
    report = json.loads((tmp_path / "guessed" / "reconstruction.json").read_text())
    pose, first = report["two_view"], [[768, 0, 319.5], [0, 768, 239.5], [0, 0, 1]]
    assert pose["photos"] == ["1.png", "3.png"] and pose["K"] == [first, first]
    assert pose["convention"].startswith("x1 = R x0 + t")
    assert report["cameras"]["1.png"]["focal_from"] == "guessed" and report["notes"] == [warning]
    given = run(scene, tmp_path / "given", photos, focal=701.5)
    assert given.notes == [] and given.facts()["focal length"] == "701.5 px (given)"
    truth = scene.rotations[3] @ scene.rotations[1].T
    wrong, right = (rotation_angle(found.two_view.rotation, truth) for found in (guessed, given))
    assert right < 0.5 < 2 < wrong


def test_the_intrinsics_of_a_model_are_told_with_what_they_were_refined_from(made, scene) -> None:
    assert made.facts()["focal length"] == "700.0 px (known camera)" and made.notes == []
    cameras = json.loads((made.folder / "reconstruction.json").read_text())["cameras"]
    assert cameras["0.png"]["K"] == K.tolist() and cameras["0.png"]["focal_from"] == "known camera"
    size = (640, 480)
    exif = Camera.from_focal("SIMPLE_RADIAL", size, 650, focal_known=True)
    refined = replace(exif, params=(701.25, 320, 240, -0.02))
    guess = Camera.from_focal("SIMPLE_RADIAL", size, 768, focal_known=False)
    cameras = {name: PhotoCamera.of(exif, refined, known=False, given=False) for name in scene.names[1:]}
    cameras["0.png"] = PhotoCamera.of(guess, None, known=False, given=False)
    facts = replace(made, cameras=cameras).facts()
    assert facts["focal length"] == (
        "701.2 px, refined from 650.0 px (EXIF); 768.0 px, refined from 768.0 px (guessed: 1.2 x the longer side)"
    )
    assert facts["distortion"] == "-0.02 to 0 (SIMPLE_RADIAL, first parameter)"
    assert guess_warning(cameras)[0].startswith("The focal length of 0.png is a guess")


def test_a_stereo_pair_is_found_to_be_one_from_its_pixels(tmp_path: Path) -> None:
    """A rectified pair with a known camera: no turn, and the second camera stands to the right of the first."""
    left, right, _ = data.stereo_motorcycle()
    for name, photo in (("a.png", left), ("b.png", right)):
        Image.fromarray(photo).save(tmp_path / name)
    photos = [tmp_path / "a.png", tmp_path / "b.png"]
    mapping, extraction = Mapping(focal=994.978, share_camera=True), Extraction(keypoints=1000)
    found = reconstruct(photos, tmp_path / "out", mapping, describer="rootsift", extraction=extraction)
    assert found.two_view is not None
    assert found.two_view.rotation_degrees < 0.5
    assert found.two_view.direction[0] < -0.99  # x_2 = x_1 + t


def test_photos_that_cannot_be_joined_are_a_sentence_with_what_was_found(scene, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with h5py.File(tmp_path / "wrong.h5", "w") as file:
        for a, b in scene.matches:
            file[f"{a}/{b}/matches0"] = rng.permutation(260).astype(np.int32)
    with pytest.raises(KeypatchError) as error:
        run(scene, tmp_path / "out", matches=tmp_path / "wrong.h5", cameras=scene.cameras)
    sentence = str(error.value)
    assert "of 15 matched pairs" in sentence and "--keypoints" in sentence
    database = tmp_path / "out" / "unfinished" / "database.db"
    assert str(database) in sentence
    with pycolmap.Database.open(str(database)) as kept:
        assert kept.num_images() == 6


def test_some_pairs_are_enough(scene, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "few.h5", "w") as file:
        for i, a in enumerate(scene.names):
            for b in scene.names[i + 1 : i + 3]:
                file[f"{b}_{a}/matches0"] = np.argsort(scene.matches[a, b][:, 1]).astype(np.int16)  # hloc's older form
    found = run(scene, tmp_path / "out", matches=tmp_path / "few.h5", cameras=scene.cameras)
    assert found.statistics.registered == 6 and found.pairs()["matched"] == 9
    assert found.pose_errors.summary()["position_max_percent"] < 1e-2


def write_features(path: Path, scene, **changes: object) -> Path:
    """The scene's features with one thing changed in photo 2."""
    shutil.copy(scene.features, path)
    with h5py.File(path, "r+") as file:
        for key, value in changes.items():
            del file["2.png"][key]
            file["2.png"][key] = value
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image_size": np.array([320, 240])}, ["2.png", "320 x 240", "640 x 480"]),
        ({"keypoints": np.full((260, 2), 700, np.float32)}, ["2.png", "700", "640 x 480"]),
        ({"keypoints": np.zeros((9, 2), np.float32)}, ["2.png", "which has 9"]),
        ({"keypoints": np.full((260, 2), np.nan, np.float32)}, ["2.png", "finite"]),
    ],
)
def test_features_that_do_not_fit_are_named(scene, tmp_path: Path, changes: dict, words: list[str]) -> None:
    features = write_features(tmp_path / "features.h5", scene, **changes)
    with pytest.raises(KeypatchError) as error:
        run(scene, tmp_path / "out", features=features)
    assert all(word in str(error.value) for word in words), error.value
    assert not (tmp_path / "out" / "database.db").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": -1}, ["seed is -1"]),
        ({"threads": 0}, ["threads is 0"]),
        ({"max_error": 0.0}, ["max_error is 0.0"]),
        ({"time_limit": float("nan")}, ["time_limit is nan"]),
        ({"camera_model": "WIDE"}, ["WIDE", "SIMPLE_RADIAL"]),
        ({"focal": -3.0}, ["above 0"]),
        ({"cameras": "nowhere"}, ["nowhere"]),
        ({"features": "nowhere.h5"}, ["nowhere.h5"]),
        ({"matches": "nowhere.h5"}, ["nowhere.h5"]),
        ({"root": "/nowhere"}, ["nowhere"]),
    ],
)
def test_wrong_arguments_are_a_sentence(scene, tmp_path: Path, options: dict, words: list[str]) -> None:
    with pytest.raises(KeypatchError) as error:
        run(scene, tmp_path / "out", **options)
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.skipif(sys.platform != "linux", reason="file names of any bytes")
def test_a_name_that_cannot_be_used_leaves_out_one_photo(scene, tmp_path: Path) -> None:
    shutil.copytree(scene.photos, tmp_path / "photos")
    for odd in (b"two\nlines.png", b"latin-\xe9.png"):
        shutil.copy(os.fsencode(scene.photos / "0.png"), os.fsencode(tmp_path / "photos") + b"/" + odd)
    with pytest.warns(UserWarning) as warned:
        made = run(scene, tmp_path / "out", tmp_path / "photos", cameras=scene.cameras)
    assert list(made.photos) == scene.names
    said = "\n".join(str(each.message) for each in warned)
    assert "two\\nlines.png' is not a valid image name in COLMAP and is left out" in said
    assert "latin-" in said and said.count("left out") == 2


def test_one_photo_is_not_enough(scene, tmp_path: Path) -> None:
    with pytest.raises(KeypatchError, match="at least two photos"):
        run(scene, tmp_path / "out", scene.photos / "0.png")


def test_cameras_of_other_photos_are_named(scene, tmp_path: Path) -> None:
    for name in scene.names:
        shutil.copy(scene.cameras / f"{name}.camera", tmp_path / f"x{name}.camera")
    with pytest.raises(DataError, match=r"other photos, such as .x0.png.*but none for .0.png"):
        run(scene, tmp_path / "out", cameras=tmp_path)


def test_photos_without_keypoints_end_in_a_sentence(scene, tmp_path: Path) -> None:
    """Grey photos: nothing to describe, nothing to match, and no crash of COLMAP."""
    for name in ("a.png", "b.png", "c.png"):
        Image.fromarray(np.full((60, 80), 128, np.uint8)).save(tmp_path / name)
    with pytest.raises(KeypatchError, match="no two photos have matches"):
        reconstruct(tmp_path, tmp_path / "out", describer="rootsift")


@pytest.mark.parametrize("count", [0, 1])
def test_files_with_no_or_one_keypoint_end_in_a_sentence(scene, tmp_path: Path, count: int) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as features, h5py.File(tmp_path / "m.h5", "w") as matches:
        for name in scene.names:
            features[f"{name}/keypoints"] = np.full((count, 2), 100, np.float32)
        for a, b in scene.matches:
            matches[f"{a}/{b}/matches0"] = np.zeros(count, np.int32)
    told = f"0 of {15 * count} matched pairs" if count else "no two photos have matches"
    with pytest.raises(KeypatchError, match=told):
        run(scene, tmp_path / "out", features=tmp_path / "f.h5", matches=tmp_path / "m.h5")


def test_a_file_in_the_folders_place_is_named(scene, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(KeypatchError, match="is a file, not a folder"):
        run(scene, tmp_path / "out")


def test_a_folder_one_may_not_write_to_is_named(scene, tmp_path: Path, monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(KeypatchError, match=r"cannot be created: permission denied"):
        run(scene, tmp_path / "out")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that belongs to a model, by its path."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith((".lock", "unfinished/"))}


def test_a_crash_of_colmap_leaves_the_earlier_model_whole_and_the_new_database_apart(
    made, scene, tmp_path: Path, monkeypatch
) -> None:
    from keypatch.colmap import process as mapping

    out = tmp_path / "out"
    shutil.copytree(made.folder, out)
    monkeypatch.setattr(mapping, "CHILD", (sys.executable, "-c", "import os; os.abort()"))
    with pytest.raises(KeypatchError, match="signal 6") as error:
        run(scene, out)
    assert contents(out) == contents(made.folder)
    assert str(out / "unfinished" / "database.db") in str(error.value)
    assert (out / "unfinished" / "database.db").exists()
    monkeypatch.undo()
    run(scene, out, seed=1)
    assert json.loads((out / "reconstruction.json").read_text())["settings"]["seed"] == 1
    assert not (out / "unfinished").exists()


def test_a_failure_while_the_new_model_is_drawn_leaves_the_earlier_one(
    made, scene, tmp_path: Path, monkeypatch
) -> None:
    from keypatch.reconstruction import pipeline

    def fail(*_: object) -> None:
        raise MemoryError

    out = tmp_path / "out"
    shutil.copytree(made.folder, out)
    monkeypatch.setattr(pipeline, "write_model_page", fail)
    with pytest.raises(MemoryError):
        run(scene, out, seed=1)
    assert contents(out) == contents(made.folder)
    assert (out / "unfinished" / "database.db").exists()


# A shell that starts the tests in the background has SIGINT ignored, and so would its children.
INTERRUPTED = """
import signal, sys
from keypatch.cli.main import main
from keypatch.colmap import process as mapping
signal.signal(signal.SIGINT, signal.default_int_handler)
mapping.CHILD = (sys.executable, "-c", sys.argv.pop(1))
main()
"""
DEAF = """
import json, os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
database = json.loads(sys.stdin.readline())["database"]
for journal in ("-shm", "-wal"):
    open(database + journal, "w").close()
print(json.dumps({"stage": f"mapping as {os.getpid()}"}), flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("earlier", [False, True])
def test_ctrl_c_while_mapping_is_one_sentence_and_leaves_what_was_there(
    made, scene, tmp_path: Path, earlier: bool
) -> None:
    """The signal goes to the whole group, as from a terminal, and the child does not care for it."""
    out = tmp_path / "out"
    if earlier:
        shutil.copytree(made.folder, out)
    words = ["reconstruct", scene.photos, "--features", scene.features, "--matches", scene.matches_file, "--out", out]
    command = [sys.executable, "-c", INTERRUPTED, DEAF, *map(str, words)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr is not None
    child = int(process.stderr.readline().removeprefix("mapping as "))
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert (
        said
        == f"keypatch: Stopped. {out} keeps the features and matches made so far; run the same command to resume.\n"
    )
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    if earlier:
        assert contents(out) == contents(made.folder)
    else:
        assert {path.name for path in out.iterdir()} - {".lock"} == {"reconstruction.json"}
    assert not (out / "unfinished").exists()


def test_ctrl_c_while_the_files_are_swapped_waits(made, scene, tmp_path: Path, monkeypatch) -> None:
    from keypatch.reconstruction import result

    def interrupted(folder: Path) -> list[Path]:
        signal.raise_signal(signal.SIGINT)
        return parts(folder)

    out, parts = tmp_path / "out", result._parts
    shutil.copytree(made.folder, out)
    calls = iter([interrupted, parts])
    monkeypatch.setattr(result, "_parts", lambda folder: next(calls)(folder))
    run(scene, out, cameras=scene.cameras)
    assert digest(out) == digest(made.folder) and json.loads((out / "reconstruction.json").read_text())["finished"]


@pytest.mark.parametrize("given", ["features", "matches", "pairs"])
def test_names_of_other_photos_are_told_before_the_folder_is_made(scene, tmp_path: Path, given: str) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x.png/keypoints"] = np.zeros((3, 2), np.float32)
        file["x.png/descriptors"] = np.zeros((8, 3), np.float32)
    (tmp_path / "pairs.txt").write_text("0.png x.png\n")
    (tmp_path / "text.h5").write_text("no matches")
    options, words = {
        "features": ({"features": tmp_path / "other.h5"}, r"other\.h5 has no features for 0\.png"),
        "matches": ({"features": None, "matches": tmp_path / "text.h5"}, r"text\.h5"),
        "pairs": ({"features": None, "matches": None, "pairs": tmp_path / "pairs.txt"}, r"x\.png. is not among"),
    }[given]
    with pytest.raises(DataError, match=words):
        run(scene, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_input_that_is_refused_leaves_the_earlier_model(made, scene, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(made.folder, out)
    features = write_features(tmp_path / "features.h5", scene, keypoints=np.full((260, 2), 700, np.float32))
    with pytest.raises(DataError, match="outside the photo"):
        run(scene, out, features=features)
    assert digest(out) == digest(made.folder) and json.loads((out / "reconstruction.json").read_text())["finished"]


def test_two_photos_after_many_leave_no_model(made, scene, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(made.folder, out)
    photos = [scene.photos / name for name in ("1.png", "3.png")]
    assert run(scene, out, photos, focal=701.0).two_view
    assert {path.name for path in out.iterdir()} - {".lock"} == {"database.db", "reconstruction.json"}


def test_only_known_cameras_are_shared(scene, tmp_path: Path) -> None:
    for name in scene.names[:2]:
        (tmp_path / f"{name}.camera").write_text((scene.cameras / f"{name}.camera").read_text())
    found = run(scene, tmp_path / "out", cameras=tmp_path, focal=701.0, camera_model="SIMPLE_PINHOLE")
    with pycolmap.Database.open(str(found.folder / "database.db")) as database:
        ids = {image.name: image.camera_id for image in database.read_all_images()}
    assert ids["0.png"] == ids["1.png"] and len(set(ids.values())) == 5


def test_features_and_matches_of_different_runs_are_refused(scene, tmp_path: Path) -> None:
    keypoints = scene.keypoints["0.png"]
    features = tmp_path / "more.h5"
    shutil.copy(scene.features, features)
    with h5py.File(features, "r+") as file:
        del file["0.png/keypoints"]
        file["0.png/keypoints"] = np.concatenate([keypoints, keypoints[:3]]).astype(np.float32)
    with pytest.raises(DataError, match=r"for 260 keypoints of 0\.png, which has 263.*different runs"):
        run(scene, tmp_path / "out", features=features)
    matches = tmp_path / "other.h5"
    shutil.copy(scene.matches_file, matches)
    with h5py.File(matches, "r+") as file:
        file.attrs.update({"format": "keypatch-matches", "format_number": 1})
        file.attrs["settings"] = json.dumps({"descriptor": "tfeat", "features": {"keypoints": 9}})
    with pytest.raises(
        DataError, match=r"was not made from .*: its features were written by keypatch, these were not\."
    ):
        run(scene, tmp_path / "out", matches=matches)
    assert not (tmp_path / "out").exists()


def test_only_settings_that_differ_are_told_and_few_of_them(scene, tmp_path: Path) -> None:
    features, matches = (tmp_path / name for name in ("f.h5", "m.h5"))
    shutil.copy(scene.features, features)
    shutil.copy(scene.matches_file, matches)
    then = dict.fromkeys("abcdefgh", 1) | {"weights": "0" * 64}
    with h5py.File(features, "r+") as file:
        file.attrs.update({"format": "keypatch-features", "format_number": 1, "descriptor": "sift"})
        file.attrs["settings"] = json.dumps({**then, "weights": "1" * 64, "a": 2})
    with h5py.File(matches, "r+") as file:
        file.attrs.update({"format": "keypatch-matches", "format_number": 1})
        file.attrs["settings"] = json.dumps({"descriptor": "sift", "features": then})
    with pytest.raises(DataError) as error:
        run(scene, tmp_path / "out", features=features, matches=matches)
    told = "a = 1 (now 2), weights = 00000000 (now 11111111)"
    assert str(error.value) == f"{matches} was not made from {features}: {told}. Match these features again."
    with h5py.File(features, "r+") as file:
        file.attrs["settings"] = json.dumps(dict.fromkeys("abcdefgh", 2))
    with pytest.raises(DataError, match=r"a = 1 \(now 2\), b = .*c = 1 \(now 2\) and 6 more\. Match"):
        run(scene, tmp_path / "out", features=features, matches=matches)


@pytest.mark.parametrize("was_there", [False, True])
def test_input_that_is_refused_leaves_nothing_in_a_new_folder(scene, tmp_path: Path, was_there: bool) -> None:
    out = tmp_path / "out"
    if was_there:
        out.mkdir()
    features = write_features(tmp_path / "features.h5", scene, keypoints=np.full((260, 2), 700, np.float32))
    with pytest.raises(DataError, match="outside the photo"):
        run(scene, out, features=features)
    assert out.exists() == was_there and (not was_there or not any(out.iterdir()))


def test_features_of_turned_photos_are_refused(scene, tmp_path: Path) -> None:
    features = write_features(tmp_path / "features.h5", scene)
    with h5py.File(features, "r+") as file:
        file.attrs.update({"format": "keypatch-features", "format_number": 1, "descriptor": "sift"})
        file.attrs["settings"] = json.dumps({"turn_by_exif": True})
    with pytest.raises(DataError, match="rotated by EXIF"):
        run(scene, tmp_path / "out", features=features)


def test_only_the_photos_given_are_matched(scene, tmp_path: Path) -> None:
    photos = [scene.photos / scene.names[number] for number in (0, 2, 4)]
    inputs = Inputs(features=scene.features, pairs="sequence:1")
    with pytest.raises(KeypatchError, match="of 2 matched pairs"):  # the scene's descriptors are noise
        reconstruct(photos, tmp_path / "out", inputs=inputs, matching=Matching(ratio=None, filter=None, model=None))
    with h5py.File(tmp_path / "out" / "matches.h5") as file:
        assert {name: list(file[name]) for name in file} == {"0.png": ["2.png"], "2.png": ["4.png"]}


def test_names_that_one_match_file_cannot_tell_apart_are_refused(scene, tmp_path: Path) -> None:
    (tmp_path / "photos" / "x").mkdir(parents=True)
    for name in ("x/0.png", "x-0.png"):
        shutil.copy(scene.photos / "0.png", tmp_path / "photos" / name)
    with h5py.File(tmp_path / "features.h5", "w") as file:
        for name in ("x/0.png", "x-0.png"):
            file[f"{name}/keypoints"] = scene.keypoints["0.png"].astype(np.float32)
    with pytest.raises(DataError, match="cannot be told apart"):
        run(scene, tmp_path / "out", tmp_path / "photos", features=tmp_path / "features.h5")
