"""`keypatch match`: two photos, or many pairs of a feature file, become matches."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keypatch.cli import options
from keypatch.cli.options import DESCRIBING, chosen, chosen_describing, examples, refuse_beside
from keypatch.errors import KeypatchError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

EXAMPLES = examples(
    "keypatch match a.jpg b.jpg --draw matches.png",
    "keypatch match --features features.h5 --pairs exhaustive --out matches.h5",
)

Images = Annotated[list[Path] | None, typer.Argument(help="Two photos.")]
Features = Annotated[Path | None, typer.Option(help="A feature file, instead of two photos.")]
Pairs = Annotated[
    str | None, typer.Option(help="With --features: exhaustive, sequence:N, or a file of two names on each line.")
]
Out = Annotated[Path | None, typer.Option(help="Of two photos a .csv or .json; of many pairs a match file (HDF5).")]
Draw = Annotated[Path | None, typer.Option(help="Write a picture (.png or .jpg) of the matches.")]
Lines = Annotated[int, typer.Option(help="The most matches to draw.")]
Homography = Annotated[Path | None, typer.Option(help="The true one, x1 ~ H x0, 3x3 as text: tells right from wrong.")]
Within = Annotated[float, typer.Option(help="Pixels from the true homography that are still right.")]
Mode = Annotated[str, typer.Option(help="mutual (nearest neighbours of each other) or one-way.")]
Ratio = Annotated[float, typer.Option(help="Ratio test: nearer than this share of the second; 1 is none.")]
RatioSides = Annotated[str, typer.Option(help="Mutual neighbours pass it seen from both photos, or from the first.")]
Model = Annotated[str, typer.Option(help="What matches must agree with: F, E (with --intrinsics), H or none.")]
Estimator = Annotated[str, typer.Option(help="magsac (OpenCV), poselib, or degensac for F.")]
Threshold = Annotated[float, typer.Option(help="Pixels from the model that still agree.")]
Intrinsics = Annotated[
    list[Path] | None, typer.Option(help="K, 3x3 as text, in OpenCV's pixels; a second time for the second photo.")
]
Seed = Annotated[int, typer.Option(help="Of the estimator.")]
Neighbours = Annotated[str, typer.Option(help="How they are found: tiles or faiss, exactly; or flann.")]

MATCHING = ("mode", "ratio", "ratio_sides", "model", "estimator", "threshold", "seed", "neighbours", "device")


def match(
    context: typer.Context,
    images: Images = None,
    features: Features = None,
    pairs: Pairs = None,
    out: Out = None,
    draw: Draw = None,
    lines: Lines = 200,
    homography: Homography = None,
    within: Within = 3.0,
    mode: Mode = "mutual",
    ratio: Ratio = 0.9,
    ratio_sides: RatioSides = "both",
    model: Model = "F",
    estimator: Estimator = "magsac",
    threshold: Threshold = 1.0,
    intrinsics: Intrinsics = None,
    seed: Seed = 0,
    neighbours: Neighbours = "tiles",
    descriptor: options.Descriptor = options.DESCRIPTOR,
    detector: options.Detector = options.DETECTOR,
    settings: options.Settings = None,
    keypoints: options.Keypoints = options.KEYPOINTS,
    rule: options.Rule = options.RULE,
    max_size: options.MaxSize = None,
    upright: options.Upright = False,
    turn_by_exif: options.TurnByExif = False,
    pixel_limit: options.PixelLimit = options.PIXEL_LIMIT,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
) -> None:
    """Match two photos, or the photos of a feature file. Ctrl-C keeps what is done; the same command goes on."""
    how = chosen(context, *MATCHING) | {"model": None if model == "none" else model}
    cameras = _matrices(intrinsics or [])
    if features is not None:
        pictures = ("images", "draw", "lines", "homography", "within", "turn_by_exif")
        refuse_beside(context, "--features", *pictures, *DESCRIBING)
        _match_pairs(features, pairs, out, how, cameras)
        return
    refuse_beside(context, "two photos", "pairs")
    if images is None or len(images) != 2:
        raise KeypatchError(f"Give two photos, or --features and --pairs; given: {len(images or [])}.")
    how |= chosen_describing(context) | chosen(context, "turn_by_exif", "lines", "within")
    truth = None if homography is None else _matrices([homography])[0]
    _match_photos(images, out, draw, how | {"intrinsics": cameras or None, "homography": truth})


def _match_photos(images: list[Path], out: Path | None, draw: Path | None, how: dict[str, Any]) -> None:
    from keypatch.matching.photos import match as match_photos

    result = match_photos(*images, out=out, draw=draw, **how, progress=partial(typer.echo, err=True))
    for line in result.sentences():
        typer.echo(line)
    for path in (out, draw):
        if path is not None:
            typer.echo(f"Written: {path}")


def _match_pairs(
    features: Path, pairs: str | None, out: Path | None, how: dict[str, Any], cameras: "list[NDArray[float64]]"
) -> None:
    if pairs is None or out is None:
        raise KeypatchError("With --features say which --pairs (exhaustive, sequence:5 or a file) and where to, --out.")
    if len(cameras) > 1:
        raise KeypatchError("With --features there is one --intrinsics for all photos.")
    from keypatch.features.progress import ProgressLine, counted
    from keypatch.matching.many_pairs import match_pairs
    from keypatch.matching.match_files import MatchReader

    match_pairs(features, pairs, out, **how, intrinsics=cameras[0] if cameras else None, reporter=ProgressLine())
    with MatchReader(out) as written:
        found, left = written.totals()
        verified = "" if how["model"] is None else f", {left:,} agree with the geometry of their pair"
        typer.echo(f"{found:,} matches in all{verified}")
        typer.echo(f"Written: {out}, {counted(len(written), 'pair')}")


def _matrices(paths: list[Path]) -> "list[NDArray[float64]]":
    from keypatch.matching.judging import read_matrix

    return [read_matrix(path) for path in paths]
