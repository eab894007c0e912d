"""A trained network as the patch module that kornia's LAFDescriptor takes."""

from pathlib import Path

import torch
from torch import Tensor, nn

from keypatch.errors import KeypatchError
from keypatch.features.extraction import DESCRIPTOR
from keypatch.networks import prepare, unit_length
from keypatch.zoo.cards import HANDMADE
from keypatch.zoo.loading import load_network

_AT_ONCE = 64  # patches whose maps stay in the cache: kornia hands over those of a whole photograph


class PatchDescriptor(nn.Module):
    """Grey patches (n, 1, side, side) with values 0..1 to the descriptors (n, dim) that `keypatch.load` would give.

    An ordinary torch module: it moves to any device, has gradients and can be trained further. It is made in
    evaluation mode. Patches of another side than `patch_size` are resized; `patch_sigmas` is the side of the square of
    the photograph that a patch should show, so kornia's frames should have the scale patch_sigmas / 2 * sigma.
    Traced or exported (torch.jit.trace, torch.export, torch.onnx.export with a dynamic first axis), it takes batches of
    any size.
    """

    def __init__(self, descriptor: str | Path = DESCRIPTOR) -> None:
        super().__init__()
        if descriptor in [card.name for card in HANDMADE]:
            raise KeypatchError(
                f'"{descriptor}" is hand-crafted, and PatchDescriptor takes networks: name one of '
                "`keypatch list descriptors`, or use kornia.feature.SIFTDescriptor("
                f"patch_size, rootsift={descriptor == 'rootsift'}) instead."
            )
        self.network = load_network(descriptor)[1]
        self.dim = self.network.dim
        self.patch_size = self.network.preprocessing.size
        self.patch_sigmas = self.network.preprocessing.patch_sigmas
        self.eval()

    def forward(self, patches: Tensor) -> Tensor:
        if patches.ndim != 4 or patches.shape[1] != 1:
            raise KeypatchError(
                f"Patches must be grey, of shape (n, 1, side, side), found {tuple(patches.shape)}. "
                "Pass grayscale_descriptor=True to LAFDescriptor."
            )
        if patches.dtype not in (torch.float32, torch.float64):
            raise KeypatchError(f"Patches must be float32 or float64, found {patches.dtype}. Convert the image.")
        # in training the last normalization looks at the whole batch; the chunks of a graph would be as many as traced
        traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        if self.training or traced:
            return self._describe(patches)
        return torch.cat([self._describe(part) for part in torch.split(patches, _AT_ONCE)])

    def _describe(self, patches: Tensor) -> Tensor:
        raw: Tensor = self.network(prepare(255 * patches[:, 0], self.network.preprocessing))
        return unit_length(raw) if self.network.unit_length else raw
