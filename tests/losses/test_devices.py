"""Everything stays on the device of the inputs: no hidden CPU tensor, and one look at values per step.

No GPU is needed: tensors on torch's meta device cannot meet CPU tensors, and every operation is watched besides.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from keypatch.losses import MINING, TERMS, Described, Hardest, total_loss

OURS = [name for name in TERMS if name != "MetricLearning"]  # that library looks at values


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Calls `see` with the name and the tensors of every operation."""

    def __init__(self, see: Callable[[str, list[Tensor]], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.see = see

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.see(str(func), [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, Tensor)])
        return result


def on(device: str, n: int = 16) -> Iterator[Tensor]:
    return iter(torch.randn(3, n, 8, device=device, requires_grad=True).unbind())


def step(device: str, miner: str, term: str) -> None:
    anchors, positives, third = on(device)
    point_id = torch.arange(16, device=device)
    maps = {"norm1": torch.cat([anchors, positives])}
    batch = Described.of_pairs(
        anchors,
        positives,
        MINING[miner](),
        point_id=point_id,
        raw_negatives=third,
        maps=maps,
        teacher=torch.cat([anchors, positives, third]).detach(),
    )
    total_loss((TERMS[term](),), batch).value.backward()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("miner", MINING)
@pytest.mark.parametrize("term", OURS)
def test_no_tensor_leaves_the_device(miner: str, term: str) -> None:
    elsewhere: set[str] = set()

    def see(name: str, tensors: list[Tensor]) -> None:
        elsewhere.update(f"{name} on {t.device}" for t in tensors if t.device.type != "meta")

    with Watch(see):
        step("meta", miner, term)
    assert not elsewhere


@pytest.mark.parametrize("term", OURS)
def test_a_step_waits_for_the_device_at_most_once_per_search(term: str) -> None:
    reads: list[str] = []
    with Watch(lambda name, _: reads.append(name) if "_local_scalar_dense" in name else None):
        step("cpu", "Hardest", term)
    assert len(reads) <= (2 if term == "AverageTriplet" else 1)  # it looks for its own negatives


def test_all_blocks_without_point_ids_stay_on_the_device() -> None:
    anchors, positives, _ = on("meta")
    mining = Hardest(blocks=("anchors", "positives", "rows", "columns"), duplicates="classes")
    assert Described.of_pairs(anchors, positives, mining).negative_distances().device.type == "meta"
