"""How the commands print: tables for people, the same without colours and line breaks when piped."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

PIPED_WIDTH = 400  # a file has no right edge: nothing is cut off or wrapped


def open_console() -> Console:
    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=PIPED_WIDTH)


def print_table(
    console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False
) -> None:
    """Rows of text; with `numbers`, what follows the first column stands to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for index, column in enumerate(columns):
        right = numbers and index > 0
        table.add_column(column, justify="right" if right else "left", no_wrap=right or index == 0)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_facts(console: Console, facts: Mapping[str, str]) -> None:
    table = Table.grid(padding=(0, 2, 0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value)
    console.print(table)
