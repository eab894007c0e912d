"""Photographs: finding them, opening them, and reading their pixels in grey or colour as stored."""

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader, BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageFile, UnidentifiedImageError

from keypatch.errors import DataError
from keypatch.files import read_head, read_text, reading, safe_name, safe_path
from keypatch.storage import as_place, find_files

PIXEL_LIMIT = 100_000_000
UNASKED_LIMIT = 178_956_970  # of images for which no command has --pixel-limit: what Pillow itself refuses above
NOTEBOOK_SIDE, NOTEBOOK_COLOURS = 1100, 200  # of pictures: some 300 kB
FORMATS = {  # the one table of what is read, by Pillow's names, and the suffixes by which folders are searched
    "AVIF": {".avif"},
    "BMP": {".bmp"},
    "GIF": {".gif"},
    "HEIF": {".heic", ".heif"},  # by pillow-heif
    "JPEG": {".jpg", ".jpeg"},
    "JPEG2000": {".jp2"},
    "PNG": {".png"},
    "PPM": {".pgm", ".pnm", ".ppm"},
    "TIFF": {".tif", ".tiff"},
    "WEBP": {".webp"},
}
SUFFIXES = set[str]().union(*FORMATS.values())
LIST_SUFFIX = ".txt"
_LISTED = 10  # names in a message
_TURNS = {  # by the EXIF orientation; 1 is upright
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_UNDOING = {6: 8, 8: 6}  # the others undo themselves
_SIXTEEN_BITS = {"I", "I;16", "I;16B", "I;16L", "I;16N"}
_EIGHT_OF_SIXTEEN = np.rint(np.arange(2**16) / 257).astype(np.uint8)  # 65535 is white
_BEGINNINGS = (b"\xff\xd8", b"\x89PNG", b"II*\0", b"MM\0*", b"RIFF")  # of photos, also where the rest is missing
_BRANDS = {"AVIF": (b"avif", b"avis"), "HEIF": (b"heic", b"heim", b"heis", b"heix", b"hevc", b"mif1", b"msf1")}
_REMEDIES = {"AVIF": "pip install -U pillow", "HEIF": "pip install 'keypatch[heif]'"}
_FILM_FOCALS = (1, 2**16 - 1)  # mm, all that EXIF has room for
_opening = threading.Lock()


ImageLike = str | Path | Image.Image | NDArray[Any]  # a file, or the pixels


class Photo(NamedTuple):
    """A photograph's name in feature files and where it lies."""

    name: str
    path: Path
    origin: str = ""  # the list that names it, and the line
    address: str = ""  # where it is fetched from, if it lies on no disk of this machine; the path then means nothing


class Header(NamedTuple):
    """What is known about a photograph before its pixels are decoded."""

    size: tuple[int, int]  # (width, height) as stored
    orientation: int  # of EXIF, 1 to 8; 1 where there is none
    film_focal: float  # EXIF's focal length "in 35 mm film", in mm; 0 where there is none


class PhotoFile(NamedTuple):
    """What kind of file a photograph is."""

    header: Header
    format: str  # "JPEG", "PNG" and so on
    colour: bool
    bits: int  # of a value: 8 or 16


class _Bounded(BufferedReader):
    """A file never asked for more bytes than it has: Pillow believes lengths, and Python makes room for them."""

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, os.fstat(self.fileno()).st_size - self.tell())
        return super().read(left if size is None or size < 0 else min(size, left))


@contextmanager
def open_image(path: Path) -> Iterator[ImageFile.ImageFile]:
    """The image, opened but not decoded. Whatever Pillow raises within the block becomes a DataError about the file."""
    # given a path, Pillow maps it, and mixes up the pixels of a TIFF that is turned
    with reading(path, "image"), _Bounded(path.open("rb", buffering=0)) as file:
        with _opening:  # Pillow's own limit is one for the whole process; ours is `require_readable`
            limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
            try:
                opened = Image.open(file, formats=_formats(path))
            except UnidentifiedImageError:
                raise DataError(f"{path} is {_unidentified(path)}") from None
            finally:
                Image.MAX_IMAGE_PIXELS = limit
        with opened as image:
            yield image


def _formats(path: Path) -> list[str]:
    """Those that can be opened here: Pillow 10 has no AVIF, and HEIF is an extra, loaded for a file that is one."""
    Image.init()
    if _brand(path) == "HEIF":
        with suppress(ImportError):
            from pillow_heif import register_heif_opener

            register_heif_opener()
    return [name for name in FORMATS if name in Image.OPEN]


def _brand(path: Path) -> str | None:
    """The format of a file in boxes, AVIF or HEIF; None of any other."""
    beginning = read_head(path)
    return next((name for name in _BRANDS if beginning[4:8] == b"ftyp" and beginning[8:12] in _BRANDS[name]), None)


