"""What a report is made of: result files, folders of them, and the logs of runs."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keypatch.benchmarks.result import FORMAT, Result
from keypatch.errors import DataError
from keypatch.files import reason


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
            raise DataError(f"{path} holds no result of `keypatch evaluate ... --out FILE.json` and no log of a run.")
        results += [Source(_read_result(file), file.name) for file in files if file.resolve() not in seen]
        seen.update(file.resolve() for file in files)
    if not results and not runs:
        raise DataError("There are no results to report. Name result files, folders of them or run folders.")
    return Sources(tuple(results), tuple(runs))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return [file for file in sorted(path.rglob("*.json")) if _is_result(file)]
    if not path.exists():
        raise DataError(f"There is no file or folder {path}. Check the path.")
    return [path]


def _read_result(file: Path) -> Result:
    result = Result.load(file)
    origin = asdict(result.provenance)
    hashes = origin.pop("hashes")
    plain = isinstance(hashes, Mapping) and all(isinstance(each, str) for each in (*origin.values(), *hashes.values()))
    if not plain:
        raise DataError(
            f"{file} does not say where it comes from: its provenance is damaged. Run the evaluation again."
        )
    return result


def _is_result(file: Path) -> bool:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{file} cannot be read: {reason(error)}.") from None
    except ValueError:
        raise DataError(f"{file} is not JSON or was cut off. Make it again, or take it out of the folder.") from None
    return isinstance(value, dict) and value.get("format") == FORMAT


def _read_run(folder: Path) -> Run:
    records = []
    try:
        lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{folder / 'log.jsonl'} cannot be read ({error}).") from None
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue  # a line cut off when the process was killed
        if isinstance(record, dict):
            records.append(record)
    return Run(folder.resolve().name, tuple(records))
