"""`keypatch convert`: a store of features or matches becomes one file, and one file a store."""

from typing import Annotated

import typer

from keypatch.cli.options import examples
from keypatch.progress import ProgressBar

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "keypatch convert features features.h5",
        "keypatch convert features.h5 features",
    )
)
def convert(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Feature or match file, or a store.")],
    out: Annotated[str, typer.Argument(metavar="OUT", help="The store (a folder) or the file (.h5) to write.")],
) -> None:
    """Copy features or matches between a single file and a store of many files. Run it again to resume after Ctrl-C."""
    from keypatch.features.conversion import convert as copy

    with ProgressBar() as progress:
        made = copy(source, out, progress)
    typer.echo(f"Written: {made}")
