"""Progress: what it says, where and how often; what a second signal and a callable are told."""

import io
import subprocess
import sys
import warnings

import pytest

from keypatch import progress
from keypatch.errors import Interrupted
from keypatch.progress import Progress, ProgressBar, interruptible, progress_line, track


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
    assert progress_line(12, 80, 3.1, "photos") == "12 of 80 photos  3.1 photos/s  0:22 left"
    assert progress_line(1200, 100_000, 0.5, "photos") == "1,200 of 100,000 photos  0.5 photos/s  54:53:20 left"
    assert progress_line(6656, 6656, 1052.3, "patches") == "6,656 of 6,656 patches  1,050 patches/s"
    assert progress_line(80, 80, 3.1234, "photos") == "80 of 80 photos  3.12 photos/s"
    assert progress_line(0, 80, 0, "photos") == "0 of 80 photos  0 photos/s"
    assert progress_line(12, 80, 3.1, "pairs", "loss 0.3") == "12 of 80 pairs  3.1 pairs/s  0:22 left  loss 0.3"


def test_piped_there_is_a_line_from_time_to_time_and_one_at_the_end(clock: list[float]) -> None:
    stream = io.StringIO()
    with ProgressBar(stream, every=10) as bar:
        bar.count(4, 10, "photos")  # found in the file: they do not count for the rate
        for done, seconds in ((5, 3), (6, 6), (7, 12), (8, 14), (10, 15)):
            clock[0] = 100 + seconds
            bar.count(done, 10, "photos")
    assert stream.getvalue().splitlines() == [
        "7 of 10 photos  0.25 photos/s  0:12 left",
        "10 of 10 photos  0.4 photos/s",
    ]


def test_in_a_terminal_there_is_a_bar_and_messages_stand_above(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    with ProgressBar(stream) as bar:
        bar.count(0, 3, "photos")
        clock[0] += 1
        bar.count(1, 3, "photos")
        bar.say("a message [with brackets]")
        clock[0] += 1
        bar.count(2, 3, "photos")
    shown = stream.getvalue()
    assert "━" in shown and "1 of 3 photos  1 photos/s  0:02 left" in shown
    first, message, second = (shown.index(text) for text in ("1 of 3", "a message [with brackets]\n", "2 of 3"))
    assert first < message < second
    assert shown.endswith("\n\x1b[?25h")  # the line is ended and the cursor is back


def test_what_is_said_after_a_finished_stage_stands_below_its_bar(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with ProgressBar(stream) as bar:
        for _ in track(range(2), "photos", bar):
            clock[0] += 1
        bar.note("matching")
    assert stream.getvalue().endswith("\x1b[?25hmatching\n")


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["pipe", "terminal"])
def test_work_of_a_moment_shows_nothing(stream: io.StringIO, clock: list[float]) -> None:
    with ProgressBar(stream) as bar:
        for done in track(range(5), "photos", bar):
            clock[0] += 0.1 * (done > 0)
    assert stream.getvalue() == ""


def test_every_stage_has_a_rate_of_its_own(clock: list[float]) -> None:
    stream = io.StringIO()
    with ProgressBar(stream) as bar:
        for unit, seconds in (("photos", 2), ("pairs", 4), ("pairs", 8)):
            for _ in track(range(2), unit, bar):
                clock[0] += seconds
    assert stream.getvalue().splitlines() == [
        "2 of 2 photos  0.5 photos/s",
        "2 of 2 pairs  0.25 pairs/s",
        "2 of 2 pairs  0.125 pairs/s",
    ]


@pytest.mark.filterwarnings("default")
def test_a_warning_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    before = warnings.showwarning
    with ProgressBar():
        warnings.warn("Something is odd.", stacklevel=1)
    assert capsys.readouterr().err == "keypatch: Something is odd.\n"
    assert warnings.showwarning is before


def test_a_callable_is_told_the_counts_and_none_is_silent() -> None:
    told = list[tuple[int, int, str]]()
    assert list(track("ab", "letters", lambda *count: told.append(count))) == ["a", "b"]
    assert told == [(0, 2, "letters"), (1, 2, "letters"), (2, 2, "letters")]
    assert list(track("ab", "letters", None)) == ["a", "b"]
    bar = ProgressBar(io.StringIO())
    assert Progress.of(bar) is bar


@pytest.mark.parametrize("given", [None, lambda *count: None], ids=["None", "callable"])
def test_in_a_program_what_the_user_must_know_is_a_warning(given: object) -> None:
    quiet = Progress.of(given)  # type: ignore[arg-type]
    quiet.note("Stage two.")
    with pytest.warns(UserWarning, match="Two photos are turned"):
        quiet.say("Two photos are turned.")


def test_ctrl_c_becomes_one_sentence() -> None:
    sentence = r"^Stopped\. f\.h5 keeps 3 photos; run the same command to resume\.$"
    with pytest.raises(Interrupted, match=sentence), interruptible("f.h5 keeps 3 photos"):
        raise KeyboardInterrupt
    assert str(Interrupted()) == "Stopped; nothing was written. Run the same command to start again."


def test_rich_is_imported_only_for_a_bar() -> None:
    code = (
        "import sys, keypatch.progress as p; p.ProgressBar(); sys.exit('rich' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_count_says_what_it_counts() -> None:
    for silent in (Progress(), ProgressBar(io.StringIO()), Progress.of(lambda *_: None)):
        with pytest.raises(TypeError, match="unit"):
            silent.count(1, 2)  # type: ignore[call-arg]
