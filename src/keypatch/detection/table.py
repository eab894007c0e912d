"""Detectors by name."""

from dataclasses import MISSING, fields
from typing import Any

from keypatch.detection.colmap import ColmapSift
from keypatch.detection.dog import Dog
from keypatch.detection.grid import Grid
from keypatch.detection.keynet import KeyNet
from keypatch.detection.orb import Orb
from keypatch.detection.protocol import Detector
from keypatch.errors import KeypatchError

DETECTORS: dict[str, type[Any]] = {kind.name: kind for kind in (Dog, ColmapSift, Orb, KeyNet, Grid)}


def make_detector(name: str, **values: Any) -> Detector:
    """The detector of that name with these fields; the others take their defaults."""
    if name not in DETECTORS:
        raise KeypatchError(f'There is no detector "{name}". The detectors: {", ".join(DETECTORS)}.')
    known = fields(DETECTORS[name])
    for field in values:
        if field not in [each.name for each in known]:
            names = ", ".join(each.name for each in known)
            raise KeypatchError(f'The detector {name} has no setting "{field}". Its settings: {names}.')
    for each in known:
        if each.default is MISSING and each.name not in values:
            raise KeypatchError(f"The detector {name} needs --set {each.name}=FILE (docs/detectors.md).")
    detector: Detector = DETECTORS[name](**values)
    return detector
