"""Nearest neighbours by faiss's exact flat index: the one place that knows of faiss."""

import torch
from torch import Tensor

from keypatch.errors import MissingExtra
from keypatch.matching.tiles import Nearest, lift, lift_partner


def find_nearest_by_faiss(a: Tensor, b: Tensor) -> tuple[Nearest, Nearest]:
    """What `find_nearest` gives, but which of equally near vectors comes out is left to faiss."""
    return _search(lift(a), lift_partner(b)), _search(lift_partner(b), lift(a))


def _search(queries: Tensor, others: Tensor) -> Nearest:
    try:
        import faiss
    except ImportError as error:
        raise MissingExtra(
            "faiss is not installed: pip install 'keypatch[faiss]', or leave --neighbours out."
        ) from error

    index = faiss.IndexFlatIP(others.shape[1])
    index.add(others.numpy())
    closeness, places = (torch.from_numpy(found) for found in index.search(queries.numpy(), min(2, len(others))))
    none = closeness.new_full((len(queries),), -torch.inf)
    return Nearest(places[:, 0], closeness[:, 0], closeness[:, 1] if len(others) > 1 else none)
