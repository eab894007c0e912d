"""Of which file a photo's features are: its size and hash, so that another photo of the same name is noticed."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from keypatch.errors import DataError
from keypatch.features.feature_files import find_group, open_h5
from keypatch.features.photos import Photo
from keypatch.files import hash_file

BYTES, HASH = "photo_bytes", "photo_sha256"  # attributes of the photo's group


def stamp(path: Path) -> Mapping[str, str | int]:
    """The attributes of a group whose features are of this photo."""
    return {BYTES: path.stat().st_size, HASH: hash_file(path)}


def require_same_photos(features: Path, photos: Iterable[Photo]) -> None:
    """DataError if the file has features of another photo of the same name; those without a stamp are believed."""
    with open_h5(features) as file:
        for name, path, _ in photos:
            known = find_group(features, file, name).attrs
            if HASH in known and path.is_file() and not _same(path, known):
                raise DataError(
                    f"{name} in {features} is another photo than {path}. Choose another output, or delete the file."
                )


def _same(path: Path, known: Mapping[str, object]) -> bool:
    return path.stat().st_size == known.get(BYTES) and hash_file(path) == known[HASH]
