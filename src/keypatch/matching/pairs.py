"""Matches of many pairs of photographs into one match file: `keypatch match` of a folder or a feature file."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from keypatch.describers.protocol import Describer
from keypatch.engines import Parallel, Shard
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Extraction, FeatureReader, Features
from keypatch.features.description import describe
from keypatch.features.extraction import DESCRIPTOR, FileOptions
from keypatch.features.feature_files import MATCHES, make_head
from keypatch.features.filling import Group, fill, open_output
from keypatch.features.growing_file import require_output
from keypatch.files import reading
from keypatch.images import find_photos, listed
from keypatch.matching.image_matches import match_features
from keypatch.matching.match_files import pair_key, require_distinct_keys, write_matches
from keypatch.matching.matching import Matching
from keypatch.matching.verification import Intrinsics, plain_intrinsics, require_intrinsics
from keypatch.progress import Callback, Progress
from keypatch.provenance import provenance
from keypatch.storage import Place, as_place

EVERY = 2.0  # seconds of work that a killed process may lose
KEPT_BYTES = 2**29  # of descriptors that stay in memory

Pair = tuple[str, str]


def match_pairs(
    features: str | Path,
    pairs: str | Path,
    out: str | Path,
    matching: Matching = Matching(),  # noqa: B008  a frozen value
    *,
    names: Iterable[str] | None = None,
    intrinsics: Intrinsics | None = None,
    parallel: Parallel = Parallel(),  # noqa: B008
    shard: Shard | str | None = None,
    device: str = "auto",
    progress: Progress | Callback | None = None,
) -> Place:
    """Match photos of a feature file and return the match file, which plain h5py reads as hloc's (`match_files`).

    pairs: "exhaustive", "sequence:5" (each photo with the next five in name order), or a file with two names per
        line.
    names: the photos to match; None matches all photos of the feature file.
    out: pairs already in it are skipped; settings other than those it was started with are an error. A folder or an
        address is a store of many files.
    intrinsics: the camera of all photos, or its matrix K, for the model "E".
    parallel, shard: as for `describe`; only a shard's own pairs are kept in memory.

    >>> features = kp.describe("photos", "features.h5", "rootsift")
    >>> kp.match_pairs(features, "exhaustive", "matches.h5", kp.Matching(ratio=0.85))
    PosixPath('matches.h5')

    Raises:
        DataError: a name is not in the features, or two names could not be told apart in the file.
        Interrupted: Ctrl-C; finished pairs are in the file and the same call resumes.
    """
    cameras = None if intrinsics is None else [intrinsics]
    require_intrinsics(matching, cameras)
    part = Shard.parse(shard) if isinstance(shard, str) else shard
    source, place = as_place(features), as_place(out)
    with FeatureReader(source) as reader:
        wanted = find_pairs(pairs, _chosen(reader, names), part)
        require_distinct_keys(dict.fromkeys(name for pair in wanted for name in pair))
        settings = matching.settings() | {"intrinsics": plain_intrinsics(intrinsics)}
        settings |= {"descriptor": reader.descriptor, "features": dict(reader.settings)}
    head = make_head(MATCHES, settings, provenance())
    work = _Work(source, matching, cameras, device)
    with open_output(place, head, EVERY, part) as output:
        left = [pair for pair in wanted if not any(pair_key(*each) in output.keys for each in (pair, pair[::-1]))]
        filled = fill(output, work, left, len(wanted), parallel, Progress.of(progress), "pairs", "pairs matched so far")
    if filled.failures:
        count = f"{len(filled.failures):,} of {len(wanted):,} pairs could not be matched; {place} has the others."
        raise DataError("\n".join([count, listed(sorted({said for _, said in filled.failures}), "\n")]))
    return place


def match_photos(
    images: str | Path | Sequence[str | Path],
    out: str | Path,
    matching: Matching = Matching(),  # noqa: B008  a frozen value
    *,
    pairs: str | Path = "exhaustive",
    features: str | Path | None = None,
    describer: Describer | str | Path = DESCRIPTOR,
    extraction: Extraction = Extraction(),  # noqa: B008
    files: FileOptions = FileOptions(),  # noqa: B008
    intrinsics: Intrinsics | None = None,
    parallel: Parallel = Parallel(),  # noqa: B008
    device: str = "auto",
    precision: str = "auto",
    progress: Progress | Callback | None = None,
) -> Place:
    """Describe photos, match them and return the match file: `describe` and `match_pairs` in one call.

    features: the feature file or store to write or add to; by default features.h5 beside `out`.

    >>> kp.match_photos("photos", "matches.h5", describer="rootsift")
    PosixPath('matches.h5')

    Raises:
        DataError, Interrupted: as for `describe` and `match_pairs`; the same call resumes.
    """
    given = [images] if isinstance(images, str | Path) else images
    out = as_place(out)
    if isinstance(out, str) and features is None:
        raise KeypatchError(f"Matches at {out} need a place for the features too. Add --features.")
    kept = Path(out).with_name("features.h5") if features is None else as_place(features)
    if out == kept or (isinstance(out, Path) and isinstance(kept, Path) and out.absolute() == kept.absolute()):
        raise KeypatchError(f"{out} cannot hold both features and matches. Choose another --out or --features.")
    names = sorted(photo.name for photo in find_photos(given, files.root, remote=True))
    if len(names) < 2:
        raise KeypatchError(f"Matching needs at least two photos; there is only {names[0]}.")
    find_pairs(pairs, names)  # what is wrong is told before the photos are described
    require_intrinsics(matching, None if intrinsics is None else [intrinsics])
    require_output(out, MATCHES.name)
    how: dict[str, Any] = {"parallel": parallel, "device": device, "progress": progress}
    describe(given, kept, describer, extraction, files=files, precision=precision, **how)
    return match_pairs(kept, pairs, out, matching, names=names, intrinsics=intrinsics, **how)


def _chosen(reader: FeatureReader, names: Iterable[str] | None) -> Sequence[str]:
    """The photos to match, in the order of names."""
    known = reader.names()
    if not known:
        raise DataError(f"{reader.path} has no features. Describe some photos first.")
    if names is None:
        return known
    wanted = set(names)
    reader.require(wanted)
    return sorted(wanted)


@dataclass(frozen=True)
class _Work:
    """What is done with a pair, up to writing its matches."""

    features: Place
    matching: Matching
    cameras: Sequence[Intrinsics] | None
    device: str

    def key(self, pair: Pair) -> str:
        return pair_key(*pair)

    @contextmanager
    def open(self) -> Iterator[Callable[[Pair], Group]]:
        with FeatureReader(self.features) as reader:
            yield partial(self.match, read=_keeping(reader.read, KEPT_BYTES))

    def match(self, pair: Pair, read: Callable[[str], Features]) -> Group:
        first, second = map(read, pair)
        candidates, matches = match_features(first, second, self.matching, self.cameras, device=self.device)
        counts = {"count0": len(first), "candidates": len(candidates)}
        counts["places"] = len(matches.once(first.keypoints, second.keypoints))
        return Group(partial(write_matches, matches=matches, **counts))


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


def find_pairs(rule: str | Path, names: Sequence[str], shard: Shard | None = None) -> list[Pair]:
    """Pairs of the named photos by a rule, each once, in either order; of a shard's share alone.

    "exhaustive" is every photo with every other, "sequence:5" each with the next five in the order given, anything else
    a file with two names on each line.

    Raises:
        KeypatchError: the rule is malformed, or the file is missing or names a photo that is not there.
    """
    pairs = _pairs_by(rule, names)
    if shard is not None:  # a pair is in one of them, whichever of its photos comes first
        return [pair for pair in pairs if shard.has("\n".join(sorted(pair)))]
    return list(pairs)


def _pairs_by(rule: str | Path, names: Sequence[str]) -> Iterable[Pair]:
    if rule == "exhaustive":
        return combinations(names, 2)
    if str(rule).startswith("sequence:"):
        reach = str(rule).removeprefix("sequence:")
        if not reach.isdecimal() or int(reach) < 1:
            raise KeypatchError(
                f'--pairs {rule}: "{reach}" is not a number of neighbours. Write, for example, sequence:5.'
            )
        return ((name, other) for i, name in enumerate(names) for other in names[i + 1 : i + 1 + int(reach)])
    return _read_pairs(Path(rule), names)


def _read_pairs(path: Path, names: Sequence[str]) -> Iterator[Pair]:
    if not path.exists():
        raise KeypatchError(
            f"There is no pairs file {path}. Give a file, exhaustive, or sequence:5 (each with the next 5)."
        )
    known, seen = set(names) if isinstance(names, list) else names, set[int]()  # a store looks names up
    with reading(path, "text file"), path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            words = line.split()
            if not words:
                continue
            if len(words) != 2:
                raise DataError(f"{path}, line {number}: expected two names without spaces, found {line.strip()!r}.")
            for name in words:
                if name not in known:
                    raise DataError(
                        f'{path}, line {number}: "{name}" is not among the photos to match.{_hint(name, names)}'
                    )
            if words[0] == words[1]:
                raise DataError(f'{path}, line {number}: "{words[0]}" is paired with itself. Remove the line.')
            both = hash(frozenset(words))  # of 64 bits: a set of names would need ten times the memory
            if both not in seen:
                seen.add(both)
                yield words[0], words[1]


def _hint(name: str, names: Sequence[str]) -> str:
    other_folder = [each for each in names if each.endswith(f"/{name}") or name.endswith(f"/{each}")]
    close = other_folder or get_close_matches(name, names, n=1)
    return f' Did you mean "{close[0]}"?' if close else f" There are, for example, {', '.join(names[:3])}."
