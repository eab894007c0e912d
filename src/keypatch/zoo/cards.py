"""Cards: what a descriptor is, what it was trained on and under which terms it may be used."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from keypatch.errors import DataError
from keypatch.files import hash_file, reason, write_json

WEIGHTS = Path(__file__).parent / "weights"  # <name>.safetensors and its card <name>.json
FORMAT = "keypatch-card"
FORMAT_NUMBER = 1


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

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "format_number": FORMAT_NUMBER, **asdict(self)}

    def save(self, path: Path) -> None:
        write_json(path, self.to_json())

    @classmethod
    def load(cls, path: Path) -> "Card":
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"{path} cannot be read: {reason(error)}.") from None
        except ValueError as error:
            raise DataError(f"{path} is not a JSON file ({error}).") from None
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise DataError(f"{path} is not a card of keypatch.")
        number = value.get("format_number")
        if not isinstance(number, int) or number > FORMAT_NUMBER:
            raise DataError(
                f"{path} has the format {FORMAT} {number}, this version of keypatch reads up to {FORMAT_NUMBER}. "
                "Upgrade keypatch."
            )
        try:
            return cls(**{entry.name: value[entry.name] for entry in fields(cls) if entry.name in value})
        except TypeError:
            raise DataError(f"{path}: a card needs at least the entries name, about and dim.") from None


HANDMADE = (
    Card("sift", "SIFT of the patch by OpenCV, the 4x4 grid spanning it", dim=128),
    Card("rootsift", "SIFT over its sum, square root taken (Arandjelovic and Zisserman 2012)", dim=128),
)


def shipped_cards() -> list[Card]:
    """The cards of the weights that come with the package, by name."""
    return [Card.load(path) for path in sorted(WEIGHTS.glob("*.json"))]


def shipped_file(card: Card) -> Path:
    """The weight file of a shipped card; raises DataError if it is not the file the card describes."""
    path = WEIGHTS / f"{card.name}.safetensors"
    if not path.exists() or hash_file(path) != card.weights_hash:
        raise DataError(f"{path} is missing or is not the file its card describes. Install keypatch again.")
    return path
