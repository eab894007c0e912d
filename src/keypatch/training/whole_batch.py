"""Layers that see a batch as a whole however it is cut: into ranks, or into parts described one after the other."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from keypatch.errors import RecipeError
from keypatch.training.ranks import ALONE, Ranks

_MASK = 0xFFFFFFFF
_ROWS = 32  # per block on a CPU: what is made for a block stays in the cache


class RowDropout(nn.Module):
    """Dropout whose zeros are a function of each row's key alone, a number below 2^32; the same on every device.

    Without keys, or not in training, it is torch's own.
    """

    def __init__(self, p: float, number: int) -> None:
        super().__init__()
        self.p = p
        self.salt = 0x9E3779B9 * number  # another layer drops others
        self.keys: Tensor | None = None  # (n,), of the rows that come next

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0 or self.keys is None:
            return F.dropout(x, self.p, self.training)
        if self.p == 1:
            return x * 0
        keys = (self.keys + self.salt) & _MASK
        size = x[0].numel()
        blocks = torch.split(keys, _ROWS) if x.device.type == "cpu" else (keys,)
        kept = torch.cat([_draw(block, size) >= int(self.p * 2**32) for block in blocks])
        return x * kept.view(x.shape) * (1 / (1 - self.p))

    def extra_repr(self) -> str:
        return f"p={self.p}"


def _draw(keys: Tensor, size: int) -> Tensor:
    """Whole numbers below 2^32, (rows, size): two rounds of a multiplicative hash; in 64 bits nothing overflows."""
    h = keys[:, None] ^ (torch.arange(size, device=keys.device) * 0x9E3779B1 & _MASK)
    for _ in range(2):
        h ^= h >> 16
        h *= 0x45D9F3B
        h &= _MASK
    h ^= h >> 16
    return h


class Reached(Exception):
    """A normalization that waits for its statistics was reached, with this input."""

    def __init__(self, norm: "WholeBatchNorm", x: Tensor) -> None:
        self.norm, self.x = norm, x


class WholeBatchNorm(_BatchNorm):
    """Batch normalization over the rows of all ranks, on any device; torch's SyncBatchNorm refuses the CPU.

    Or with statistics that are given, of a batch that comes in parts; or it waits for them and raises `Reached`.
    """

    def __init__(self, plain: _BatchNorm, ranks: Ranks) -> None:
        super().__init__(plain.num_features, plain.eps, plain.momentum, plain.affine, plain.track_running_stats)
        self.weight, self.bias = plain.weight, plain.bias
        self.running_mean, self.running_var = plain.running_mean, plain.running_var
        self.num_batches_tracked = plain.num_batches_tracked
        self.training = plain.training
        self.ranks = ranks
        self.waiting = False
        self.given: tuple[Tensor, Tensor] | None = None  # mean and variance

    def _check_input_dim(self, input: Tensor) -> None:
        return None

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        if self.waiting:
            raise Reached(self, x)
        y: Tensor
        if self.given is not None:
            y = _Normalized.apply(x, *self.given, self.weight, self.bias, self.eps)  # type: ignore[no-untyped-call]
        else:
            y, *statistics = _OverRanks.apply(x, self.weight, self.bias, self.eps, self.ranks)  # type: ignore[no-untyped-call]
            self.remember(*statistics)
        return y

    @torch.no_grad()
    def remember(self, mean: Tensor, variance: Tensor, count: Tensor) -> None:
        """Move the running statistics, as torch does: the variance without its bias."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked += 1
        rate = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean), rate)
        self.running_var.lerp_((variance * (count / (count - 1))).to(self.running_var), rate)


def moments(x: Tensor) -> Tensor:
    """Number of values, mean and sum of squared deviations of each channel, (3, channels), in float32 at least."""
    # Some rows at a time on a CPU: of 256 channels-last maps of 32x32 at once, torch's variance is off by 7e-5.
    if x.device.type == "cpu":
        return combined(torch.stack([_moments(rows) for rows in torch.split(x, _ROWS)]))
    return _moments(x)


