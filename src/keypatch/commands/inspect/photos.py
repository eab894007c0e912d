"""Looking at photographs and at what COLMAP made of them: files, broken ones, databases, models, reconstructions."""

import shlex
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from keypatch.colmap import read_cameras, read_model
from keypatch.colmap.cameras import GUESS, Camera, header_camera, impossible_cameras
from keypatch.colmap.database import open_colmap_database
from keypatch.commands.inspect.patches import Findings
from keypatch.errors import DataError, MissingExtra
from keypatch.images import (
    PIXEL_LIMIT,
    SUFFIXES,
    UNASKED_LIMIT,
    Photo,
    PhotoFile,
    check_photo,
    find_photos,
    listed,
    photos_among,
    turned_sentence,
    visible_files,
)
from keypatch.patches.image_folders import SIDE, find_classes
from keypatch.reconstruction.result import DATABASE, FORMAT, MODELS, OLD_MODEL, REPORT

_NAMED = 10  # photos with a fault
UPRIGHT = "as stored: no photo is rotated by an EXIF tag"
_BEGINNING = 2**16  # characters of a text that show what it is
_TO_CONVERT = {".arw", ".cr2", ".cr3", ".dng", ".jxl", ".nef", ".orf", ".raf", ".rw2"}


def has_photos(folder: Path, *, below: bool = False) -> bool:
    """Whether photos lie in the folder itself, or also `below` it; such as must be converted first are among them."""
    files = visible_files(folder) if below else folder.iterdir()
    return any(file.suffix.lower() in SUFFIXES | _TO_CONVERT for file in files)


def is_photo_list(file: Path) -> bool:
    """Whether the first line of a text, but for comments, names a photo: one that is there, or in one word."""
    with suppress(OSError, ValueError), file.open(encoding="utf-8") as text:  # no text; a name that no file can have
        lines = text.read(_BEGINNING).splitlines()
        first = next((line.strip() for line in lines if line.strip() and not line.startswith("#")), "")
        return Path(first).suffix.lower() in SUFFIXES and (len(first.split()) == 1 or (file.parent / first).exists())
    return False


def usable_classes(folder: Path) -> Mapping[str, list[Path]]:
    """The images of its class folders; none where one lies beside another, or fewer than two have two images."""
    try:
        classes = find_classes(folder)
    except DataError:
        return {}
    return classes if sum(len(images) > 1 for images in classes.values()) > 1 else {}


def look_at_class_folders(classes: Mapping[str, list[Path]], folder: Path) -> Findings:
    """Images in folders, which may be classes or just photos."""
    sizes = [len(images) for images in classes.values()]
    yield "classes", f"{len(sizes):,}, {sum(sizes) / len(sizes):.1f} images each ({min(sizes)} to {max(sizes)})"
    if single := sizes.count(1):
        yield "left out", f"{single:,} classes with a single image, which cannot be used for training"
    yield "names", listed(list(classes))
    yield "images", f"{sum(sizes):,}, read as grey squares of {SIDE}x{SIDE} pixels"
    images = [image for members in classes.values() for image in members]
    photos = [Photo(image.relative_to(folder).as_posix(), image) for image in images]
    files, faults = _checked(photos, UNASKED_LIMIT)
    yield from _file_facts(files, faults)
    yield "next", f"{_describe(folder)}, if these are photos to match"


def look_at_photos(place: Path) -> Findings:
    """A folder of photos, a list of them, or a photo."""
    found = visible_files(place) if place.is_dir() else []
    yield from _left_out(found)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        photos = list(photos_among(found, place)) or find_photos([] if place.is_dir() else [place])
    yield from (DataError(str(each.message)) for each in told)
    files, faults = _checked(photos)
    yield from _file_facts(files, faults)
    if files:
        yield "orientation", turned_sentence({name: file.header.orientation for name, file in files.items()}) or UPRIGHT
        yield "focal length", _focals([header_camera(file.header, "SIMPLE_PINHOLE") for file in files.values()])
    yield "next", _describe(place)


def _describe(place: Path) -> str:
    return f"keypatch describe {shlex.quote(str(place))} --out features.h5"


def _checked(photos: Sequence[Photo], pixel_limit: int = PIXEL_LIMIT) -> tuple[dict[str, PhotoFile], list[str]]:
    """Those that can be read by name, and a sentence of each that cannot."""
    files, faults = dict[str, PhotoFile](), list[str]()
    for photo in photos:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Pillow's, of damaged EXIF data, which count as none
                files[photo.name] = check_photo(photo.path, pixel_limit)
        except DataError as error:
            faults.append(f"{photo.origin}: {error}" if photo.origin else str(error))
    return files, faults


def _file_facts(files: Mapping[str, PhotoFile], faults: Sequence[str]) -> Findings:
    count = len(files) + len(faults)
    unread = [f"{len(faults):,} cannot be read"] if faults else []
    formats = Counter(file.format for file in files.values()).most_common()
    yield "photos", f"{count:,} ({', '.join([f'{number:,} {name}' for name, number in formats] + unread)})"
    if files:
        yield "sizes", _sizes([file.header.size for file in files.values()])
        yield "pixels", _pixels(list(files.values()))
    yield from map(DataError, faults[:_NAMED])
    if len(faults) > _NAMED:
        yield DataError(f"{len(faults) - _NAMED:,} more photos cannot be read.")


