"""`keypatch describe`: photos become a feature file."""

from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import Descriptor, Device, Precision, ShardOf, Sources, examples, options_of
from keypatch.detection import DETECTOR_TYPES
from keypatch.engines.options import Parallel
from keypatch.features.extraction import DESCRIPTOR, Extraction, FileOptions
from keypatch.progress import ProgressBar, counted

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "keypatch describe photos --out features.h5 --show patches.png",
        "keypatch describe a.jpg b.jpg --descriptor rootsift --out features.h5",
    )
)
@options_of(DETECTOR_TYPES, extraction=Extraction(), files=FileOptions(), parallel=Parallel())
def describe(
    images: Sources,
    out: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Feature file to write (HDF5, hloc's layout), or a folder of files (a store); photos already in it "
            "are skipped.",
        ),
    ],
    extraction: Extraction,
    files: FileOptions,
    parallel: Parallel,
    descriptor: Descriptor = DESCRIPTOR,
    keypoints_from: Annotated[
        Path | None,
        typer.Option(help="Take keypoints from an hloc .h5, COLMAP database or .csv instead of detecting them."),
    ] = None,
    show: Annotated[Path | None, typer.Option(help="Save a picture (PNG) of some of the patches.")] = None,
    shard: ShardOf = None,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Detect and describe keypoints in photos. Ctrl-C keeps finished photos; run it again to resume."""
    from keypatch.features.description import describe as write

    with ProgressBar() as progress:
        made = write(
            images,
            out,
            descriptor,
            extraction,
            keypoints_from=keypoints_from,
            files=files,
            parallel=parallel,
            shard=shard,
            show=show,
            device=device,
            precision=precision,
            progress=progress,
        )
    if not made.described:
        typer.echo(f"{out} already has all {counted(made.skipped, 'photo')}")
    else:
        earlier = f"; skipped {counted(made.skipped, 'photo')} already in it" if made.skipped else ""
        typer.echo(f"Written: {out}, {counted(_count(out), 'photo')}{earlier}")
    if show is not None:
        typer.echo(f"Written: {show}")


def _count(out: str) -> int:
    from keypatch.features.feature_files import FeatureReader

    with FeatureReader(out) as reader:
        return len(reader.names())
