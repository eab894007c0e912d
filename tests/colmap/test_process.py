"""COLMAP in a process of its own: its models, its crashes and its errors."""

import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.colmap import process, read_cameras, write_database
from keypatch.colmap.cameras import Camera
from keypatch.colmap.job import MappingJob
from keypatch.colmap.process import run_colmap
from keypatch.errors import KeypatchError
from keypatch.progress import Progress

pycolmap = pytest.importorskip("pycolmap")


@pytest.fixture
def job(scene, tmp_path: Path) -> MappingJob:
    cameras = {name: posed.camera for name, posed in read_cameras(scene.cameras).items()}
    write_database(tmp_path / "database.db", cameras, scene.keypoints, scene.matches, share_cameras=True)
    return job_of(scene, tmp_path)


def job_of(scene, folder: Path) -> MappingJob:
    (folder / "colmap").mkdir()
    photos = {name: str(scene.photos / name) for name in scene.names}
    places = (str(folder / name) for name in ("database.db", "models", "colmap"))
    return MappingJob(*places, photos, scene.names, max_error=4.0, seed=0, threads=1, seconds=None)


class Told(Progress):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.counts: list[tuple[int, int]] = []

    def note(self, message: str) -> None:
        self.notes.append(message)

    def count(self, done: int, total: int, unit: str = "photos", detail: str = "") -> None:
        assert unit == "photos registered"
        self.counts.append((done, total))


def test_a_model_comes_out_and_the_way_is_told(job: MappingJob) -> None:
    told = Told()
    outcome = run_colmap(job, told)
    assert outcome.statistics is not None and outcome.statistics.registered == 6
    assert len(outcome.verified) == len(outcome.pairs) == 15
    assert told.notes == ["verifying", "mapping", "colouring"]
    assert told.counts[0] == (2, 6) and told.counts[-1] == (6, 6)
    assert {path.suffix for path in Path(job.models, "0").iterdir()} == {".bin", ".txt"}


def test_a_camera_that_moved_straight_ahead_is_mapped_from_any_two_photos(scene, tmp_path: Path) -> None:
    rng, focal, names = np.random.default_rng(0), 700.0, scene.names
    angle, far = rng.uniform(0, 2 * np.pi, 400), rng.uniform(9, 14, 400)
    points = np.stack([2.4 * np.cos(angle), 1.8 * np.sin(angle), far], axis=1)  # the walls of a corridor
    keypoints = {}
    for number, name in enumerate(names):
        seen = points - (0, 0, 0.7 * number)
        keypoints[name] = focal * seen[:, :2] / seen[:, 2:] + (320, 240) + rng.normal(0, 0.2, (400, 2))
    same = np.repeat(np.arange(400)[:, None], 2, axis=1)
    matches = {(a, b): same for i, a in enumerate(names) for b in names[i + 1 :]}
    cameras = dict.fromkeys(names, Camera("PINHOLE", 640, 480, (focal, focal, 320.5, 240.5)))
    write_database(tmp_path / "database.db", cameras, keypoints, matches, share_cameras=True)
    told = Told()
    outcome = run_colmap(job_of(scene, tmp_path), told)
    assert told.notes == ["verifying", "mapping", "mapping again, from any two photos", "colouring"]
    assert outcome.statistics is not None and outcome.statistics.registered == 6


def test_points_have_the_colour_of_their_photos(job: MappingJob) -> None:
    run_colmap(job)
    colours = np.array([point.color for point in pycolmap.Reconstruction(f"{job.models}/0").points3D.values()])
    assert np.all(np.abs(colours - np.array([209, 49, 99])) <= 10)  # every pixel lies in (200, 40, 90) + 0 to 19


def test_sixteen_bits_keep_their_grey_and_broken_photos_leave_points_grey(
    job: MappingJob, scene, tmp_path: Path
) -> None:
    Image.fromarray(np.full((480, 640), 257 * 60, np.uint16)).save(tmp_path / "deep.png")
    outcome = run_colmap(replace(job, photos=dict.fromkeys(scene.names, str(tmp_path / "deep.png"))))
    assert outcome.notes == [] and colours_of(job) == {(60, 60, 60)}
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    outcome = run_colmap(replace(job, photos=dict.fromkeys(scene.names, str(tmp_path / "broken.png"))))
    assert outcome.statistics is not None and colours_of(job) == {(128, 128, 128)}
    (note,) = outcome.notes  # a file is named once, however many photos and models it is in
    assert "broken.png is cut off or damaged" in note


def colours_of(job: MappingJob) -> set[tuple[int, ...]]:
    return {tuple(point.color.tolist()) for point in pycolmap.Reconstruction(f"{job.models}/0").points3D.values()}


def test_known_cameras_stay_as_they_are_and_others_do_not(job: MappingJob, scene, tmp_path: Path) -> None:
    run_colmap(job)
    known = read_cameras(scene.cameras)["0.png"].camera
    assert {posed.camera for posed in read_cameras(f"{job.models}/0").values()} == {known}
    other = tmp_path / "other"
    other.mkdir()
    guesses = {name: replace(known, params=(650, 653, *known.params[2:])) for name in scene.names}
    write_database(other / "database.db", guesses, scene.keypoints, scene.matches, share_cameras=True)
    run_colmap(replace(job_of(scene, other), fixed=[]))
    (found,) = {posed.camera for posed in read_cameras(other / "models" / "0").values()}
    assert found.focal == pytest.approx(known.focal, rel=1e-3)  # the points have no noise


