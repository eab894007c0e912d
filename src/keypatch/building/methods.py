"""The methods of building, by name: the one table that the command line, the card and Python read."""

from keypatch.building.observations import Method
from keypatch.building.pairs import PhotoPairs
from keypatch.building.tracks import Tracks

METHODS: dict[str, type[Method]] = {"tracks": Tracks, "pairs": PhotoPairs}


def method_name(method: Method) -> str:
    return next(name for name, kind in METHODS.items() if type(method) is kind)
