"""How the commands print: tables for people, the same without colours when piped."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table

PIPED_WIDTH = 10_000  # a file has no right edge: nothing is wrapped, unless $COLUMNS says where it ends
GAP = 3  # spaces between columns


def open_console() -> Console:
    console, chosen = Console(highlight=False, markup=False), os.environ.get("COLUMNS", "")
    if console.is_terminal or (chosen.isdigit() and int(chosen)):
        return console
    return Console(highlight=False, markup=False, width=PIPED_WIDTH)


def print_table(
    console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False
) -> None:
    """Rows of text; with `numbers`, what follows the first column stands to the right.

    Columns of numbers that do not fit beside each other follow below, so that none is cut off.
    """
    lines = list(rows)
    for shown in _fitting(console.width, columns, lines) if numbers else [list(range(len(columns)))]:
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
        for index in shown:
            right = numbers and index > 0
            table.add_column(columns[index], justify="right" if right else "left", no_wrap=right, overflow="fold")
        for line in lines:
            if any(line[index] for index in shown[1:]):
                table.add_row(*(line[index] for index in shown))
        _print(console, table)


def print_facts(console: Console, facts: Mapping[str, str]) -> None:
    table = Table.grid(padding=(0, 2, 0, 2))
    table.add_column(style="bold", overflow="fold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value)
    _print(console, table)


def _print(console: Console, table: Table) -> None:
    """Without the spaces that fill every line up to the longest one."""
    with console.capture() as made:
        console.print(table)
    console.file.write("".join(f"{line.rstrip()}\n" for line in made.get().splitlines()))


def _fitting(width: int, columns: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[list[int]]:
    """The columns in groups that fit the width, each with the first column before it."""
    widths = [max(map(len, cells)) + GAP for cells in zip(columns, *lines, strict=True)]
    group = [0]
    for index in range(1, len(columns)):
        if len(group) > 1 and sum(widths[each] for each in group) + widths[index] - GAP > width:
            yield group
            group = [0]
        group.append(index)
    yield group
