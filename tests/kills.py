"""Commands killed for real at random moments, then run again: the result is the uninterrupted one, nothing is left.

    python tests/kills.py --kills 100 --seed 0           # kills, spread over all commands, and a table
    python tests/kills.py --kills 12 --only train "match pairs"
    python tests/kills.py --crowd                        # four processes at once on one folder, or one cache
    python tests/kills.py --no-room                      # files cannot grow, then they can
    python tests/kills.py --no-rights                    # as root: an ordinary user, a full disk, then room

One process imports everything once; every command runs in a child of it, in a session and a folder of its own, with a
cache and a temporary folder of its own. A command is run whole first. Then, for every kill, a fresh copy of its inputs:
SIGKILL, SIGTERM or SIGINT after a random share of the usual time, the same command again, and what lies in the folder,
the cache and the temporary folder is compared with the whole run's, name by name and number by number.
"""

import argparse
import atexit
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
PATIENCE = 30.0  # seconds until whatever a killed command has started must have ended
CROWD = 4  # processes at once
CROWDED = ("is being written by another process", "already holds a run", "already exists")
FULL = ("file too large", "File too large", "disk", "space")
HOMES = ("HOME", "KEYPATCH_CACHE", "XDG_CACHE_HOME")
LEFTOVERS = (".partial", ".scratch", ".unfinished", ".parts", ".tmp")
VOLATILE = {
    "provenance",
    "seconds",
    "rate",
    "pairs_per_second",
    "made",
    "command",
}  # of JSON: where and when it was made, how fast it was
NOBODY = 65534  # an ordinary user
DISK = 512 * 2**20  # bytes of that user's disk: the patches of a quickstart fit
FREE = (0, 12_000, 200_000, 2_000_000)  # bytes left on it, one after the other
TORCHS = "tmp/torchinductor_*"  # an empty folder that torch makes whenever an optimizer is made


@dataclass(frozen=True)
class Trial:
    """A command, the inputs it needs in its folder, and which of its files another run may make differently."""

    name: str
    words: tuple[str, ...]
    inputs: tuple[str, ...]
    differs: tuple[str, ...] = ()  # patterns of files of which only the name is compared
    passing: tuple[str, ...] = ()  # patterns of files that may be there or not
    again: Callable[[Path], tuple[str, ...]] | None = None  # the words of the second run, where they are others
    warm: bool = False  # the cache has the embedded patches already

    def words_again(self, place: Path) -> tuple[str, ...]:
        return self.words if self.again is None else self.again(place)


CONDITIONS = ("--checkpoint-seconds", "0.02", "--compile", "off", "--threads", "1")
TRAIN = (
    *("train", "sdgmnet", "--data", "patches", "--out", "run", "--pairs", "480"),
    *("--set", "sampler.pairs=32", "--set", "network.dim=16", *CONDITIONS),
)


def resumed(place: Path) -> tuple[str, ...]:
    return ("train", "--resume", "run", *CONDITIONS) if (place / "run" / "recipe.toml").exists() else TRAIN


