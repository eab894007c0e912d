"""Fundamental matrices by DEGENSAC (Chum, Werner, Matas 2005): the one place that knows of pydegensac."""

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from keypatch.errors import MissingExtra
from keypatch.matching.magsac import Estimate, Points
from keypatch.matching.matches import Model


def has_degensac() -> bool:
    """Whether the package is installed; does not import it."""
    return find_spec("pydegensac") is not None


def estimate_by_degensac(
    first: Points,
    second: Points,
    model: Model,
    threshold: float,
    intrinsics: Sequence[Points] | None,
    seed: int,
    confidence: float,
    iterations: int,
) -> Estimate:
    """The fundamental matrix of points that belong together; those within `threshold` pixels of it agree."""
    try:
        import pydegensac
    except ImportError as error:
        raise MissingExtra("pydegensac is not installed: pip install 'keypatch[degensac]', or take magsac.") from error

    matrix, mask = pydegensac.findFundamentalMatrix(
        first,
        second,
        px_th=threshold,
        conf=confidence,
        max_iters=iterations,
        laf_consistensy_coef=0.0,
        error_type="sampson",
        symmetric_error_check=True,
        enable_degeneracy_check=True,
        seed=seed,
    )
    if not np.isfinite(matrix).all() or not matrix.any():
        return None, np.zeros(len(first), np.bool_)
    return np.asarray(matrix, np.float64), np.asarray(mask, np.bool_)
