"""`keypatch describe`: photos become a feature file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keypatch.cli import options
from keypatch.cli.options import chosen_describing, examples

if TYPE_CHECKING:
    from keypatch.features.progress import ProgressLine

EXAMPLES = examples(
    "keypatch describe photos --out features.h5 --show patches.png",
    "keypatch describe a.jpg b.jpg --descriptor rootsift --out features.h5",
)

Out = Annotated[Path, typer.Option(help="The feature file (HDF5, hloc's layout); what is in it is skipped.")]
KeypointsFrom = Annotated[
    Path | None, typer.Option(help="Keypoints of hloc's h5, a COLMAP database or a csv instead of a detector.")
]
Sigma = Annotated[float | None, typer.Option(help="Scale of keypoints whose file has none, in pixels.")]
PatchSigmas = Annotated[float | None, typer.Option(help="Side of a patch in sigmas, instead of the descriptor's own.")]
Half = Annotated[bool, typer.Option("--half", help="Descriptors as float16: half the file.")]
Workers = Annotated[int, typer.Option(help="Photos described at once.")]
Show = Annotated[Path | None, typer.Option(help="Write a picture (PNG) of some cut patches.")]


def describe(
    context: typer.Context,
    images: options.Images,
    out: Out,
    descriptor: options.Descriptor = options.DESCRIPTOR,
    detector: options.Detector = options.DETECTOR,
    settings: options.Settings = None,
    keypoints_from: KeypointsFrom = None,
    sigma: Sigma = None,
    keypoints: options.Keypoints = options.KEYPOINTS,
    rule: options.Rule = options.RULE,
    max_size: options.MaxSize = None,
    upright: options.Upright = False,
    patch_sigmas: PatchSigmas = None,
    root: options.Root = None,
    turn_by_exif: options.TurnByExif = False,
    pixel_limit: options.PixelLimit = options.PIXEL_LIMIT,
    half: Half = False,
    workers: Workers = 1,
    show: Show = None,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
) -> None:
    """Describe photos. Ctrl-C keeps what is done; the same command goes on."""
    from keypatch.features.describing import describe as write
    from keypatch.features.progress import ProgressLine

    line = ProgressLine()
    write(
        images,
        out,
        **chosen_describing(context),
        patch_sigmas=patch_sigmas,
        keypoints_from=keypoints_from,
        sigma=sigma,
        root=root,
        turn_by_exif=turn_by_exif,
        half=half,
        workers=workers,
        show=show,
        device=device,
        reporter=line,
    )
    _print(line, out, show)


def _print(line: "ProgressLine", out: Path, show: Path | None) -> None:
    from keypatch.features.feature_files import read_names
    from keypatch.features.progress import counted

    if line.before == line.total:
        typer.echo(f"{out} has all {counted(line.total, 'photo')} already")
    else:
        before = f"; {line.before} of those given were there already" if line.before else ""
        typer.echo(f"Written: {out}, {counted(len(read_names(out)), 'photo')}{before}")
    if show is not None:
        typer.echo(f"Written: {show}")