STUDY = (
    *("study", "methods", "--data", "patches", "--test", "others", "--pairs", "96", "--batch", "32"),
    *("--recipe", "hardnet", "--recipe", "tfeat", "--out", "study", "--threads", "1", "--compile", "off"),
)
ROTATION = (
    *("evaluate", "rootsift", "--on", "rotation", "--data", "photos/a.png", "--out", "r.json"),
    *("--set", "step=90", "--set", "extraction.keypoints=100"),
)
ADAPT = (
    *("adapt", "photos", "--out", "mine", "--method", "homographies", "--points", "60", "--views", "3"),
    *("--budget", "256", "--threads", "1", "--set", "compile=off", "--set", "checkpoint_seconds=0.02"),
)
SCENE = ("--features", "scene/features.h5", "--matches", "scene/matches.h5")
TRIALS = (
    Trial(
        "train",
        TRAIN,
        ("patches",),
        differs=("run/log.jsonl", "run/run.json"),  # means since the sitting began; where the data lie
        passing=("run/checkpoints/step-*",),
        again=resumed,
    ),
    Trial(
        "describe", ("describe", "photos", "--out", "f.h5", "--descriptor", "rootsift", "--show", "s.png"), ("photos",)
    ),
    Trial("describe with a network", ("describe", "photos", "--out", "f.h5", "--keypoints", "100"), ("photos",)),
    Trial(
        "match two photos",
        ("match", "photos/a.png", "photos/turned.png", "--descriptor", "rootsift", "--out", "m.csv", "--draw", "m.png"),
        ("photos",),
    ),
    Trial(
        "match pairs",
        ("match", "--features", "features.h5", "--pairs", "exhaustive", "--out", "m.h5"),
        ("features.h5",),
    ),
    Trial(
        "reconstruct",
        ("reconstruct", "scene/photos", "--out", "out", *SCENE, "--threads", "1"),
        ("scene",),
        differs=("*.html", "*.png"),
    ),
    Trial(
        "reconstruct two photos",
        ("reconstruct", "two", "--out", "out", "--descriptor", "rootsift", "--keypoints", "300", "--threads", "1"),
        ("two",),
        differs=("*.html", "*.png"),
    ),
    Trial(
        "evaluate patches",
        ("evaluate", "rootsift", "--on", "ubc", "--data", "patches", "--out", "r.json"),
        ("patches",),
    ),
    Trial("evaluate photos", ROTATION, ("photos",)),
    Trial(
        "study methods",
        STUDY,
        ("patches", "others"),
        differs=("*.md", "*.png", "*.csv", "*/table.json", "*log.jsonl", "*run.json"),  # minutes
        passing=("*checkpoints/*", "*.pt"),
    ),
    Trial("report", ("report", "result.json", "--out", "page.html"), ("result.json",)),
    Trial("embedded patches", ("evaluate", "sift", "--data", "embedded-test", "--out", "r.json"), ()),
    Trial(
        "quickstart",
        ("quickstart", "--out", "run", "--pairs", "512"),
        (),
        differs=("*.html", "run/log.jsonl", "run/run.json"),
        passing=("run/checkpoints/step-*",),
        warm=True,
    ),
    Trial(
        "adapt",
        ADAPT,
        ("photos",),
        differs=("*.html", "mine/log.jsonl", "mine/run.json"),
        passing=("mine/checkpoints/step-*",),
        warm=True,
    ),
)


# ---- inputs


def make_inputs(folder: Path) -> None:
    """Photographs of scikit-image, patches of their points, features, a result, and a scene with known cameras."""
    import cv2
    import numpy as np
    from scene_fixtures import make_scene
    from skimage import data

    from keypatch.detection import Dog, spend
    from keypatch.geometry import Keypoints, cut_patches
    from keypatch.patches.patch_set import Pairs
    from keypatch.patches.phototour import write_phototour

    photos = folder / "photos"
    photos.mkdir(parents=True)
    crops = {"a": data.camera(), "b": data.coins(), "c": data.brick(), "d": data.rocket()[:, :, 1]}
    for name, photo in crops.items():
        cv2.imwrite(str(photos / f"{name}.png"), photo[:240, :320])
    turn = cv2.getRotationMatrix2D((160, 120), 20, 0.9)
    cv2.imwrite(str(photos / "turned.png"), cv2.warpAffine(data.camera()[:240, :320], turn, (320, 240)))
    (folder / "two").mkdir()
    for name in ("a.png", "turned.png"):
        shutil.copy(photos / name, folder / "two" / name)

    for name, photo in {"patches": data.camera(), "others": data.coins()}.items():
        rng, views = np.random.default_rng(0), []
        found = spend(Dog(orientations="upright")(photo), 60, "spread")
        for _ in range(4):
            shift = rng.normal(0, 0.1, (2, len(found))) * found.sigma
            jittered = Keypoints(found.x + shift[0], found.y + shift[1], found.sigma, rng.normal(0, 0.1, len(found)))
            views.append(cut_patches(photo, jittered, patch_sigmas=24, side=64))
        point_id, matching = np.arange(len(found)).repeat(4), 4 * np.arange(len(found))
        first, second = np.tile(matching, 2), np.concatenate([matching + 1, np.roll(matching, 1) + 1])
        pairs = Pairs("m50_120_120_0", first, second, point_id[first] == point_id[second])
        patches = np.stack(views, axis=1).reshape(-1, 64, 64)
        write_phototour(folder / name, patches, point_id, pairs=[pairs], card={"about": "a photograph"})
    (folder / "scene").mkdir()
    make_scene(folder / "scene")


