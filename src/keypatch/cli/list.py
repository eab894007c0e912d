"""`keypatch list`: the names that commands take, a full recipe, or the settings of a benchmark."""

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer
from rich.console import Console

from keypatch.cli.options import examples
from keypatch.cli.printing import open_console, print_facts, print_table
from keypatch.commands.list import KINDS, Name, list_names, recipe_text
from keypatch.parts import find_part
from keypatch.settings import list_settings

app = typer.Typer(add_completion=False)


@app.command(epilog=examples("keypatch list hynet > mine.toml", "keypatch list hpatches"))
def list_command(
    kind: Annotated[
        str | None,
        typer.Argument(help=f"What to list: {', '.join(KINDS)}; or the name of a recipe or benchmark."),
    ] = None,
) -> None:
    """List all names, or show one recipe as TOML or one benchmark with its settings."""
    from keypatch.benchmarks.table import BENCHMARKS
    from keypatch.matching.matching import PHOTO_TYPES

    console = open_console()
    benchmark = find_part(BENCHMARKS, kind) if kind is not None and kind not in KINDS else None
    if benchmark is not None:
        console.print(f"{kind}: {benchmark.line}\n")
        lines = [(each.path, each.default, each.about) for each in list_settings(benchmark.settings(), PHOTO_TYPES)]
        print_table(console, ["--set", "default", ""], lines)
        if benchmark.module.startswith("."):  # one of ours
            console.print(f"\nProtocol: docs/benchmarks/{kind}.md")
        return
    if kind is not None and kind not in KINDS:
        typer.echo(recipe_text(kind), nl=False)
        return
    for title, names in list_names(kind).items():
        if any(entry.paper for entry in names):
            _print_by_paper(console, title, names)
        else:
            print_table(console, [title, ""], [(entry.name, entry.about) for entry in names])
        console.print()


def _print_by_paper(console: Console, title: str, names: Sequence[Name]) -> None:
    console.print(title)
    width = max(len(entry.name) for entry in names)  # so that the lines of all papers align
    for paper, group in groupby(names, key=lambda entry: entry.paper):
        console.print(paper)
        print_facts(console, {f"  {entry.name.ljust(width)}": entry.about for entry in group})