def require_readable(image: Image.Image, path: Path, pixel_limit: int = PIXEL_LIMIT) -> None:
    """DataError of an image with too many pixels, or whose pixels are no grey values or colours."""
    width, height = image.size
    if width * height > pixel_limit:
        raise DataError(
            f"{path} has {width} x {height} pixels, {width * height / 1e6:.0f} million, above the limit of "
            f"{pixel_limit / 1e6:g} million. Make it smaller, or raise the limit in commands that have --pixel-limit."
        )
    if image.mode == "F":
        raise DataError(f"{path} has floating-point pixels. Convert it to 8 or 16 bits.")


def decode(image: ImageFile.ImageFile, *, turn_by_exif: bool = False) -> Image.Image:
    """The pixels as stored, or turned as the EXIF tag says."""
    before = 1 if turn_by_exif else _orientation(image)  # looked at too early, a tag behind the pixels is not found
    image.load()
    tag = _orientation(image)
    if not turn_by_exif:  # Pillow turns a TIFF, whose tag is then gone
        tag = 1 if tag == before else _UNDOING.get(before, before)
    return image if tag == 1 else image.transpose(_TURNS[tag])


def read_photo(path: Path, *, turn_by_exif: bool = False, pixel_limit: int = PIXEL_LIMIT) -> NDArray[np.uint8]:
    """Grey uint8 (height, width), the pixels as stored, or turned as the EXIF tag says; 16 bits become 8.

    Raises:
        DataError: the file is missing, no image, cut off, larger than the limit, or of numbers that are no grey values.
    """
    with open_image(path) as image:
        require_readable(image, path, pixel_limit)
        if image.mode == "RGB":
            image.draft("L", None)  # a JPEG is then decoded to grey, without its colours
        return _grey(decode(image, turn_by_exif=turn_by_exif), str(path))


def resized_size(size: tuple[int, int], short_side: int) -> tuple[int, int]:
    """(width, height) of a photo of this size made this small or large; the longer side is rounded down."""
    width, height = size
    if width < height:
        return short_side, short_side * height // width
    return short_side * width // height, short_side


def read_mask(folder: Path, name: str, shape: tuple[int, ...]) -> NDArray[np.bool_] | None:
    """True (h, w) where a photo of this name and shape counts; None where there is no mask of it.

    COLMAP's convention: the mask of a/b.jpg is the file a/b.jpg.png below the folder, and black (0) is to be ignored.

    Raises:
        DataError: it is no image, or of another size than the photo.
    """
    path = folder / f"{name}.png"
    if not path.is_file():
        return None
    mask = read_photo(path)
    if mask.shape != shape:
        raise DataError(
            f"{path} has {mask.shape[1]} x {mask.shape[0]} pixels, but its photo has {shape[1]} x {shape[0]}. A mask "
            "must have the size of its photo."
        )
    return mask > 0


def require_masks(folder: Path, names: Iterable[str]) -> None:
    """DataError unless the folder has a mask of at least one of these photos."""
    names = list(names)
    if not any((folder / f"{name}.png").is_file() for name in names):
        raise DataError(
            f"{folder} has no mask for any photo. The mask for {names[0]} would be {folder / names[0]}.png, black "
            "where the photo is to be ignored."
        )


def read_colours(path: Path, side: int | None = None) -> Image.Image:
    """A photo of any size as stored, in RGB of 8 bits; with `side` at most this many pixels long. Raises DataError."""
    with open_image(path) as image:
        if side is not None:
            image.draft("RGB", (side, side))  # a JPEG is then read reduced
        decoded = decode(image)
        if decoded.mode in _SIXTEEN_BITS:  # which Pillow's own conversion would cut off at 255
            decoded = Image.fromarray(_grey(decoded, str(path)))
        colours = decoded.convert("RGB")
    if side is not None:
        colours.thumbnail((side, side))
    return colours


def as_grey(image: ImageLike) -> NDArray[np.uint8]:
    """Grey uint8 (height, width) of a file, a PIL image, or an array (h, w) or (h, w, 3) in RGB order.

    Arrays are uint8, uint16 (65535 is white) or floats (1 is white).

    Raises:
        DataError: the file is no image (`read_photo`), the array has another shape or type, or floats outside 0..1.
    """
    if isinstance(image, str | Path):
        return read_photo(Path(image))
    if isinstance(image, Image.Image):
        return _grey(image, "The image") if image.mode != "F" else as_grey(np.asarray(image))
    pixels = np.asarray(image)
    if (pixels.ndim != 2 and (pixels.ndim != 3 or pixels.shape[2] not in (3, 4))) or 0 in pixels.shape:
        raise DataError(f"An image must be an array (height, width) or (height, width, 3), not {pixels.shape}.")
    if pixels.dtype == np.uint16:
        pixels = _EIGHT_OF_SIXTEEN[pixels]
    elif pixels.dtype.kind == "f":
        if not (pixels.min() >= 0 and pixels.max() <= 1):  # not a number is neither
            raise DataError(
                "A float image must have values from 0 (black) to 1 (white). Scale it, or convert it to uint8."
            )
        pixels = np.rint(255 * pixels).astype(np.uint8)
    elif pixels.dtype != np.uint8:
        raise DataError(f"An image must be uint8, uint16 or float, not {pixels.dtype}.")
    return _grey(Image.fromarray(np.ascontiguousarray(pixels)), "The image")


