"""Tables that fit."""

import io

import pytest
from rich.console import Console

from keypatch.cli.printing import PIPED_WIDTH, open_console, print_facts, print_table

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


def test_lines_end_where_their_text_ends(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(open_console(), ["", "what"], [("a", "short"), ("b", "long " * 100)])
    print_facts(open_console(), {"a": "short", "b": "x" * 500})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and all(line == line.rstrip() for line in lines)
    assert max(map(len, lines)) > 500 and sorted(map(len, lines))[1] < 20
