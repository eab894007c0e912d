"""`keypatch list`: the names that commands take."""

from typing import Annotated

import typer

from keypatch.cli.options import examples
from keypatch.cli.printing import open_console, print_table

EXAMPLES = examples("keypatch list", "keypatch list recipes")


def list_command(
    kind: Annotated[
        str | None, typer.Argument(help="Only these: descriptors, recipes, networks, losses or benchmarks.")
    ] = None,
) -> None:
    """List the descriptors, recipes, networks, loss terms and benchmarks there are."""
    from keypatch.studies.listing import list_names

    console = open_console()
    for title, names in list_names(kind).items():
        print_table(console, [title, ""], [(entry.name, entry.about) for entry in names])
        console.print()
