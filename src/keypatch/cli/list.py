"""`keypatch list`: the names that commands take, and a recipe whole."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from keypatch.cli.options import examples
from keypatch.cli.printing import open_console, print_facts, print_table

if TYPE_CHECKING:
    from keypatch.studies.listing import Name

EXAMPLES = examples("keypatch list recipes", "keypatch list hynet > mine.toml")


def list_command(
    kind: Annotated[
        str | None,
        typer.Argument(help="Only these: descriptors, recipes, networks, losses or benchmarks; or a recipe's name."),
    ] = None,
) -> None:
    """List the descriptors, recipes, networks, loss terms and benchmarks there are, or print one recipe as TOML."""
    from keypatch.studies.listing import KINDS, list_names, recipe_text

    if kind is not None and kind not in KINDS:
        typer.echo(recipe_text(kind), nl=False)
        return
    console = open_console()
    for title, names in list_names(kind).items():
        if any(entry.paper for entry in names):
            _print_by_paper(console, title, names)
        else:
            print_table(console, [title, ""], [(entry.name, entry.about) for entry in names])
        console.print()


def _print_by_paper(console: Console, title: str, names: Sequence["Name"]) -> None:
    console.print(title)
    width = max(len(entry.name) for entry in names)  # the lines of all papers stand below each other
    for paper, group in groupby(names, key=lambda entry: entry.paper):
        console.print(paper)
        print_facts(console, {f"  {entry.name.ljust(width)}": entry.about for entry in group})
