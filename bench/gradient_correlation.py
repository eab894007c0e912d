"""How well the distance of a pair tells the size of its gradient: AdaSample, sections 4.2 and 5.3, figure 2.

python bench/gradient_correlation.py runs/hardnet-nd --data $DATA/nd-test --pairs 256 --seed 0 1
"""

import argparse
import sys
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from keypatch.cli.main import answer
from keypatch.losses import Angle, Described, Hardest, SquaredAngle
from keypatch.networks import PatchNetwork, prepare
from keypatch.patches import PatchSource, open_patches
from keypatch.sampling import Augmentation, RandomPairs
from keypatch.zoo.loading import load_network

Floats = NDArray[np.float64]

_NOISES = (0.0, 0.5, 1.0, 2.0)  # times the detector noise: pairs from easy to hard
_SQUARED = SquaredAngle()


@dataclass(frozen=True)
class GradientCorrelation:
    """Pearson's correlation, over pairs, of the angle of a pair with the norm of its gradient by all weights."""

    positive: float  # of theta+^2 alone, which eq. 22 is about
    full: float  # of the angular hinge with its mined negative
    pairs: int


def gradient_correlation(
    network: PatchNetwork, source: PatchSource, pairs: int = 256, seed: int = 0
) -> GradientCorrelation:
    """Measured on random pairs of a patch set, in evaluation mode, so that a pair's gradient is its own."""
    x = varied_pairs(network, source, pairs, seed).to(next(network.parameters()).device)
    angles, positive, full = gradient_norms(network, x)
    return GradientCorrelation(_pearson(angles, positive), _pearson(angles, full), len(angles))


def varied_pairs(network: PatchNetwork, source: PatchSource, pairs: int, seed: int) -> Tensor:
    """Network input (2n, 1, size, size), anchors first, of pairs of different points; a quarter at each noise."""
    drawn = RandomPairs(pairs).draw(source.classes(), seed, 0)
    patches = torch.from_numpy(source.take(drawn.indices))
    plain, rng = Augmentation(flips="none"), np.random.default_rng([seed, 1])
    sigmas = network.preprocessing.patch_sigmas
    parts = zip(_NOISES, torch.tensor_split(patches, len(_NOISES)), strict=True)
    changed = torch.cat([replace(plain, detector_noise=noise)(part, sigmas, rng) for noise, part in parts])
    return prepare(changed.transpose(0, 1).flatten(0, 1), network.preprocessing)


def gradient_norms(network: PatchNetwork, x: Tensor) -> tuple[Floats, Floats, Floats]:
    """Of each pair (n,): the angle, and the norms of the gradients of theta+^2 and of [1 + theta+^2 - theta-^2]+."""
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
    return batch.positive_distances(Angle()).cpu().double().numpy(), norms[0], norms[1]


def _norm(gradients: tuple[Tensor, ...]) -> float:
    return float(torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt())


def _pearson(x: Floats, y: Floats) -> float:
    return float(np.corrcoef(x, y)[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", help="a run folder, a checkpoint or a weight file")
    parser.add_argument("--data", required=True, help="a patch set")
    parser.add_argument("--pairs", type=int, default=256)
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    arguments = parser.parse_args()
    network, patches = load_network(arguments.network)[1], open_patches(arguments.data)
    for seed in arguments.seed:
        print(f"seed {seed}: {gradient_correlation(network, patches, arguments.pairs, seed)}")


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
