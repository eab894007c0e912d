"""The one place that loads pycolmap."""

from importlib.util import find_spec
from typing import Any

from keypatch.errors import MissingExtra

ERRORS_ONLY = 2  # of glog's levels


def load_pycolmap(what: str = "Reconstruction") -> Any:
    """The package, quiet but for errors; MissingExtra where it is missing or fails to load, for `what` needs it."""
    if find_spec("pycolmap") is None:
        raise MissingExtra(f"{what} needs pycolmap; pip install 'keypatch[colmap]'.")
    try:
        import pycolmap
    except ImportError as error:
        raise MissingExtra(
            f"{what} needs pycolmap, which is installed but cannot be loaded ({error}). Install what it lacks, or "
            "pycolmap itself again."
        ) from error

    pycolmap.logging.minloglevel = ERRORS_ONLY
    return pycolmap
