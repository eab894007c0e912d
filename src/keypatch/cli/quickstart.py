"""`keypatch quickstart`: a first descriptor, trained and scored in minutes on data inside the package."""

from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import examples
from keypatch.cli.printing import open_console
from keypatch.progress import ProgressBar

app = typer.Typer(add_completion=False)


@app.command(epilog=examples("keypatch quickstart", "keypatch quickstart --pairs 5000 --out runs/shorter"))
def quickstart(
    out: Annotated[Path, typer.Option(help="Run folder; a run already in it is resumed.")] = Path("runs/quickstart"),
    pairs: Annotated[int | None, typer.Option(help="Training budget in pairs.")] = None,
) -> None:
    """Train on embedded photographs, compare with SIFT and show the results, in minutes and without a download."""
    from keypatch.cli.scores import print_comparison
    from keypatch.commands.quickstart import quickstart as run

    with ProgressBar() as progress:
        done = run(out, pairs, progress)
    console = open_console()
    print_comparison(console, done.results)
    console.print(
        f"\nTrained network, log and results: {done.folder}\n"
        f"Two views matched with the network: {done.picture}\n"
        f"Everything on one page, for your browser: {done.page}"
    )
