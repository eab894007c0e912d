"""The validation sets of a training: pair lists, or strips of HPatches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keypatch.benchmarks.contamination import Contamination, seen_patches, seen_strips
from keypatch.benchmarks.hpatches.descriptors import StripDescriptors, StripPatches
from keypatch.benchmarks.hpatches.matching import match_strips
from keypatch.benchmarks.hpatches.strips import EVERY, Strips, find_strips
from keypatch.errors import DataError
from keypatch.networks import PatchNetwork
from keypatch.patches import open_patches
from keypatch.patches.hpatches import STRIPS
from keypatch.patches.layouts import EMBEDDED, find_layout
from keypatch.patches.phototour import find_pair_lists
from keypatch.patches.sources import TrainingSet
from keypatch.training.validation import PairValidation, Validation, describe_now


@dataclass(frozen=True)
class StripValidation:
    """Matching mAP on strips of HPatches, as `keypatch evaluate --on hpatches` counts it."""

    strips: Strips

    @property
    def name(self) -> str:
        return self.strips.folder.resolve().name

    @property
    def score(self) -> str:
        return "matching.map"

    def __call__(self, network: PatchNetwork) -> float:
        names, counts = self.strips.names, np.array(self.strips.counts)
        every = [(name, strip) for name in names for strip in STRIPS]
        patches = StripPatches(self.strips.folder, every, np.repeat(counts, len(STRIPS)))
        rows = describe_now(network, patches, np.arange(len(patches)))
        matched = match_strips(StripDescriptors(tuple(names), counts, rows), "L2", "pessimistic", "trapezoid")
        return float(matched.precision.mean())


def open_validations(places: Sequence[str], split: str | None = None) -> list[Validation]:
    """A score of each set: FPR95 on its hard list, else its first; of strips those of the split's test part."""
    opened = [_open(place, split) for place in places]
    names = [each.name for each in opened]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f'Two validation sets are called "{twice[0]}". Rename the folder of one of them.')
    return opened


@dataclass(frozen=True)
class _Trained:
    """A descriptor to be, as far as tests for training data know it."""

    training: tuple[TrainingSet, ...]


def find_trained_on(validations: Sequence[Validation], training: Sequence[TrainingSet]) -> Iterator[str]:
    """A sentence for each set with images that are trained on, or were by what the training starts from."""
    descriptor = _Trained(tuple(training))
    for each in validations:
        seen: Contamination | None = None
        if isinstance(each, PairValidation):
            seen = seen_patches(descriptor, each.patches)
        elif isinstance(each, StripValidation):
            seen = seen_strips(descriptor, each.strips.folder, each.strips.names)
        if seen:
            part = "" if seen.trained_on == seen.images else f" ({seen.trained_on:,} of its {seen.images:,} images)"
            yield f"{each.name} is trained on{part}: as a validation set it says nothing about other data."


def _open(place: str, split: str | None) -> Validation:
    if place not in EMBEDDED and find_layout(Path(place)) == "hpatches":
        return StripValidation(find_strips(Path(place), split or EVERY))
    patches = open_patches(place)
    lists = find_pair_lists(patches)
    if not lists:
        raise DataError(f"{place} has no pair list to validate on, such as m50_1000_1000_0.txt.")
    hard = [pairs for pairs in lists if pairs.name.startswith("hard")]
    return PairValidation(patches, (hard or list(lists))[0])
