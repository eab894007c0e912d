"""`keypatch match`: two photos, a folder of them, or the photos of a feature file become matches."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keypatch.cli import options
from keypatch.cli.options import examples, options_of, refuse_beside
from keypatch.colmap.known_cameras import read_intrinsics
from keypatch.engines.options import Parallel
from keypatch.errors import KeypatchError
from keypatch.features.extraction import DESCRIPTOR, Extraction, FileOptions
from keypatch.geometry.homographies import read_matrix
from keypatch.images import LIST_SUFFIX
from keypatch.matching.drawing import LINES, Style
from keypatch.matching.matching import PHOTO_TYPES, Matching
from keypatch.progress import ProgressBar, counted
from keypatch.settings import checked, field_names
from keypatch.storage import Place, as_place

if TYPE_CHECKING:
    from keypatch.matching.verification import Intrinsics

app = typer.Typer(add_completion=False)

# Options that would do nothing beside others
OF_TWO_PHOTOS = ("draw", "lines", "picture", "homography", "within", "pose")
OF_DESCRIBING = ("descriptor", "precision", *field_names(Extraction), *field_names(FileOptions))
OF_MANY_PHOTOS = ("pairs", "features", "root", "masks", "half", "shard", *field_names(Parallel))


@app.command(
    epilog=examples(
        "keypatch match a.jpg b.jpg --draw matches.png",
        "keypatch match photos --out matches.h5",
    )
)
@options_of(
    PHOTO_TYPES, ("sigma",), matching=Matching(), extraction=Extraction(), files=FileOptions(), parallel=Parallel()
)
def match(
    context: typer.Context,
    matching: Matching,
    extraction: Extraction,
    files: FileOptions,
    parallel: Parallel,
    images: Annotated[
        list[str] | None, typer.Argument(help="Two photos; or a folder, a .txt list or many photos to match in pairs.")
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Match the photos in this feature file; with a folder of photos, save their features here.",
        ),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(help="Pairs of many photos: exhaustive, sequence:N, or a file with two names per line."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Output: .csv or .json for two photos; for many, a match file (HDF5) or a folder of files (a store).",
        ),
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(help="Draw the matches and save the picture here (.png or .jpg).")
    ] = None,
    lines: Annotated[int, typer.Option(help="Draw at most this many matches.")] = LINES,
    picture: Annotated[
        str, typer.Option(help="What to draw: lines, epipolar (lines of F or E) or overlay (warped by H).")
    ] = "lines",
    pose: Annotated[
        bool, typer.Option("--pose", help="Estimate the relative pose of the two cameras; short for --model E.")
    ] = False,
    homography: Annotated[
        Path | None, typer.Option(help="True homography (x1 ~ H x0, 3x3 as text), to count correct matches.")
    ] = None,
    within: Annotated[float, typer.Option(help="Largest error of a correct match, in pixels.")] = 3.0,
    intrinsics: Annotated[
        list[Path] | None,
        typer.Option(
            help="File with K (3x3, OpenCV's pixels) or a COLMAP camera line; give two if the cameras differ."
        ),
    ] = None,
    shard: options.ShardOf = None,
    descriptor: options.Descriptor = DESCRIPTOR,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
) -> None:
    """Match two photos, a folder or a feature file. Ctrl-C keeps finished pairs; run it again to resume."""
    cameras = [read_intrinsics(path) for path in intrinsics or []]
    if images and (len(images) > 2 or any(_is_many(each) for each in images)):
        refuse_beside(context, "many photos", *OF_TWO_PHOTOS)
        refuse_beside(context, "photos: describe them first, then match --features", "shard")
        from keypatch.matching.pairs import match_photos

        with ProgressBar() as progress:
            made = match_photos(
                images,
                _match_file(out),
                matching,
                pairs=pairs or "exhaustive",
                features=features,
                describer=descriptor,
                extraction=extraction,
                files=files,
                intrinsics=_one(cameras),
                parallel=parallel,
                device=device,
                precision=precision,
                progress=progress,
            )
        _print_totals(made, matching)
    elif features is not None and not images:
        changed = (extraction, files) != (Extraction(), FileOptions())
        refuse_beside(context, "--features", *OF_TWO_PHOTOS, *OF_DESCRIBING, changed=changed)
        if pairs is None:
            raise KeypatchError("--features also needs --pairs (exhaustive, sequence:5 or a file) and --out.")
        from keypatch.matching.pairs import match_pairs

        with ProgressBar() as progress:
            made = match_pairs(
                features,
                pairs,
                _match_file(out),
                matching,
                intrinsics=_one(cameras),
                parallel=parallel,
                shard=shard,
                device=device,
                progress=progress,
            )
        _print_totals(made, matching)
    else:
        refuse_beside(context, "two photos", *OF_MANY_PHOTOS)
        if images is None or len(images) != 2:
            raise KeypatchError(f"Give two photos, a folder of photos, or --features; given: {len(images or [])}.")
        photos = [Path(image) for image in images]
        from keypatch.matching.image_matches import PICTURES, TABLES, Truth, check_output
        from keypatch.matching.image_matches import match as match_two

        truth = None if homography is None else Truth(read_matrix(homography), within)
        style = checked(picture, Style, "--picture")
        if pose:
            if matching.model not in (Matching.model, "E"):
                raise KeypatchError(f"--pose needs the model E, not {matching.model}. Leave --model out.")
            matching = replace(matching, model="E")
        written = [(None if out is None else Path(out), TABLES), (draw, PICTURES)]
        for path, suffixes in written:
            if path is not None:
                check_output(path, suffixes)
        if all(photo.exists() for photo in photos) and photos[0].samefile(photos[1]):
            typer.echo("both photos are the same file", err=True)
        with ProgressBar() as progress:
            result = match_two(
                photos[0],
                photos[1],
                matching,
                describer=descriptor,
                extraction=extraction,
                intrinsics=cameras or None,
                turn_by_exif=files.turn_by_exif,
                pixel_limit=files.pixel_limit,
                device=device,
                precision=precision,
                progress=progress,
            )
        if truth is not None:
            result = result.judged(truth.homography, truth.within)
        for line in result.sentences():
            typer.echo(line)
        for path, _ in written:
            if path is not None:
                typer.echo(f"Written: {result.save(path, lines, style)}")


def _is_many(image: str) -> bool:
    """Whether it stands for several photos, as far as its name tells."""
    place = as_place(image)
    return isinstance(place, str) or place.is_dir() or place.suffix.lower() == LIST_SUFFIX


def _match_file(out: str | None) -> str:
    if out is None:
        raise KeypatchError("Matches of many photos go to a match file. Add --out matches.h5.")
    return out


def _one(cameras: "Sequence[Intrinsics]") -> "Intrinsics | None":
    if len(cameras) > 1:
        raise KeypatchError("With many photos, one --intrinsics applies to all of them. Give it once.")
    return cameras[0] if cameras else None


def _print_totals(made: Place, matching: Matching) -> None:
    from keypatch.matching.match_files import MatchReader

    with MatchReader(made) as written:
        found, left, places = written.totals()
        verified = "" if matching.model is None else f", {left:,} verified by the geometry of their pair"
        repeats = f", {places:,} counting orientations of the same place once" if places < left else ""
        typer.echo(f"{found:,} matches in total{verified}{repeats}")
        typer.echo(f"Written: {made}, {counted(len(written), 'pair')}")
