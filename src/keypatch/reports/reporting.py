"""`report`: results by their files, one page."""

from collections.abc import Iterable
from pathlib import Path

from keypatch.benchmarks.result import Result
from keypatch.errors import KeypatchError
from keypatch.files import write_text
from keypatch.reports.page import build_page
from keypatch.reports.reading import read_sources

ENDINGS = (".html", ".htm")


def report(
    results: Iterable[str | Path | Result], out: str | Path, *, baseline: str | None = None, title: str | None = None
) -> Path:
    """Write one self-contained page about result files, folders of them and run folders, and return its path.

    Results of one benchmark on the same data with the same settings share a table, others have their own.
    baseline: the descriptor that the others are compared with; without one, the best of each score.
    """
    path = Path(out)
    if path.suffix.lower() not in ENDINGS:
        raise KeypatchError(f"A page is written as .html, not as {path.name or path}. Name one with --out PAGE.html.")
    if path.is_dir():
        raise KeypatchError(f"{path} is a folder. Name a file in it: {path / 'report.html'}.")
    if not path.absolute().parent.is_dir():
        raise KeypatchError(f"{path} cannot be written: there is no folder {path.parent}. Create it first.")
    places = [results] if isinstance(results, str | Path | Result) else results
    sources = read_sources(places)
    known = dict.fromkeys(source.result.descriptor for source in sources.results)
    if baseline is not None and baseline not in known:
        raise KeypatchError(f'There is no result of the baseline "{baseline}". There are: {", ".join(known)}.')
    write_text(path, build_page(sources, baseline, title))
    return path
