"""What a report is made of: result files and the logs of runs, and which results may share a table.

Those of one benchmark on the same data with the same settings do.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from keypatch.benchmarks.comparison import CARD, own_settings, shared_settings
from keypatch.benchmarks.result import FORMAT, Result
from keypatch.benchmarks.scores import find_score
from keypatch.benchmarks.table import headline_scores
from keypatch.errors import DataError, KeypatchError
from keypatch.files import read_json
from keypatch.training.run_folder import LOG, read_log


@dataclass(frozen=True, eq=False)
class Source:
    """A result and the end of its path, as long as it takes to tell it from the others; "" for one without a file."""

    result: Result
    file: str


@dataclass(frozen=True, eq=False)
class Run:
    """The log of a training, a line of log.jsonl each; its name is the end of the run folder's path."""

    name: str
    records: tuple[dict[str, Any], ...]
    form: str = ""  # as published or with choices of ours, by the card of a finished run


@dataclass(frozen=True)
class Sources:
    """Everything that was found, in the order in which it was named; the files of a folder by their names."""

    results: tuple[Source, ...]
    runs: tuple[Run, ...]
    problems: Mapping[Path, str] = field(default_factory=dict)  # what could not be read, and why


def read_sources(places: Iterable[str | Path | Result]) -> Sources:
    """The results in files and folders, each once, and the logs of the run folders among them or in them.

    A file has to be a result. Of a folder and the folders in it, JSON files of other kinds are passed over.

    Raises:
        DataError: there is no such place, or nothing could be read at all.
    """
    results: list[tuple[Result, Path | None]] = []
    runs: dict[Path, tuple[dict[str, Any], ...]] = {}
    problems: dict[Path, str] = {}
    seen: set[Path] = set()
    for place in places:
        if isinstance(place, Result):
            results.append((place, None))
            continue
        path, found = Path(place), False
        for file in _files(path):
            if file.resolve() in seen:
                found = True
                continue
            named = file == path
            try:
                is_log = file.name == LOG and not named
                read = tuple(read_log(file.parent)) if is_log else _read_result(file, named)
            except KeypatchError as error:
                problems[file] = str(error)
            else:
                if read is None:
                    continue
                if isinstance(read, Result):
                    results.append((read, file))
                else:
                    runs[file.parent] = read
            found = True
            seen.add(file.resolve())
        if not found:
            problems[path] = (
                f"{path} has neither a result of `keypatch evaluate ... --out FILE.json` nor a training log."
            )
    if not results and not runs:
        nothing = "There are no results to report. Name result files, folders of result files, or run folders."
        raise DataError(next(iter(problems.values()), nothing))
    ends = _ends([file for _, file in results if file is not None])
    names = _ends([folder.resolve() for folder in runs])
    return Sources(
        tuple(Source(result, ends[file] if file else "") for result, file in results),
        tuple(Run(names[folder.resolve()], records, _form(folder)) for folder, records in runs.items()),
        problems,
    )


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for name in ("*.json", LOG) for file in path.rglob(name))
    if not path.exists():
        raise DataError(f"There is no file or folder {path}. Check the path.")
    return [path]


def _read_result(path: Path, named: bool) -> Result | None:
    """None for a file of another kind, unless it was named."""
    value = read_json(path)
    return Result.from_json(value, str(path)) if named or FORMAT.is_of(value) else None


def _form(run: Path) -> str:
    with suppress(KeypatchError):
        return str(read_json(run / "card.json").get("trained", ""))
    return ""


def _ends(paths: Sequence[Path]) -> dict[Path, str]:
    """The shortest end of each path that no other has: the folders of the user's disk are nobody's business."""
    tails = {path: ["/".join(path.parts[-n:]) for n in range(1, len(path.parts) + 1)] for path in paths}
    often = Counter(tail for some in tails.values() for tail in some)
    return {path: next((tail for tail in some if often[tail] == 1), some[-1]) for path, some in tails.items()}


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
        """Who has the best score, all of them if several have; nobody where there is nothing to compare.

        Nobody is the best who was trained on images of the test.
        """
        unseen = [entry for entry in self.entries if not entry.result.contamination]
        scores = {entry: entry.score(name) for entry in unseen if math.isfinite(entry.score(name))}
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
    """The descriptor's name; of several with one name also what tells them apart."""
    names = [source.result.descriptor for source in members]
    labels = list(names)
    for name in set(names):
        places = [place for place, each in enumerate(names) if each == name]
        for place, mark in zip(places, _marks([members[place] for place in places]), strict=True):
            labels[place] += f" ({mark})" if mark else ""
    return tuple(Entry(label, each.result, each.file) for label, each in zip(labels, members, strict=True))


def _marks(group: Sequence[Source]) -> list[str]:
    """What differs: settings and notes of the descriptor, else the path, the date, or a number; "" for a single one."""
    own = [own_settings(source.result) for source in group]
    differing = [name for name in dict.fromkeys(name for each in own for name in each) if _differ(own, name)]
    settings = [
        ", ".join(f"{name.rpartition('.')[2].replace('_', ' ')} {each.get(name, 'unknown')}" for name in differing)
        for each in own
    ]
    dates = [source.result.provenance.date[:16].replace("T", " ") for source in group]
    numbers = [str(number + 1) for number in range(len(group))]
    if len(group) == 1:
        return [""]
    paths = _differing_parts([source.file for source in group])
    return next(marks for marks in (settings, paths, dates, numbers) if len({*marks, ""}) == len(group) + 1)


def _differ(own: Sequence[Mapping[str, Any]], name: str) -> bool:
    return len({str(each.get(name)) for each in own}) > 1


def _differing_parts(files: Sequence[str]) -> list[str]:
    """Of a/results/sift.json and b/results/sift.json "a" and "b"."""
    parts = [PurePosixPath(file).with_suffix("").parts if file else () for file in files]
    for end in (-1, 0):
        while all(len(each) > 1 for each in parts) and len({each[end] for each in parts}) == 1:
            parts = [each[:-1] if end else each[1:] for each in parts]
    return ["/".join(each) for each in parts]


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
