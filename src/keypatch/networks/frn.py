"""Filter response normalization with its thresholded linear unit (Singh and Krishnan 2020), as in HyNet and SDGMNet."""

import torch
from torch import Tensor, nn

EPS = 1e-6  # HyNet: fixed, not learned


class FilterResponse(nn.Module):
    """max(weight * x / sqrt(mean_hw x^2 + eps) + bias, tau), for each patch and channel by itself; tau starts at -1.

    Written as one pass for the mean of squares and one for the rest, which a compiler fuses. float32 inside, since x^2
    overflows in half precision and weight and bias cancel bits; the result has the input's type.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(1, channels, 1, 1))
        # not -ones: negating on the meta device, where weights are loaded, imports the compiler, which takes seconds
        self.tau = nn.Parameter(torch.full((1, channels, 1, 1), -1.0))

    def forward(self, x: Tensor) -> Tensor:
        y = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
        scale = self.weight * (y.square().mean((2, 3), keepdim=True) + EPS).rsqrt()
        return torch.maximum(y * scale + self.bias, self.tau).to(x.dtype)
