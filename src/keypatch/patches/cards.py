"""The card of a patch set of ours: where it comes from and how it was made."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keypatch.errors import DataError
from keypatch.files import write_json

FORMAT = "keypatch-patch-set"
FORMAT_NUMBER = 1


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    write_json(folder / "card.json", {"format": FORMAT, "format_number": FORMAT_NUMBER, **card})


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a folder; empty where there is none, as in published sets."""
    path = folder / "card.json"
    if not path.exists():
        return {}
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a card in JSON ({error}). Make it again or remove it.") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT or not isinstance(card.get("format_number"), int):
        raise DataError(f"{path} is not the card of a patch set. Make it again or remove it.")
    if card["format_number"] > FORMAT_NUMBER:
        raise DataError(
            f"{path} has the format {FORMAT} {card['format_number']}, this version of keypatch reads up to "
            f"{FORMAT_NUMBER}. Upgrade keypatch."
        )
    return card
