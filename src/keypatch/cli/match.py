"""`keypatch match`: two photos, or many pairs of a feature file, become matches."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keypatch.cli import options
from keypatch.cli.options import examples, options_of, refuse_beside
from keypatch.detection import DETECTOR_TYPES
from keypatch.errors import KeypatchError
from keypatch.features.extraction import DESCRIPTOR, Extraction
from keypatch.images import PIXEL_LIMIT
from keypatch.matching.drawing import LINES
from keypatch.matching.matching import Matching
from keypatch.progress import ProgressBar, counted
from keypatch.settings import field_names

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

app = typer.Typer(add_completion=False)

ONLY_OF_PHOTOS = (  # these do nothing beside --features
    *("images", "draw", "lines", "homography", "within", "turn_by_exif", "pixel_limit", "descriptor", "precision"),
    *field_names(Extraction),
)


@app.command(
    epilog=examples(
        "keypatch match a.jpg b.jpg --draw matches.png",
        "keypatch match --features features.h5 --pairs exhaustive --out matches.h5",
    )
)
@options_of(DETECTOR_TYPES, matching=Matching(), extraction=Extraction())
def match(
    context: typer.Context,
    matching: Matching,
    extraction: Extraction,
    images: Annotated[list[Path] | None, typer.Argument(help="Two photos.")] = None,
    features: Annotated[Path | None, typer.Option(help="Match the photos of this feature file.")] = None,
    pairs: Annotated[
        str | None, typer.Option(help="With --features: exhaustive, sequence:N, or a file with two names per line.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Output: .csv or .json for two photos, a match file (HDF5) for --features.")
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(help="Draw the matches and save the picture here (.png or .jpg).")
    ] = None,
    lines: Annotated[int, typer.Option(help="Draw at most this many matches.")] = LINES,
    homography: Annotated[
        Path | None, typer.Option(help="True homography (x1 ~ H x0, 3x3 as text), to count correct matches.")
    ] = None,
    within: Annotated[float, typer.Option(help="Largest error in pixels of a correct match.")] = 3.0,
    intrinsics: Annotated[
        list[Path] | None,
        typer.Option(help="Text file with K (3x3, OpenCV's pixels); repeat it if the second photo's differs."),
    ] = None,
    descriptor: options.Descriptor = DESCRIPTOR,
    turn_by_exif: options.TurnByExif = False,
    pixel_limit: options.PixelLimit = PIXEL_LIMIT,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
) -> None:
    """Match two photos, or the photos of a feature file. Ctrl-C keeps what is done; run it again to resume."""
    cameras = _matrices(intrinsics or [])
    if features is not None:
        refuse_beside(context, "--features", *ONLY_OF_PHOTOS, changed=extraction != Extraction())
        _match_pairs(features, pairs, out, matching, cameras, device)
        return
    refuse_beside(context, "two photos", "pairs")
    if images is None or len(images) != 2:
        raise KeypatchError(f"Give two photos, or --features and --pairs; given: {len(images or [])}.")
    from keypatch.matching.image_matches import PICTURES, TABLES, Truth, check_output
    from keypatch.matching.image_matches import match as match_photos
    from keypatch.zoo.loading import load

    truth = None if homography is None else Truth(_matrices([homography])[0], within)
    for path, suffixes in ((out, TABLES), (draw, PICTURES)):
        if path is not None:
            check_output(path, suffixes)
    if all(image.exists() for image in images) and images[0].samefile(images[1]):
        typer.echo("both photos are the same file", err=True)
    typer.echo(f"describing 2 photos with {descriptor}", err=True)  # loading it takes seconds
    result = match_photos(
        images[0],
        images[1],
        matching,
        describer=load(descriptor, device, precision),
        extraction=extraction,
        intrinsics=cameras or None,
        turn_by_exif=turn_by_exif,
        pixel_limit=pixel_limit,
        device=device,
    )
    if truth is not None:
        result = result.judged(truth.homography, truth.within)
    for line in result.sentences():
        typer.echo(line)
    for path in (out, draw):
        if path is not None:
            typer.echo(f"Written: {result.save(path, lines)}")


def _match_pairs(
    features: Path,
    pairs: str | None,
    out: Path | None,
    matching: Matching,
    cameras: "list[NDArray[float64]]",
    device: str,
) -> None:
    if pairs is None or out is None:
        raise KeypatchError("--features also needs --pairs (exhaustive, sequence:5 or a file) and --out.")
    if len(cameras) > 1:
        raise KeypatchError("With --features, one --intrinsics holds for all photos. Give it once.")
    from keypatch.matching.match_files import MatchReader
    from keypatch.matching.pairs import match_pairs

    intrinsics = cameras[0] if cameras else None
    with ProgressBar() as progress:
        match_pairs(features, pairs, out, matching, intrinsics=intrinsics, device=device, progress=progress)
    with MatchReader(out) as written:
        found, left = written.totals()
        verified = "" if matching.model is None else f", {left:,} agree with the geometry of their pair"
        typer.echo(f"{found:,} matches in all{verified}")
        typer.echo(f"Written: {out}, {counted(len(written), 'pair')}")


def _matrices(paths: list[Path]) -> "list[NDArray[float64]]":
    from keypatch.geometry.homographies import read_matrix

    return [read_matrix(path) for path in paths]
