"""How a run tells what it is doing: a live line on a terminal, plain lines elsewhere."""

import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text


@dataclass(frozen=True)
class Record:
    """One line of log.jsonl: means since the record before."""

    step: int
    pairs: int
    loss: float
    terms: dict[str, float]
    positive: float  # mean Euclidean distance of matching pairs
    negative: float | None  # and to the mined negatives, where there are any
    rate: float  # pairs per second
    lr: float
    seconds: float  # of training, all sittings
    statistics: dict[str, float]  # scalars that stateful terms and samplers keep, after the last step
    validation: float | None = None  # FPR95 on the validation set, in %, where it was taken

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Reporter(Protocol):
    """Told about a run; `with` it, so that a live line is cleaned up."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def say(self, message: str) -> None: ...

    def record(self, record: Record, total_pairs: int) -> None: ...


class Silent:
    """Says nothing: for tests and for programs that read log.jsonl."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def say(self, message: str) -> None:
        return None

    def record(self, record: Record, total_pairs: int) -> None:
        return None


class PlainLines(Silent):
    """One line every `every` seconds."""

    def __init__(self, stream: TextIO | None = None, every: float = 30.0) -> None:
        self.stream = stream or sys.stderr
        self.every = every
        self.last = float("-inf")

    def say(self, message: str) -> None:
        print(message, file=self.stream, flush=True)

    def record(self, record: Record, total_pairs: int) -> None:
        now = time.monotonic()
        if now - self.last >= self.every or record.pairs >= total_pairs or record.validation is not None:
            self.last = now
            self.say(progress_line(record, total_pairs))


class LiveLine(Silent):
    """A line that is written over, on a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.live = Live(console=self.console, auto_refresh=False)
        self.validation: float | None = None

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.live.stop()

    def say(self, message: str) -> None:
        self.console.print(Text(message))

    def record(self, record: Record, total_pairs: int) -> None:
        self.validation = self.validation if record.validation is None else record.validation
        self.live.update(Text(progress_line(record, total_pairs, self.validation)), refresh=True)


def reporter_for(stream: TextIO | None = None) -> Reporter:
    """A live line on a terminal, plain lines when piped."""
    stream = stream or sys.stderr
    return LiveLine() if stream.isatty() else PlainLines(stream)


def progress_line(record: Record, total_pairs: int, validation: float | None = None) -> str:
    left = (total_pairs - record.pairs) / record.rate if record.rate > 0 else 0.0
    shown = record.validation if record.validation is not None else validation
    score = "" if shown is None else f"  validation FPR95 {shown:.2f} %"
    negatives = "" if record.negative is None else f"  negatives {record.negative:.3f}"
    return (
        f"{record.pairs / total_pairs:4.0%}  {record.pairs:,} of {total_pairs:,} pairs  {record.rate:,.0f} pairs/s  "
        f"{_clock(left)} left  loss {record.loss:.4f}  positives {record.positive:.3f}{negatives}{score}"
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
