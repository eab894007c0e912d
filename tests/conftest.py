"""What all tests share: figures computed by others, the shared data where it is, a cache of their own, few threads."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from PIL import Image

pytest_plugins = ["chromium", "photo_fixtures", "room_fixtures", "run_fixtures", "scene_fixtures"]

os.environ.setdefault("OMP_NUM_THREADS", "2")  # before the first import of torch or numpy
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # on a busy machine waiting threads would spin
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it for its workers, and commands would wrap what they print
os.environ.setdefault("KEYPATCH_SHARED", str(Path(__file__).parents[2] / "shared"))

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in the background of a shell; many tests press Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

# the same examples in every run, and no time limit: the machine may be busy
settings.register_profile("keypatch", deadline=None, derandomize=True)
settings.load_profile("keypatch")


@pytest.fixture(scope="session", autouse=True)
def few_threads() -> None:
    import cv2
    import torch

    torch.set_num_threads(min(2, os.cpu_count() or 1))
    cv2.setNumThreads(1)


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache for this run of the tests, also for the processes they start: the user's stays as it is.

    One for all tests, since the embedded sets and the native code in it take seconds to make.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEYPATCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of figures computed by the authors' own code."""
    return Path(__file__).parent / "reference"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data; tests that need it are skipped where it is absent ($KEYPATCH_SHARED names another)."""
    folder = Path(os.environ["KEYPATCH_SHARED"])
    if not (folder / "data").is_dir():
        pytest.skip(f"the shared data are not at {folder}")
    return folder


@pytest.fixture(scope="session")
def castle(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shared patch set castle-test laid out as PhotoTour, not by our own writer."""
    packed = shared / "data" / "patches" / "castle-test"
    folder = tmp_path_factory.mktemp("castle-test")
    for sheet in sorted(packed.glob("patches*.webp")):
        Image.open(sheet).convert("L").save(folder / f"{sheet.stem}.bmp")
    for table in packed.glob("*.txt"):
        (folder / table.name).write_bytes(table.read_bytes())
    return folder


@pytest.fixture
def own_parts() -> Iterator[Callable[[], None]]:
    """Forgets the parts that a test has registered, at its end and when called."""
    from keypatch import parts

    before = {kind: set(table) for kind, table in parts.TABLES.items()}

    def forget() -> None:
        for kind, table in parts.TABLES.items():
            for name in set(table) - before[kind] - parts._OURS.get(kind, frozenset()):
                del table[name]
        parts.load_installed.cache_clear()

    yield forget
    forget()
