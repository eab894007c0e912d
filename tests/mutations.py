"""Files of every kind that keypatch reads, spoilt at random: each must be read, or refused in a sentence of ours.

    python tests/mutations.py                             # 300 mutations for each reader, and the table
    python tests/mutations.py --readers features recipe   # of some readers
    python tests/mutations.py --readers features --seeds 17   # one mutation again, with what was raised

A mutation is a function of the reader's name and a seed. Reading is done in a worker process with limits: a traceback,
a crash, a read that does not end and one that takes too much memory are failures, told with their seeds.
"""

import argparse
import json
import math
import os
import random
import re
import select
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures" / "0.1"
MUTATIONS = 300
SECONDS = 60.0  # that reading one small file may take: machines are busy
TRIAL_SECONDS, TRIAL_MEMORY = 3.0, 2**30  # of keypatch's own trials in a child: small files need no more
MEMORY = 3 * 2**30  # bytes that reading one small file may take
READ, REFUSED, TRACEBACK, CRASH, HANG, GREED = "read", "refused", "traceback", "crash", "hang", "memory"
FAILURES = (TRACEBACK, CRASH, HANG, GREED)


@dataclass(frozen=True)
class Case:
    """A reader, and how to make files that it reads."""

    make: Callable[[Path], None]  # fills a folder
    read: Callable[[Path], object]  # reads it, however spoilt
    targets: Sequence[str] = ("*",)  # which of its files are spoilt


CASES = dict[str, Case]()


def case(name: str, read: Callable[[Path], object], *targets: str) -> Callable[[Callable[[Path], None]], Any]:
    def add(make: Callable[[Path], None]) -> Callable[[Path], None]:
        CASES[name] = Case(make, read, targets or ("*",))
        return make

    return add


# Mutations


def mutate(content: bytes, rng: random.Random) -> bytes:
    """The content, spoilt in one of many ways; texts also by numbers and words that are not what they should be."""
    ways = [_flip_bits, _cut, _swap, _repeat, _overwrite, _insert, _inflate]
    if _is_text(content):
        ways += [_replace_number, _replace_number, _replace_word, _nest]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = rng.choice(ways)(content, rng) if content else rng.randbytes(rng.randrange(64))
    return content


def _is_text(content: bytes) -> bool:
    with suppress(UnicodeDecodeError):
        return "\0" not in content.decode()
    return False


def _place(content: bytes, rng: random.Random) -> int:
    """Heads are where structure is: half of all changes are there."""
    return rng.randrange(min(len(content), 512) if rng.random() < 0.5 else len(content))


def _flip_bits(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 4, 32))):
        changed[_place(content, rng)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(content: bytes, rng: random.Random) -> bytes:
    start = _place(content, rng)
    return content[:start] if rng.random() < 0.7 else content[:start] + content[rng.randrange(start, len(content)) :]


def _swap(content: bytes, rng: random.Random) -> bytes:
    a, b, c = sorted(rng.randrange(len(content) + 1) for _ in range(3))
    return content[:a] + content[b:c] + content[a:b] + content[c:]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    a, b = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:b] + content[a : min(b, a + 4096)] * rng.choice((1, 2, 9)) + content[b:]


def _overwrite(content: bytes, rng: random.Random) -> bytes:
    start, length = _place(content, rng), rng.choice((1, 2, 4, 8, 64, 1024))
    filling = rng.choice((b"\0", b"\xff", b"\x7f", b"[", b"9", None))
    new = rng.randbytes(length) if filling is None else filling * length
    return content[:start] + new[: len(content) - start] + content[start + length :]


def _insert(content: bytes, rng: random.Random) -> bytes:
    start = _place(content, rng)
    return content[:start] + rng.randbytes(rng.choice((1, 3, 64))) + content[start:]


