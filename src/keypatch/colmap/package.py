"""The one place that loads pycolmap."""

from importlib.util import find_spec
from typing import Any

from keypatch.errors import MissingExtra

ERRORS_ONLY = 2  # of glog's levels


def load_pycolmap(what: str = "Reconstruction") -> Any:
    """The package, logging errors only; MissingExtra, saying that `what` needs it, where it cannot be loaded."""
    if find_spec("pycolmap") is None:
        raise MissingExtra.of(f"{what} needs pycolmap", "colmap")
    try:
        import pycolmap
    except ImportError as error:
        raise MissingExtra(
            f"{what} needs pycolmap, which is installed but cannot be loaded ({error}). Install what is missing, or "
            "reinstall pycolmap."
        ) from error

    pycolmap.logging.minloglevel = ERRORS_ONLY
    return pycolmap


def colmap_version() -> str:
    """ "COLMAP 4.2.1": models of other versions have other numbers."""
    return str(load_pycolmap().COLMAP_version)


def has_cuda() -> bool:
    """Whether dense points can be computed."""
    return bool(load_pycolmap().has_cuda)
