"""What docs/scaling.md says of describing, matching and stores: how time and memory grow.

    OMP_NUM_THREADS=1 python bench/scaling.py describe --out runs/scaling      # 10, 100 and 1,000 small photos
    OMP_NUM_THREADS=1 python bench/scaling.py match                            # 10,000 to 200,000 descriptors
    OMP_NUM_THREADS=1 python bench/scaling.py store --out runs/scaling         # a store against a file
    OMP_NUM_THREADS=1 python bench/scaling.py index --out runs/scaling         # ten million names
    OMP_NUM_THREADS=1 python bench/scaling.py photo                            # what one photo of 12 megapixels costs
    OMP_NUM_THREADS=1 python bench/scaling.py pair A.jpg B.jpg                 # what one pair costs

Processor seconds, of this process and of those it started, so that a busy machine changes them little; seconds by the
clock stand beside them. Memory is the most that a process held, each measured in a process of its own.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (10, 100, 1000)
DESCRIPTORS = (10_000, 20_000, 50_000, 100_000, 200_000)
NAMES = 10_000_000
CROP = (160, 120)
WAYS = (("file", "f.h5", 1), ("store", "f", 1), ("file, 2 workers", "f2.h5", 2), ("store, 2 workers", "f2", 2))


def megabytes() -> float:
    """What this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def most_megabytes() -> float:
    """The most that it held since `forget`."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 2**10


def forget() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def seconds() -> tuple[float, float]:
    """Processor seconds of this process and its finished children, and the clock."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used), time.monotonic()


def measured(work: Callable[[], Any]) -> dict[str, float]:
    forget()
    before, resident = seconds(), megabytes()
    work()
    after = seconds()
    return {
        "processor_s": round(after[0] - before[0], 2),
        "clock_s": round(after[1] - before[1], 2),
        "grown_mb": round(most_megabytes() - resident, 1),
        "most_mb": round(most_megabytes(), 1),
    }


def apart(*words: object) -> dict[str, Any]:
    """What this file prints when it is run with these words, in a process of its own."""
    command = [sys.executable, __file__, *map(str, words)]
    told: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return told


