"""Match files: HDF5 in hloc's layout, with int32 numbers.

A group name0/name1, each name with "-" for "/", holds matches0 (n0,): for every keypoint of the first photo that of the
second, or -1; and matching_scores0 (n0,). hloc itself writes int16, whose numbers wrap above 32767, and float16.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError
from keypatch.features.feature_files import (
    MATCHES,
    find_group,
    get_group,
    group_names,
    open_h5,
    read_array,
    read_attribute,
    read_number,
    read_settings,
    require_array,
    require_kind,
)
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Model
from keypatch.storage import Place, as_place

_SEPARATORS = ("/", "_")  # of the two names; older files of hloc have the second


class MatchReader:
    """A match file, ours or hloc's, opened for reading; use it in a `with`."""

    def __init__(self, path: str | Path) -> None:
        """Raises DataError: the file is missing, damaged, of another kind, or of a newer format."""
        self.path = as_place(path)
        self._file = open_h5(self.path, "match file")
        try:
            if not require_kind(self.path, self._file, MATCHES):  # hloc's
                require_array(self.path, self._file, "matches0", "match file", "Write one with `keypatch match`.")
            known = read_attribute(self.path, self._file, "settings") is not None  # hloc's files have none
            self.settings = read_settings(self.path, self._file) if known else {}
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        """How many pairs it has; their names cannot be told from the keys."""
        return len(group_names(self._file))

    def totals(self) -> tuple[int, int, int]:
        """How many matches all pairs have together: before the verification, left by it, and of these at other places.

        A file that does not count places has as many as matches.
        """
        found = left = places = 0
        for key in group_names(self._file):
            group = find_group(self.path, self._file, key)
            count = len(_read(self.path, group))
            left += count
            found, places = (
                total
                + (count if read_attribute(self.path, group, name) is None else read_number(self.path, group, name))
                for total, name in ((found, "candidates"), (places, "places"))
            )
        return found, left, places

    def read(self, name0: str, name1: str, counts: Mapping[str, int] | None = None) -> Matches:
        """The matches of two photos, also where the file has them the other way round.

        Where `counts` says how many keypoints each photo has, matches of other ones raise DataError.
        """
        for separator, turned in product(_SEPARATORS, (False, True)):
            names = (name1, name0) if turned else (name0, name1)
            group = get_group(self.path, self._file, separator.join(map(mangled, names)))
            if group is not None:
                matches = _read(self.path, group, names[0], counts)
                return matches.swapped() if turned else matches
        raise DataError(f'{self.path} has no matches between "{name0}" and "{name1}".')


def read_matches(path: str | Path, name0: str, name1: str) -> Matches:
    """The matches of two photos in a match file, ours or hloc's.

    >>> features = kp.describe("photos", "features.h5", "rootsift")
    >>> kp.read_matches(kp.match_pairs(features, "exhaustive", "matches.h5"), "a.jpg", "b.jpg").verified
    True
    """
    with MatchReader(path) as reader:
        return reader.read(name0, name1)


def mangled(name: str) -> str:
    """A photo's name as part of a key, as hloc writes it."""
    return name.replace("/", "-")


def pair_key(name0: str, name1: str) -> str:
    return f"{mangled(name0)}/{mangled(name1)}"


def require_distinct_keys(names: Iterable[str]) -> None:
    """DataError if two photos would have the same key: x/y.jpg and x-y.jpg."""
    owner = dict[str, str]()
    for name in names:
        other = owner.setdefault(mangled(name), name)
        if other != name:
            raise DataError(
                f'"{other}" and "{name}" cannot be told apart in a match file, which replaces "/" with "-". '
                "Rename one of them."
            )


def write_matches(group: Any, matches: Matches, count0: int, candidates: int, places: int) -> None:
    """Fill a new group; `count0` is the number of keypoints of the first photo, `candidates` of unverified matches.

    `places` is the number of matches where several orientations of the same places count once.
    """
    partners, scores = np.full(count0, -1, np.int32), np.zeros(count0, np.float32)
    partners[matches.indices[:, 0]] = matches.indices[:, 1]
    scores[matches.indices[:, 0]] = matches.scores
    group.create_dataset("matches0", data=partners)
    group.create_dataset("matching_scores0", data=scores)
    group.attrs.update(candidates=candidates, places=places)
    if matches.verified:
        group.attrs["model"] = matches.model
        if matches.matrix is not None:
            group.attrs["matrix"] = matches.matrix


def _read(path: Place, group: Any, name: str = "", counts: Mapping[str, int] | None = None) -> Matches:
    """The matches of a group; `name` is that of its first photo."""
    partners, scores = read_array(path, group, "matches0"), read_array(path, group, "matching_scores0")
    if partners is None or partners.ndim != 1 or partners.dtype.kind not in "iu":
        raise DataError(f"{path}: {group.name}/matches0 is not a list of whole numbers. Write the file again.")
    if counts is not None and len(partners) != counts[name]:
        raise DataError(
            f"{path}: {group.name} was made for {len(partners)} keypoints of {name}, which has {counts[name]}. "
            "Features and matches are from different runs: match again."
        )
    if scores is None:
        scores = np.ones(len(partners), np.float32)
    if scores.shape != partners.shape or not np.isfinite(scores).all():
        raise DataError(f"{path}: {group.name} does not have a finite score for every match. Write the file again.")
    numbers = partners.astype(np.int64)
    first = np.flatnonzero(numbers >= 0)
    stated = read_attribute(path, group, "model")
    model = next((model for model in get_args(Model) if str(stated) == model), None)
    matrix = _read_matrix(path, group) if model else None
    indices: Any = np.stack([first, numbers[first]], axis=1)  # Matches refuses what is too large for int32
    return Matches(indices, scores[first].astype(np.float32), model is not None, model, matrix)


def _read_matrix(path: Place, group: Any) -> NDArray[np.float64] | None:
    matrix = read_attribute(path, group, "matrix")
    if matrix is None:
        return None
    matrix = np.asarray(matrix)
    if matrix.shape != (3, 3) or matrix.dtype.kind not in "fiu" or not np.isfinite(matrix).all():
        raise DataError(f"{path}: the matrix of {group.name} is not a finite 3 x 3 matrix. Write the file again.")
    return matrix.astype(np.float64)