# ---- one command in a child


@dataclass(frozen=True)
class End:
    code: int  # as of a shell: negative for a signal
    seconds: float
    said: str

    @property
    def was_stopped(self) -> bool:
        return self.code < 0 or self.code in (130, 143)


def start(words: Sequence[str], place: Path, before: Callable[[], object] = lambda: None) -> int:
    """The process number of a child that runs the command in that folder."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM):  # a shell in the background has SIGINT ignored
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.environ["KEYPATCH_CACHE"], os.environ["TMPDIR"] = str(place / "cache"), str(place / "tmp")
        tempfile.tempdir = None
        os.chdir(place)
        log = os.open(place.with_suffix(f".{os.getpid()}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        before()
        from keypatch.cli import main

        sys.argv = ["keypatch", *words]
        try:
            main.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130  # asked to stop before the command had begun
    finally:
        os._exit(code)


def wait(child: int, place: Path, began: float) -> End:
    """How the child ended, once everything that it has started has ended too."""
    _, status = os.waitpid(child, 0)
    seconds = time.monotonic() - began
    late = time.monotonic() + PATIENCE
    while children := session(child):
        if time.monotonic() > late:
            os.killpg(child, signal.SIGKILL)
            raise AssertionError(f"processes {children} outlive the command that started them")
        time.sleep(0.02)
    log = place.with_suffix(f".{child}.log")
    said = log.read_text(errors="replace") if log.exists() else ""
    log.unlink(missing_ok=True)
    return End(os.waitstatus_to_exitcode(status), seconds, said)


def session(leader: int) -> list[int]:
    """The processes of a session (Linux; elsewhere none are seen)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of = stat.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(of) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def run(words: Sequence[str], place: Path, **more: Any) -> End:
    began = time.monotonic()
    return wait(start(words, place, **more), place, began)


# ---- what lies there


def contents(place: Path, trial: Trial) -> dict[str, str]:
    """Every file by its name, with a hash of what it says; AssertionError for what should not be there."""
    found = {}
    names = sorted(str(path.relative_to(place)) for path in place.rglob("*"))
    left = [name for name in names if any(part.endswith(LEFTOVERS) for part in Path(name).parts)]
    left += [name for name in names if name.startswith("tmp/") and not (fnmatch(name, TORCHS) and name.count("/") == 1)]
    if left:
        raise AssertionError(f"left behind: {', '.join(left)}")
    newest = max((name for name in names if fnmatch(name, "run/checkpoints/step-*")), default="")
    for name in names:
        passing = any(fnmatch(name, pattern) for pattern in trial.passing)
        if (place / name).is_file() and (not passing or name == newest):
            said = "" if any(fnmatch(name, pattern) for pattern in trial.differs) else digest(place / name)
            found[re.sub(r"-[0-9a-f]{16}\.npy$", "-*.npy", name)] = said  # a hash over times of change, among others
    return found


