"""Files on disk: atomic writes, formats of our own, hashes, locks, safe names."""

import errno
import hashlib
import json
import os
import platform
import re
import secrets
import tempfile
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal, cast

from filelock import FileLock, Timeout

from keypatch.errors import DataError, Interrupted, KeypatchError, MissingExtra, Taken

PARTIAL_SUFFIX = ".partial"
SECONDS_UNTIL_ABANDONED = 3600  # a living writer touches its file many times a second
LOCK = ".lock"  # in a folder that one process works in
_DIGITS = 300  # of whole numbers in JSON: a float has room for 308
_LONG = 200  # bytes of a name: most systems allow 255, of which temporary names need some
_REMEDIES = {
    errno.ENOSPC: "Free some space and try again.",
    errno.EDQUOT: "Free some space and try again.",
    errno.EACCES: "Choose a folder that you may write to.",
    errno.EPERM: "Choose a folder that you may write to.",
    errno.EROFS: "Choose a folder that you may write to.",
    errno.ENOENT: "Choose another folder.",
    errno.ENOTDIR: "Choose another folder.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets take for the beginning of one


CUT_OFF = "It may be cut off: write or copy it again."
_FAULTS = {
    EOFError: "it ends too early",
    MemoryError: "it needs more memory than is available",
    RecursionError: "it is nested too deeply",
    UnicodeDecodeError: "it is not UTF-8 text",
}
_LONGEST_FAULT = 200  # characters of a library's message


@contextmanager
def reading(place: str | Path, title: str = "file", remedy: str = CUT_OFF) -> Iterator[None]:
    """Whatever goes wrong while a file is read becomes one DataError: every reader stands in such a block.

    `place` is the file, or a place in it ("list.txt, line 3"), and `title` what it should be. Libraries raise what they
    like where a file is damaged, so all of it is caught and kept as the cause. A sentence of ours passes, and gets
    the place in front where it does not name it.
    """
    try:
        yield
    except (Interrupted, MissingExtra):
        raise
    except KeypatchError as error:
        if str(place) in str(error):
            raise
        raise DataError(f"{place}: {error}") from error
    except FileNotFoundError as error:
        raise DataError(f"{place} cannot be read: no such file or directory.") from error
    except Exception as error:
        if isinstance(error, OSError) and error.errno:  # of the system; of a library's damage there is no number
            raise DataError(f"{place} cannot be read: {reason(error)}.") from error
        raise DataError(f"{place} is not a readable {title} ({fault(error)}). {remedy}") from error


def fault(error: Exception) -> str:
    """What a library says is wrong, as a few words in brackets."""
    known = next((words for kind, words in _FAULTS.items() if isinstance(error, kind)), str(error))
    return textwrap.shorten(known.strip().rstrip("."), _LONGEST_FAULT, placeholder=" ...") or type(error).__name__


@dataclass(frozen=True)
class Format:
    """The format name and number that every file of ours carries: an older number is read, a newer one refused."""

    name: str
    number: int
    title: str  # in plain words, as "result file"

    def head(self) -> dict[str, Any]:
        return {"format": self.name, "format_number": self.number}

    def is_of(self, head: object) -> bool:
        """Whether what was read from a file names this format, of whatever number."""
        return isinstance(head, Mapping) and head.get("format") == self.name

    def check(self, head: object, source: str | Path) -> None:
        """Raises DataError, naming the source, if this is another format or a newer number."""
        if not self.is_of(head):
            found = head.get("format") if isinstance(head, Mapping) else None
            other = f"(its format is {found})" if found else "written by keypatch"
            raise DataError(f"{source} is not a {self.title} {other}.")
        self.check_number(cast(Mapping[str, Any], head).get("format_number"), source)

    def check_number(self, number: object, source: str | Path) -> None:
        if not re.fullmatch("[0-9]{1,9}", str(number)):
            raise DataError(f"{source} has no format number, so it is damaged. Write or copy it again.")
        if int(str(number)) > self.number:
            raise DataError(
                f"{source} was written by a newer keypatch (format {number}, this one reads up to {self.number}): "
                "update keypatch."
            )

    def read_json(self, path: Path) -> dict[str, Any]:
        """The content of a JSON file of this format; raises DataError for any other file."""
        value: dict[str, Any] = read_json(path)
        self.check(value, path)
        return value


@contextmanager
def write_atomically(path: Path, mode: Literal["wb", "w"] = "wb") -> Iterator[IO[Any]]:
    """A file object whose content appears under `path` only when the block ends without an error.

    Folders that are missing are made. Text is written as UTF-8 with "\\n". On any failure the temporary file is removed
    and an old file stays as it was. What killed processes of this machine left in the folder is removed too.

    Raises:
        KeypatchError: the folder is read-only, the disk is full, or the file cannot be replaced.
    """
    temporary = temporary_path(path)
    encoding, newline = ("utf-8", "\n") if mode == "w" else (None, None)
    remove_abandoned(make_folder(path.parent))
    try:
        with open(temporary, mode, encoding=encoding, newline=newline) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if not isinstance(error, OSError):
            raise
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> KeypatchError:
    remedy = _REMEDIES.get(error.errno or 0, "Check the disk.")
    return KeypatchError(f"{path} cannot be written: {reason(error)}. {remedy}")


def hidden_path(path: Path, ending: str) -> Path:
    """A hidden name beside the file that tells whose it is, ".a.h5.parts"; of a long name the beginning and a hash."""
    name = path.name
    if len(os.fsencode(name)) > _LONG:
        name = f"{name[:32]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"
    return path.with_name(f".{name}{ending}")


def temporary_path(path: Path) -> Path:
    """A name beside the file that no other process uses, to write it under; it tells the process and its machine."""
    return hidden_path(path, f".{os.getpid()}-{_machine()}-{secrets.token_hex(4)}{PARTIAL_SUFFIX}")


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of killed processes: of this machine at once, of others when they are old."""
    for path in folder.glob(f".*{PARTIAL_SUFFIX}*"):  # SQLite appends to the name of its journals
        writer = re.search(rf"\.(\d+)-{_machine()}-[0-9a-f]{{8}}\{PARTIAL_SUFFIX}", path.name)
        with suppress(OSError):
            age = time.time() - path.stat().st_mtime
            if not _is_running(int(writer[1])) if writer else age > SECONDS_UNTIL_ABANDONED:
                path.unlink()


@cache
def _machine() -> str:
    """Where the numbers of processes mean the same: a machine, or a container with numbers of its own."""
    numbers = Path("/proc/self/ns/pid")
    place = f"{platform.node()} {os.readlink(numbers) if numbers.is_symlink() else ''}"
    return hashlib.sha256(place.encode()).hexdigest()[:6]


def _is_running(process: int) -> bool:
    """Whether there is such a process, as far as one can ask: on Windows asking would end it."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # another user's; no number of a process
        pass
    return True


def csv_text(text: str) -> str:
    """The text as a cell of a csv file: behind a "'" where a spreadsheet would compute or run what it says."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def write_text(path: Path, text: str) -> None:
    with write_atomically(path, "w") as file:
        file.write(text)


def write_json(path: Path, value: object) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Raises DataError where the file cannot be read or is not JSON."""
    with reading(path, "JSON file"):
        return parse_json(read_text(path))


def read_text(path: Path) -> str:
    """Raises DataError where the file cannot be read or is no text in UTF-8."""
    with reading(path, "text file"):
        return path.read_text(encoding="utf-8")


def read_head(path: Path) -> bytes:
    """The first 16 bytes, which tell what kind of file it is; DataError where it cannot be read."""
    with reading(path), path.open("rb") as file:
        return file.read(16)


def parse_json(text: str) -> Any:
    """Raises ValueError where it is not JSON, is nested too deeply to be read, or has numbers too large for a float."""
    try:
        return json.loads(text, parse_int=_whole_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _whole_number(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def hash_file(path: Path) -> str:
    """SHA-256 of the content, in hexadecimal."""
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_folder(paths: Iterable[Path]) -> str:
    """SHA-256 over names and contents, whatever the order of `paths` and wherever their common folder lies."""
    files = [path.absolute() for path in paths]
    root = Path(os.path.commonpath([path.parent for path in files])) if files else Path()
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in files):
        digest.update(f"{name}\0{hash_file(path)}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


@contextmanager
def lock(path: Path, holder: str, wait: bool = False) -> Iterator[None]:
    """Holds the lock file `path`; the system frees it when the process ends, killed or not.

    wait: until another process frees it; for what takes a moment.

    Raises:
        Taken: another process holds it; `holder` is what the message says is being written.
        KeypatchError: it cannot be locked, as on a file system without locks.
    """
    guard = FileLock(path, timeout=-1 if wait else 0)
    try:
        guard.acquire()
    except Timeout as error:
        raise Taken(
            f"{holder} is being written by another process. Wait until it finishes, or choose another folder."
        ) from error
    except OSError as error:
        raise KeypatchError(f"{path} cannot be locked: {reason(error)}.") from error
    try:
        yield
    finally:
        guard.release()


def make_folder(folder: Path) -> Path:
    """The folder, made with those above it where it is not there; KeypatchError where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise KeypatchError(f"{folder} is a file, not a folder. Choose another name.") from None
    except OSError as error:
        raise KeypatchError(f"{folder} cannot be created: {reason(error)}. Choose another folder.") from error
    return folder


@contextmanager
def hold_chosen_folder(folder: Path) -> Iterator[Path]:
    """A folder of the user's, made if it is not there, for this process alone.

    Raises:
        KeypatchError: it cannot be made or locked; `Taken`, where another process works in it.
    """
    with lock(make_folder(folder) / LOCK, str(folder)):
        yield folder


def require_place(path: Path) -> None:
    """KeypatchError unless the file can be written there, before any work; missing folders are made when it is."""
    try:
        if path.is_dir():
            raise KeypatchError(f"{path} is a folder. Name a file in it.")
        folder = next(each for each in path.absolute().parents if each.exists())
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise _unwritable(path, error) from error


def require_folder(path: Path) -> None:
    """Raises DataError if there is no such folder, if it is a file, or if nothing is in it."""
    if not path.exists():
        raise DataError(f"There is no folder {path}. Check the path; docs/data.md says where the data sets come from.")
    if not path.is_dir():
        raise DataError(f"{path} is a file, not a folder. If it is an archive, unpack it first.")
    try:
        empty = next(path.iterdir(), None) is None
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {reason(error)}.") from error
    if empty:
        raise DataError(f"{path} is empty. Copy the data set there.")


def safe_name(name: str, source: str) -> str:
    """The name itself, if it is a plain path below a folder: no "..", no root, no drive; `source` is where it stands.

    Names in files of others are not to be trusted: joined to a folder, they could lead anywhere.

    Raises:
        DataError: it is not; or it cannot be written as UTF-8.
    """
    parts = re.split(r"[/\\]", name)
    encodable = name == name.encode("utf-8", "ignore").decode("utf-8")
    if any(part in ("", ".", "..") for part in parts) or "\0" in name or re.match("[A-Za-z]:", name) or not encodable:
        raise DataError(f"{source}: the name {name!r} is not a plain path below a folder. Rename it or leave it out.")
    return name


def safe_path(root: Path, name: str, source: str) -> Path:
    """Where the named file lies below `root`; a name or a symbolic link that leads out of it raises DataError."""
    path = root / safe_name(name, source)
    if not path.resolve().is_relative_to(root.resolve()):
        raise DataError(f"{source}: {name!r} points outside {root}. Copy the file there or leave it out.")
    return path


def reason(error: OSError) -> str:
    """What the system says, as the end of a sentence: "no space left on device"."""
    text = error.strerror or str(error) or type(error).__name__
    return text[:1].lower() + text[1:]
