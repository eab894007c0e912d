"""Cards: what a descriptor is, what it was trained on and under which terms it may be used."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from keypatch.errors import DataError
from keypatch.files import Format, hash_file, reading, write_json
from keypatch.patches.sources import TrainingSet

WEIGHTS = Path(__file__).parent / "weights"  # <name>.safetensors and its card <name>.json
FORMAT = Format("keypatch-card", 1, "card of a descriptor")


@dataclass(frozen=True)
class Card:
    """One entry of the zoo."""

    name: str
    about: str  # one line
    dim: int
    network: str = ""  # empty: not a network
    trained_on: str = ""
    terms: str = ""  # of the weights and of the data they were trained on
    weights_hash: str = ""  # SHA-256 of the weight file
    scores: Mapping[str, float] = field(default_factory=dict)  # fractions, under the names of the result files
    training: tuple[TrainingSet, ...] = ()  # as far as it was recorded

    def to_json(self) -> dict[str, Any]:
        return {**FORMAT.head(), **asdict(self), "training": [each.to_json() for each in self.training]}

    def save(self, path: Path) -> None:
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: Path) -> "Card":
        value = FORMAT.read_json(path)
        with reading(path, FORMAT.title):
            known = {entry.name: value[entry.name] for entry in fields(cls) if entry.name in value}
            return cls(**{**known, "training": training_of(value, path)})


def training_of(card: Mapping[str, Any], place: Path) -> tuple[TrainingSet, ...]:
    """The training sets that the card of a descriptor, or of a weight file, names; none of an older file.

    Raises:
        DataError: they are malformed.
    """
    with reading(place, FORMAT.title):
        return tuple(TrainingSet.from_json(each) for each in card.get("training", ()))


HANDMADE = (
    Card("sift", "OpenCV's SIFT, with its 4x4 grid spanning the patch", dim=128),
    Card("rootsift", "SIFT, L1-normalized and square-rooted (Arandjelovic and Zisserman 2012)", dim=128),
)


def shipped_cards() -> list[Card]:
    """The cards of the weights that come with the package, by name."""
    return [Card.load(path) for path in sorted(WEIGHTS.glob("*.json"))]


def shipped_file(card: Card) -> Path:
    """The weight file of a shipped card; raises DataError if it is not the file the card describes."""
    path = WEIGHTS / f"{card.name}.safetensors"
    if not path.exists() or hash_file(path) != card.weights_hash:
        raise DataError(f"{path} is missing or is not the file its card describes. Reinstall keypatch.")
    return path
