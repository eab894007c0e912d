"""Fundamental matrices by DEGENSAC (Chum, Werner, Matas 2005): the one place that knows of pydegensac."""

from importlib.util import find_spec

from keypatch.errors import MissingExtra
from keypatch.matching.estimating import Answer, Points, Task


def has_degensac() -> bool:
    """Whether the package is installed; does not import it."""
    return find_spec("pydegensac") is not None


def estimate_by_degensac(first: Points, second: Points, task: Task) -> Answer:
    try:
        import pydegensac
    except ImportError as error:
        raise MissingExtra("pydegensac is not installed: pip install 'keypatch[degensac]', or take magsac.") from error

    matrix, agree = pydegensac.findFundamentalMatrix(
        first,
        second,
        px_th=task.threshold,
        conf=task.confidence,
        max_iters=task.iterations,
        laf_consistensy_coef=0.0,
        error_type="sampson",
        symmetric_error_check=True,
        enable_degeneracy_check=True,
        seed=task.seed,
    )
    return matrix, agree
