"""`keypatch report`: results as one page."""

from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import examples
from keypatch.cli.printing import open_console
from keypatch.progress import ProgressBar

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "keypatch report sift.json rootsift.json --out page.html",
        "keypatch report runs/quickstart --baseline sift --out page.html",
    )
)
def report(
    results: Annotated[
        list[Path], typer.Argument(help="Result files, run folders, or folders that contain any of these.")
    ],
    out: Annotated[Path, typer.Option(help="Write the page to this self-contained .html file.")],
    baseline: Annotated[
        str | None, typer.Option(help="Compare with this descriptor instead of the best one for each score.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
) -> None:
    """Show results on one page: tables with intervals, interactive curves, pictures, settings."""
    from keypatch.reports.page import report as write

    with ProgressBar():
        page = write(results, out, baseline=baseline, title=title)
    open_console().print(f"Written: {page}")
