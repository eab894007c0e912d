"""`keypatch inspect`: what a file or folder is, what is in it and what is wrong with it."""

from typing import Annotated

import typer

from keypatch.cli.options import examples
from keypatch.cli.printing import open_console, print_facts

app = typer.Typer(add_completion=False)


@app.command(epilog=examples("keypatch inspect photos", "keypatch inspect hynet-notredame"))
def inspect(
    path: Annotated[
        str,
        typer.Argument(
            help="Anything keypatch reads: photos, patches, runs, recipes, results, features, matches, models."
        ),
    ],
) -> None:
    """Show what a file or folder is, what it contains and what is wrong with it (exit code 2 if anything is)."""
    from keypatch.commands.inspect.inspection import inspect as look

    found = look(path)
    console = open_console()
    console.print(f"{found.path}: {found.kind}")
    print_facts(console, found.facts)
    for problem in found.problems:
        console.print(f"Problem: {problem}")
    if found.problems:
        raise typer.Exit(2)
