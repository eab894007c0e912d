"""The one place that loads pycolmap."""

from importlib.util import find_spec
from typing import Any

from keypatch.errors import MissingExtra

ERRORS_ONLY = 2  # of glog's levels


def require_pycolmap(what: str = "Reconstruction") -> None:
    """MissingExtra where the package is not installed, for `what` needs it; does not import it."""
    if find_spec("pycolmap") is None:
        raise MissingExtra(f"{what} needs pycolmap; pip install 'keypatch[colmap]'.")


def load_pycolmap(what: str = "Reconstruction") -> Any:
    """The package, quiet but for errors."""
    require_pycolmap(what)
    import pycolmap

    pycolmap.logging.minloglevel = ERRORS_ONLY
    return pycolmap
