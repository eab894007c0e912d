"""A detector from the command line: its name and `--set NAME=VALUE`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from keypatch.errors import KeypatchError

if TYPE_CHECKING:
    from keypatch.detection import Detector


def choose_detector(name: str, settings: Sequence[str]) -> "Detector":
    """The detector of that name with the settings "contrast_threshold=0.02"; a wrong one raises KeypatchError."""
    from keypatch.detection import DETECTORS, make_detector

    types = get_type_hints(DETECTORS[name]) if name in DETECTORS else {}
    values = dict[str, Any]()
    for setting in settings:
        field, equals, text = setting.partition("=")
        if not equals:
            raise KeypatchError(f"--set {setting}: write NAME=VALUE.")
        values[field] = _value(setting, types.get(field, str), text)
    return make_detector(name, **values)


def _value(setting: str, kind: Any, text: str) -> Any:
    if kind is Path:
        return Path(text).expanduser()
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise KeypatchError(f"--set {setting}: choose {', '.join(get_args(kind))}.")
        return text
    try:
        return kind(text)
    except ValueError:
        raise KeypatchError(f"--set {setting}: {text} is not a number.") from None
