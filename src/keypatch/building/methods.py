"""The methods of building, by name: the one table that the command line, the card and Python read."""

from keypatch.building.homographies import Homographies
from keypatch.building.observations import Finder, Method, Writer
from keypatch.building.pairs import PhotoPairs
from keypatch.building.sequences import Sequences
from keypatch.building.tracks import Tracks

METHODS: dict[str, type[Finder] | type[Writer]] = {
    "tracks": Tracks,
    "pairs": PhotoPairs,
    "homographies": Homographies,
    "sequences": Sequences,
}


def method_name(method: Method) -> str:
    return next(name for name, kind in METHODS.items() if type(method) is kind)
