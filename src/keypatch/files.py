"""Files on disk: atomic writes, hashes, locks, safe names, and where the cache lies."""

import errno
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

from filelock import FileLock, Timeout
from platformdirs import user_cache_dir

from keypatch.errors import DataError, KeypatchError

PARTIAL_SUFFIX = ".partial"
_REMEDIES = {
    errno.ENOSPC: "Free some space and try again.",
    errno.EDQUOT: "Free some space and try again.",
    errno.EACCES: "Choose a folder that you may write to.",
    errno.EPERM: "Choose a folder that you may write to.",
    errno.EROFS: "Choose a folder that you may write to.",
    errno.ENOENT: "Create its folder first.",
}


@contextmanager
def write_atomically(path: Path, mode: Literal["wb", "w"] = "wb") -> Iterator[IO[Any]]:
    """A file object whose content appears under `path` only when the block ends without an error.

    Text is written as UTF-8 with "\\n". On any failure the temporary file is removed and an old file stays as it was.

    Raises:
        KeypatchError: the folder is missing or read-only, the disk is full, or the file cannot be replaced.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{PARTIAL_SUFFIX}")
    encoding, newline = ("utf-8", "\n") if mode == "w" else (None, None)
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
        remedy = _REMEDIES.get(error.errno or 0, "Check the disk.")
        raise KeypatchError(f"{path} cannot be written: {reason(error)}. {remedy}") from error


def write_text(path: Path, text: str) -> None:
    with write_atomically(path, "w") as file:
        file.write(text)


def write_json(path: Path, value: object) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def hash_file(path: Path) -> str:
    """SHA-256 of the content, in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise KeypatchError(f"{path} cannot be read: {reason(error)}.") from error


def hash_folder(paths: Iterable[Path]) -> str:
    """SHA-256 over names and contents, whatever the order of `paths` and wherever their common folder lies."""
    files = [path.absolute() for path in paths]
    root = Path(os.path.commonpath([path.parent for path in files])) if files else Path()
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in files):
        digest.update(f"{name}\0{hash_file(path)}\n".encode())
    return digest.hexdigest()


@contextmanager
def lock(path: Path, holder: str) -> Iterator[None]:
    """Holds the lock file `path`; the system frees it when the process ends, killed or not.

    Raises:
        KeypatchError: another process holds it; `holder` is what the message says is being written.
    """
    guard = FileLock(path, timeout=0)
    try:
        guard.acquire()
    except Timeout as error:
        raise KeypatchError(
            f"{holder} is being written by another process. Wait until it ends or choose another folder."
        ) from error
    except OSError as error:
        raise KeypatchError(f"{path} cannot be locked: {reason(error)}.") from error
    try:
        yield
    finally:
        guard.release()


def require_folder(path: Path) -> None:
    """Raises DataError if there is no such folder, if it is a file, or if nothing is in it."""
    if not path.exists():
        raise DataError(f"There is no folder {path}. Check the path; docs/data.md says where the data sets come from.")
    if not path.is_dir():
        raise DataError(f"{path} is a file, a folder was expected. If it is an archive, unpack it first.")
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
        raise DataError(f"{source}: {name!r} leads out of {root}. Copy the file there or leave it out.")
    return path


def cache_folder() -> Path:
    """Where files lie that can be made again: $KEYPATCH_CACHE, or the user's cache directory of the system."""
    chosen = os.environ.get("KEYPATCH_CACHE")
    return Path(chosen).expanduser() if chosen else Path(user_cache_dir("keypatch", appauthor=False))


def reason(error: OSError) -> str:
    """What the system says, as the end of a sentence: "no space left on device"."""
    text = error.strerror or str(error) or type(error).__name__
    return text[:1].lower() + text[1:]
