"""`keypatch describe`: photos become a feature file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from keypatch.cli.options import Device, Precision, examples

if TYPE_CHECKING:
    from keypatch.detection import Rule

EXAMPLES = examples(
    "keypatch describe photos --out features.h5 --show patches.png",
    "keypatch describe a.jpg b.jpg --descriptor rootsift --out features.h5",
)


def describe(
    images: Annotated[list[Path], typer.Argument(help="Images, folders, or .txt lists with a name on each line.")],
    out: Annotated[Path, typer.Option(help="The feature file (HDF5, hloc's layout); what is in it is skipped.")],
    descriptor: Annotated[
        str, typer.Option(help="A name of `keypatch list`, a run folder or a weight file.")
    ] = "hynet-notredame",
    detector: Annotated[str, typer.Option(help="dog, colmap, orb, keynet or grid.")] = "dog",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the detector.")
    ] = None,
    keypoints_from: Annotated[
        Path | None, typer.Option(help="Keypoints of hloc's h5, a COLMAP database or a csv instead of a detector.")
    ] = None,
    sigma: Annotated[float | None, typer.Option(help="Scale of keypoints whose file has none, in pixels.")] = None,
    keypoints: Annotated[int, typer.Option(help="The most keypoints of a photo; 0 keeps all.")] = 2048,
    rule: Annotated[str, typer.Option(help="Which to keep: strongest, largest or spread.")] = "spread",
    max_size: Annotated[
        int | None, typer.Option(help="Detect in the photo made at most this many pixels long.")
    ] = None,
    upright: Annotated[bool, typer.Option("--upright", help="Every angle is 0.")] = False,
    patch_sigmas: Annotated[
        float | None, typer.Option(help="Side of a patch in sigmas, instead of the descriptor's own.")
    ] = None,
    root: Annotated[Path | None, typer.Option(help="Names in the file are paths below this folder.")] = None,
    turn_by_exif: Annotated[
        bool, typer.Option("--turn-by-exif", help="Turn photos by their EXIF tag, not as stored.")
    ] = False,
    pixel_limit: Annotated[int, typer.Option(help="Refuse photos of more pixels.")] = 100_000_000,
    half: Annotated[bool, typer.Option("--half", help="Descriptors as float16: half the file.")] = False,
    workers: Annotated[int, typer.Option(help="Photos described at once.")] = 1,
    show: Annotated[Path | None, typer.Option(help="Write a picture (PNG) of some cut patches.")] = None,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Describe photos. Ctrl-C keeps what is done; the same command goes on."""
    from keypatch.cli.detector_options import choose_detector
    from keypatch.features.describing import describe as write
    from keypatch.features.feature_files import read_names
    from keypatch.features.progress import ProgressLine, counted

    line = ProgressLine()
    write(
        images,
        out,
        descriptor,
        detector=choose_detector(detector, settings or ()),
        keypoints=keypoints or None,
        rule=cast("Rule", rule),  # the function checks it
        max_size=max_size,
        upright=upright,
        patch_sigmas=patch_sigmas,
        keypoints_from=keypoints_from,
        sigma=sigma,
        root=root,
        turn_by_exif=turn_by_exif,
        pixel_limit=pixel_limit,
        half=half,
        workers=workers,
        show=show,
        device=device,
        precision=precision,
        reporter=line,
    )
    if line.before == line.total:
        typer.echo(f"{out} has all {counted(line.total, 'photo')} already")
    else:
        before = f"; {line.before} of those given were there already" if line.before else ""
        typer.echo(f"Written: {out}, {counted(len(read_names(out)), 'photo')}{before}")
    if show is not None:
        typer.echo(f"Written: {show}")
