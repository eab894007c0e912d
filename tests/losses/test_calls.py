"""A loss called as other libraries call theirs says in one sentence what it takes."""

import pytest
import torch

from keypatch.errors import KeypatchError
from keypatch.losses import TERMS, LossModule, Triplet

EMBEDDINGS, LABELS = torch.rand(8, 16), torch.arange(4).repeat(2)


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("given", [(EMBEDDINGS, LABELS), (EMBEDDINGS,)], ids=["labels", "alone"])
def test_a_term_called_with_embeddings_says_what_it_takes(name: str, given: tuple[torch.Tensor, ...]) -> None:
    with pytest.raises(KeypatchError, match=rf"{name} takes .* call LossModule\({name}\(\)\)\(anchors, positives"):
        TERMS[name]()(*given)


def test_the_module_called_with_embeddings_and_labels_says_so() -> None:
    with pytest.raises(KeypatchError, match=r"positives \(8,\), the shape of labels.*labels are given as point_id="):
        LossModule(Triplet())(EMBEDDINGS, LABELS)
    half = EMBEDDINGS[::2]
    assert LossModule(Triplet())(half, half + 0.1, point_id=torch.arange(4)).isfinite()
