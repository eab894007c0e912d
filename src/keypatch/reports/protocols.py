"""What a report is made of: result files and the logs of runs, and which results may share a table.

Those of one benchmark on the same data with the same settings do.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from keypatch.benchmarks.comparison import CARD, shared_settings
from keypatch.benchmarks.result import FORMAT, Result
from keypatch.benchmarks.scores import find_score
from keypatch.benchmarks.table import headline_scores
from keypatch.errors import DataError
from keypatch.files import parse_json, read_json, read_text


@dataclass(frozen=True, eq=False)
class Source:
    """A result and the file it came from; "" for one that was handed over as a value."""

    result: Result
    file: str


@dataclass(frozen=True)
class Run:
    """The log of a training, a line of log.jsonl each."""

    name: str
    records: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Sources:
    """Everything that was found, in the order in which it was named; the files of a folder by their names."""

    results: tuple[Source, ...]
    runs: tuple[Run, ...]


def read_sources(places: Iterable[str | Path | Result]) -> Sources:
    """The results in files and folders, each once, and the logs of the run folders among them.

    A file has to be a result. Of a folder and the folders in it, JSON files of other kinds are passed over.

    Raises:
        DataError: there is nothing at a place, it holds no result, or one that is damaged.
    """
    results: list[Source] = []
    runs: list[Run] = []
    seen: set[Path] = set()
    for place in places:
        if isinstance(place, Result):
            results.append(Source(place, ""))
            continue
        path = Path(place)
        files = _files(path)
        if path.is_dir() and (path / "log.jsonl").is_file():
            runs.append(_read_run(path))
        elif not files:
            raise DataError(f"{path} holds no result of `keypatch evaluate ... --out FILE.json` and no training log.")
        results += [Source(Result.load(file), file.name) for file in files if file.resolve() not in seen]
        seen.update(file.resolve() for file in files)
    if not results and not runs:
        raise DataError("There are no results to report. Name result files, folders of result files, or run folders.")
    return Sources(tuple(results), tuple(runs))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return [file for file in sorted(path.rglob("*.json")) if FORMAT.is_of(read_json(file))]
    if not path.exists():
        raise DataError(f"There is no file or folder {path}. Check the path.")
    return [path]


def _read_run(folder: Path) -> Run:
    records = []
    for line in read_text(folder / "log.jsonl").splitlines():
        with suppress(ValueError):  # a line cut off when the process was killed
            records.append(parse_json(line))
    return Run(folder.resolve().name, tuple(records))


MOST_COLUMNS = 12  # a benchmark of others may call everything a headline


@dataclass(frozen=True, eq=False)
class Entry:
    """One row: a result under a label that no other row of its table has."""

    label: str
    result: Result
    file: str

    def score(self, name: str) -> float:
        return self.result.scores.get(name, math.nan)


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
        """The scores that a paper would print, of all rows."""
        return list(dict.fromkeys(name for entry in self.entries for name in headline_scores(entry.result)))[
            :MOST_COLUMNS
        ]

    def best(self, name: str) -> list[Entry]:
        """Who has the best score, all of them if several have; nobody where there is nothing to compare."""
        scores = {entry: entry.score(name) for entry in self.entries if math.isfinite(entry.score(name))}
        better = find_score(name).better
        if len(scores) < 2 or better == "neither":
            return []
        best = min(scores.values()) if better == "lower" else max(scores.values())
        return [entry for entry, score in scores.items() if score == best]


def group(sources: Sequence[Source]) -> list[Protocol]:
    """The tables of these results, in the order of their first results, benchmark by benchmark."""
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
        differs = _differences(first.benchmark, settings, data_hash, made)
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
    """The descriptor's name; of several with one name the notes on it, the date beside it, the file, or a number."""
    names = [source.result.descriptor for source in members]
    dates = [source.result.provenance.date[:16].replace("T", " ") for source in members]
    notes = [
        ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in each.result.notes.items()) for each in members
    ]
    files, numbers = [source.file for source in members], [str(number + 1) for number in range(len(members))]
    for marks in (notes, dates, files, numbers):
        repeated = Counter(names)
        marked = [
            f"{name} ({mark})" if mark and repeated[name] > 1 else name for name, mark in zip(names, marks, strict=True)
        ]
        if len(set(marked)) == len(marked):
            break
    return tuple(Entry(label, each.result, each.file) for label, each in zip(marked, members, strict=True))


def _best_first(protocol: Protocol) -> Protocol:
    names = protocol.headline()
    if not names:
        return protocol
    sign = 1 if find_score(names[0]).better == "lower" else -1

    def place(entry: Entry) -> float:
        score = entry.score(names[0])
        return sign * score if math.isfinite(score) else math.inf

    return replace(protocol, entries=tuple(sorted(protocol.entries, key=place)))


def _differences(benchmark: str, settings: Mapping[str, Any], data_hash: str, made: Sequence[Protocol]) -> str:
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