def test_a_match_behind_the_checks_kills_the_child_and_becomes_a_sentence(scene, tmp_path: Path) -> None:
    """Index -1, as 4294967295, written by pycolmap itself: it ends the process that verifies (signal 11 in 4.2.1)."""
    with pycolmap.Database.open(str(tmp_path / "database.db")) as database:
        camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=640, height=480, params=[700, 320, 240])
        camera.camera_id = database.write_camera(camera)
        ids = [database.write_image(pycolmap.Image(name=name, camera_id=camera.camera_id)) for name in scene.names[:2]]
        for number, name in zip(ids, scene.names, strict=False):
            database.write_keypoints(number, scene.keypoints[name].astype(np.float32))
        rows = scene.matches[scene.names[0], scene.names[1]].astype(np.uint32)
        rows[5, 1] = 4294967295
        database.write_matches(*ids, rows)
    job = replace(job_of(scene, tmp_path), photos=dict.fromkeys(scene.names[:2], ""), fixed=[])
    with pytest.raises(KeypatchError) as error:
        run_colmap(job)
    sentence = str(error.value)
    assert "COLMAP stopped with signal" in sentence and "while verifying" in sentence
    assert str(tmp_path / "database.db") in sentence and "another seed" in sentence
    assert (tmp_path / "database.db").exists()


CHILDREN = {
    "abort": ('import os; print(\'{"stage": "mapping"}\', flush=True); os.abort()', ["signal 6 (SIGABRT)", "mapping"]),
    "segfault": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", ["signal 11 (SIGSEGV)", "starting"]),
    "exit": ("import sys; sys.exit('no such thing')", ["code 1", 'Its last output: "no such thing"']),
    "silent exit": ("pass", ["code 0"]),
    "noise": ("print('[1, 2'); print('5'); print('glog says'); raise SystemExit(3)", ["code 3"]),
    "error": (
        "import json; print(json.dumps({'error': 'ValueError: bad\\n one.', 'version': '4.2.1'}))",
        ["pycolmap 4.2.1", "ValueError: bad one."],
    ),
}


@pytest.mark.parametrize("case", CHILDREN)
def test_however_the_child_ends_there_is_one_sentence(scene, tmp_path: Path, case: str, monkeypatch) -> None:
    code, words = CHILDREN[case]
    monkeypatch.setattr(process, "CHILD", (sys.executable, "-c", code))
    with pytest.raises(KeypatchError) as error:
        run_colmap(job_of(scene, tmp_path))
    assert all(word in str(error.value) for word in [*words, "database.db"]), error.value
    assert "\n" not in str(error.value)


def test_photos_registered_again_never_make_more_than_all(scene, tmp_path: Path, monkeypatch) -> None:
    lines = ["stage", "mapping"], ["registered", 2], *[["more", 1]] * 9, ["registered", 2], ["more", 1]
    code = f"import json\nfor key, value in {lines!r}: print(json.dumps({{key: value}}))"
    monkeypatch.setattr(process, "CHILD", (sys.executable, "-c", code))  # it ends without reading its job
    told = Told()
    with pytest.raises(KeypatchError, match="ended with code 0"):
        run_colmap(job_of(scene, tmp_path), told)
    assert [done for done, _ in told.counts] == [2, 3, 4, 5, 6, 6, 6, 6, 6, 6, 2, 3]
    assert told.notes == ["mapping", "6 of 6 photos registered; mapping the rest as another model"]


def test_a_child_that_does_not_end_is_stopped_at_the_time_limit(scene, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(process, "CHILD", (sys.executable, "-c", "import time; time.sleep(600)"))
    monkeypatch.setattr(process, "GRACE", 0.2)
    with pytest.raises(KeypatchError, match=r"time limit of 0\.1 seconds"):
        run_colmap(replace(job_of(scene, tmp_path), seconds=0.1))


def test_a_database_that_is_none_is_an_error_of_colmaps_and_not_a_crash(scene, tmp_path: Path) -> None:
    (tmp_path / "database.db").write_text("this is no database, though it has the name of one")
    with pytest.raises(KeypatchError, match="failed while verifying"):
        run_colmap(job_of(scene, tmp_path))


def test_a_killed_parent_takes_the_child_with_it(scene, tmp_path: Path) -> None:
    """The child waits at the other end of a pipe: when that closes it leaves, whatever COLMAP is doing."""
    import json
    import subprocess

    child = subprocess.Popen(
        [sys.executable, "-c", CHILD_THAT_WORKS_FOREVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(json.dumps(asdict(job_of(scene, tmp_path))) + "\n")
    child.stdin.flush()
    assert child.stdout.readline() == '{"stage": "working"}\n'
    child.stdin.close()
    assert child.wait(timeout=60) == 1
    child.stdout.close()


CHILD_THAT_WORKS_FOREVER = """
import time
from keypatch.colmap import child
def work(job):
    child.tell(stage="working")
    time.sleep(600)
child.work = work
child.main()
"""
