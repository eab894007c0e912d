"""`keypatch quickstart`: a first descriptor, trained and scored in minutes on data inside the package."""

from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import examples
from keypatch.cli.printing import open_console

EXAMPLES = examples("keypatch quickstart", "keypatch quickstart --pairs 5000 --out runs/shorter")


def quickstart(
    out: Annotated[Path, typer.Option(help="The run folder; a run in it is gone on with.")] = Path("runs/quickstart"),
    pairs: Annotated[int | None, typer.Option(help="Budget in pairs, if not the default.")] = None,
) -> None:
    """Train a descriptor on embedded photographs, compare it with SIFT and show it: no download, a few minutes."""
    from keypatch.cli.scores import print_comparison
    from keypatch.studies.quickstart import quickstart as run
    from keypatch.training.progress import reporter_for

    done = run(out, pairs, reporter=reporter_for())
    console = open_console()
    print_comparison(console, done.results)
    console.print(
        f"\nThe trained network, its log and these results: {done.folder}\n"
        f"Two views matched with it: {done.picture}\n"
        f"All of it on one page, for your browser: {done.page}"
    )
