"""Files on this machine or behind an address that fsspec knows, such as s3://bucket/photos."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any

from keypatch.errors import DataError, KeypatchError
from keypatch.files import PARTIAL_SUFFIX, make_folder, reading, temporary_path, write_atomically

Place = Path | str  # a path of this machine, or an address

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(://|::)")  # longer than a drive of Windows
_WHOLE_AT_ONCE = {"memory", "s3", "s3a", "gs", "gcs", "abfs", "az", "oci"}  # an object appears when it is complete


def as_place(text: str | PathLike[str]) -> Place:
    """A path, or the address as it is: a Path would lose one of its slashes."""
    return text if isinstance(text, str) and _ADDRESS.match(text) else Path(text)


def is_address(place: object) -> bool:
    return isinstance(place, str) and _ADDRESS.match(place) is not None


@dataclass(frozen=True)
class Folder:
    """A folder of files; a value that workers on other machines receive."""

    place: Place

    def exists(self) -> bool:
        if isinstance(self.place, Path):
            return self.place.is_dir()
        files, root = _open(self.place)
        with _reaching(self.place):
            return bool(files.isdir(root))

    def names(self, suffix: str) -> set[str]:
        """The files in it, not below it, whose names end so; hidden ones are none."""
        with reading(self.place, "folder"):
            if isinstance(self.place, Path):
                found = [each.name for each in self.place.iterdir()]
            else:
                files, root = _open(self.place)
                files.invalidate_cache()
                found = [PurePosixPath(each).name for each in files.ls(root, detail=False)]
        return {name for name in found if name.endswith(suffix) and not name.startswith(".")}

    def has(self, name: str) -> bool:
        if isinstance(self.place, Path):
            return (self.place / name).is_file()
        files, root = _open(self.place)
        with _reaching(self.place):
            return bool(files.isfile(f"{root}/{name}"))

    def read(self, name: str) -> bytes:
        """DataError where there is no such file."""
        with reading(self.at(name)):
            if isinstance(self.place, Path):
                return (self.place / name).read_bytes()
            files, root = _open(self.place)
            return bytes(files.cat_file(f"{root}/{name}"))

    def write(self, name: str, content: bytes | memoryview) -> None:
        """The file appears whole or not at all; KeypatchError where it cannot be written."""
        if isinstance(self.place, Path):
            with write_atomically(self.place / name) as file:
                file.write(content)
            return
        files, root = _open(self.place)
        with _reaching(self.at(name), "written"):
            if _protocols(files) & _WHOLE_AT_ONCE:
                files.pipe_file(f"{root}/{name}", bytes(content))
                return
            temporary = f"{root}/{temporary_path(Path(name)).name}"
            files.makedirs(root, exist_ok=True)
            files.pipe_file(temporary, bytes(content))
            files.mv(temporary, f"{root}/{name}")

    def fetch(self, name: str, into: Path) -> Path:
        """The file on this machine: itself, or a copy in the folder `into`."""
        if isinstance(self.place, Path):
            return self.place / name
        copy = into / name
        if not copy.exists():
            with write_atomically(copy) as file:
                file.write(self.read(name))
        return copy

    def make(self) -> None:
        if isinstance(self.place, Path):
            make_folder(self.place)

    def at(self, name: str) -> str:
        return str(self.place / name) if isinstance(self.place, Path) else f"{self.place.rstrip('/')}/{name}"


def find_files(address: str) -> list[tuple[str, str]]:
    """(path below the address, address of the file) of all files there, sorted; the file itself if it is one.

    Raises:
        DataError: there is nothing, or it cannot be reached.
    """
    files, root = _open(address)
    with _reaching(address):
        if files.isfile(root):
            return [(PurePosixPath(root).name, address)]
        found = sorted(files.find(root))
    if not found:
        raise DataError(f"There is nothing at {address}.")
    below = [PurePosixPath(each).relative_to(root).as_posix() for each in found]
    visible = [name for name in below if not any(part.startswith(".") for part in name.split("/"))]
    return [(name, f"{address.rstrip('/')}/{name}") for name in visible if not name.endswith(PARTIAL_SUFFIX)]


@contextmanager
def fetched(address: str) -> Iterator[Path]:
    """A copy of the file on this machine, as long as the block lasts; a DataError within it names the address."""
    folder, name = address.rsplit("/", 1)
    with tempfile.TemporaryDirectory(prefix="keypatch-") as into:
        copy = Folder(folder).fetch(name, Path(into))
        try:
            yield copy
        except DataError as error:
            raise DataError(str(error).replace(str(copy), address)) from error


def _open(address: str) -> tuple[Any, str]:
    """fsspec's file system, and the path in it."""
    from fsspec.core import url_to_fs

    with _reaching(address):
        files, root = url_to_fs(address)
        return files, str(root).rstrip("/")


def _protocols(files: Any) -> set[str]:
    return {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)


@contextmanager
def _reaching(address: str, how: str = "reached") -> Iterator[None]:
    """Whatever a file system of others raises is one sentence."""
    try:
        yield
    except KeypatchError:
        raise
    except ImportError as error:  # fsspec says which package to install
        raise KeypatchError(f"{address} cannot be {how}: {error}.") from error
    except Exception as error:
        why = str(error) or type(error).__name__
        raise DataError(f"{address} cannot be {how}: {why.strip().rstrip('.')}. Check the address.") from error
