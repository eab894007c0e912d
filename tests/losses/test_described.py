"""The batch that terms look at."""

import pytest
import torch

from keypatch.errors import KeypatchError
from keypatch.losses import Described, HybridTriplet, Raw


def test_a_loop_of_ones_own_needs_one_line() -> None:
    generator = torch.Generator().manual_seed(0)
    anchors, positives = torch.randn(2, 32, 16, generator=generator, requires_grad=True).unbind()
    loss = HybridTriplet()(Described.of_pairs(anchors, positives)).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    assert 0 < loss.item() < 10


def test_the_stack_holds_anchors_positives_and_third_patches() -> None:
    parts = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
    batch = Described.of_pairs(parts[0], parts[1], None, raw_negatives=parts[2])
    assert batch.n == 5
    assert torch.equal(torch.stack([batch.raw_anchors, batch.raw_positives]), parts[:2])
    assert batch.raw_negatives is not None and torch.equal(batch.raw_negatives, parts[2])
    torch.testing.assert_close(batch.unit.norm(dim=1), torch.ones(15))
    torch.testing.assert_close(batch.positives, parts[1] / parts[1].norm(dim=1, keepdim=True))
    assert Described.of_pairs(parts[0], parts[1], None).raw_negatives is None


def test_raw_measures_see_raw_descriptors() -> None:
    anchors, positives = torch.zeros(1, 2), torch.tensor([[3.0, 4.0]])
    assert Described.of_pairs(anchors, positives, None).positive_distances(Raw()).item() == pytest.approx(5.0, abs=1e-5)


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        ({"raw_anchors": (4, 8), "raw_positives": (5, 8)}, r"\(4, 8\), \(5, 8\)"),
        ({"raw_anchors": (4,), "raw_positives": (4,)}, "one shape"),
        ({"raw_anchors": (0, 8), "raw_positives": (0, 8)}, "at least one pair"),
        ({"raw_anchors": (4, 8), "raw_positives": (4, 8), "raw_negatives": (3, 8)}, "one shape"),
        (
            {"raw_anchors": (4, 8), "raw_positives": (4, 8), "point_id": (8,)},
            r"point_id must have one entry per pair, \(4,\)",
        ),
        ({"raw_anchors": (4, 8), "raw_positives": (4, 8), "weights": (4, 1)}, "weights must have one entry per pair"),
    ],
)
def test_wrong_shapes_are_named(shapes: dict[str, tuple[int, ...]], sentence: str) -> None:
    with pytest.raises(KeypatchError, match=sentence):
        Described.of_pairs(**{name: torch.rand(shape) for name, shape in shapes.items()})  # type: ignore[arg-type]
