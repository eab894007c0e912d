"""Where a file came from: one value that goes into every file written."""

import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Provenance:
    """Version, command, machine, date (ISO, UTC) and the hashes of what went in."""

    version: str
    command: str
    machine: str
    python: str
    torch: str
    date: str
    hashes: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Provenance":
        """The value of `to_json`; raises TypeError for anything else."""
        made = cls(**value)
        for name, text in {**value, **made.hashes, "hashes": ""}.items():
            if not isinstance(text, str):
                raise TypeError(f"{name} of its provenance is not a string")
        return made


def provenance(**hashes: str) -> Provenance:
    """The provenance of a file written now; the command keeps file names but not the folders of the user's disk."""
    return Provenance(
        version=_version_of("keypatch"),
        command=" ".join(Path(word).name if "/" in word or "\\" in word else word for word in sys.argv),
        machine=f"{platform.system()} {platform.machine()}, {processor_name()}",
        python=platform.python_version(),
        torch=_version_of("torch"),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        hashes=dict(hashes),
    )


def processor_name() -> str:
    """The processor as the system names it, or the architecture where it does not."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
