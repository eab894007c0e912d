"""Which results may stand in one table: those of one benchmark on the same data with the same settings."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from keypatch.benchmarks.comparing import CARD, own_settings, shared_settings
from keypatch.benchmarks.result import Result, lower_is_better
from keypatch.benchmarks.table import headline_scores
from keypatch.reports.reading import Source

MOST_COLUMNS = 12  # a benchmark of others may call everything a headline
_UNORDERED = ("spread.", "count.", "sd.")  # scores of which neither the higher nor the lower is better


@dataclass(frozen=True, eq=False)
class Entry:
    """One row: a result under a label that no other row of its table has."""

    label: str
    result: Result
    file: str

    def score(self, name: str) -> float:
        return self.result.scores.get(name, math.nan)

    def own_settings(self) -> dict[str, Any]:
        """How patches are cut for this descriptor."""
        return own_settings(self.result)


@dataclass(frozen=True, eq=False)
class Protocol:
    """The results of one table, the best by the first headline score first."""

    title: str
    benchmark: str
    settings: Mapping[str, Any]
    data_hash: str
    entries: tuple[Entry, ...]
    differs: str  # in what from an earlier table of the same benchmark; "" for the first

    def headline(self) -> list[str]:
        """The scores that a paper would print, those of all rows."""
        return list(dict.fromkeys(name for entry in self.entries for name in headline_scores(entry.result)))[
            :MOST_COLUMNS
        ]

    def best(self, name: str) -> list[Entry]:
        """Who has the best score, all of them if several have; nobody where there is nothing to compare."""
        scores = {entry: entry.score(name) for entry in self.entries if math.isfinite(entry.score(name))}
        if len(scores) < 2 or not has_order(name):
            return []
        best = min(scores.values()) if lower_is_better(name) else max(scores.values())
        return [entry for entry, score in scores.items() if score == best]


def has_order(name: str) -> bool:
    """Whether one of two such scores is the better one."""
    return not name.startswith(_UNORDERED) and not name.endswith((".sd", ".lowest", ".highest"))


def group(sources: Sequence[Source]) -> list[Protocol]:
    """The tables of these results, in the order of their first results, those of one benchmark together."""
    benchmarks = list(dict.fromkeys(source.result.benchmark for source in sources))
    kinds: dict[str, list[Source]] = {}
    for source in sorted(sources, key=lambda source: benchmarks.index(source.result.benchmark)):
        kinds.setdefault(_key(source.result), []).append(source)
    made: list[Protocol] = []
    for members in kinds.values():
        first = members[0].result
        settings = shared_settings(first)
        data_hash = first.provenance.hashes.get("data", "")
        title = f"{first.benchmark} on {_data_name(settings)}"
        differs = _differences(title, first.benchmark, settings, data_hash, made)
        protocol = Protocol(title, first.benchmark, settings, data_hash, _labelled(members), differs)
        made.append(_best_first(protocol))
    return made


def _key(result: Result) -> str:
    settings = {name: value for name, value in shared_settings(result).items() if name != CARD}
    depends = [result.benchmark, result.provenance.hashes.get("data", ""), settings]
    return json.dumps(depends, sort_keys=True, default=str)


def _data_name(settings: Mapping[str, Any]) -> str:
    named = next((settings[name] for name in ("data", "scenes", "sequences") if name in settings), "unnamed data")
    text = ", ".join(map(str, named)) if isinstance(named, list) else str(named)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _labelled(members: Sequence[Source]) -> tuple[Entry, ...]:
    """The descriptor's name; of several with one name the date beside it, or the file, or a number."""
    names = [source.result.descriptor for source in members]
    dates = [source.result.provenance.date[:16].replace("T", " ") for source in members]
    for marks in (dates, [source.file for source in members], [str(number + 1) for number in range(len(members))]):
        repeated = Counter(names)
        marked = [f"{name} ({mark})" if repeated[name] > 1 else name for name, mark in zip(names, marks, strict=True)]
        if len(set(marked)) == len(marked):
            break
    return tuple(Entry(label, each.result, each.file) for label, each in zip(marked, members, strict=True))


def _best_first(protocol: Protocol) -> Protocol:
    names = protocol.headline()
    if not names:
        return protocol
    sign = 1 if lower_is_better(names[0]) else -1

    def place(entry: Entry) -> float:
        score = entry.score(names[0])
        return sign * score if math.isfinite(score) else math.inf

    return replace(protocol, entries=tuple(sorted(protocol.entries, key=place)))


def _differences(
    title: str, benchmark: str, settings: Mapping[str, Any], data_hash: str, made: Sequence[Protocol]
) -> str:
    """In what this differs from the nearest earlier table of its benchmark, as a sentence."""
    earlier = [each for each in made if each.benchmark == benchmark]
    if not earlier:
        return ""
    other = next((each for each in earlier if each.data_hash == data_hash), earlier[0])
    changed = [
        f"{name} {_short(settings.get(name))} instead of {_short(other.settings.get(name))}"
        for name in dict.fromkeys([*other.settings, *settings])
        if name != CARD and settings.get(name) != other.settings.get(name)
    ]
    if data_hash != other.data_hash:
        changed.insert(0, f"other data (SHA-256 {data_hash[:8] or 'unknown'} instead of {other.data_hash[:8]})")
    return f"Not to be compared with the table of {other.title}: {', '.join(changed)}."


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
