"""Progress and interruption of long work: a bar in a terminal, lines in a pipe, a callable in a notebook."""

import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Self, TextIO, TypeVar

from keypatch.errors import Interrupted

if TYPE_CHECKING:
    import rich.progress

A_MOMENT = 1.0  # seconds of work before which nobody wants to be told about progress
REFRESH = 0.1  # seconds between two states of the bar

Item = TypeVar("Item")
Callback = Callable[[int, int, str], None]  # done, total, unit


class Progress:
    """Told by long functions how far they are. This one is silent, but what the user must know becomes a warning."""

    @staticmethod
    def of(progress: "Progress | Callback | None") -> "Progress":
        """What long functions make of their argument `progress`: None is silent, a callable is told the counts."""
        if isinstance(progress, Progress):
            return progress
        return Progress() if progress is None else _Calling(progress)

    def count(self, done: int, total: int, unit: str, detail: str = "") -> None:
        """So many photos (the unit) of all are done; another unit, another total or fewer done begin another stage."""

    def note(self, message: str) -> None:
        """Tell the user what is being done."""

    def say(self, message: str) -> None:
        """Tell the user something important."""
        warnings.warn(message, stacklevel=3)


class _Calling(Progress):
    def __init__(self, callback: Callback) -> None:
        self.callback = callback

    def count(self, done: int, total: int, unit: str, detail: str = "") -> None:
        self.callback(done, total, unit)


class ProgressBar(Progress):
    """A bar with count, rate and time left in a terminal; in a pipe a line every `every` seconds and one at the end.

    Work of less than a moment shows nothing. What was done before a stage began does not count for its rate. Warnings
    within its `with` block become sentences without the line of code that gave them.
    """

    def __init__(self, stream: TextIO | None = None, every: float = 10.0) -> None:
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty()
        self.every = REFRESH if self.live else every
        self.created = self.begun = self.last = time.monotonic()
        self.stage: tuple[str, int] | None = None
        self.before = self.done = 0
        self.bar: rich.progress.Progress | None = None
        self.warnings = warnings.catch_warnings()

    def __enter__(self) -> Self:
        self.warnings.__enter__()
        warnings.showwarning = lambda message, *_, **__: self.say(f"keypatch: {message}")
        return self

    def __exit__(self, *error: object) -> None:
        self._close()
        self.warnings.__exit__(None, None, None)

    def count(self, done: int, total: int, unit: str, detail: str = "") -> None:
        now = time.monotonic()
        if self.stage != (unit, total) or done < self.done:
            self._close()
            self.stage, self.before, self.begun, self.last = (unit, total), done, now, now
        elif now - self.created >= A_MOMENT and (now - self.last >= self.every or done == total):
            rate = (done - self.before) / max(now - self.begun, 1e-9)
            self._show(done, total, progress_line(done, total, rate, unit, detail))
            self.last = now
        self.done = done

    def say(self, message: str) -> None:
        if self.bar is None:
            print(message, file=self.stream, flush=True)
        else:
            self.bar.console.print(message, soft_wrap=True)

    note = say

    def _show(self, done: int, total: int, line: str) -> None:
        if not self.live:
            self.say(line)
            return
        if self.bar is None:
            self.bar = _open_bar(self.stream)
            self.bar.add_task(line, total=total)
        self.bar.update(self.bar.task_ids[0], completed=done, description=line, refresh=True)
        if done == total:  # so that what is said next stands below it
            self._close()

    def _close(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


def _open_bar(stream: TextIO) -> "rich.progress.Progress":
    import rich.progress  # here: a help text needs none
    from rich.console import Console
    from rich.table import Column

    line = rich.progress.TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
    bar = rich.progress.Progress(
        rich.progress.BarColumn(12, table_column=Column(min_width=12)),
        line,
        console=Console(file=stream, highlight=False, markup=False),
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.start()
    return bar


def track(items: Collection[Item], unit: str, progress: Progress | Callback | None) -> Iterator[Item]:
    """The items one after the other, each counted as done when the next is asked for."""
    telling, total = Progress.of(progress), len(items)
    telling.count(0, total, unit)
    for done, item in enumerate(items, start=1):
        yield item
        telling.count(done, total, unit)


def progress_line(done: int, total: int, rate: float, unit: str, detail: str = "") -> str:
    """ "12 of 80 photos registered  3.1 photos/s  0:22 left"; the first word of the unit is what is counted."""
    left = f"  {_clock((total - done) / rate)} left" if rate > 0 and done < total else ""
    more = f"  {detail}" if detail else ""
    return f"{done:,} of {total:,} {unit}  {_three_digits(rate)} {unit.split()[0]}/s{left}{more}"


def counted(count: int, thing: str) -> str:
    """ "1 photo", "2 photos"."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _three_digits(rate: float) -> str:
    """ "0.25", "3.12", "1,050"."""
    rounded = float(f"{rate:.3g}")
    return f"{rounded:,.0f}" if rounded >= 1000 else f"{rounded:g}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class StopWish:
    """True once the process was asked to stop (Ctrl-C, SIGTERM); a second signal has its usual effect at once.

    `patient`: it has none, nor once the work has stopped. Whoever starts several processes passes the terminal's Ctrl-C
    on to each of them, which then has it twice.
    """

    def __init__(self, patient: bool = False) -> None:
        self.asked = False
        self.patient = patient
        self._before: dict[int, signal._HANDLER] = {}

    def __bool__(self) -> bool:
        return self.asked

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # elsewhere handlers cannot be set
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *error: object) -> None:
        for number in list(self._before):
            self._restore(number)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if not self.patient:
            self._restore(number)

    def _restore(self, number: int) -> None:
        before = self._before.pop(number)
        signal.signal(number, signal.SIG_IGN if self.asked and self.patient else before)


@contextmanager
def interruptible(kept: str, resume: str = Interrupted.RESUME) -> Iterator[None]:
    """Ctrl-C within becomes Interrupted, which says what is kept and how to resume."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Interrupted(kept, resume) from stop
