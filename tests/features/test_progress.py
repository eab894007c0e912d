"""The progress line: what it says, where and how often."""

import io

import pytest

from keypatch.features import progress
from keypatch.features.progress import ProgressLine, progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """One number: the time it is."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_the_line_has_count_rate_and_time_left() -> None:
    assert progress_line(12, 80, 3.1) == "12 of 80 photos  3.1 photos/s  0:22 left"
    assert progress_line(1200, 100_000, 0.5) == "1,200 of 100,000 photos  0.5 photos/s  54:53:20 left"
    assert progress_line(6656, 6656, 1052.3, "patches") == "6,656 of 6,656 patches  1,050 patches/s"
    assert progress_line(80, 80, 3.1234) == "80 of 80 photos  3.12 photos/s"
    assert progress_line(0, 80, 0) == "0 of 80 photos  0 photos/s"
    assert progress_line(12, 80, 3.1, "pairs") == "12 of 80 pairs  3.1 pairs/s  0:22 left"


def test_piped_there_is_a_line_from_time_to_time_and_one_at_the_end(clock: list[float]) -> None:
    stream = io.StringIO()
    with ProgressLine(stream, every=10) as line:
        line.count(4, 10)  # found in the file: they do not count for the rate
        for done, seconds in ((5, 3), (6, 6), (7, 12), (8, 14), (10, 15)):
            clock[0] = 100 + seconds
            line.count(done, 10)
    assert stream.getvalue().splitlines() == [
        "7 of 10 photos  0.25 photos/s  0:12 left",
        "10 of 10 photos  0.4 photos/s",
    ]


def test_on_a_terminal_the_line_is_written_over_and_messages_stand_above(clock: list[float]) -> None:
    stream = Terminal()
    with ProgressLine(stream) as line:
        line.count(0, 3)
        clock[0] += 1
        line.count(1, 3)
        line.say("a message")
        clock[0] += 1
        line.count(2, 3)
    assert stream.getvalue() == (
        "\r1 of 3 photos  1 photos/s  0:02 left\x1b[K\na message\n\r2 of 3 photos  1 photos/s  0:01 left\x1b[K\n"
    )
