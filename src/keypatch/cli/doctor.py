"""`keypatch doctor`: finds wrong conventions by measuring."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keypatch.cli.options import Descriptor, Device, PixelLimit, Precision, examples, options_of, refuse_beside
from keypatch.cli.printing import open_console, print_table
from keypatch.detection import DETECTOR_TYPES
from keypatch.doctor import EXTRACTION
from keypatch.errors import KeypatchError
from keypatch.features.extraction import DESCRIPTOR, Extraction
from keypatch.images import PIXEL_LIMIT
from keypatch.progress import ProgressBar
from keypatch.settings import field_names

if TYPE_CHECKING:
    from keypatch.doctor.examination import ViewOutcome

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "keypatch doctor photo.jpg --features feats-sift.h5",
        "keypatch doctor photo.jpg --descriptor rootsift",
    )
)
@options_of(DETECTOR_TYPES, extraction=EXTRACTION)
def doctor(
    context: typer.Context,
    image: Annotated[Path, typer.Argument(help="Photo to check.")],
    extraction: Extraction,
    features: Annotated[Path | None, typer.Option(help="Check this feature file (HDF5, hloc's layout).")] = None,
    database: Annotated[Path | None, typer.Option(help="Check this COLMAP database.")] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the photo in the file, if it differs from its file name.")
    ] = None,
    descriptor: Descriptor = DESCRIPTOR,
    pixel_limit: PixelLimit = PIXEL_LIMIT,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Check a photo's keypoints in a file, or a detector and descriptor; exit code 0 means all is well."""
    from keypatch.doctor.examination import examine
    from keypatch.doctor.verdicts import FINE
    from keypatch.zoo import load

    on_file = features is not None or database is not None
    if on_file:
        names = ("descriptor", "device", "precision", *field_names(Extraction))
        refuse_beside(context, "a file, which has its own keypoints", *names, changed=extraction != EXTRACTION)
    elif name is not None:
        raise KeypatchError("--name is the photo's name in a file, but no file is given. Add --features or --database.")
    with ProgressBar() as progress:
        found = examine(
            image,
            features=features,
            database=database,
            name=name,
            describer=descriptor if on_file else load(descriptor, device, precision),
            extraction=extraction,
            pixel_limit=pixel_limit,
            progress=progress,
        )
    console = open_console()
    if found.views:
        columns = ["view", "keypoints", "found again", "matched", "%", "in place", "correct", "%"]
        print_table(console, columns, [_cells(row) for row in found.views], numbers=True)
        console.print()
    rows = [[finding.subject, finding.verdict, finding.evidence] for finding in found.findings]
    print_table(console, ["property", "verdict", "evidence"], rows)
    console.print(f"\nVerdict: {found.verdict}")
    for finding in found.findings:
        if finding.remedy:
            console.print(f"  {finding.verdict}: {finding.remedy}")
    if found.verdict != FINE:  # also where nothing can be told: a script must not take it for a pass
        raise typer.Exit(2)


def _cells(row: "ViewOutcome") -> list[str]:
    count = row.count
    frames = [str(count.keypoints), str(count.found_again), str(count.matched), f"{100 * count.share:.1f}"]
    return [row.change, *frames, str(row.again), str(count.right), f"{100 * row.kept:.1f}"]
