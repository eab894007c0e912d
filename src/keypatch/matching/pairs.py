"""Which photos are matched with which."""

from collections.abc import Sequence
from difflib import get_close_matches
from itertools import combinations
from pathlib import Path

from keypatch.errors import DataError, KeypatchError
from keypatch.files import reason

Pair = tuple[str, str]


def find_pairs(rule: str | Path, names: Sequence[str]) -> list[Pair]:
    """Pairs of the named photos by a rule, each once, in either order.

    "exhaustive" is every photo with every other, "sequence:5" each with the next five in the order given, anything else
    a file with two names on each line.

    Raises:
        KeypatchError: the rule is malformed, or the file is missing or names a photo that is not there.
    """
    if rule == "exhaustive":
        return list(combinations(names, 2))
    if str(rule).startswith("sequence:"):
        reach = str(rule).removeprefix("sequence:")
        if not reach.isdecimal() or int(reach) < 1:
            raise KeypatchError(f'In --pairs {rule}, "{reach}" is not a number of neighbours. Write sequence:5.')
        return [(name, other) for i, name in enumerate(names) for other in names[i + 1 : i + 1 + int(reach)]]
    return _read_pairs(Path(rule), names)


def _read_pairs(path: Path, names: Sequence[str]) -> list[Pair]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise KeypatchError(
            f"There is no file of pairs {path}. Give one, or write exhaustive, or sequence:5 for the next 5 of each."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is not a text in UTF-8"
        raise DataError(f"{path} cannot be read: {why}.") from error
    known, pairs = set(names), dict[frozenset[str], Pair]()
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        if len(words) != 2:
            raise DataError(
                f"{path}, line {number}: expected two names without blanks in them, found {line.strip()!r}."
            )
        for name in words:
            if name not in known:
                raise DataError(
                    f'{path}, line {number}: there is no photo "{name}" among those to match.{_hint(name, names)}'
                )
        if words[0] == words[1]:
            raise DataError(f'{path}, line {number}: "{words[0]}" is paired with itself. Remove the line.')
        pairs.setdefault(frozenset(words), (words[0], words[1]))
    return list(pairs.values())


def _hint(name: str, names: Sequence[str]) -> str:
    other_folder = [each for each in names if each.endswith(f"/{name}") or name.endswith(f"/{each}")]
    close = other_folder or get_close_matches(name, names, n=1)
    return f' Did you mean "{close[0]}"?' if close else f" There are, for example, {', '.join(names[:3])}."
