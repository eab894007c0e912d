"""How far long work is: one line, written over on a terminal, from time to time elsewhere."""

import sys
import time
import warnings
from typing import Protocol, Self, TextIO


class Reporter(Protocol):
    """Told about work on many photos, or other things; `with` it, so that the line is ended."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def say(self, message: str) -> None: ...

    def note(self, message: str) -> None: ...

    def count(self, done: int, total: int, things: str = "photos") -> None: ...


class Quiet:
    """For programs: no progress, and what the user should know as a warning."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def say(self, message: str) -> None:
        warnings.warn(message, stacklevel=3)

    def note(self, message: str) -> None:
        return None

    def count(self, done: int, total: int, things: str = "photos") -> None:
        return None


class ProgressLine:
    """ "12 of 80 photos  3.1 photos/s  0:22 left", the rate since the line was begun."""

    def __init__(self, stream: TextIO | None = None, every: float = 10.0) -> None:
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty()
        self.every = 0.1 if self.live else every
        self.begun = self.last = time.monotonic()
        self.before: int | None = None  # what was done when it was begun
        self.total = 0
        self.open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.open:
            print(file=self.stream, flush=True)

    def say(self, message: str) -> None:
        self.__exit__()
        self.open = False
        print(message, file=self.stream, flush=True)

    note = say

    def count(self, done: int, total: int, things: str = "photos") -> None:
        now = time.monotonic()
        if self.before is None:
            self.before, self.begun, self.total = done, now, total
        elif now - self.last >= self.every or done == total:
            self.last = now
            line = progress_line(done, total, (done - self.before) / max(now - self.begun, 1e-9), things)
            print(f"\r{line}\x1b[K" if self.live else line, end="" if self.live else "\n", file=self.stream, flush=True)
            self.open = self.live


def counted(count: int, thing: str) -> str:
    """ "1 photo", "2 photos"."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def progress_line(done: int, total: int, rate: float, things: str = "photos") -> str:
    left = f"  {_clock((total - done) / rate)} left" if rate > 0 and done < total else ""
    return f"{done:,} of {total:,} {things}  {_three_digits(rate)} {things}/s{left}"


def _three_digits(rate: float) -> str:
    """ "0.25", "3.12", "1,050"."""
    rounded = float(f"{rate:.3g}")
    return f"{rounded:,.0f}" if rounded >= 1000 else f"{rounded:g}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