def digest(path: Path) -> str:
    """A hash of the content, without what says when and where it was made."""
    if path.suffix == ".h5":
        return hashed(h5_items(path))
    if path.suffix == ".safetensors":
        return hashed(tensor_items(path))
    if path.suffix == ".db":
        return hashed(database_items(path))
    if path.suffix == ".json":
        return hashed([steady(json.loads(path.read_text()))])
    if path.suffix == ".jsonl":
        return hashed(steady(json.loads(line)) for line in path.read_text().splitlines())
    return hashlib.sha256(path.read_bytes()).hexdigest()


def hashed(items: Iterable[object]) -> str:
    made = hashlib.sha256()
    for item in items:
        made.update(item if isinstance(item, bytes) else repr(item).encode())
    return made.hexdigest()


def steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: steady(each) for key, each in value.items() if key not in VOLATILE}
    return [steady(each) for each in value] if isinstance(value, list) else value


def h5_items(path: Path) -> Iterator[object]:
    import h5py

    with h5py.File(path, "r") as file:
        nodes: list[Any] = [file]
        file.visit(lambda name: nodes.append(file[name]))
        for node in sorted(nodes, key=lambda each: each.name):
            yield node.name
            yield sorted((key, str(value)) for key, value in node.attrs.items() if key not in VOLATILE)
            if isinstance(node, h5py.Dataset):
                yield str(node.dtype)
                yield node[()].tobytes()


def tensor_items(path: Path) -> Iterator[object]:
    from safetensors import safe_open

    with safe_open(path, "np") as file:
        yield sorted((key, value) for key, value in file.metadata().items() if key not in VOLATILE)
        for name in sorted(file.keys()):
            yield name
            yield file.get_tensor(name).tobytes()


def database_items(path: Path) -> Iterator[object]:
    with sqlite3.connect(path) as base:
        for (table,) in sorted(base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()):
            yield table
            yield from sorted(base.execute(f'SELECT * FROM "{table}"').fetchall(), key=repr)
    base.close()


# ---- the trials


