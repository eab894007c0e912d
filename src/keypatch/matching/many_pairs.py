"""Matches of many pairs of photographs into one match file: what `keypatch match --features` does."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from keypatch.errors import DataError, Interrupted
from keypatch.features import FeatureReader, Features
from keypatch.features.growing_file import GrowingFile, grow_file
from keypatch.features.heads import make_head
from keypatch.features.progress import Quiet, Reporter, counted
from keypatch.interrupting import StopWish
from keypatch.matching.match_files import FORMAT, NUMBER, pair_key, require_distinct_keys, write_matches
from keypatch.matching.matches import Model
from keypatch.matching.matching import Matching, match_features
from keypatch.matching.neighbours import Mode, Sides
from keypatch.matching.pairs import Pair, find_pairs
from keypatch.matching.verifying import Estimator
from keypatch.provenance import provenance

EVERY = 2.0  # seconds of work that a killed process may lose
KEPT_BYTES = 2**29  # of descriptors that stay in memory


def match_pairs(
    features: str | Path,
    pairs: str | Path,
    out: str | Path,
    *,
    names: Iterable[str] | None = None,
    mode: Mode = Matching.mode,
    ratio: float | None = Matching.ratio,
    ratio_sides: Sides = Matching.ratio_sides,
    model: Model | None = Matching.model,
    estimator: Estimator = Matching.estimator,
    threshold: float = Matching.threshold,
    intrinsics: ArrayLike | None = None,
    seed: int = Matching.seed,
    neighbours: str = Matching.neighbours,
    device: str = Matching.device,
    reporter: Reporter | None = None,
) -> Path:
    """Match photos of a feature file and return the match file, which plain h5py reads as hloc's (`match_files`).

    pairs: "exhaustive", "sequence:5" (each photo with the next five in the order of names), or a file with two names on
        each line.
    names: of the photos to match; None is all that the features have.
    out: pairs that are in it already are skipped; with other settings than it was begun with, an error.
    intrinsics: the matrix K of all photos, for the model "E". The others are those of `match`.

    Raises:
        DataError: a name is not in the features, or two names could not be told apart in the file.
        Interrupted: Ctrl-C; what was done is in the file and the same call goes on.
    """
    matching = Matching(mode, ratio, ratio_sides, model, estimator, threshold, seed, neighbours, device)
    cameras = None if intrinsics is None else [intrinsics]
    matching.check_intrinsics(cameras)
    with FeatureReader(features) as reader:
        wanted = find_pairs(pairs, _chosen(reader, names))
        require_distinct_keys(reader.names())
        settings = matching.settings() | {"intrinsics": None if intrinsics is None else np.asarray(intrinsics).tolist()}
        settings |= {"descriptor": reader.descriptor, "features": dict(reader.settings)}
        head = make_head(FORMAT, NUMBER, settings, provenance())
        with grow_file(Path(out), head, EVERY) as file, reporter or Quiet() as telling:
            _match_all(wanted, reader, matching, cameras, file, telling)
    return Path(out)


def _chosen(reader: FeatureReader, names: Iterable[str] | None) -> list[str]:
    """The photos to match, in the order of names."""
    known = reader.names()
    if not known:
        raise DataError(f"{reader.path} has features of no photo. Describe some first.")
    wanted = set(known if names is None else names)
    reader.require(wanted)
    return [name for name in known if name in wanted]


def _match_all(
    pairs: Sequence[Pair],
    reader: FeatureReader,
    matching: Matching,
    intrinsics: Sequence[ArrayLike] | None,
    file: GrowingFile,
    reporter: Reporter,
) -> None:
    read = _keeping(reader.read, KEPT_BYTES)
    left = [pair for pair in pairs if pair_key(*pair) not in file.keys and pair_key(*pair[::-1]) not in file.keys]
    done = len(pairs) - len(left)
    reporter.count(done, len(pairs), "pairs")
    with StopWish() as stop:
        for name0, name1 in left:
            if stop:
                has = counted(len(file.keys), "pair")
                raise Interrupted(f"Stopped: {file.path} has {has}. The same command goes on.")
            first, second = read(name0), read(name1)
            candidates, matches = match_features(first, second, matching, intrinsics)
            write = partial(write_matches, matches=matches, count0=len(first), candidates=len(candidates))
            file.add(pair_key(name0, name1), write)
            done += 1
            reporter.count(done, len(pairs), "pairs")


def _keeping(read: Callable[[str], Features], limit: int) -> Callable[[str], Features]:
    """The function, remembering what it gave last, up to so many bytes of descriptors."""
    kept = dict[str, Features]()

    def read_or_remember(name: str) -> Features:
        features = kept.pop(name) if name in kept else read(name)
        kept[name] = features  # the latest is the last
        while len(kept) > 1 and sum(each.descriptors.nbytes for each in kept.values()) > limit:
            del kept[next(iter(kept))]
        return features

    return read_or_remember
