"""CS-L2-Net: what each half sees, and how the halves are scaled."""

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from keypatch.errors import RecipeError
from keypatch.networks import CentralSurround, PatchNetwork, Preprocessing, prepare

SPEC = CentralSurround(dim=24, width=8)


@pytest.fixture
def network() -> PatchNetwork:
    torch.manual_seed(0)
    network = SPEC.build()
    for _ in range(3):
        network(prepare(patches(16), SPEC.preprocessing))
    return network.eval()


def patches(count: int) -> torch.Tensor:
    return torch.randint(0, 256, (count, 64, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def test_both_halves_have_unit_length(network: PatchNetwork) -> None:
    raw = network(prepare(patches(5), SPEC.preprocessing))
    torch.testing.assert_close(raw[:, :12].norm(dim=1), torch.ones(5))
    torch.testing.assert_close(raw[:, 12:].norm(dim=1), torch.ones(5))


def test_the_second_half_sees_rows_and_columns_16_to_47_alone(network: PatchNetwork) -> None:
    whole = prepare(patches(4), SPEC.preprocessing)
    other_border = whole.clone()
    other_border[..., :16, :] += 1
    other_border[..., 48:] -= 1
    before, after = network(whole), network(other_border)
    torch.testing.assert_close(after[:, 12:], before[:, 12:])
    assert (after[:, :12] - before[:, :12]).abs().max() > 0.01
    for corner in (16, 47):
        inner = whole.clone()
        inner[..., corner, corner] += 5
        assert (network(inner)[:, 12:] - before[:, 12:]).abs().max() > 1e-4  # rounding is 1e-6


def test_the_first_half_sees_the_patch_reduced_as_pillow_reduces_it(network: PatchNetwork) -> None:
    seen: list[torch.Tensor] = []
    halves: Any = network.layers.halves
    halves.norm.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    x = prepare(patches(1), SPEC.preprocessing)
    network(x)
    reduced = Image.fromarray(x[0, 0].numpy()).resize((32, 32), Image.Resampling.BICUBIC)
    np.testing.assert_allclose(seen[0][0, 0].numpy(), np.asarray(reduced), atol=1e-4)


def test_each_half_ignores_the_contrast_of_what_it_sees(network: PatchNetwork) -> None:
    x = prepare(patches(3), SPEC.preprocessing)
    faint = x.clone()
    faint[..., 16:48, 16:48] = 0.25 * x[..., 16:48, 16:48] + 0.5
    torch.testing.assert_close(network(faint)[:, 12:], network(x)[:, 12:], atol=1e-3, rtol=0)


def test_the_halves_have_weights_of_their_own(network: PatchNetwork) -> None:
    halves: Any = network.layers.halves
    assert not torch.equal(halves.surround.conv7.weight, halves.centre.conv7.weight)


@pytest.mark.parametrize("wrong", [{"dim": 25}, {"preprocessing": Preprocessing(size=62)}])
def test_what_cannot_be_halved_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(RecipeError, match="divisible by 4 and an even dim"):
        CentralSurround(**wrong).build()
