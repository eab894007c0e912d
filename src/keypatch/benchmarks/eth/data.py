"""Photographs to reconstruct: a set of the ETH local feature evaluation as released, or any folder of photos."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keypatch.benchmarks.eth.files import KEYPOINTS, image_file
from keypatch.colmap.cameras import Camera, choose_cameras
from keypatch.colmap.database import read_database_cameras
from keypatch.colmap.known_cameras import read_cameras
from keypatch.errors import DataError
from keypatch.features import Photo, find_photos
from keypatch.files import hash_folder, require_folder
from keypatch.geometry.poses import Pose
from keypatch.matching.pairs import Pair, find_pairs

IMAGES, DATABASE, PAIRS = "images", "database.db", "image-pairs.txt"
TRUTH = ("cameras", "poses")  # folders of true cameras beside the images
CAMERA_MODEL = "SIMPLE_RADIAL"  # COLMAP's default, of photos whose camera is not known
SMALLEST = 3  # photos


@dataclass(frozen=True, eq=False)
class SfmSet:
    """Photographs of one place, and what is known of them."""

    name: str
    root: Path  # names of photos are paths below it
    photos: tuple[Photo, ...]  # in the order of names
    pairs: Sequence[Pair]  # to match, the direction of the ratio test first
    cameras: Mapping[str, Camera]  # of all photos
    known: frozenset[str]  # photos whose camera is not a guess of ours
    sharing: frozenset[str]  # photos that share their camera with others
    truth: Mapping[str, Pose]  # of the photos whose pose is known
    keypoints: Mapping[str, Path]  # given ones, of all photos or of none
    data_hash: str


def read_sfm_set(folder: str | Path) -> SfmSet:
    """The photos in images/, or in the folder itself, with what lies beside them.

    keypoints/IMAGE.bin are given keypoints. database.db (COLMAP's) says which photos belong to the set, and their
    cameras. cameras/ or poses/ holds true cameras (Strecha's files or a COLMAP model), which are taken where there
    is no database; else a camera is guessed from its photo. image-pairs.txt lists the pairs to match; else all are.

    Raises:
        DataError: there are fewer than three photos, or one of these files is damaged or names a photo that is missing.
    """
    folder = Path(folder)
    require_folder(folder)
    root = folder / IMAGES if (folder / IMAGES).is_dir() else folder
    photos = {photo.name: photo for photo in sorted(find_photos([root]))}
    listed = read_database_cameras(folder / DATABASE) if (folder / DATABASE).is_file() else {}
    if (folder / DATABASE).is_file() and not listed:
        raise DataError(
            f"{folder / DATABASE} lists no images. Create it again, or move it away to use every photo in {root}."
        )
    _require_photos(listed, photos, folder / DATABASE, root)
    if listed:
        photos = {name: photo for name, photo in photos.items() if name in listed}
    if len(photos) < SMALLEST:
        raise DataError(f"{folder} has {len(photos)} photos; a model needs at least {SMALLEST}.")
    places = [folder / name for name in TRUTH if (folder / name).is_dir()][:1]
    posed = read_cameras(places[0]) if places else {}
    _require_photos(posed, photos, places[0] if places else folder, root)
    known = {name: each.camera for name, each in (listed or posed).items()}
    uses = Counter(each.number for each in listed.values())
    sharing = {name for name, each in listed.items() if uses[each.number] > 1} if listed else set(posed)
    pairs = folder / PAIRS
    keypoints = _given_keypoints(folder / KEYPOINTS, photos) if (folder / KEYPOINTS).is_dir() else {}
    files = [file for file in (folder / DATABASE, pairs) if file.is_file()] + list(keypoints.values())
    files += [file for place in places for file in place.rglob("*") if file.is_file()]
    return SfmSet(
        name=folder.resolve().name,
        root=root,
        photos=tuple(photos.values()),
        pairs=find_pairs(pairs if pairs.is_file() else "exhaustive", list(photos)),
        cameras=choose_cameras(list(photos.values()), known, CAMERA_MODEL, None, shared=False),
        known=frozenset(known),
        sharing=frozenset(sharing),
        truth={name: each.pose for name, each in posed.items()},
        keypoints=keypoints,
        data_hash=hash_folder([*files, *(photo.path for photo in photos.values())]),
    )


def _require_photos(names: Mapping[str, object], photos: Mapping[str, Photo], source: Path, root: Path) -> None:
    missing = [name for name in names if name not in photos]
    if missing:
        raise DataError(
            f"{source} has cameras for {len(missing)} photos that are not in {root}, such as {missing[0]}. "
            "Copy them there, or remove their cameras."
        )


def _given_keypoints(folder: Path, photos: Mapping[str, Photo]) -> dict[str, Path]:
    files = {name: image_file(folder, name) for name in photos}
    missing = [file for file in files.values() if not file.is_file()]
    if missing:
        raise DataError(
            f"{folder} lacks the keypoints of {len(missing)} of {len(files)} photos, such as {missing[0].name}. "
            "Copy them again, or move the folder away to detect keypoints."
        )
    return files
