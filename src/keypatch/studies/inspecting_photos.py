"""Looking at photographs: their files' heads, what `describe` and `reconstruct` will make of them, and broken ones."""

import shlex
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from keypatch.errors import DataError
from keypatch.features.photos import (
    SUFFIXES,
    Photo,
    PhotoFile,
    check_photo,
    find_photos,
    odd_orientations,
    visible_files,
)
from keypatch.patches.image_folders import SIDE, find_classes
from keypatch.reconstruction.camera_models import GUESS, Camera
from keypatch.reconstruction.photo_cameras import photo_camera
from keypatch.studies.inspecting_patches import Findings

_NAMED = 10  # photos listed
_TO_CONVERT = {".arw", ".avif", ".cr2", ".cr3", ".dng", ".heic", ".heif", ".jxl", ".nef", ".orf", ".raf", ".rw2"}


def has_photos(folder: Path) -> bool:
    """Whether photos lie in the folder itself, also such as must be converted first."""
    return any(file.suffix.lower() in SUFFIXES | _TO_CONVERT for file in folder.iterdir())


def is_photo_list(file: Path) -> bool:
    """Whether the first line of a text, but for comments, names a photo: one that is there, or in one word."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    first = next((line.strip() for line in lines if line.strip() and not line.startswith("#")), "")
    return Path(first).suffix.lower() in SUFFIXES and (len(first.split()) == 1 or (file.parent / first).exists())


def are_classes(folder: Path) -> bool:
    """Whether its folders of images can be classes: none lies beside another, and two have two images at least."""
    try:
        return sum(len(images) > 1 for images in find_classes(folder).values()) > 1
    except DataError:
        return False


def look_at_class_folders(folder: Path) -> Findings:
    """Images in folders, which may be classes or just photos."""
    classes = find_classes(folder)
    sizes = [len(images) for images in classes.values()]
    yield "classes", f"{len(sizes):,}, {sum(sizes) / len(sizes):.1f} images each ({min(sizes)} to {max(sizes)})"
    if single := sizes.count(1):
        yield "left out", f"{single:,} classes with a single image are of no use in training"
    yield "names", _listed(list(classes))
    yield "images", f"{sum(sizes):,}, read as grey squares of {SIDE}x{SIDE} pixels"
    images = [image for members in classes.values() for image in members]
    yield from _photo_facts([Photo(image.relative_to(folder).as_posix(), image) for image in images])
    yield "next", f"{_describe(folder)}, if they are photos to be matched"


def look_at_photos(place: Path) -> Findings:
    """A folder of photos, a list of them, or a photo."""
    if place.is_dir():
        yield from _other_files(place)
    photos = find_photos([place])
    yield from _photo_facts(photos)
    yield "next", _describe(place)


def _describe(place: Path) -> str:
    return f"keypatch describe {shlex.quote(str(place))} --out features.h5"


def _photo_facts(photos: Sequence[Photo]) -> Findings:
    files, cameras, faults = dict[str, PhotoFile](), list[Camera](), list[str]()
    for photo in photos:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Pillow's, of damaged EXIF data, which count as none
                files[photo.name] = check_photo(photo.path)
                cameras.append(photo_camera(photo.path, "SIMPLE_PINHOLE"))
        except DataError as error:
            faults.append(f"{photo.origin}: {error}" if photo.origin else str(error))
    unread = [f"{len(faults):,} cannot be read"] if faults else []
    formats = Counter(file.format for file in files.values()).most_common()
    yield "photos", f"{len(photos):,} ({', '.join([f'{count:,} {name}' for name, count in formats] + unread)})"
    if files:
        yield "sizes", _sizes([file.header.size for file in files.values()])
        yield "pixels", _pixels(list(files.values()))
        yield "orientation", _orientations({name: file.header.orientation for name, file in files.items()})
        yield "focal length", _focals(cameras)
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
    return text + (f"; {deep:,} with 16 bits, which become 8" if deep else "")


def _orientations(tags: Mapping[str, int]) -> str:
    usual, odd = odd_orientations(tags)
    if usual == 1 and not odd:
        return "as stored: no EXIF tag turns a photo"
    which = f"{len(odd):,} of {len(tags):,} have another EXIF tag than the rest ({usual}): {_listed(odd)}"
    return f"{which if odd else f'EXIF tag {usual}'}; pixels are taken as stored, --turn-by-exif turns them"


def _focals(cameras: Sequence[Camera]) -> str:
    """What `reconstruct` begins with."""
    known = [camera.focal[0] for camera in cameras if camera.focal_known]
    guess = f"reconstruct guesses {GUESS} times the longer side, or takes --focal"
    if not known:
        return f"not in the EXIF data; {guess}"
    pixels = " to ".join(dict.fromkeys(f"{focal:,.0f}" for focal in (min(known), max(known))))
    if len(known) == len(cameras):
        return f"{pixels} pixels (EXIF)"
    return f"{pixels} pixels (EXIF) of {len(known):,} of {len(cameras):,}; of the others {guess}"


def _other_files(folder: Path) -> Findings:
    """What `describe` passes over."""
    kinds = Counter(file.suffix.lower() or file.name for file in visible_files(folder))
    others = {kind: count for kind, count in sorted(kinds.items()) if kind not in SUFFIXES}
    if others:
        foreign = ", ".join(kind for kind in others if kind in _TO_CONVERT)
        remedy = f"; photos in {foreign} are read when converted to .jpg or .png" if foreign else ""
        listed = _listed([f"{count:,} {kind}" for kind, count in others.items()])
        yield "left out", f"{sum(others.values()):,} other files ({listed}){remedy}"


def _listed(items: Sequence[str]) -> str:
    more = [f"and {len(items) - _NAMED:,} more"] if len(items) > _NAMED else []
    return ", ".join([*items[:_NAMED], *more])
