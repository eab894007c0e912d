"""How well the distance of a pair tells the size of its gradient: AdaSample, sections 4.2 and 5.3."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from keypatch.losses import Angle, Described, Hardest, SquaredAngle
from keypatch.networks import PatchNetwork, prepare
from keypatch.patches import PatchSource
from keypatch.sampling import Augmentation, RandomPairs

Floats = NDArray[np.float64]

NOISE = (0.0, 0.5, 1.0, 2.0)  # times the detector noise: pairs from easy to hard
_SQUARED = SquaredAngle()


@dataclass(frozen=True, eq=False)
class GradientNorms:
    """Of each pair (n,): its angle, and the norms of its gradients by all weights of the network.

    Scaled to a sum of 1 they are the probabilities of figure 2, of which scaling leaves the correlation as it is.
    """

    angles: Floats
    positive: Floats  # of theta+^2 alone, which eq. 22 is about
    full: Floats  # of the angular hinge [1 + theta+^2 - theta-^2]+ with its mined negative

    def correlation(self, of: Floats) -> float:
        """Pearson's, of the angles with these norms; nan where one of them does not vary."""
        if len(of) < 2 or not (np.ptp(self.angles) and np.ptp(of)):
            return float("nan")
        return float(np.corrcoef(self.angles, of)[0, 1])

    @property
    def open(self) -> float:
        """Share of the pairs whose hinge is open: the others have no gradient."""
        return float(np.mean(self.full > 0))


def measure_gradients(
    network: PatchNetwork,
    source: PatchSource,
    pairs: int = 256,
    seed: int = 0,
    noise: tuple[float, ...] = NOISE,
) -> GradientNorms:
    """Measured on random pairs of a patch set, in evaluation mode, so that a pair's gradient is its own."""
    x = varied_pairs(network, source, pairs, seed, noise)
    return gradient_norms(network, x.to(next(network.parameters()).device))


def varied_pairs(
    network: PatchNetwork, source: PatchSource, pairs: int, seed: int, noise: tuple[float, ...] = NOISE
) -> Tensor:
    """Network input (2n, 1, size, size), anchors first, of pairs of different points; an equal share at each noise."""
    drawn = RandomPairs(pairs).draw(source.classes(), seed, 0)
    patches = torch.from_numpy(source.take(drawn.indices))
    plain, rng = Augmentation(flips="none"), np.random.default_rng([seed, 1])
    sigmas = network.preprocessing.patch_sigmas
    parts = zip(noise, torch.tensor_split(patches, len(noise)), strict=True)
    changed = torch.cat([replace(plain, detector_noise=level)(part, sigmas, rng) for level, part in parts])
    return prepare(changed.transpose(0, 1).flatten(0, 1), network.preprocessing)


def gradient_norms(network: PatchNetwork, x: Tensor) -> GradientNorms:
    """Of the pairs of an input (2n, 1, size, size), anchors first; the hardest negative is mined among all of them."""
    training, n = network.training, len(x) // 2
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    norms = np.zeros((2, n))
    network.eval()
    try:
        with torch.no_grad():
            raw = network(x)
        batch = Described.of_pairs(raw[:n], raw[n:], Hardest())
        assert batch.negatives is not None
        ends = torch.stack([batch.negatives.first, batch.negatives.second], 1).tolist()
        for i in range(n):
            a, p, first, second = normalize(network(x[[i, i + n, *ends[i]]]))[:, None].unbind()
            positive = _SQUARED(a, p).sum()
            hinge = (1 + positive - _SQUARED(first, second).sum()).relu()
            norms[0, i] = _norm(torch.autograd.grad(positive, parameters, retain_graph=True))
            norms[1, i] = _norm(torch.autograd.grad(hinge, parameters))
    finally:
        network.train(training)
    return GradientNorms(batch.positive_distances(Angle()).cpu().double().numpy(), norms[0], norms[1])


def _norm(gradients: tuple[Tensor, ...]) -> float:
    return float(torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt())