def _sizes(sizes: Sequence[tuple[int, int]]) -> str:
    different = sorted(set(sizes), key=lambda size: size[0] * size[1])
    ends = [different[0], different[-1]] if len(different) > 1 else different
    pixels = " to ".join(f"{width} x {height}" for width, height in ends)
    millions = " to ".join(dict.fromkeys(f"{width * height / 1e6:.1f}" for width, height in ends))
    return f"{pixels} pixels ({millions} megapixels)" + (f", {len(different):,} different" if different[1:] else "")


def _pixels(files: Sequence[PhotoFile]) -> str:
    colour, deep = sum(file.colour for file in files), sum(file.bits == 16 for file in files)
    counts = {"in colour": colour, "grey": len(files) - colour}
    text = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return text + (f"; {deep:,} with 16 bits, converted to 8" if deep else "")


def _focals(cameras: Sequence[Camera]) -> str:
    """What `reconstruct` begins with."""
    known = [camera.focal[0] for camera in cameras if camera.focal_known]
    guess = f"reconstruct guesses {GUESS} times the longer side, unless --focal is given"
    if not known:
        return f"not in the EXIF data; {guess}"
    pixels = " to ".join(dict.fromkeys(f"{focal:,.0f}" for focal in (min(known), max(known))))
    if len(known) == len(cameras):
        return f"{pixels} pixels (EXIF)"
    return f"{pixels} pixels (EXIF) for {len(known):,} of {len(cameras):,}; for the others, {guess}"


def _left_out(files: Iterable[Path]) -> Findings:
    """What `describe` passes over."""
    kinds = Counter(file.suffix.lower() or file.name for file in files)
    others = {kind: count for kind, count in sorted(kinds.items()) if kind not in SUFFIXES}
    if others:
        foreign = ", ".join(kind for kind in others if kind in _TO_CONVERT)
        remedy = f"; convert photos in {foreign} to .jpg or .png to use them" if foreign else ""
        counts = listed([f"{count:,} {kind}" for kind, count in others.items()])
        yield "left out", f"{sum(others.values()):,} other files ({counts}){remedy}"


_COLUMNS = (2, 4, 6)  # of COLMAP's keypoints


def look_at_database(file: Path) -> Findings:
    """A COLMAP database, opened for reading only and without COLMAP."""
    with open_colmap_database(file) as database:

        def number(ask: str) -> int:
            return int(database.ask(f"SELECT count(*) FROM {ask}")[0][0])

        yield "images", f"{number('images'):,}"
        yield "cameras", f"{number('cameras'):,}"
        with_keypoints, total = database.ask("SELECT count(*), coalesce(sum(rows), 0) FROM keypoints")[0]
        yield "keypoints", f"{total:,} in {with_keypoints:,} images"
        columns = [each for (each,) in database.ask("SELECT DISTINCT cols FROM keypoints WHERE rows > 0 ORDER BY cols")]
        yield "columns", ", ".join(map(str, columns)) or "none"
        yield "descriptors", f"for {number('descriptors WHERE rows > 0'):,} images"
        yield "pairs matched", f"{number('matches WHERE rows > 0'):,}"
        yield "pairs verified", f"{number('two_view_geometries WHERE rows > 0'):,}"
        if strange := [each for each in columns if each not in _COLUMNS]:
            yield DataError(f"{file}: keypoints have 2, 4 or 6 columns, not {strange[0]}. Create the database again.")
        if cut := number("keypoints WHERE length(coalesce(data, x'')) != 4 * rows * cols"):
            yield DataError(f"{file}: the keypoints of {cut} images are cut off. Create the database again.")
        if lost := number("keypoints WHERE image_id NOT IN (SELECT image_id FROM images)"):
            yield DataError(f"{file}: {lost} lists of keypoints belong to no image. Create the database again.")


def look_at_model(folder: Path) -> Findings:
    """A COLMAP model; cameras alone, as ground truth comes, are a model too."""
    posed = read_cameras(folder, stand_ins=True)
    yield "images", f"{len(posed):,} with a pose"
    models = Counter(camera.model for camera in {each.camera for each in posed.values()})
    yield "cameras", ", ".join(f"{count} {model}" for model, count in sorted(models.items())) or "none"
    yield from map(DataError, impossible_cameras(posed))
    if any(folder.glob("points3D.*")):
        try:
            points = read_model(folder, stand_ins=True, text=(folder / "points3D.txt").exists()).points
        except MissingExtra as missing:
            yield "points", f"not counted. {missing}"
            return
        yield "points", f"{len(points.xyz):,}"
        if len(points.xyz):
            yield "mean track length", f"{points.track_lengths.mean():.2f}"
            yield "reprojection error", f"{points.errors.mean():.3f} px"


def look_at_reconstruction(folder: Path) -> Findings:
    """The report of `reconstruct`, then its model, or its database where there is none."""
    report = FORMAT.read_json(folder / REPORT)
    if not report["finished"]:
        yield DataError(f"{folder} is not finished. Run the same command again to resume it.")
        return
    yield "photos", f"{len(report['photos'])}, {len(report['registered'])} with a pose"
    yield "settings", ", ".join(f"{key} = {value}" for key, value in report["settings"].items())
    for number, note in enumerate(report["notes"], start=1):
        yield f"note {number}", note
    for number, model in enumerate(report.get("models", [])):
        numbers = model["statistics"]
        yield f"model {number}", f"{numbers['registered']:,} photos, {numbers['points']:,} points"
    largest = next((place for place in (folder / MODELS / "0", folder / OLD_MODEL) if place.exists()), None)
    yield from look_at_database(folder / DATABASE) if largest is None else look_at_model(largest)
