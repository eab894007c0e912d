"""`keypatch report`: results as one page."""

from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import examples
from keypatch.cli.printing import open_console

EXAMPLES = examples(
    "keypatch report sift.json rootsift.json --out page.html",
    "keypatch report runs/quickstart --baseline sift --out page.html",
)


def report(
    results: Annotated[list[Path], typer.Argument(help="Result files, folders of them, run folders.")],
    out: Annotated[Path, typer.Option(help="The page to write, .html; it needs nothing beside itself.")],
    baseline: Annotated[
        str | None, typer.Option(help="The descriptor to compare with, if not the best of each score.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
) -> None:
    """Show results on one page: tables with intervals, curves to point at, pictures, settings."""
    from keypatch.reports.reporting import report as write

    page = write(results, out, baseline=baseline, title=title)
    open_console().print(f"Written: {page}")
