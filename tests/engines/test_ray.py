"""The real Ray: in child processes, since it starts others and warns about much."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

pytest.importorskip("ray", reason="needs Ray: pip install 'keypatch[ray]'")
pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes in /proc")

LOCAL = """
import json, os, signal, sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from keypatch.engines import Parallel, run
from keypatch.progress import Progress


def family():
    parents = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            pass
    ours = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return ours


def listening():
    sockets, found = {}, {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                sockets[f"socket:[{words[9]}]"] = words[1].rpartition(":")[0]
    for process in family():
        try:
            links = [os.readlink(file) for file in Path(f"/proc/{process}/fd").iterdir()]
        except OSError:
            continue
        found.update({link: sockets[link] for link in links if link in sockets})
    return found


class Told(Progress):
    said = []
    def say(self, message):
        self.said.append(message)


@dataclass(frozen=True)
class Square:
    flag: str

    @contextmanager
    def open(self):
        yield self.square

    def square(self, batch):
        if 3 in batch and not os.path.exists(self.flag):
            open(self.flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return [number * number for number in batch], os.getpid()


if __name__ == "__main__":
    during, found = {}, {}
    parallel, told = Parallel(engine="ray", workers=1), Told()
    for done in run(Square(sys.argv[1]), range(8), parallel, told, size=lambda workers: 2):
        found.update(zip(done.items, done.result[0]))
        during.update(listening())
    print(json.dumps({
        "found": found,
        "said": told.said,
        "sockets": len(during),
        "addresses": sorted(set(during.values())),
    }))
"""


def test_a_cluster_of_ones_own_does_the_same_and_listens_to_this_machine_alone(tmp_path: Path) -> None:
    script = tmp_path / "local.py"
    script.write_text(LOCAL)
    elsewhere = {"RAY_ADDRESS": "10.255.255.1:6379"}  # a cluster that nobody asked for
    environment = {**os.environ, **own_token(tmp_path), **elsewhere}
    command = [sys.executable, str(script), str(tmp_path / "killed")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["found"] == {str(number): number * number for number in range(8)}
    assert len(told["said"]) == 1 and told["said"][0].endswith("Done again: 2, 3."), told["said"]
    loopback = {"0100007F", "0000000000000000FFFF00000100007F"}
    assert told["sockets"] >= 4 and set(told["addresses"]) <= loopback  # its two servers, this process and a worker


def own_token(folder: Path) -> dict[str, str]:
    """What a cluster of this test is told, so that it neither uses nor makes a token in the home folder."""
    (folder / "token").write_text(secrets.token_hex(32))
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(folder / "token")}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[int]]]:
    """The address of two nodes with a core each, and their processes. They end with these, and nothing else does."""
    ray, address = Path(sys.executable).with_name("ray"), f"127.0.0.2:{free_port()}"
    environment = {**os.environ, **own_token(tmp_path), "RAY_USAGE_STATS_ENABLED": "0"}
    scratch = tempfile.mkdtemp(prefix="kp")  # paths of sockets must be short
    port = address.rpartition(":")[2]
    head = ["--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={scratch}"]
    usual = ["--block", "--num-cpus=1", "--disable-usage-stats"]
    nodes = list[subprocess.Popen[bytes]]()
    try:
        for options in (head, [f"--address={address}"]):
            log = (tmp_path / f"node{len(nodes)}.log").open("wb")
            place = f"--node-ip-address=127.0.0.{len(nodes) + 2}"  # for 127.0.0.1 Ray takes the address on the network
            command = [str(ray), "start", *options, *usual, place]
            nodes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
            log.close()
            deadline = time.monotonic() + 120
            while b"Ray runtime started" not in (tmp_path / f"node{len(nodes) - 1}.log").read_bytes():
                assert nodes[-1].poll() is None and time.monotonic() < deadline, "the node does not start"
                time.sleep(0.2)
        yield address, [node.pid for node in nodes]
    finally:
        for node in reversed(nodes):  # `ray start --block` ends what it started, and nothing else
            node.send_signal(signal.SIGTERM)
        for node in nodes:
            node.wait(60)
        shutil.rmtree(scratch, ignore_errors=True)


DRIVER = """
import json, os, resource, sys, threading, time
from pathlib import Path

from keypatch.engines import Parallel
from keypatch.features import Extraction
from keypatch.features.description import describe
from keypatch.matching.pairs import match_pairs
from keypatch.progress import Progress


class Telling(Progress):
    def count(self, done, total, unit, detail=""):
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
        print(json.dumps({"done": done, "total": total, "unit": unit, "mb": round(resident, 1)}), flush=True)
    def say(self, message):
        print(json.dumps({"said": message}), flush=True)


if __name__ == "__main__":
    photos, folder, address = sys.argv[1:]
    parallel, folder = Parallel(engine="ray", address=address), Path(folder)
    describe(photos, folder / "features", "rootsift", Extraction(keypoints=200), parallel=parallel, progress=Telling())
    match_pairs(folder / "features", "sequence:3", folder / "matches", parallel=parallel, progress=Telling())
"""


def contents(path: Path) -> dict[str, dict[str, np.ndarray]]:
    found = dict[str, dict[str, np.ndarray]]()
    for each in sorted(path.glob("*.h5")) if path.is_dir() else [path]:
        with h5py.File(each) as file:

            def visit(name: str, item: object) -> None:
                if isinstance(item, h5py.Dataset):
                    found.setdefault(name.rpartition("/")[0], {})[name.rpartition("/")[2]] = item[()]

            file.visititems(visit)
    return found


@pytest.mark.slow
def test_two_nodes_and_a_killed_worker_give_what_one_process_gives(
    photos: Path, tmp_path: Path, cluster: tuple[str, list[int]]
) -> None:
    """Records what a reader of docs/scaling.md wants to know: run with -s to see it."""
    crops = tmp_path / "crops"
    crops.mkdir()
    whole = Image.open(photos / "a.png")
    for number in range(60):
        whole.crop((number, number // 2, 200 + number, 150 + number // 2)).save(crops / f"{number:02d}.png")
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    command = [sys.executable, str(script), str(crops), str(tmp_path), cluster[0]]
    environment = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")}
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert driver.stdout is not None
    events, killed = list[dict[str, object]](), 0
    for line in driver.stdout:
        if not line.startswith("{"):
            continue
        events.append(json.loads(line))
        if not killed and events[-1].get("unit") == "photos" and int(str(events[-1]["done"])) >= 16:
            killed = _kill_a_worker(cluster[1])
    driver.stdout.close()
    assert driver.wait(600) == 0
    said = [str(each["said"]) for each in events if "said" in each]
    before = next(n for n, each in enumerate(events) if "said" in each)
    memory = [(each["unit"], each["done"], each["mb"]) for each in events if "mb" in each]
    print(f"\nkilled process {killed}; finished before: {events[before - 1]}\nsaid: {said}\nmemory: {memory}")
    assert len(said) == 1 and f"process {killed} on" in said[0]
    redone = said[0].partition("Done again: ")[2].rstrip(".").split(", ")
    first = int(redone[0][:2])
    assert redone == [f"{number:02d}.png" for number in range(first, first + 8)]  # its batch, and no other photo
    from keypatch.features import Extraction
    from keypatch.features.description import describe
    from keypatch.matching.pairs import match_pairs

    describe(crops, tmp_path / "f.h5", "rootsift", Extraction(keypoints=200))
    match_pairs(tmp_path / "f.h5", "sequence:3", tmp_path / "m.h5")
    for store, file, count in (("features", "f.h5", 60), ("matches", "m.h5", 174)):
        one, other = contents(tmp_path / store), contents(tmp_path / file)
        assert one.keys() == other.keys() and len(one) == count
        for name in one:
            for key, array in one[name].items():
                np.testing.assert_array_equal(array, other[name][key])
    photos_mb = [float(str(mb)) for unit, _, mb in memory if unit == "photos"]
    assert max(photos_mb[1:]) < 1.1 * photos_mb[1] + 20  # nothing of what was described stays in the driver


def _kill_a_worker(nodes: list[int]) -> int:
    """The first actor among the descendants of our nodes is killed; its number."""
    parents, titles = dict[int, int](), dict[int, bytes]()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            titles[int(place.name)] = (place / "cmdline").read_bytes()
        except OSError:
            continue
    ours = set(nodes)
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    worker = min(process for process in ours if titles.get(process, b"").startswith(b"ray::_Actor"))
    os.kill(worker, signal.SIGKILL)
    return worker