@dataclass
class Bench:
    """The folder of a session of trials: inputs, and for each trial the whole run."""

    folder: Path
    whole: dict[str, tuple[dict[str, str], float]] = field(default_factory=dict)
    number: int = 0

    def prepare(self) -> None:
        """Inputs are made in a child, so that no thread of a library lives when others are forked."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                make_inputs(self.folder / "inputs")
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0, "the inputs could not be made"
        inputs = self.folder / "inputs"
        for words, made in (
            (("describe", "photos", "--out", "f.h5", "--descriptor", "rootsift", "--keypoints", "300"), "features.h5"),
            (("evaluate", "rootsift", "--data", "patches", "--out", "r.json"), "result.json"),
        ):
            place = self.place(("photos", "patches"))
            end = run(words, place)
            assert end.code == 0, end.said
            shutil.copy(place / words[words.index("--out") + 1], inputs / made)

    def place(self, inputs: Sequence[str], warm: bool = False) -> Path:
        """A new folder with copies of the inputs, whose times of change are kept."""
        self.number += 1
        place = self.folder / f"{self.number:04d}"
        for made in ("tmp", "cache"):
            (place / made).mkdir(parents=True)
        for name in inputs:
            source = self.folder / "inputs" / name
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, place / name)
        if warm:
            shutil.rmtree(place / "cache")
            shutil.copytree(self.embedded(), place / "cache")
        return place

    def embedded(self) -> Path:
        """A cache that has the embedded patches."""
        kept = self.folder / "embedded"
        if not kept.exists():
            place = self.place(())
            for data in ("embedded", "embedded-test"):
                end = run(("inspect", data), place)
                assert end.code == 0, end.said
            shutil.move(place / "cache", kept)
        return kept

    def reference(self, trial: Trial) -> tuple[dict[str, str], float]:
        """What the whole run leaves, and its seconds; a second one has to leave the same."""
        if trial.name not in self.whole:
            runs = []
            for _ in range(2):
                place = self.place(trial.inputs, trial.warm)
                end = run(trial.words, place)
                assert end.code == 0, f"{trial.name}: {end.said}"
                runs.append((contents(place, trial), end.seconds))
                shutil.rmtree(place)
            same(runs[0][0], runs[1][0])
            self.whole[trial.name] = runs[1]
        return self.whole[trial.name]

    def kill(self, trial: Trial, number: signal.Signals, share: float) -> bool:
        """Whether the signal came before the end. AssertionError if the second run is not as the whole one."""
        whole, usual = self.reference(trial)
        place, began = self.place(trial.inputs, trial.warm), time.monotonic()
        child = start(trial.words, place)
        time.sleep(share * usual)
        os.kill(child, number)  # a child that has ended is still there to be waited for
        end = wait(child, place, began)
        assert end.was_stopped or end.code == 0, f"code {end.code}: {end.said}"
        assert "Traceback" not in end.said, end.said
        second = run(trial.words_again(place), place)
        assert second.code == 0 or not end.was_stopped, f"the second run: {second.said}"
        same(whole, contents(place, trial))
        shutil.rmtree(place)
        return end.was_stopped

    def crowd(self, trial: Trial, together: bool) -> Counter[int]:
        """The exit codes of four processes that run the command in one folder at once.

        Either all complete (`together`: only the cache is shared, results go to files of their own), or those that come
        too late say so in one sentence. The folder is as one process alone would have left it.
        """
        whole, _ = self.reference(trial)
        place, began = self.place(trial.inputs, trial.warm), time.monotonic()
        out = trial.words.index("--out") + 1
        words = [list(trial.words) for _ in range(CROWD)]
        for number in range(1, CROWD if together else 0):
            words[number][out] = f"tmp/{number}-{trial.words[out]}"
        ends = [wait(child, place, began) for child in [start(each, place) for each in words]]
        if together:
            assert all(end.code == 0 for end in ends), [end.said for end in ends]
            outs = [place / each[out] for each in words]
            assert len({digest(path) for path in outs}) == 1, "the results differ"
            for path in outs[1:]:
                path.unlink()
        for end in ends:
            assert end.code == 0 or (end.code == 2 and is_sentence(end.said, CROWDED)), f"{end.code}: {end.said}"
        assert any(end.code == 0 for end in ends), "nobody completed"
        same(whole, contents(place, trial))
        shutil.rmtree(place)
        return Counter(end.code for end in ends)

    def no_room(self, trial: Trial, room: int) -> End:
        """How the command ended where no file may be longer than that; with room again, the same command completes."""
        whole, _ = self.reference(trial)
        place = self.place(trial.inputs, trial.warm)
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        end = run(trial.words, place, before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, most)))
        assert end.code == 0 or (end.code == 2 and is_sentence(end.said, FULL)), f"{end.code}: {end.said}"
        second = run(trial.words_again(place), place)
        assert second.code == 0, f"the second run: {second.said}"
        same(whole, contents(place, trial))
        shutil.rmtree(place)
        return end

    def no_rights(self, trial: Trial, user: Sequence[str]) -> list[int]:
        """The exit codes of an ordinary user's command on a disk with more and more room, and once there is enough.

        The user may not write to the inputs and has no HOME, so the cache is on that disk too. What is there at the end
        is what the command leaves on an empty disk, and stays when the disk is full again.
        """
        with small_disk(self.folder / "own") as own:
            end = self.as_user(trial, own, user)
            assert end.code == 0, f"{trial.name}: {end.said}"
            whole = of_user(own, trial)
        with small_disk(self.folder / "own") as own:
            codes = list[int]()
            for free in FREE:
                fill(own, free)
                end = self.as_user(trial, own, user)
                assert end.code == 0 or (end.code == 2 and is_sentence(end.said, FULL)), f"{end.code}: {end.said}"
                codes.append(end.code)
            (own / "ballast").unlink()
            end = self.as_user(trial, own, user)
            assert end.code == 0 or 0 in codes, f"with room: {end.said}"
            same(whole, of_user(own, trial))
            fill(own, 0)
            end = self.as_user(trial, own, user)
            assert end.code in (0, 2) and "Traceback" not in end.said, f"full again, {end.code}: {end.said}"
            (own / "ballast").unlink()
            same(whole, of_user(own, trial))
        return codes

    def as_user(self, trial: Trial, own: Path, user: Sequence[str]) -> End:
        for name in trial.inputs:
            if not (own / name).is_symlink():
                (own / name).symlink_to(self.folder / "inputs" / name)
        environment = {name: value for name, value in os.environ.items() if name not in HOMES}
        words = [*user, sys.executable, "-m", "keypatch", *trial.words_again(own)]
        began = time.monotonic()
        ended = subprocess.run(
            words, cwd=own, env=environment | {"TMPDIR": str(own / "tmp")}, capture_output=True, text=True
        )
        return End(ended.returncode, time.monotonic() - began, ended.stdout + ended.stderr)


@contextmanager
def small_disk(own: Path) -> Iterator[Path]:
    """A disk of the ordinary user's own, with a temporary folder; OSError where it cannot be mounted."""
    own.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", own], capture_output=True, text=True)
    if made.returncode != 0:
        own.rmdir()
        raise OSError(made.stderr)
    try:
        (own / "tmp").mkdir()
        for folder in (own, own / "tmp"):
            folder.chmod(0o700)
            os.chown(folder, NOBODY, NOBODY)
        yield own
    finally:
        subprocess.run(["umount", "--lazy", own], check=True)
        own.rmdir()