def _moments(x: Tensor) -> Tensor:
    wide = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
    if x.device.type == "cpu":  # var_mean takes 20 times as long for maps that are channels-last
        mean, variance = torch.ops.aten.batch_norm_update_stats(wide, None, None, 0.0)
    else:
        variance, mean = torch.var_mean(wide, [axis for axis in range(x.ndim) if axis != 1], correction=0)
    count = torch.full_like(mean, x.numel() // x.shape[1])
    return torch.stack([count, mean, variance * count])


def combined(parts: Tensor) -> Tensor:
    """The moments of all of several parts, (parts, 3, channels) (Chan et al. 1979: no large numbers cancel)."""
    count, mean, squares = parts.unbind(1)
    total = count.sum(0)
    middle = (count * mean).sum(0) / total
    return torch.stack([total, middle, (squares + count * (mean - middle).square()).sum(0)])


def statistics_gradient(x: Tensor, mean: Tensor, count: Tensor, to_mean: Tensor, to_variance: Tensor) -> Tensor:
    """What reaches x through the mean and the variance of `count` values, of which these are some."""
    slope = 2 * to_variance / count
    return torch.addcmul(_by_channel(to_mean / count - slope * mean, x), x, _by_channel(slope, x)).to(x.dtype)


def _by_channel(values: Tensor, x: Tensor) -> Tensor:
    return values.view([-1 if axis == 1 else 1 for axis in range(x.ndim)])


class _OverRanks(torch.autograd.Function):
    """Batch normalization by the statistics of all ranks, and these: mean, biased variance, number of values.

    Differentiable by the input, through the statistics too, on all ranks; by weight and bias for the rows of this one.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, ranks: Ranks
    ) -> tuple[Tensor, ...]:
        count, mean, squares = combined(ranks.stack(moments(x)))
        variance = squares / count
        ctx.save_for_backward(x, weight, mean, variance, count)
        ctx.eps, ctx.ranks = eps, ranks
        ctx.mark_non_differentiable(mean, variance, count)
        return F.batch_norm(x, mean, variance, weight, bias, False, 0.0, eps), mean, variance, count

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, variance, count = ctx.saved_tensors
        scale = torch.ones_like(mean) if weight is None else weight
        _, to_weight, to_bias = torch.ops.aten.native_batch_norm_backward(
            gradients[0], x, scale, mean, variance, None, None, False, ctx.eps, [False, True, True]
        )
        of_weight, of_bias = ctx.ranks.sum([to_weight, to_bias])
        root = (variance + ctx.eps).rsqrt()
        slope = -scale * root.square() * of_weight / count
        to_x = torch.addcmul(_by_channel(-scale * root * of_bias / count - slope * mean, x), x, _by_channel(slope, x))
        to_x = to_x.addcmul_(gradients[0], _by_channel(scale * root, x)).to(x.dtype)
        return (to_x, *((None, None) if weight is None else (to_weight, to_bias)), None, None)


class _Normalized(torch.autograd.Function):
    """(x - mean) / sqrt(variance + eps) * weight + bias of each channel, differentiable by all but eps."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> Tensor:
        ctx.save_for_backward(x, mean, variance, weight)
        ctx.eps = eps
        return F.batch_norm(x, mean, variance, weight, bias, False, 0.0, eps)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, mean, variance, weight = ctx.saved_tensors
        scale = torch.ones_like(mean) if weight is None else weight
        to_x, to_weight, to_bias = torch.ops.aten.native_batch_norm_backward(
            gradient, x, scale, mean, variance, None, None, False, ctx.eps, [True, True, True]
        )
        root = (variance + ctx.eps).rsqrt()
        to_mean = -scale * root * to_bias
        to_variance = -scale * root.square() * to_weight / 2
        affine = (None, None) if weight is None else (to_weight, to_bias)
        return (to_x, to_mean, to_variance, *affine, None)


def see_whole_batch(network: nn.Module, trunk: nn.Module, ranks: Ranks = ALONE, in_parts: bool = False) -> None:
    """Replace what would depend on how the batch is cut: dropout by rows, and in the trunk, where it matters, norms.

    Parameters, buffers and their names stay. Raises RecipeError for a layer that cannot be held to the rows.
    """
    cut = ranks.size > 1 or in_parts
    inside = set(trunk.modules())
    number = 0
    for parent in list(network.modules()):
        for name, child in parent.named_children():
            if type(child) is nn.Dropout:
                number += 1
                setattr(parent, name, RowDropout(child.p, number).train(child.training))
            elif cut and isinstance(child, _BatchNorm) and not isinstance(child, WholeBatchNorm) and child in inside:
                setattr(parent, name, WholeBatchNorm(child, ranks))
            elif cut and isinstance(child, _DropoutNd):
                raise RecipeError(
                    f"The layer {type(child).__name__} draws random numbers for the rows it sees, so they depend on "
                    "how a batch is split into ranks or parts. Use nn.Dropout instead, or train in one process without "
                    "--cache-gradients."
                )
