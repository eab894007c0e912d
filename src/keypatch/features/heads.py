"""What an HDF5 file of ours says about itself: written, and read from files that may be anybody's."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keypatch.errors import DataError
from keypatch.provenance import Provenance

Attributes = Mapping[str, str | int | float]

KINDS = {"keypatch-features": "feature file", "keypatch-matches": "match file"}  # in plain words
_HASH = re.compile(r"\b[0-9a-f]{64}\b")
_TOLD = 3  # settings


def make_head(kind: str, number: int, settings: Mapping[str, Any], origin: Provenance) -> Attributes:
    """The attributes that every file of ours has."""
    return {
        "format": kind,
        "format_number": number,
        "settings": json.dumps(dict(settings), sort_keys=True),
        "provenance": json.dumps(origin.to_json(), sort_keys=True),
    }


def require_kind(path: Path, file: Any, kind: str, number: int) -> bool:
    """Whether the file is of this kind, False where it says nothing, as hloc's; another or newer one is a DataError."""
    if "format" not in file.attrs:
        return False
    found = read_text(path, file, "format")
    if found != kind:
        raise DataError(f"{path} is a {KINDS.get(found, found)}, not a {KINDS[kind]}. Give the {KINDS[kind]}.")
    if read_number(path, file, "format_number") > number:
        raise DataError(f"{path} was written by a newer keypatch. Update keypatch to read it.")
    return True


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The settings that differ, few and short: "keypoints = 2048 (now 4096)"; empty where none does."""
    changed = [key for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
    told = ["descriptor"] if "descriptor" in changed else changed[:_TOLD]  # the others follow from it
    more = f" and {len(changed) - _TOLD} more" if len(told) == _TOLD < len(changed) else ""
    return ", ".join(f"{key} = {_short(before.get(key))} (now {_short(now.get(key))})" for key in told) + more


def read_number(path: Path, item: Any, name: str) -> int:
    """An attribute, of a file or a group, that is a whole number."""
    try:
        return int(item.attrs[name])
    except (KeyError, OSError, OverflowError, TypeError, ValueError) as error:
        raise _damaged(path, name) from error


def read_settings(path: Path, file: Any) -> dict[str, Any]:
    try:
        settings = json.loads(read_text(path, file, "settings"))
    except ValueError as error:
        raise _damaged(path, "settings") from error
    if not isinstance(settings, dict):
        raise _damaged(path, "settings")
    return settings


def read_text(path: Path, file: Any, name: str) -> str:
    """An attribute that is a text."""
    try:
        text = file.attrs[name]
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise _damaged(path, name) from error
    if not isinstance(text, str):
        raise _damaged(path, name)
    return text


def _short(value: Any) -> str:
    """A setting as it is told; of a hash its beginning."""
    return _HASH.sub(lambda found: found[0][:8], str(value))


def _damaged(path: Path, name: str) -> DataError:
    return DataError(f'{path} is damaged: its attribute "{name}" is missing or not what it should be. Write it again.')