def fill(own: Path, free: int) -> None:
    """A file that leaves so many bytes of the disk."""
    (own / "ballast").unlink(missing_ok=True)
    disk = os.statvfs(own)
    with (own / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, disk.f_bavail * disk.f_frsize - free)


def of_user(own: Path, trial: Trial) -> dict[str, str]:
    """`contents`, with the cache, which lies in the temporary folder of a user without a home, where others have it."""
    cache = own / "tmp" / f"keypatch-{NOBODY}"
    if not cache.exists():
        return contents(own, trial)
    cache.rename(own / "cache")
    try:
        return contents(own, trial)
    finally:
        (own / "cache").rename(cache)


def ordinary_user() -> tuple[str, ...]:
    """Words that run a command as an ordinary user, or none; where Python lies in root's home, one who may read it."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return ()
    plain = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    reading = (*plain, "--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search")
    child = "import subprocess, sys, keypatch; subprocess.run([sys.executable, '-c', 'import keypatch'], check=True)"
    for words in (plain, reading):  # commands start processes of their own, so these have to run as well
        if subprocess.run([*words, sys.executable, "-c", child], capture_output=True).returncode == 0:
            return words
    return ()


def is_sentence(said: str, words: Sequence[str]) -> bool:
    """Whether the last line is one of ours that has one of these words, and there is no trace."""
    last = said.strip().splitlines()[-1] if said.strip() else ""
    return last.startswith("keypatch: ") and any(word in last for word in words) and "Traceback" not in said


def same(whole: dict[str, str], found: dict[str, str]) -> None:
    missing, more = sorted(whole.keys() - found.keys()), sorted(found.keys() - whole.keys())
    other = sorted(name for name in whole.keys() & found.keys() if whole[name] != found[name])
    said = [
        f"{what}: {', '.join(names)}"
        for what, names in zip(("missing", "more", "different"), (missing, more, other), strict=True)
        if names
    ]
    assert not said, "; ".join(said)


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill commands and run them again.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="commands of the table; all")
    parser.add_argument("--crowd", action="store_true", help="four processes at once instead, on one folder or cache")
    parser.add_argument("--no-room", action="store_true", help="files of at most 1, 4 and 16 KB instead, then room")
    parser.add_argument("--no-rights", action="store_true", help="an ordinary user on a full disk instead, then room")
    chosen = parser.parse_args()
    trials = [trial for trial in TRIALS if not chosen.only or trial.name in chosen.only]
    folder = Path(tempfile.mkdtemp(prefix="kills-"))  # a TemporaryDirectory would be removed by the first child to end
    try:
        bench = Bench(folder)
        bench.prepare()
        if chosen.crowd:
            return crowds(bench, trials)
        if chosen.no_rights:
            return no_rights(bench, trials)
        return no_rooms(bench, trials) if chosen.no_room else kills(bench, trials, chosen.kills, chosen.seed)
    finally:
        shutil.rmtree(folder)


def kills(bench: Bench, trials: Sequence[Trial], count: int, seed: int) -> int:
    done, faults, rounds, draw = Counter[tuple[str, str]](), list[str](), 0, random.Random(seed)
    while sum(done.values()) < count and len(faults) < 20 and rounds < 10 * count:
        trial, number, share = trials[rounds % len(trials)], draw.choice(SIGNALS), draw.uniform(0, 1)
        rounds += 1
        try:
            if bench.kill(trial, number, share):
                done[trial.name, number.name] += 1
        except AssertionError as error:
            faults.append(f"{trial.name}, {number.name} after {share:.2f} of it: {str(error)[-600:]}")
            print(faults[-1], flush=True)
    names = [number.name for number in SIGNALS]
    print(f"| command | {' | '.join(names)} |\n|---|{'---:|' * len(names)}")
    for trial in trials:
        print(f"| {trial.name} | {' | '.join(str(done[trial.name, name]) for name in names)} |")
    print(f"{sum(done.values())} kills, {len(faults)} faults, seed {seed}")
    return 1 if faults or sum(done.values()) < count else 0


def crowds(bench: Bench, trials: Sequence[Trial]) -> int:
    print("| command | share | completed | refused in a sentence |\n|---|---|---:|---:|")
    for trial in trials:
        together = trial.words[0] == "evaluate"
        codes = bench.crowd(trial, together)
        print(f"| {trial.name} | {'the cache' if together else 'the output'} | {codes[0]} | {codes[2]} |", flush=True)
    return 0


def no_rooms(bench: Bench, trials: Sequence[Trial]) -> int:
    print("| command | 1 KB | 4 KB | 16 KB | with room |\n|---|---|---|---|---|")
    for trial in trials:
        ends = [bench.no_room(trial, room).code for room in (1000, 4000, 16000)]
        said = " | ".join("completes" if code == 0 else "a sentence" for code in ends)
        print(f"| {trial.name} | {said} | as the whole run |", flush=True)
    return 0


def no_rights(bench: Bench, trials: Sequence[Trial]) -> int:
    user = ordinary_user()
    if not user:
        sys.exit("Needs root, setpriv and a Python that others may run.")
    bench.folder.chmod(0o755)
    inputs = sorted(str(path) for path in (bench.folder / "inputs").rglob("*"))
    rooms = " | ".join(f"{free // 1000} KB free" for free in FREE)
    print(f"| command | {rooms} | with room |\n|---|{'---|' * (len(FREE) + 1)}")
    for trial in trials:
        codes = bench.no_rights(trial, user)
        said = " | ".join("completes" if code == 0 else "a sentence" for code in codes)
        print(f"| {trial.name} | {said} | as on an empty disk |", flush=True)
    assert inputs == sorted(str(path) for path in (bench.folder / "inputs").rglob("*")), "the inputs are others"
    return 0


if __name__ == "__main__":
    os.environ.update(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")
    sys.path.insert(0, str(Path(__file__).parent))
    import torch  # noqa: F401

    import keypatch.cli.commands  # noqa: F401

    sys.exit(main())
