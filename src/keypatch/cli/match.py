"""`keypatch match`: two photos, or many pairs of a feature file, become matches."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from keypatch.cli.options import DESCRIBING, Device, Precision, examples, refuse_beside
from keypatch.errors import KeypatchError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from keypatch.detection import Rule

EXAMPLES = examples(
    "keypatch match a.jpg b.jpg --draw matches.png",
    "keypatch match --features features.h5 --pairs exhaustive --out matches.h5",
)


def match(
    context: typer.Context,
    images: Annotated[list[Path] | None, typer.Argument(help="Two photos.")] = None,
    features: Annotated[Path | None, typer.Option(help="A feature file, instead of two photos.")] = None,
    pairs: Annotated[
        str | None, typer.Option(help="With --features: exhaustive, sequence:N, or a file of two names on each line.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Of two photos a .csv or .json; of many pairs a match file (HDF5).")
    ] = None,
    draw: Annotated[Path | None, typer.Option(help="Write a picture (.png or .jpg) of the matches.")] = None,
    lines: Annotated[int, typer.Option(help="The most matches to draw.")] = 200,
    homography: Annotated[
        Path | None, typer.Option(help="The true one, x1 ~ H x0, 3x3 as text: tells right from wrong.")
    ] = None,
    within: Annotated[float, typer.Option(help="Pixels from the true homography that are still right.")] = 3.0,
    mode: Annotated[str, typer.Option(help="mutual (nearest neighbours of each other) or one-way.")] = "mutual",
    ratio: Annotated[float | None, typer.Option(help="Ratio test: nearer than this share of the second.")] = None,
    ratio_sides: Annotated[
        str, typer.Option(help="Mutual neighbours pass it seen from both photos, or from the first.")
    ] = "both",
    model: Annotated[
        str, typer.Option(help="What matches must agree with: F, E (with --intrinsics), H or none.")
    ] = "F",
    estimator: Annotated[str, typer.Option(help="magsac (OpenCV), poselib, or degensac for F.")] = "magsac",
    threshold: Annotated[float, typer.Option(help="Pixels from the model that still agree.")] = 1.0,
    intrinsics: Annotated[
        list[Path] | None, typer.Option(help="K, 3x3 as text, in OpenCV's pixels; a second time for the second photo.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the estimator.")] = 0,
    neighbours: Annotated[str, typer.Option(help="How they are found: tiles or faiss, exactly; or flann.")] = "tiles",
    descriptor: Annotated[
        str, typer.Option(help="A name of `keypatch list`, a run folder or a weight file.")
    ] = "hynet-notredame",
    detector: Annotated[str, typer.Option(help="dog, colmap, orb, keynet or grid.")] = "dog",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the detector.")
    ] = None,
    keypoints: Annotated[int, typer.Option(help="The most keypoints of a photo; 0 keeps all.")] = 2048,
    rule: Annotated[str, typer.Option(help="Which to keep: strongest, largest or spread.")] = "spread",
    max_size: Annotated[
        int | None, typer.Option(help="Detect in the photo made at most this many pixels long.")
    ] = None,
    upright: Annotated[bool, typer.Option("--upright", help="Every angle is 0.")] = False,
    turn_by_exif: Annotated[
        bool, typer.Option("--turn-by-exif", help="Turn photos by their EXIF tag, not as stored.")
    ] = False,
    pixel_limit: Annotated[int, typer.Option(help="Refuse photos of more pixels.")] = 100_000_000,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Match two photos, or the photos of a feature file. Ctrl-C keeps what is done; the same command goes on."""
    how: dict[str, Any] = {  # the functions check it
        "mode": mode,
        "ratio": ratio,
        "ratio_sides": ratio_sides,
        "model": None if model == "none" else model,
        "estimator": estimator,
        "threshold": threshold,
        "seed": seed,
        "neighbours": neighbours,
        "device": device,
    }
    cameras = _matrices(intrinsics or [])
    if features is not None:
        pictures = ("images", "draw", "lines", "homography", "within", "turn_by_exif")
        refuse_beside(context, "--features", *pictures, *DESCRIBING)
        _match_pairs(features, pairs, out, how, cameras)
        return
    refuse_beside(context, "two photos", "pairs")
    if images is None or len(images) != 2:
        raise KeypatchError(f"Give two photos, or --features and --pairs; given: {len(images or [])}.")
    from keypatch.cli.detector_options import choose_detector
    from keypatch.matching.photos import match as match_photos

    result = match_photos(
        images[0],
        images[1],
        descriptor,
        out=out,
        draw=draw,
        lines=lines,
        homography=None if homography is None else _matrices([homography])[0],
        within=within,
        **how,
        intrinsics=cameras or None,
        detector=choose_detector(detector, settings or ()),
        keypoints=keypoints or None,
        rule=cast("Rule", rule),
        max_size=max_size,
        upright=upright,
        turn_by_exif=turn_by_exif,
        pixel_limit=pixel_limit,
        precision=precision,
    )
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
