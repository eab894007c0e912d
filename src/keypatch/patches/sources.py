"""The images a patch set was cut from, as its card names them, and what a descriptor remembers of its training sets."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from keypatch.errors import DataError
from keypatch.images import UNASKED_LIMIT, Photo
from keypatch.patches.fingerprints import Fingerprint, fingerprint
from keypatch.patches.hpatches import SEQUENCES
from keypatch.patches.patch_set import JoinedSets, PatchSet, PatchSource, read_set_card

SOURCES = "sources"  # of a card
DRAWN_FROM = "drawn_from"  # of a card: the `identity_of` the set whose points these are some of
_LOOKED_AT = 1000  # patches of a set, which tell it from all others


@dataclass(frozen=True)
class Source:
    """An image that patches were cut from."""

    name: str
    fingerprint: Fingerprint
    terms: str = ""  # under which it may be used, where stated

    def to_json(self) -> dict[str, str]:
        """{"name", "sha256", "perceptual"}, and "terms" where they are stated: an entry of a card's `sources`."""
        return {"name": self.name, **self.fingerprint.to_json(), **({"terms": self.terms} if self.terms else {})}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Source":
        """Raises KeyError, TypeError or ValueError for anything but the value of `to_json`."""
        terms = value.get("terms", "")
        if not isinstance(value["name"], str) or not isinstance(terms, str):
            raise TypeError("the name and the terms of a source should be strings")
        return cls(value["name"], Fingerprint.from_json(value), terms)


def find_sources(photos: Iterable[Photo], terms: str = "", pixel_limit: int = UNASKED_LIMIT) -> tuple[Source, ...]:
    """The photographs as sources, each read once; raises DataError where one cannot be."""
    return tuple(Source(photo.name, fingerprint(photo.path, pixel_limit), terms) for photo in photos)


def read_sources(card: Mapping[str, Any], place: str = "The card") -> tuple[Source, ...]:
    """The sources that a card names; none where it names none, as those of published sets.

    Raises:
        DataError: they are malformed.
    """
    try:
        return tuple(Source.from_json(each) for each in card.get(SOURCES, ()))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{place} names its sources in a form that cannot be read ({error}). Make the set again, or remove "
            '"sources" from its card.'
        ) from error


def sources_of(patches: PatchSet) -> tuple[Source, ...]:
    """The images a set was cut from, as its card names them; of HPatches strips as `sources_of_strips` does."""
    if patches.folder is not None and SEQUENCES in patches.card:
        return sources_of_strips(patches.folder, patches.card[SEQUENCES])
    return read_sources(patches.card, f"The card of {patches.name}")


def sources_of_strips(folder: Path, sequences: Iterable[str]) -> tuple[Source, ...]:
    """The images of these sequences, by the card beside them; a published sequence is known by its strip ref.png."""
    chosen = list(sequences)
    named = read_sources(read_set_card(folder), str(folder / "card.json"))
    if named:
        return tuple(each for each in named if PurePosixPath(each.name).parts[0] in chosen)
    return find_sources(Photo(name, folder / name / "ref.png") for name in chosen)


@dataclass(frozen=True)
class TrainingSet:
    """What a descriptor remembers of a set that it was trained on."""

    name: str
    identity: str  # `identity_of`
    sources: tuple[Source, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "identity": self.identity, SOURCES: [each.to_json() for each in self.sources]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "TrainingSet":
        """Raises KeyError, TypeError or ValueError for anything but the value of `to_json`."""
        if not isinstance(value["name"], str) or not isinstance(value["identity"], str):
            raise TypeError("the name and the identity of a training set should be strings")
        return cls(value["name"], value["identity"], tuple(Source.from_json(each) for each in value[SOURCES]))


def remember(source: PatchSource) -> tuple[TrainingSet, ...]:
    """The sets that a source of patches is made of, as a checkpoint keeps them; none where it is not made of sets."""
    sets: Sequence[PatchSet] = ()
    if isinstance(source, PatchSet | JoinedSets):
        sets = source.sets if isinstance(source, JoinedSets) else (source,)
    return tuple(TrainingSet(each.name, identity_of(each), sources_of(each)) for each in sets)


def identity_of(patches: PatchSet) -> str:
    """SHA-256 of the point ids and of a thousand patches spread over the set: the same for a copy of it."""
    digest = hashlib.sha256(np.ascontiguousarray(patches.point_id).tobytes())
    chosen = np.unique(np.linspace(0, max(len(patches) - 1, 0), _LOOKED_AT).astype(np.int64))
    digest.update(patches.take(chosen[: len(patches)]).tobytes())
    return digest.hexdigest()
