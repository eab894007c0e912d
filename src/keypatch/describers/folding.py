"""A trained network as the fewest operations that give its descriptors: normalization folded into the convolutions,
and each convolution in the fastest form that this machine has for it.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from keypatch.describers.kernels import filter_responses, winograd
from keypatch.networks.frn import EPS, FilterResponse
from keypatch.networks.patch_network import PatchNetwork, unit_length

Stage = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Convolution:
    """A convolution on channels-last maps, with ReLU if `relu`; weight and bias are float32."""

    weight: Tensor
    bias: Tensor
    stride: int
    padding: int
    relu: bool

    def fastest(self, side: int, dtype: torch.dtype) -> tuple[Stage, torch.dtype]:
        """It on maps of this side, and the type it takes: Winograd's, one prepared for oneDNN, or torch's plain one.

        `dtype` is the precision wished for. Winograd's way is float32 always: it beats bfloat16 done directly.
        """
        on_cpu = self.weight.device.type == "cpu"
        fast = self._winograd(side) if on_cpu and dtype in (torch.float32, torch.bfloat16) else None
        if fast is not None:
            return fast, torch.float32
        weight = self.weight.to(dtype, memory_format=torch.channels_last)
        bias = self.bias.to(dtype)
        return (self._packed(weight, bias, side) if on_cpu else None) or self._plain(weight, bias), dtype

    def _winograd(self, side: int) -> Stage | None:
        if (self.weight.shape[2:], self.stride, self.padding) != ((3, 3), 1, 1) or side % 4:
            return None
        return winograd(self.weight, self.bias, self.relu)

    def _packed(self, weight: Tensor, bias: Tensor, side: int) -> Stage | None:
        """With the weights laid out once for oneDNN and the ReLU inside: a tenth faster than `F.conv2d`.

        None where torch does not have these operators, whose names are private, or not in this precision.
        """
        if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
            return None
        ones, strides, padding = [1, 1], [self.stride] * 2, [self.padding] * 2
        input_shape = [32, weight.shape[1], side, side]
        try:
            reorder, convolve = torch.ops.mkldnn._reorder_convolution_weight, torch.ops.mkldnn._convolution_pointwise
            packed = reorder(weight, padding, strides, ones, 1, input_shape)
        except (AttributeError, RuntimeError):
            return None
        activation = "relu" if self.relu else "none"

        def convolution(x: Tensor) -> Tensor:
            x = x.to(weight.dtype, memory_format=torch.channels_last)
            y: Tensor = convolve(x, packed, bias, padding, strides, ones, 1, activation, [], "")
            return y

        return convolution

    def _plain(self, weight: Tensor, bias: Tensor) -> Stage:
        def convolution(x: Tensor) -> Tensor:
            x = x.to(weight.dtype, memory_format=torch.channels_last)
            y = F.conv2d(x, weight, bias, self.stride, self.padding)
            return y.relu_() if self.relu else y

        return convolution


def fold(network: PatchNetwork, device: torch.device, dtype: torch.dtype = torch.float32) -> Stage:
    """A function from prepared patches (n, 1, size, size) on `device`, which it may overwrite, to float32 descriptors.

    It has its own copy of the weights, as in evaluation mode. `dtype` is that of the convolutions, Winograd's excepted;
    the normalization of filter responses and everything after the last convolution stay in float32.
    """
    stages = tuple(_stages(network, device, dtype))

    @torch.inference_mode()
    def describe(x: Tensor) -> Tensor:
        for stage in stages:
            x = stage(x)
        return x

    return describe


def _stages(network: PatchNetwork, device: torch.device, dtype: torch.dtype) -> Iterator[Stage]:
    layers = [layer for layer in network.layers if not isinstance(layer, nn.Dropout | nn.Flatten)]
    last = list(network.last) if isinstance(network.last, nn.Sequential) else [network.last]
    side = network.preprocessing.size
    responses: FilterResponse | None = None  # waits for the next layer, whose type of input it writes
    while layers:
        layer = layers.pop(0)
        if isinstance(layer, FilterResponse):
            responses = layer
            continue
        if isinstance(layer, nn.Linear) or (isinstance(layer, nn.Conv2d) and not layers):
            stage, takes = _whole_map(layer, _take(nn.BatchNorm1d, last), side, device, dtype), dtype
        elif isinstance(layer, nn.Conv2d):
            norm, relu = _take(nn.BatchNorm2d, layers), _take(nn.ReLU, layers)
            weight, bias = _folded(layer, norm)
            stride, padding = layer.stride[0], int(layer.padding[0])
            convolution = Convolution(weight.to(device), bias.to(device), stride, padding, relu is not None)
            stage, takes = convolution.fastest(side, dtype)
            side = (side + 2 * padding - weight.shape[2]) // stride + 1
        else:
            stage, takes = deepcopy(layer).eval().to(device), torch.float32
            side = side // 2 if isinstance(layer, nn.MaxPool2d) else side
        if responses is not None:
            yield _filter_responses(responses, device, takes)
            responses = None
        yield stage
    yield from (deepcopy(layer).eval().to(device) for layer in last)
    if network.unit_length:
        yield unit_length


def _take(kind: type[nn.Module], layers: list[nn.Module]) -> nn.Module | None:
    """The next layer, taken off the list if it is of this kind."""
    return layers.pop(0) if layers and isinstance(layers[0], kind) else None


def _whole_map(
    layer: nn.Conv2d | nn.Linear, norm: nn.Module | None, side: int, device: torch.device, dtype: torch.dtype
) -> Stage:
    """The last layer, which sees the whole map, as one matrix product on the channels-last pixels."""
    weight, bias = _folded(layer, norm)
    weight = weight.reshape(len(weight), -1, side, side).permute(0, 2, 3, 1).reshape(len(weight), -1)
    weight, bias = weight.to(device, dtype).contiguous(), bias.to(device, dtype)
    return lambda x: F.linear(x.to(dtype).permute(0, 2, 3, 1).flatten(1), weight, bias).float()


def _filter_responses(layer: FilterResponse, device: torch.device, dtype: torch.dtype) -> Stage:
    """`FilterResponse` written as `dtype`: compiled, or with the passes over the map done in place."""
    if device.type == "cpu":
        compiled = filter_responses(layer, dtype)
        if compiled is not None:
            return compiled
    parameters = (p.detach().float().view(1, 1, -1) for p in (layer.weight, layer.bias, layer.tau))
    weight, bias, tau = (p.to(device, copy=True) for p in parameters)  # each (1, 1, channels)

    def normalize(x: Tensor) -> Tensor:
        pixels = x.float().permute(0, 2, 3, 1).flatten(1, 2)  # (n, side * side, channels), contiguous
        scale = weight * (pixels.square().mean(1, keepdim=True) + EPS).rsqrt()
        pixels = torch.addcmul(bias, pixels, scale, out=pixels)
        pixels = torch.maximum(pixels, tau, out=pixels)
        return pixels.view(x.shape[0], *x.shape[2:], x.shape[1]).permute(0, 3, 1, 2).to(dtype)

    return normalize


def _folded(layer: nn.Conv2d | nn.Linear, norm: nn.Module | None) -> tuple[Tensor, Tensor]:
    """Weight and bias of the layer followed by its batch normalization, computed in float64."""
    tensors = {name: t.detach().cpu().double() for name, t in layer.state_dict().items()}
    weight = tensors["weight"]
    bias = tensors.get("bias", weight.new_zeros(len(weight)))
    if isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
        known = {name: t.detach().cpu().double() for name, t in norm.state_dict().items()}
        scale = (known["running_var"] + norm.eps).rsqrt() * known.get("weight", torch.tensor(1.0))
        bias = (bias - known["running_mean"]) * scale + known.get("bias", torch.tensor(0.0))
        weight = weight * scale.view(-1, *[1] * (weight.ndim - 1))
    return weight.float(), bias.float()
