"""Where matches and the model of an evaluation lie: a folder of the user's, or one in the cache, taken up again.

Matches are in the benchmark's own files, a file for each pair, there whole or not at all.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from keypatch.benchmarks.kept_folders import LOCK, hold_chosen_folder, hold_kept_folder
from keypatch.describers.protocol import Progress
from keypatch.errors import KeypatchError
from keypatch.features import Features
from keypatch.features.eth_files import (
    DESCRIPTORS,
    KEYPOINTS,
    MATCHES,
    image_file,
    pair_file,
    write_eth_descriptors,
    write_eth_keypoints,
    write_eth_matches,
)
from keypatch.files import write_json
from keypatch.matching.neighbours import match_descriptors
from keypatch.matching.pairs import Pair

RECORD = "sfm.json"
FORMAT, NUMBER = "keypatch-sfm", 1
IN_MEMORY = 32  # photos' features: 200 MB of 13,000 keypoints with 128 numbers


@contextmanager
def hold_folder(chosen: str | Path | None, made_of: Mapping[str, Any]) -> Iterator[Path]:
    """The folder of matches that depend on `made_of`, held by this process; None is one in the cache.

    Raises:
        KeypatchError: the chosen one cannot be made, holds something else, or another process works in it.
    """
    key = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:32]
    kept = hold_kept_folder("sfm", key, "Matches and models") if chosen is None else hold_chosen_folder(Path(chosen))
    with kept as folder:
        recorded = read_record(folder)
        if recorded is None:
            write_json(folder / RECORD, {"format": FORMAT, "format_number": NUMBER, "made_of": dict(made_of)})
        elif changed := [key for key in sorted({*recorded, *made_of}) if recorded.get(key) != made_of.get(key)]:
            raise KeypatchError(
                f"{folder} has matches of another evaluation: {', '.join(changed)} differ. Choose a new folder."
            )
        yield folder


def read_record(folder: Path) -> dict[str, Any] | None:
    """What the matches in a folder depend on; None if nothing is in it, KeypatchError if anything but matches is."""
    if not folder.exists():
        return None
    content = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
    if not content - {LOCK}:
        return None
    try:
        value = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        value = None
    if not isinstance(value, dict) or value.get("format") != FORMAT or not isinstance(value.get("made_of"), dict):
        raise KeypatchError(f"{folder} holds something else than matches of keypatch. Choose a new folder.")
    if int(value.get("format_number", 0)) > NUMBER:
        raise KeypatchError(f"{folder} was written by a newer keypatch. Update keypatch or choose a new folder.")
    return dict(value["made_of"])


def write_features(folder: Path, features: Mapping[str, Features]) -> None:
    """Keypoints and descriptors in the benchmark's files, for its public scripts."""
    for name in features:
        keypoints, descriptors = (image_file(folder / kind, name) for kind in (KEYPOINTS, DESCRIPTORS))
        if not descriptors.exists():  # written last
            each = features[name]
            write_eth_keypoints(keypoints, each.keypoints)
            write_eth_descriptors(descriptors, each.descriptors)


def write_all_matches(
    folder: Path,
    features: Mapping[str, Features],
    pairs: Sequence[Pair],
    ratio: float | None,
    minimum: int,
    progress: Progress | None = None,
) -> None:
    """The mutual nearest neighbours of every pair whose file is not there yet; fewer than the minimum are none.

    The ratio is tested from the first photo of the pair only.
    """
    read = lru_cache(IN_MEMORY)(features.__getitem__)
    for number, (first, second) in enumerate(pairs):
        path = pair_file(folder / MATCHES, first, second)
        if not path.exists():
            rows = read(first).descriptors, read(second).descriptors
            indices = match_descriptors(*rows, ratio, ratio_sides="first").indices
            write_eth_matches(path, indices if len(indices) >= minimum else indices[:0])
        if progress is not None:
            progress(number + 1, len(pairs))


def hash_matched(features: Mapping[str, Features], pairs: Sequence[Pair]) -> dict[str, str]:
    """SHA-256 of names, keypoints and descriptors, wherever they come from, and of the pairs."""
    digest = hashlib.sha256()
    for name, each in features.items():
        points = each.keypoints
        digest.update(f"{name}\0{each.descriptors.shape}".encode())
        for array in (points.x, points.y, points.sigma, points.angle, each.descriptors):
            digest.update(array.tobytes())
    return {"features": digest.hexdigest(), "pairs": hashlib.sha256(json.dumps(pairs).encode()).hexdigest()}
