import cv2
import numpy as np
import pytest
import torch
from gradient_correlation import gradient_correlation, gradient_norms, varied_pairs
from torch import nn

from keypatch.losses import Angle, Described, Hardest, SquaredAngle, Triplet
from keypatch.networks import L2Net, PatchNetwork
from keypatch.patches import PatchSet

PAIRS = 64


@pytest.fixture(scope="module")
def blobs() -> PatchSet:
    """Smooth noise, two views of each with a little noise of their own."""
    rng = np.random.default_rng(0)
    smooth = np.stack([cv2.GaussianBlur(noise, (0, 0), 4) for noise in rng.standard_normal((PAIRS, 64, 64))])
    views = (smooth / smooth.std((1, 2), keepdims=True)).repeat(2, axis=0)
    views = 127 + 45 * (views + 0.05 * rng.standard_normal(views.shape))
    return PatchSet("blobs", views.clip(0, 255).astype(np.uint8), np.arange(PAIRS).repeat(2))


@pytest.fixture
def network(blobs: PatchSet) -> PatchNetwork:
    """A thin network as it starts, its batch normalization adapted to the patches."""
    torch.manual_seed(0)
    made = L2Net(width=4, dim=16).build()
    for module in made.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.momentum = None  # the plain mean of what is seen
    with torch.no_grad():
        made(varied_pairs(made, blobs, PAIRS, seed=1))
    return made


def test_the_angle_tells_the_gradient_of_the_positive_term(network: PatchNetwork, blobs: PatchSet) -> None:
    found = gradient_correlation(network, blobs, PAIRS)
    assert found.pairs == PAIRS
    assert found.positive > 0.8  # figure 2 b
    assert found.full < found.positive  # the mined negative has its own say


def test_norms_are_those_of_the_batch_loss_pair_by_pair(network: PatchNetwork, blobs: PatchSet) -> None:
    x = varied_pairs(network, blobs, 12, seed=2)
    angles, positive, full = gradient_norms(network, x)
    assert network.training and all(parameter.grad is None for parameter in network.parameters())
    network.eval()
    raw = network(x)
    batch = Described.of_pairs(raw[:12], raw[12:], Hardest())
    np.testing.assert_allclose(angles, batch.positive_distances(Angle()).detach(), rtol=1e-4)
    hinges = Triplet(margin=1.0, measure=SquaredAngle())(batch)
    for values, norms in ((batch.positive_distances(SquaredAngle()), positive), (hinges, full)):
        for i in (0, 5, 11):
            gradients = torch.autograd.grad(values[i], list(network.parameters()), retain_graph=True)
            assert torch.cat([g.flatten() for g in gradients]).norm().item() == pytest.approx(norms[i], rel=1e-3)


def test_pairs_vary_from_easy_to_hard(network: PatchNetwork, blobs: PatchSet) -> None:
    angles, _, _ = gradient_norms(network, varied_pairs(network, blobs, PAIRS, seed=0))
    easy, *_, hard = np.array_split(angles, 4)
    assert hard.mean() > 2 * easy.mean()