def as_png(picture: Image.Image, side: int = NOTEBOOK_SIDE, colours: int = NOTEBOOK_COLOURS) -> bytes:
    """The content of a small PNG file: at most `side` pixels long, in few colours; as a notebook keeps it."""
    small, file = picture.copy(), BytesIO()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    small.quantize(colours).save(file, "PNG", optimize=True)
    return file.getvalue()


def read_header(path: Path) -> Header:
    """Size and EXIF data, without decoding a pixel, so of a photo of any size. Raises as `read_photo`.

    EXIF data that are damaged, or that a PNG has behind its pixels, count as none.
    """
    with open_image(path) as image:
        return _header(image)


def check_photo(path: Path, pixel_limit: int = PIXEL_LIMIT) -> PhotoFile:
    """What kind of file it is, once it is known to be whole. Raises as `read_photo`."""
    with open_image(path) as image:
        require_readable(image, path, pixel_limit)
        kind = "JPEG" if image.format == "MPO" else str(image.format)  # the JPEG of a camera that adds previews
        sixteen = image.mode in _SIXTEEN_BITS or any(";16" in str(tile) for tile in image.tile)
        found = PhotoFile(_header(image), kind, Image.getmodebase(image.mode) != "L", 16 if sixteen else 8)
        if kind == "PNG":
            image.verify()  # by its checksums, faster than decoding
        else:
            image.draft(None, (1, 1))  # of a JPEG an eighth
            image.load()
        return found


def turned_sentence(photos: Mapping[str, Path | int], total: int | None = None, turned: int | None = None) -> str:
    """What to know about photos, given by name with their path or tag, that an EXIF tag turns; empty without any.

    Of very many, `photos` has some of those that are turned, `turned` counts these and `total` all.
    """
    tags = {name: each if isinstance(each, int) else orientation_of(each) for name, each in photos.items()}
    named = [f"{name} ({tag})" for name, tag in tags.items() if tag != 1]
    if not named:
        return ""
    count, among = len(named) if turned is None else turned, len(tags) if total is None else total
    return (
        f"Rotated by an EXIF tag: {count:,} of {among:,} photos, {listed(named, count=count)}. Their pixels are used "
        "as stored, but viewers and cv2.imread rotate them; so do describe and match with --turn-by-exif."
    )


def listed(items: Sequence[str], separator: str = ", ", count: int | None = None) -> str:
    """The first ten, and how many more there are of `count`, by default of the items."""
    rest = (len(items) if count is None else count) - len(items[:_LISTED])
    return separator.join([*items[:_LISTED], *([f"and {rest:,} more"] if rest else [])])


def orientation_of(path: Path) -> int:
    """The EXIF tag, 1 where there is none or the photo cannot be read."""
    try:
        return read_header(path).orientation
    except DataError:
        return 1  # what is wrong is told when it is read


def find_photos(
    paths: Iterable[str | Path],
    root: str | Path | None = None,
    keep: Callable[[str], bool] = lambda name: True,
    *,
    remote: bool = False,
) -> list[Photo]:
    """The photographs of images, folders (with what lies below) and .txt lists (a name on each line), in that order.

    A name is the path below `root`: by default the folder itself, and the folder that an image or a list lies in. Those
    whose name is not to `keep` are left out. With `remote`, a path may be an address of fsspec's: an image or a folder.

    Raises:
        DataError: a path is missing or leads out of the root, there is no photo at all, or two of them share a name.
    """
    base, photos, found = None if root is None else Path(root), list[Photo](), False
    for path in map(as_place, paths):
        if isinstance(path, str) and not remote:
            raise DataError(f"{path} is an address. Copy the photos to this machine first.")
        for photo in _fetchable(path) if isinstance(path, str) else _found(path, base):
            found = True
            if keep(photo.name):
                photos.append(photo)
    if not found:
        raise DataError(f"No photos found. Photos are files ending in {', '.join(sorted(SUFFIXES))}.")
    _require_distinct(photos)
    return photos