def _inflate(content: bytes, rng: random.Random) -> bytes:
    """A number somewhere, in one of the forms that lengths have, becomes a large or a negative one."""
    form, size = rng.choice((("<H", 16), (">H", 16), ("<I", 32), (">I", 32), ("<Q", 64), (">Q", 64)))
    number = rng.choice((2**size - 1, 2 ** (size - 1), 2 ** (size // 2), 10**9 % 2**size, 2**33 % 2**size, 0, 1))
    new, start = struct.pack(form, number), _place(content, rng)
    return content[:start] + new[: len(content) - start] + content[start + len(new) :]


_NUMBERS = b'0 -1 1 1e9 99999999999 -0.0 nan inf -inf 1e-300 1e400 0x10 1_000 1,5 null true [] {} "7" \xc2\xb2'.split()
_NUMBERS += [b"9" * 400, b"9" * 5000, b"", b" ", b"-9223372036854775809", b"1e308 1e308", b"3.5"]
_WORDS = [b"", b"..", b"../../etc/passwd", b"/etc/passwd", b"null", b"0", b"nan", b"\xff\xfe", b"a" * 5000, b"\0", b"="]
_WORDS += ["Σ😀".encode(), b"C:\\x", b"keypatch-result", b"\x1b[31m", b"'", b'"', b"#", b"-", b"__class__"]


def _replace_number(content: bytes, rng: random.Random) -> bytes:
    return _replace(rb"-?\d[\d.e+-]*", content, rng.choice(_NUMBERS), rng)


def _replace_word(content: bytes, rng: random.Random) -> bytes:
    return _replace(rb"[A-Za-z_.]{2,}", content, rng.choice(_WORDS), rng)


def _nest(content: bytes, rng: random.Random) -> bytes:
    depth = rng.choice((3, 3000, 100_000))
    return _replace(rb"-?\d[\d.e+-]*|\"[^\"]*\"", content, b"[" * depth + b"]" * rng.choice((0, depth)), rng)


def _replace(pattern: bytes, content: bytes, new: bytes, rng: random.Random) -> bytes:
    found = list(re.finditer(pattern, content))
    if not found:
        return _flip_bits(content, rng)
    chosen = rng.choice(found)
    return content[: chosen.start()] + new + content[chosen.end() :]


# The worker


def work() -> None:
    """Read what the lines of stdin name, and tell what became of it."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from keypatch import sandbox

    sandbox.SECONDS, sandbox.MEMORY = TRIAL_SECONDS, TRIAL_MEMORY
    for line in sys.stdin:
        name, folder = json.loads(line)
        outcome, detail = _outcome(CASES[name].read, Path(folder))
        print(json.dumps([outcome, detail]), file=answers, flush=True)


def _outcome(read: Callable[[Path], object], folder: Path) -> tuple[str, str]:
    from keypatch.errors import KeypatchError

    try:
        with _limited_memory() as taken:
            read(folder)
    except Exception as error:
        text = "".join(traceback.format_exception(error))
        if "MemoryError" in text or re.search("memory alloc|alloc[a-z]* memory", text, re.IGNORECASE):
            return GREED, text
        return (REFUSED, str(error)) if isinstance(error, KeypatchError) else (TRACEBACK, text)
    return (GREED, f"{taken[0]} bytes") if taken[0] > MEMORY else (READ, "")


@contextmanager
def _limited_memory() -> Iterator[list[int]]:
    """What the block took, where the system tells; more addresses than that are not given."""
    taken = [0]
    try:
        import resource
    except ImportError:
        yield taken
        return
    statm = Path("/proc/self/statm")
    if statm.exists():
        limit = int(statm.read_text().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        yield taken
    finally:
        taken[0] = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_AS)[1]))


class Worker:
    """The process that reads; another one takes its place when it has been lost."""

    def __init__(self, seconds: float = SECONDS, command: Sequence[str] = (__file__, "--worker")) -> None:
        self.seconds, self.command = seconds, command
        self.process: subprocess.Popen[str] | None = None

    def read(self, name: str, folder: Path) -> tuple[str, str]:
        if self.process is None:
            self.process = self._start()
        print(json.dumps([name, str(folder)]), file=self.process.stdin, flush=True)
        if not select.select([self.process.stdout], [], [], self.seconds)[0]:
            self.end()
            return HANG, f"no answer after {self.seconds:g} seconds"
        line = self.process.stdout.readline() if self.process.stdout else ""
        if line:
            outcome, detail = json.loads(line)
            return outcome, detail
        code = self.process.wait()
        self.end()
        return CRASH, f"the worker ended with code {code}"

    def _start(self) -> "subprocess.Popen[str]":
        home = str(Path(__file__).parent)
        paths = [home, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([sys.executable, *self.command], text=True, env=env, **pipes)

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        self.process = None


# A run


@dataclass
class Tally:
    """What became of the mutations of one reader."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, str]] = field(default_factory=list)  # seed, outcome, detail


def run(name: str, seeds: Iterable[int], worker: Worker, scratch: Path, chosen: Case | None = None) -> Tally:
    """Spoil the files of a reader, one mutation for each seed, and have them read."""
    own, tally, folder = chosen or CASES[name], Tally(), scratch / name.replace(" ", "-")
    folder.mkdir()
    own.make(folder)
    found = {path for pattern in own.targets for path in folder.rglob(pattern) if path.is_file()}
    targets = sorted(found)
    whole = worker.read(name, folder)
    if whole[0] != READ:
        raise AssertionError(f"{name}: the whole file is not read: {whole[0]}: {whole[1]}")
    for seed in seeds:
        rng = random.Random(zlib.crc32(f"{name} {seed}".encode()))
        target = rng.choice(targets)
        content = target.read_bytes()
        target.write_bytes(mutate(content, rng))
        outcome, detail = worker.read(name, folder)
        target.write_bytes(content)
        tally.counts[outcome] += 1
        if outcome in FAILURES:
            tally.failures.append((seed, outcome, detail))
    shutil.rmtree(folder)
    return tally


def table(tallies: dict[str, Tally]) -> str:
    """Of Markdown, for docs/reliability.md."""
    heads = ["reader", "mutations", READ, REFUSED, "tracebacks", "crashes", "hangs", "memory"]
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1)]
    for name, tally in tallies.items():
        counts = [tally.counts[outcome] for outcome in (READ, REFUSED, *FAILURES)]
        lines.append([name, str(sum(counts)), *map(str, counts)])
    sums = [sum(tally.counts[outcome] for tally in tallies.values()) for outcome in (READ, REFUSED, *FAILURES)]
    lines.append(["all", str(sum(sums)), *map(str, sums)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readers", nargs="*", default=list(CASES), choices=list(CASES), metavar="NAME")
    parser.add_argument("--mutations", type=int, default=MUTATIONS, help="of each reader")
    parser.add_argument("--seeds", type=int, nargs="*", help="only these mutations")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.worker:
        work()
        return 0
    worker, tallies = Worker(), dict[str, Tally]()
    with tempfile.TemporaryDirectory() as scratch:
        for name in words.readers:
            tallies[name] = run(name, words.seeds or range(words.mutations), worker, Path(scratch))
            print(name, dict(tallies[name].counts), flush=True)
            for seed, outcome, detail in tallies[name].failures:
                print(f"  seed {seed}: {outcome}: {detail if words.seeds else detail.strip().splitlines()[-1][:200]}")
    worker.end()
    print(table(tallies))
    return 1 if any(tally.failures for tally in tallies.values()) else 0


# The readers


def _inspect(path: Path) -> None:
    from keypatch.commands.inspect.inspection import inspect

    inspect(path)


def _all(*reads: Callable[[], object]) -> None:
    """Every one is called, also after a refusal, which is raised at the end."""
    from keypatch.errors import KeypatchError

    refusals = []
    for read in reads:
        try:
            read()
        except KeypatchError as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]


def _pixels(side: int = 48, seed: int = 0) -> Any:
    import numpy as np

    rows, columns = np.mgrid[:side, :side]
    waves = 90 * np.sin(rows / 5 + seed) * np.cos(columns / 7)
    return (128 + waves + np.random.default_rng(seed).integers(0, 30, (side, side))).clip(0, 255).astype(np.uint8)


def _copy(*names: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        for name in names:
            source = FIXTURES / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / Path(name).name)

    return make


def _read_weights(folder: Path) -> None:
    from keypatch.networks.weights import load_weights, read_weights_card
    from keypatch.zoo import load

    path = folder / "weights.safetensors"
    _all(lambda: load_weights(path), lambda: read_weights_card(path), lambda: load(path), lambda: _inspect(path))


def _read_run(folder: Path) -> None:
    from keypatch.reports.protocols import read_sources
    from keypatch.training.checkpoints import load_checkpoint, load_run_weights, newest_checkpoint
    from keypatch.training.recipe_files import read_recipe
    from keypatch.training.run_folder import RunFolder

    run = folder / "run"

    def resume() -> None:
        log = (run / "log.jsonl").read_bytes()
        try:
            RunFolder(run).resume(read_recipe(run / "recipe.toml"))
        finally:
            (run / "log.jsonl").write_bytes(log)  # which is cut

    _all(
        lambda: load_checkpoint(newest_checkpoint(run) or run),
        lambda: load_run_weights(run),
        resume,
        lambda: _inspect(run),
        lambda: read_sources([run]),
    )


def _read_log(folder: Path) -> None:
    from keypatch.reports.page import report

    _all(lambda: _read_run(folder), lambda: report([folder / "run"], folder / "page.html"))


case("weights", _read_weights)(_copy("weights.safetensors"))
case("checkpoint", _read_run, "step-*.safetensors")(_copy("run"))
case("run log", _read_log, "log.jsonl")(_copy("run"))
case("card of a run", _read_run, "card.json")(_copy("run"))


def _read_published(folder: Path) -> None:
    from keypatch.networks.published import load_published

    for path in sorted(folder.iterdir()):
        _all(lambda path=path: load_published(path), lambda path=path: _inspect(path))


def _tfeat() -> Any:
    import torch

    shapes = {"features.1": (32, 1, 7, 7), "features.4": (64, 32, 6, 6), "descr.0": (128, 4096)}
    rng = torch.Generator().manual_seed(0)
    tensors = {f"{name}.weight": torch.randn(shape, generator=rng) / 100 for name, shape in shapes.items()}
    return tensors | {f"{name}.bias": torch.zeros(shape[0]) for name, shape in shapes.items()}


@case("published .pth", _read_published)
def _make_pth(folder: Path) -> None:
    import torch

    torch.save({"epoch": 3, "state_dict": _tfeat()}, folder / "tfeat.pth")


@case("published .pth of torch 1", _read_published)
def _make_old_pth(folder: Path) -> None:
    import torch

    tensors, path = _tfeat(), folder / "tfeat.params"
    parts = torch.cat([tensor.flatten() for tensor in tensors.values()]).split([t.numel() for t in tensors.values()])
    views = {name: part.view(tensors[name].shape) for name, part in zip(tensors, parts, strict=True)}
    torch.save(views, path, _use_new_zipfile_serialization=False)
    # the storage is named by its address, which differs from run to run
    path.write_bytes(re.sub(rb"\d{14,15}", lambda found: b"1".zfill(len(found[0])), path.read_bytes()))


@case("published .safetensors", _read_published)
def _make_safetensors(folder: Path) -> None:
    from safetensors.torch import save_file

    save_file(_tfeat(), folder / "tfeat.safetensors")


def _read_recipe(folder: Path) -> None:
    from keypatch.training.recipe_files import read_recipe

    path = folder / "recipe.toml"
    _all(lambda: read_recipe(path), lambda: _inspect(path))


case("recipe", _read_recipe)(_copy("recipe.toml"))


def _read_features(folder: Path) -> None:
    from keypatch.features import FeatureReader

    def read(path: Path) -> None:
        with FeatureReader(path) as reader:
            for name in reader.names():
                reader.read(name)

    for path in sorted(folder.glob("*.h5")):
        _all(lambda path=path: read(path), lambda path=path: _inspect(path))


case("features", _read_features)(_copy("features.h5"))


@case("features of others", _read_features)
def _make_hloc(folder: Path) -> None:
    import h5py
    import numpy as np

    rng = np.random.default_rng(0)
    with h5py.File(folder / "hloc.h5", "w") as file:
        for name in ("a.jpg", "b/c.jpg"):
            group = file.create_group(name)
            packed: dict[str, Any] = {"compression": "gzip", "chunks": (8, 2), "shuffle": True}
            group.create_dataset("keypoints", data=rng.uniform(0, 99, (40, 2)).astype(np.float16), **packed)
            group.create_dataset("descriptors", data=rng.normal(size=(16, 40)).astype(np.float16), chunks=(16, 8))
            group.create_dataset("scores", data=rng.uniform(size=40).astype(np.float16), maxshape=(None,))
            group["image_size"] = np.array([100, 100])
            group["keypoints"].attrs["uncertainty"] = 1.0


def _read_matches(folder: Path) -> None:
    from keypatch.matching.match_files import MatchReader

    def read(path: Path) -> None:
        with MatchReader(path) as reader:
            reader.totals()
            reader.read("a.png", "b.png")

    for path in sorted(folder.glob("*.h5")):
        _all(lambda path=path: read(path), lambda path=path: _inspect(path))


case("matches", _read_matches)(_copy("matches.h5"))


@case("matches of others", _read_matches)
def _make_hloc_matches(folder: Path) -> None:
    import h5py
    import numpy as np

    with h5py.File(folder / "hloc.h5", "w", libver="latest") as file:
        group = file.create_group("a.png/b.png")
        partners = np.random.default_rng(0).integers(-1, 40, 60).astype(np.int16)
        group.create_dataset("matches0", data=partners, chunks=(16,), compression="gzip", fletcher32=True)
        group.create_dataset("matching_scores0", data=np.ones(60, np.float16), chunks=(16,))


def _read_result(folder: Path) -> None:
    from keypatch.benchmarks.result import load_result
    from keypatch.reports.page import report

    path = folder / "result.json"
    _all(
        lambda: load_result(path).to_dict(),
        lambda: repr(load_result(path)),
        lambda: _inspect(path),
        lambda: report([path], folder / "page.html"),
    )


@case("results", _read_result, "result.json")
def _make_result(folder: Path) -> None:
    value = json.loads((FIXTURES / "result.json").read_text())
    for each in value.get("replicates", {}).values():
        each["values"] = each["values"][:20]
    for curve in value["curves"].values():
        curve["x"], curve["y"] = curve["x"][:20], curve["y"][:20]
    (folder / "result.json").write_text(json.dumps(value))


def _read_patches(folder: Path) -> None:
    from keypatch.patches import open_patches
    from keypatch.patches.phototour import find_pair_lists

    _all(
        lambda: find_pair_lists(open_patches(folder)),
        lambda: open_patches(folder, None, True),
        lambda: _inspect(folder),
    )


def _make_phototour(folder: Path) -> None:
    from PIL import Image

    Image.fromarray(_pixels(1024)).save(folder / "patches0000.bmp")
    count = 200
    (folder / "info.txt").write_text("".join(f"{number // 2} {number % 5}\n" for number in range(count)))
    rows = (f"{number % 5} {number}.5 {2 * number} 0.{number} 1.25\n" for number in range(count))
    (folder / "interest.txt").write_text("".join(rows))
    pairs = ((2 * n, 2 * n + n % 2) for n in range(60))
    (folder / "m50_60_60_0.txt").write_text("".join(f"{a} {a // 2} 0 {b} {b // 2} 0 0\n" for a, b in pairs))
    card = {"format": "keypatch-patch-set", "format_number": 1, "made_from": "waves", "seed": 3}
    (folder / "card.json").write_text(json.dumps(card))


case("pair list", _read_patches, "m50_*.txt")(_make_phototour)
case("info.txt", _read_patches, "info.txt")(_make_phototour)
case("interest.txt", _read_patches, "interest.txt")(_make_phototour)
case("sheets of patches", _read_patches, "*.bmp")(_make_phototour)
case("card of a patch set", _read_patches, "card.json")(_make_phototour)


def _strips() -> list[str]:
    from keypatch.patches.hpatches import STRIPS

    return list(STRIPS)


@case("HPatches strips", _read_patches, "*.png")
def _make_strips(folder: Path) -> None:
    import numpy as np
    from PIL import Image

    for sequence in ("i_a", "v_b"):
        (folder / sequence).mkdir()
        for strip in _strips():
            Image.fromarray(np.concatenate([_pixels(65), _pixels(65, 1)])).save(folder / sequence / f"{strip}.png")


def _read_hpatches_csv(folder: Path) -> None:
    from keypatch.benchmarks.hpatches.strips import count_csv_rows, read_csv_strips

    names = ["i_a", "v_b"]
    read_csv_strips(folder, names, count_csv_rows(folder, names))


@case("HPatches csv", _read_hpatches_csv)
def _make_hpatches_csv(folder: Path) -> None:
    for sequence in ("i_a", "v_b"):
        (folder / sequence).mkdir()
        for number, strip in enumerate(_strips()):
            rows = (",".join(f"{math.sin(number + row * k):.6g}" for k in range(8)) for row in range(5))
            (folder / sequence / f"{strip}.csv").write_text("\n".join(rows) + "\n")


def _read_task_lists(folder: Path) -> None:
    from keypatch.benchmarks.hpatches.lists import find_listed, find_split, read_tasks

    _all(
        lambda: find_listed(folder),
        lambda: find_split("a", "test", folder),
        lambda: read_tasks(folder, "a", ["i_a", "v_b"], [5, 5]),
    )


@case("HPatches lists", _read_task_lists)
def _make_task_lists(folder: Path) -> None:
    pairs = "s1,t1,idx1,s2,t2,idx2\n"
    (folder / "verif_pos_split-a.csv").write_text(pairs + "".join(f"i_a,1,{n},i_a,2,{n}\n" for n in range(4)))
    (folder / "verif_neg_inter_split-a.csv").write_text(pairs + "".join(f"i_a,1,{n},v_b,2,1\n" for n in range(4)))
    (folder / "verif_neg_intra_split-a.csv").write_text(pairs + "".join(f"i_a,1,{n},i_a,2,4\n" for n in range(4)))
    (folder / "retr_queries_split-a.csv").write_text("s,idx\ni_a,0\nv_b,1\n")
    (folder / "retr_distractors_split-a.csv").write_text("s,idx\ni_a,2\nv_b,3\n")
    (folder / "splits").mkdir()
    splits = {"a": {"name": "a", "train": ["i_a"], "test": ["i_a", "v_b"]}}
    (folder / "splits" / "splits.json").write_text(json.dumps(splits))


@case("image folder", _read_patches, "*.png", "*.jpg", "*.gif")
def _make_classes(folder: Path) -> None:
    from PIL import Image

    for name in ("one", "two/inner"):
        (folder / name).mkdir(parents=True)
        for number, kind in enumerate(("png", "jpg", "gif")):
            Image.fromarray(_pixels(40, number)).save(folder / name / f"{number}.{kind}")


def _read_products(folder: Path) -> None:
    from keypatch.patches import open_patches

    open_patches(folder / "Ebay_train.txt")


@case("list of products", _read_products, "*.txt")
def _make_products(folder: Path) -> None:
    from PIL import Image

    rows = ["image_id class_id super_class_id path"]
    (folder / "bicycle").mkdir()
    for number in range(6):
        Image.fromarray(_pixels(20, number)).save(folder / "bicycle" / f"{number}.png")
        rows.append(f"{number + 1} {number // 2 + 1} 1 bicycle/{number}.png")
    (folder / "Ebay_train.txt").write_text("\n".join(rows) + "\n")


def _read_photos(folder: Path) -> None:
    from keypatch.images import read_colours, read_header, read_photo

    for path in sorted(folder.iterdir()):
        _all(
            lambda path=path: read_header(path),
            lambda path=path: read_photo(path, turn_by_exif=True),
            lambda path=path: read_colours(path, 64),
            lambda path=path: _inspect(path),
        )


def _make_photo(suffix: str, mode: str = "RGB", **how: Any) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        import numpy as np
        from PIL import Image

        image = Image.merge("RGB", [Image.fromarray(_pixels(80, number)) for number in range(3)])
        if mode == "I;16":
            image = Image.fromarray(257 * np.asarray(image.convert("L")).astype(np.uint16))
        exif = Image.Exif()
        exif[0x0112], exif[0x010F] = 6, "maker"
        exif.get_ifd(0x8769)[0xA405] = 28
        extra = {"exif": exif} if suffix in (".jpg", ".png", ".webp", ".tif") else {}
        (image if mode == "I;16" else image.convert(mode)).save(folder / f"photo{suffix}", **extra, **how)

    return make


case("photo, JPEG", _read_photos)(_make_photo(".jpg"))
case("photo, progressive JPEG", _read_photos)(_make_photo(".jpg", progressive=True))
case("photo, PNG", _read_photos)(_make_photo(".png"))
case("photo, PNG with palette", _read_photos)(_make_photo(".png", "P"))
case("photo, PNG of 16 bits", _read_photos)(_make_photo(".png", "I;16"))
case("photo, TIFF", _read_photos)(_make_photo(".tif"))
case("photo, TIFF with LZW", _read_photos)(_make_photo(".tif", compression="tiff_lzw"))
case("photo, WebP", _read_photos)(_make_photo(".webp"))
case("photo, BMP", _read_photos)(_make_photo(".bmp"))
case("photo, PPM", _read_photos)(_make_photo(".ppm"))
case("photo, JPEG 2000", _read_photos)(_make_photo(".jp2"))
case("photo, AVIF", _read_photos)(_make_photo(".avif"))


def _read_database(folder: Path) -> None:
    from keypatch.colmap.database import open_colmap_database, read_database_cameras

    path = folder / "database.db"

    def read() -> None:
        with open_colmap_database(path) as database:
            for name in database.described_images():
                database.keypoints(name)
                database.descriptors(name)

    _all(lambda: read_database_cameras(path), read, lambda: _inspect(path))


@case("COLMAP database", _read_database)
def _make_database(folder: Path) -> None:
    import numpy as np
    import pycolmap

    with pycolmap.Database.open(str(folder / "database.db")) as database:
        camera = pycolmap.Camera(model="SIMPLE_RADIAL", width=100, height=80, params=[90, 50, 40, 0.1])
        number = database.write_camera(camera)
        for name in ("a.jpg", "b.jpg"):
            image = database.write_image(pycolmap.Image(name=name, camera_id=number))
            database.write_keypoints(image, np.arange(80, dtype=np.float32).reshape(20, 4))
    with sqlite3.connect(folder / "database.db") as file:  # one file, without a journal beside it
        file.execute("PRAGMA journal_mode = DELETE")
    file.close()


CAMERAS = "# list\n1 PINHOLE 640 480 500 500 320 240\n2 SIMPLE_RADIAL 640 480 500 320 240 0.1\n"
IMAGES = "# list\n2 0 0 1 0 0 0 0 1 c.jpg\n5 6 9\n1 1 0 0 0 0.5 0 2 2 a.jpg\n3 4 7 8 9 -1 5 5 9\n"
POINTS = "9 1 2 3 10 20 30 0.25 1 2 2 0\n7 4 5 6 40 50 60 0.5 1 0\n"


def _read_model(folder: Path) -> None:
    from keypatch.colmap.known_cameras import read_cameras
    from keypatch.colmap.models import read_model

    _all(
        lambda: read_cameras(folder, stand_ins=True),
        lambda: read_model(folder, stand_ins=True, text=(folder / "images.txt").exists()),
        lambda: _inspect(folder),
    )


@case("COLMAP model, text", _read_model)
def _make_text_model(folder: Path) -> None:
    for name, text in {"cameras": CAMERAS, "images": IMAGES, "points3D": POINTS}.items():
        (folder / f"{name}.txt").write_text(text)


@case("COLMAP model, binary", _read_model)
def _make_binary_model(folder: Path) -> None:
    import pycolmap

    with tempfile.TemporaryDirectory() as text:
        _make_text_model(Path(text))
        pycolmap.Reconstruction(text).write_binary(str(folder))


def _read_eth(folder: Path) -> None:
    from keypatch.benchmarks.eth import files
    from keypatch.matching.pairs import find_pairs

    _all(
        lambda: files.read_eth_keypoints(folder / "keypoints.bin"),
        lambda: files.read_eth_descriptors(folder / "descriptors.bin", 20),
        lambda: files.read_eth_matches(folder / "matches.bin", (20, 20)),
        lambda: find_pairs(folder / "image-pairs.txt", ["a.jpg", "b.jpg", "c.jpg"]),
    )


@case("ETH files", _read_eth)
def _make_eth(folder: Path) -> None:
    tables = {"keypoints": (20, 4, "f"), "descriptors": (20, 8, "f"), "matches": (10, 2, "I")}
    for name, (rows, columns, kind) in tables.items():
        values = [1 + number % 19 for number in range(rows * columns)]
        content = struct.pack("<ii", rows, columns) + struct.pack(f"<{len(values)}{kind}", *values)
        (folder / f"{name}.bin").write_bytes(content)
    (folder / "image-pairs.txt").write_text("a.jpg b.jpg\nb.jpg c.jpg\n")


def _read_scene(folder: Path) -> None:
    from keypatch.benchmarks.imc.bags import find_bags
    from keypatch.benchmarks.imc.covisibility import covisible_pairs, read_shared_points
    from keypatch.benchmarks.imc.scenes import read_posed_scenes

    scene = read_posed_scenes(folder / "scene")[0]
    reads: list[Callable[[], object]] = [lambda: read_shared_points(scene), lambda: find_bags(scene, (2, 3), 2, 0)]
    if (scene.folder / "new-vis-pairs").is_dir():
        reads.append(lambda: covisible_pairs(scene, 0.1))
    _all(*reads)


def _make_photos(folder: Path, count: int = 3) -> None:
    from PIL import Image

    folder.mkdir(parents=True)
    for number in range(count):
        Image.fromarray(_pixels(32, number)).save(folder / f"{number}.png")


@case("Strecha cameras", _read_scene, "*.camera")
def _make_strecha(folder: Path) -> None:
    _make_photos(folder / "scene" / "images")
    (folder / "scene" / "cameras").mkdir()
    for number in range(3):
        text = f"50 0 16\n0 50 16\n0 0 1\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n{number} 0 1.5\n32 32\n"
        (folder / "scene" / "cameras" / f"{number}.png.camera").write_text(text)


def _make_challenge(folder: Path) -> None:
    import h5py
    import numpy as np

    scene = folder / "scene"
    _make_photos(scene / "images")
    for place in ("calibration", "visibility", "new-vis-pairs", "sub_set"):
        (scene / place).mkdir()
    for number in range(3):
        with h5py.File(scene / "calibration" / f"calibration_{number}.h5", "w") as file:
            file["K"], file["R"], file["T"] = np.diag([50.0, 50, 1]), np.eye(3), np.ones(3) * number
        (scene / "visibility" / f"{number}.txt").write_text("200.0\n150.0\n0.0\n")
    (scene / "images.txt").write_text("images/0.png\nimages/1.png\nimages/2.png\n")
    (scene / "visibility.txt").write_text("visibility/0.txt\nvisibility/1.txt\nvisibility/2.txt\n")
    np.save(scene / "new-vis-pairs" / "keys-th-0.1.npy", np.array(["1-0", "2-1"]))
    (scene / "sub_set" / "2bag_000.txt").write_text("images/0.png\nimages/2.png\n")


case("IMC calibration", _read_scene, "calibration_*.h5")(_make_challenge)
case("visibility lists", _read_scene, "*.txt", "*.npy")(_make_challenge)


def _read_challenge_features(folder: Path) -> None:
    from keypatch.benchmarks.imc.features import scene_features
    from keypatch.features import Extraction, find_photos

    found = scene_features(folder / "features", find_photos([folder / "images"]), Extraction())
    for name in ("0.png", "1.png"):
        found.read(name)


@case("IMC features", _read_challenge_features, "*.h5")
def _make_challenge_features(folder: Path) -> None:
    import h5py
    import numpy as np

    _make_photos(folder / "images", 2)
    (folder / "features").mkdir()
    for name, columns in (("keypoints", 2), ("descriptors", 8)):
        with h5py.File(folder / "features" / f"{name}.h5", "w") as file:
            for number in range(2):
                file[str(number)] = np.random.default_rng(number).uniform(0, 30, (10, columns)).astype(np.float32)


def _read_keypoints(folder: Path) -> None:
    from keypatch.features.keypoint_files import open_keypoints

    open_keypoints(folder / "keypoints.csv", 2.0).read("a.jpg")


@case("keypoint csv", _read_keypoints)
def _make_keypoints(folder: Path) -> None:
    rows = (f"a.jpg,{number}.5,{2 * number},1.5,0.1,{number}" for number in range(20))
    (folder / "keypoints.csv").write_text("\n".join(["image,x,y,sigma,angle,response", *rows]) + "\n")


def _read_matrices(folder: Path) -> None:
    from keypatch.geometry.homographies import read_matrix
    from keypatch.patches.planar_sequences import read_planar_sequences

    _all(lambda: read_matrix(folder / "graf" / "H1to2p"), lambda: read_planar_sequences(folder))


@case("matrices", _read_matrices, "H*")
def _make_matrices(folder: Path) -> None:
    _make_photos(folder / "graf")
    (folder / "graf" / "0.png").rename(folder / "graf" / "img3.png")
    (folder / "graf" / "1.png").rename(folder / "graf" / "img1.png")
    (folder / "graf" / "2.png").rename(folder / "graf" / "img2.png")
    for number in (2, 3):
        (folder / "graf" / f"H1to{number}p").write_text("0.9 -0.1 10.5\n0.1 1.1 -7\n1e-4 -2e-5 1\n")


def _read_photo_list(folder: Path) -> None:
    from keypatch.images import find_photos, read_header

    _all(
        lambda: [read_header(photo.path) for photo in find_photos([folder / "list.txt"])],
        lambda: _inspect(folder / "list.txt"),
    )


@case("photo list", _read_photo_list, "list.txt")
def _make_photo_list(folder: Path) -> None:
    _make_photos(folder / "photos")
    (folder / "list.txt").write_text("# photos\nphotos/0.png\n./photos/1.png\n\nphotos/2.png\n")


def _read_card(folder: Path) -> None:
    from keypatch.zoo.cards import Card

    _all(lambda: Card.load(folder / "card.json"), lambda: _inspect(folder / "card.json"))


@case("card of weights", _read_card)
def _make_card(folder: Path) -> None:
    card = {
        "format": "keypatch-card",
        "format_number": 1,
        "name": "x",
        "about": "y",
        "dim": 8,
        "scores": {"fpr95": 0.1},
    }
    (folder / "card.json").write_text(json.dumps(card))


def _read_cached(folder: Path) -> None:
    import numpy as np

    from keypatch.benchmarks.imc.bags import BagOutcome
    from keypatch.cache import load_array

    array = load_array(folder / "array.npy", np.float32)
    if array is not None:
        array.sum()
    BagOutcome.load(folder / "bag.json")


@case("cache files", _read_cached)
def _make_cached(folder: Path) -> None:
    import numpy as np

    np.save(folder / "array.npy", np.ones((20, 8), np.float32))
    (folder / "bag.json").write_text('{"errors": [1.5, null], "registered": 2, "points": 30, "track_length": 2.5}')


def _read_report(folder: Path) -> None:
    _inspect(folder)


@case("report of a reconstruction", _read_report, "reconstruction.json")
def _make_report(folder: Path) -> None:
    from keypatch.reconstruction.result import FORMAT

    (folder / "model").mkdir()
    _make_text_model(folder / "model")
    settings = {"keypoints": 100, "max_error": 4.0}
    value = {"finished": True, "photos": ["a.jpg"], "registered": ["a.jpg"], "settings": settings, "notes": ["one"]}
    (folder / "reconstruction.json").write_text(json.dumps({**FORMAT.head(), **value}))


if __name__ == "__main__":
    sys.exit(main())
