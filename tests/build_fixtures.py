"""What tests of `build` look with: a progress that listens and stops, and the bytes of a built folder."""

import json
import signal
from pathlib import Path

from keypatch.progress import Progress


class Told(Progress):
    """Keeps what it is told; asks the process to stop, as Ctrl-C does, when so many of a unit are done."""

    def __init__(self, unit: str = "", at: int = 0) -> None:
        self.messages, self.units, self.stop = list[str](), list[str](), (unit, at)

    def say(self, message: str) -> None:
        self.messages.append(message)

    def count(self, done: int, total: int, unit: str, detail: str = "") -> None:
        self.units += [] if unit in self.units else [unit]
        if (unit, done) == self.stop:
            signal.raise_signal(signal.SIGINT)


def content(folder: Path) -> dict[str, bytes]:
    """Every file of the set by its path, the card without what says when and how it was made."""
    files = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "reconstruction" not in path.parts):
        if path.suffix == ".npy":
            continue
        files[path.relative_to(folder).as_posix()] = path.read_bytes()
        if path.name == "card.json":
            card = json.loads(path.read_text())
            del card["provenance"]
            files[path.relative_to(folder).as_posix()] = json.dumps(card).encode()
    return files