def visible_files(folder: Path) -> list[Path]:
    """All files of a folder and of those below it, sorted; what is hidden is not among them."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]


def _found(path: Path, root: Path | None) -> Iterator[Photo]:
    if path.is_dir():
        yield from photos_among(visible_files(path), root or path)
    elif not path.exists():
        raise DataError(f"There is no image, folder or list {path}.")
    elif path.suffix.lower() == LIST_SUFFIX:
        yield from _listed(path, root or path.parent)
    else:
        yield Photo(safe_name(_name(path, root or path.parent), str(path)), path)


def _fetchable(address: str) -> Iterator[Photo]:
    for name, where in find_files(address):
        if Path(name).suffix.lower() in SUFFIXES:
            yield Photo(safe_name(name, address), Path(name), address=where)


def photos_among(files: Iterable[Path], root: Path) -> Iterator[Photo]:
    """The photographs among the files of a folder; one with a name that cannot be used is left out, with a warning."""
    for file in files:
        if file.suffix.lower() in SUFFIXES:
            name = _name(file, root)
            try:
                yield Photo(safe_name(name, str(root)), file)
            except DataError as error:  # one name, as of a disk in another encoding, does not stop all the others
                warnings.warn(f"{error} The photo is left out.", stacklevel=2)


def _name(path: Path, root: Path) -> str:
    place, base = Path(os.path.abspath(path)), Path(os.path.abspath(root))  # without ".."; links stay
    if not place.is_relative_to(base):
        raise DataError(f"{path} is not inside {root}, which names are relative to. Choose another --root.")
    return place.relative_to(base).as_posix()


def _listed(path: Path, root: Path) -> Iterator[Photo]:
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            origin = f"{path}, line {number}"
            name = _below(root, line.strip(), origin)
            yield Photo(name, safe_path(root, name, origin), origin)


def _below(root: Path, line: str, origin: str) -> str:
    """A line of a list as a path below the root: ./a.jpg and $PWD/a.jpg, as `find` prints them, are a.jpg."""
    if not Path(line).is_absolute():
        return PurePosixPath(line).as_posix()
    base = Path(os.path.abspath(root))
    if not Path(line).is_relative_to(base):
        raise DataError(
            f"{origin}: {line} is not inside {root}. Set --root to a folder that contains all listed photos."
        )
    return Path(line).relative_to(base).as_posix()


def _require_distinct(photos: list[Photo]) -> None:
    place = dict[str, Path]()
    for name, path, *_ in photos:
        if name in place:
            raise DataError(
                f"{place[name]} and {path} would both be named {name}. Give the folder above both, or --root."
            )
        place[name] = path
    for name in place:
        for parent in PurePosixPath(name).parents:
            if parent.as_posix() in place:
                raise DataError(f"{place[parent.as_posix()]} has the same name as the folder of {name}. Rename it.")


def _unidentified(path: Path) -> str:
    beginning, brand = read_head(path), _brand(path)
    if brand is not None and brand not in Image.OPEN:
        return f"in the format {brand}, which cannot be read yet: {_REMEDIES[brand]}, or convert it to JPEG."
    if beginning.startswith(_BEGINNINGS) or brand is not None:
        return "cut off or damaged. Copy it again."
    return "not an image that can be read." if beginning else "empty. Copy it again."


def _header(image: Image.Image) -> Header:
    return Header(_stored_size(image), _orientation(image), _film_focal(image))


def _exif(image: Image.Image) -> Image.Exif:
    return Image.Image.getexif(image)  # a PNG's own method decodes the pixels to look behind them


def _orientation(image: Image.Image) -> int:
    tag = None
    with suppress(Exception):  # whatever Pillow raises: damaged EXIF data count as none
        tag = _exif(image).get(ExifTags.Base.Orientation)
    return int(tag) if isinstance(tag, int) and tag in _TURNS else 1


def _film_focal(image: Image.Image) -> float:
    focal = 0.0
    with suppress(Exception):
        focal = float(_exif(image).get_ifd(ExifTags.IFD.Exif).get(ExifTags.Base.FocalLengthIn35mmFilm, 0))
    least, most = _FILM_FOCALS
    return focal if least <= focal <= most else 0.0  # not a number is neither


def _stored_size(image: Image.Image) -> tuple[int, int]:
    if image.format == "TIFF":  # Pillow swaps the sides of one that is turned
        tags: Any = image
        return int(tags.tag_v2[ExifTags.Base.ImageWidth]), int(tags.tag_v2[ExifTags.Base.ImageLength])
    return image.size


def _grey(image: Image.Image, source: str) -> NDArray[np.uint8]:
    if image.mode in _SIXTEEN_BITS:
        values = np.asarray(image)
        if image.mode == "I" and (values.min() < 0 or values.max() >= 2**16):
            raise DataError(f"{source} has more than 16 bits per value. Convert it to 8 or 16 bits.")
        return np.asarray(_EIGHT_OF_SIXTEEN[values])
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA")  # a palette may have colours that are transparent
    return np.asarray(image if image.mode == "L" else image.convert("L"))