def exponent(sizes: list[float], values: list[float]) -> float:
    """b of value = a size^b, least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def make_crops(folder: Path, count: int) -> Path:
    """Different small crops of the photographs of scikit-image."""
    from skimage import data

    photos, draw = [data.astronaut(), data.coffee(), data.chelsea()], random.Random(0)
    place = folder / f"crops-{count}"
    place.mkdir(parents=True, exist_ok=True)
    from PIL import Image

    for number in range(count):
        photo = photos[number % len(photos)]
        top, left = draw.randrange(photo.shape[0] - CROP[1]), draw.randrange(photo.shape[1] - CROP[0])
        path = place / f"{number:05d}.png"
        if not path.exists():
            Image.fromarray(photo[top : top + CROP[1], left : left + CROP[0]]).save(path)
    return place


def one_description(photos: str, out: str, workers: str) -> None:
    import keypatch as kp

    samples = list[tuple[int, float]]()

    def sample(done: int, total: int, unit: str) -> None:
        if done % max(1, total // 10) == 0:
            samples.append((done, round(megabytes(), 1)))

    kp.load("rootsift")
    told: dict[str, Any] = measured(
        lambda: kp.describe(
            photos,
            out,
            "rootsift",
            kp.Extraction(keypoints=100),
            parallel=kp.Parallel(workers=int(workers)),
            progress=sample,
        )
    )
    print(json.dumps(told | {"driver_mb": samples}))


def study_describe(out: Path) -> None:
    rows: dict[str, dict[int, dict[str, Any]]] = {}
    for way, name, workers in WAYS:
        for size in SIZES:
            crops = make_crops(out, size)
            with tempfile.TemporaryDirectory(dir=out) as scratch:
                found = apart("one-description", crops, Path(scratch) / name, workers)
            rows.setdefault(way, {})[size] = found
            print(way, size, found, flush=True)
        several = [rows[way][size]["processor_s"] for size in SIZES]
        print(way, "exponent from 100 to 1,000:", round(exponent(list(SIZES[1:]), several[1:]), 3), flush=True)


def one_match(count: str) -> None:
    from keypatch.matching.matching import Matching
    from keypatch.matching.neighbours import match_descriptors

    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal((int(count), 128), np.float32) for _ in range(2))
    for each in (first, second):
        each /= np.linalg.norm(each, axis=1, keepdims=True)
    match_descriptors(first[:1000], second[:1000], Matching(), device="cpu")
    print(json.dumps(measured(lambda: match_descriptors(first, second, Matching(), device="cpu"))))


def study_match() -> None:
    rows = dict[int, dict[str, Any]]()
    for count in DESCRIPTORS:
        rows[count] = apart("one-match", count)
        print(count, rows[count], flush=True)
    for key in ("processor_s", "grown_mb"):
        print(key, "exponent:", round(exponent(list(rows), [row[key] for row in rows.values()]), 3), flush=True)


def study_store(out: Path) -> None:
    import keypatch as kp
    from keypatch.features import FeatureReader
    from keypatch.features.store import INDEX

    crops = make_crops(out, 1000)
    file, store = out / "store.h5", out / "store"
    for place in (file, store):
        kp.describe(crops, place, "rootsift", kp.Extraction(keypoints=100))
    size = sum(each.stat().st_size for each in store.iterdir())
    print(f"bytes: file {file.stat().st_size:,}, store {size:,} in {len(list(store.iterdir()))} files")
    names, draw = [f"{number:05d}.png" for number in range(1000)], random.Random(0)
    some = draw.sample(names, 100)
    for place in (file, store):
        with FeatureReader(place) as reader:  # once, so that the trial of the files is over
            [reader.read(name) for name in names]
        opened = measured(lambda place=place: FeatureReader(place).__enter__())  # type: ignore[misc]
        with FeatureReader(place) as reader:
            read = measured(lambda reader=reader: [reader.read(name) for name in some])  # type: ignore[misc]
            every = measured(lambda reader=reader: [reader.read(name) for name in names])  # type: ignore[misc]
        print(place.name, "open", opened, "100 at random", read, "all in order", every, flush=True)
    (store / INDEX).unlink()
    print("open without an index", apart("one-opening", store), flush=True)
    print("to a file", measured(lambda: kp.convert(store, out / "back.h5")))
    print("to a store", measured(lambda: kp.convert(out / "back.h5", out / "again")))


def one_opening(place: str) -> None:
    from keypatch.features.store import Store

    print(json.dumps(measured(lambda: Store(Path(place)).close())))


def many_names() -> Iterator[tuple[str, int]]:
    for number in range(NAMES):
        yield f"photos/{number // 10_000:04d}/{number:08d}.jpg", number // 128


def one_index(place: str) -> None:
    from keypatch.features.store import Index, write_index

    path = Path(place)
    if not path.exists():
        shards = [f"{number:024x}.h5" for number in range(-(-NAMES // 128))]
        print(json.dumps(measured(lambda: write_index(path, many_names(), shards))))
        return
    opened: dict[str, Any] = measured(lambda: Index(path))
    index, draw = Index(path), random.Random(0)
    numbers = [draw.randrange(NAMES) for _ in range(10_000)]
    wanted = [f"photos/{number // 10_000:04d}/{number:08d}.jpg" for number in numbers]
    looked = measured(lambda: [index.shard(name) for name in wanted])
    assert all(index.shard(name) == f"{number // 128:024x}.h5" for name, number in zip(wanted, numbers, strict=True))
    print(json.dumps({"open": opened, "10,000 names at random": looked, "names": len(index)}))


def study_index(out: Path) -> None:
    path = out / "index.safetensors"
    path.unlink(missing_ok=True)
    print("write", apart("one-index", path), flush=True)
    print(f"{path.stat().st_size:,} bytes")
    print("read", apart("one-index", path), flush=True)
    print("list", apart("one-list", 100_000), "for 100,000 names of a .txt list", flush=True)


def one_list(count: str) -> None:
    """What the driver holds of photos that are still to come."""
    from keypatch.images import find_photos

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "list.txt"
        path.write_text("".join(f"{number // 10_000:04d}/{number:08d}.jpg\n" for number in range(int(count))))
        kept: list[Any] = []
        told = measured(lambda: kept.append(find_photos([path])))
    print(json.dumps(told | {"held_mb": round(megabytes(), 1)}))


def study_photo() -> None:
    """Seconds and bytes of one photo of 12 megapixels with the usual settings, by SIFT and by a network."""
    from skimage import data

    import keypatch as kp

    part = data.astronaut()
    photo = np.tile(part, (6, 8, 1))[:3000, :4000]
    rng = np.random.default_rng(0)
    photo = np.clip(photo + rng.normal(0, 8, photo.shape), 0, 255).astype(np.uint8)
    for name in ("rootsift", "hynet-notredame"):
        describer = kp.load(name, device="cpu")
        for largest in (None, 1600):
            kept, how = list[Any](), kp.Extraction(max_size=largest)
            told = measured(lambda d=describer, k=kept, how=how: k.append(kp.extract(photo, d, how)))  # type: ignore[misc]
            print(name, f"max_size {largest}", len(kept[0]), "keypoints", told, flush=True)


def study_pair(first: str, second: str) -> None:
    """Seconds of matching and verifying two photos that show the same, with the usual settings."""
    import keypatch as kp
    from keypatch.matching.image_matches import match_features

    both = [kp.extract(path, "rootsift", kp.Extraction(max_size=1600)) for path in (first, second)]
    match_features(*both, device="cpu")
    print([len(each) for each in both], measured(lambda: match_features(*both, device="cpu")), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study")
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--out", type=Path, default=Path("runs/scaling"))
    given = parser.parse_args()
    parts: dict[str, Callable[..., None]] = {
        "one-description": one_description,
        "one-match": one_match,
        "one-opening": one_opening,
        "one-index": one_index,
        "one-list": one_list,
        "match": study_match,
        "photo": study_photo,
        "pair": study_pair,
    }
    if given.study in parts:
        parts[given.study](*given.rest)
    else:
        given.out.mkdir(parents=True, exist_ok=True)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        {"describe": study_describe, "store": study_store, "index": study_index}[given.study](given.out)
