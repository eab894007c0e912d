"""Whether a descriptor was trained on the images that it is scored on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keypatch.describers.protocol import HasTraining
from keypatch.images import Photo
from keypatch.patches.fingerprints import same_images
from keypatch.patches.patch_set import PatchSet
from keypatch.patches.sources import (
    DRAWN_FROM,
    Source,
    TrainingSet,
    find_sources,
    identity_of,
    sources_of,
    sources_of_strips,
)

SHOWN = 5  # names that a result keeps
MARK = "\N{DAGGER}"


@dataclass(frozen=True)
class Contamination:
    """How many of the images behind a score the descriptor was trained on; true where it was on any.

    A patch set that names no images counts as one.
    """

    images: int
    trained_on: int
    examples: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        numbers = (self.images, self.trained_on)
        if not all(isinstance(each, int) for each in numbers) or not 0 <= self.trained_on <= self.images:
            raise ValueError("the images trained on should be counted among all images")
        if not all(isinstance(each, str) for each in self.examples):
            raise TypeError("the examples of images trained on should be names")

    def __bool__(self) -> bool:
        return self.trained_on > 0

    def sentence(self) -> str:
        """For people; empty where no image was trained on."""
        if not self:
            return ""
        share = "all" if self.trained_on == self.images else f"{self.trained_on:,} of the"
        what = "the test data" if self.images == 1 else f"{share} {self.images:,} test images"
        others = ", ..." * (self.trained_on > len(self.examples))
        return f"Trained on {what} ({', '.join(self.examples)}{others}): not a score on unseen images."

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "examples": list(self.examples)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Contamination":
        """Raises KeyError, TypeError or ValueError for anything but the value of `to_json`."""
        return cls(value["images"], value["trained_on"], tuple(value["examples"]))


def seen_photos(source: object, photos: Iterable[Photo]) -> Contamination | None:
    """Of photographs; None where it is not known what images the descriptor was trained on."""
    trained = [each for known in _training(source) for each in known.sources]
    return _compare(find_sources(photos), trained) if trained else None


def seen_strips(source: object, folder: Path, sequences: Sequence[str]) -> Contamination | None:
    """Of the images that HPatches sequences were cut from, by the card of the folder, or of their strips."""
    trained = [each for known in _training(source) for each in known.sources]
    return _compare(sources_of_strips(folder, sequences), trained) if trained else None


def seen_patches(source: object, patches: PatchSet) -> Contamination | None:
    """Of the images a patch set was cut from; all of them, where it or what it was drawn from was trained on.

    None as above.
    """
    training = _training(source)
    if not training:
        return None
    sources = sources_of(patches)
    if {identity_of(patches), patches.card.get(DRAWN_FROM)} & {each.identity for each in training}:
        names = [each.name for each in sources] or [patches.name]
        return Contamination(len(names), len(names), tuple(names[:SHOWN]))
    trained = [each for known in training for each in known.sources]
    return _compare(sources, trained) if trained and sources else None


def _training(source: object) -> Sequence[TrainingSet]:
    """What a describer remembers; nothing of features or descriptors that others have computed."""
    return source.training if isinstance(source, HasTraining) else ()


def _compare(tested: Sequence[Source], trained: Sequence[Source]) -> Contamination:
    same = same_images([each.fingerprint for each in tested], [each.fingerprint for each in trained])
    found = [tested[position].name for position in dict.fromkeys(same[:, 0].tolist())]
    return Contamination(len(tested), len(found), tuple(found[:SHOWN]))
