"""`keypatch doctor`: finds wrong conventions by measuring."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keypatch.cli.options import Device, Precision, examples
from keypatch.cli.printing import open_console, print_table
from keypatch.errors import KeypatchError

if TYPE_CHECKING:
    from keypatch.doctor.pipeline import Row

DESCRIPTOR, DETECTOR, KEYPOINTS = "hynet-notredame", "dog", 1000

EXAMPLES = examples(
    "keypatch doctor photo.jpg --features feats-sift.h5",
    "keypatch doctor photo.jpg --descriptor rootsift",
)


def doctor(
    image: Annotated[Path, typer.Argument(help="The photo.")],
    features: Annotated[Path | None, typer.Option(help="Judge this feature file (HDF5, hloc's layout).")] = None,
    database: Annotated[Path | None, typer.Option(help="Judge this COLMAP database.")] = None,
    name: Annotated[str | None, typer.Option(help="The photo's name in the file; its file name if not given.")] = None,
    descriptor: Annotated[
        str, typer.Option(help="Without a file: a name of `keypatch list`, a run folder or a weight file.")
    ] = DESCRIPTOR,
    detector: Annotated[str, typer.Option(help="Without a file: dog, colmap, orb, keynet or grid.")] = DETECTOR,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the detector.")
    ] = None,
    keypoints: Annotated[
        int, typer.Option(help="Without a file: the most keypoints of a photo; 0 keeps all.")
    ] = KEYPOINTS,
    pixel_limit: Annotated[int, typer.Option(help="Refuse photos of more pixels.")] = 100_000_000,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Judge the keypoints a file has of a photo, or else a detector with a descriptor; exit code 0 is only "fine"."""
    from keypatch.cli.detector_options import choose_detector
    from keypatch.doctor.examining import examine
    from keypatch.doctor.verdicts import FINE
    from keypatch.features.progress import ProgressLine

    if features is not None or database is not None:
        changed = {"--descriptor": descriptor != DESCRIPTOR, "--detector": detector != DETECTOR, "--set": settings}
        changed |= {"--keypoints": keypoints != KEYPOINTS, "--device": device != "auto"}
        _refuse(changed | {"--precision": precision != "auto"})
    elif name is not None:
        raise KeypatchError("--name is a photo's in a file, and there is none. Give --features or --database too.")
    with ProgressLine() as line:
        found = examine(
            image,
            features=features,
            database=database,
            name=name,
            descriptor=descriptor,
            detector=choose_detector(detector, settings or ()),
            keypoints=keypoints or None,
            pixel_limit=pixel_limit,
            device=device,
            precision=precision,
            progress=partial(line.count, things="views"),
        )
    console = open_console()
    if found.rows:
        columns = ["the photo", "keypoints", "found again", "matched", "%", "in place", "correct", "%"]
        print_table(console, columns, [_cells(row) for row in found.rows], numbers=True)
        console.print()
    rows = [[finding.subject, finding.verdict, finding.evidence] for finding in found.findings]
    print_table(console, ["of the keypoints", "verdict", "measured"], rows)
    console.print(f"\nVerdict: {found.verdict}")
    for finding in found.findings:
        if finding.remedy:
            console.print(f"  {finding.verdict}: {finding.remedy}")
    if found.verdict != FINE:  # also where nothing could be told: a check in a script must not pass unmade
        raise typer.Exit(2)


def _refuse(changed: Mapping[str, object]) -> None:
    for option, is_changed in changed.items():
        if is_changed:
            raise KeypatchError(f"{option} does not go with a file, which holds its keypoints already. Leave it out.")


def _cells(row: "Row") -> list[str]:
    count = row.count
    frames = [str(count.keypoints), str(count.found_again), str(count.matched), f"{100 * count.share:.1f}"]
    return [row.change, *frames, str(row.again), str(count.right), f"{100 * row.kept:.1f}"]
