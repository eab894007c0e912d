"""Tables that fit, and a line about long work."""

import io
import warnings

import pytest
from rich.console import Console

from keypatch.cli import printing
from keypatch.cli.printing import PIPED_WIDTH, open_console, print_table, show_progress

COLUMNS, ROWS = ["", "a %", "b %", "c"], [["first", "1.00", "2.00", ""], ["second", "3.00", "4.00", "5"]]


def printed(width: int) -> list[str]:
    text = io.StringIO()
    print_table(Console(file=text, width=width), COLUMNS, ROWS, numbers=True)
    return [" ".join(line.split()) for line in text.getvalue().splitlines()]


def test_columns_that_fit_stand_beside_each_other() -> None:
    assert printed(30) == ["a % b % c", "first 1.00 2.00", "second 3.00 4.00 5"]


def test_columns_that_do_not_fit_follow_below_without_empty_rows() -> None:
    assert printed(20) == ["a % b %", "first 1.00 2.00", "second 3.00 4.00", "c", "second 5"]
    assert printed(14) == ["a %", "first 1.00", "second 3.00", "b %", "first 2.00", "second 4.00", "c", "second 5"]


def test_a_pipe_has_no_right_edge_unless_columns_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert open_console().width == PIPED_WIDTH
    monkeypatch.setenv("COLUMNS", "72")
    assert open_console().width == 72
    for nonsense in ("wide", "0"):
        monkeypatch.setenv("COLUMNS", nonsense)
        assert open_console().width == PIPED_WIDTH


def work() -> None:
    with show_progress("photos") as show:
        for total in (3, 2):  # two stages
            for done in range(total):
                show(done + 1, total)


def test_work_of_a_moment_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    work()
    assert capsys.readouterr().err == ""


def test_longer_work_shows_every_stage(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing, "A_MOMENT", -1.0)
    work()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["3 of 3 photos", "2 of 2 photos"]


@pytest.mark.filterwarnings("default")
def test_a_warning_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress():
        warnings.warn("Something is odd.", stacklevel=1)
    assert capsys.readouterr().err == "keypatch: Something is odd.\n"
