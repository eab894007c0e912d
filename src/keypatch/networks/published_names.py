"""Tensor names of the published checkpoints, and the network each family of names belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from keypatch.networks.hardnet8 import HardNet8
from keypatch.networks.hynet import SDGMNET_INPUT, HyNet
from keypatch.networks.l2net import SOSNET_INPUT, L2Net
from keypatch.networks.patch_network import NetworkSpec
from keypatch.networks.tfeat import TFeat

_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
_SOSNET = L2Net(dropout=0.1, preprocessing=SOSNET_INPUT)
_SDGMNET = HyNet(preprocessing=SDGMNET_INPUT)
_HARDTFEAT = TFeat(unit_length=True)


@dataclass(frozen=True)
class Family:
    """`names`: published name -> ours. `first` and `last` are the published tensors that tell width and dimension.

    `unused`: tensors of the file without a counterpart in our network.
    """

    title: str
    network: Any  # a NetworkSpec, completed by the file's own width and dimension
    names: Mapping[str, str]
    first: str
    last: str
    unused: frozenset[str] = frozenset()

    def spec(self, tensors: Mapping[str, Tensor]) -> NetworkSpec:
        found = {"width": tensors[self.first].shape[0]} if self.first in tensors else {}
        if self.last in tensors:
            found["dim"] = tensors[self.last].shape[0]
        if isinstance(self.network, HardNet8):
            found["features"] = found.pop("dim", self.network.features)
            if "components" in tensors and tensors["components"].ndim == 2:
                found["dim"] = tensors["components"].shape[1]
        spec: NetworkSpec = replace(self.network, **found)
        return spec


def families() -> tuple[Family, ...]:
    return (
        _batch_norm_family("HardNet", L2Net(), [("features", k) for k in (0, 3, 6, 9, 12, 15, 19)]),
        _batch_norm_family("SOSNet", _SOSNET, [("layers", k) for k in (1, 4, 7, 10, 13, 16, 20)]),
        _batch_norm_family("HardNet8", HardNet8(dim=128), [("features", k) for k in (0, 3, 6, 9, 12, 15, 18, 22)]),
        _batch_norm_family("L2-Net of HyNet's code", _SOSNET, [(f"layer{k}", int(k in (1, 7))) for k in range(1, 8)]),
        _filter_response_family("HyNet", HyNet()),
        _filter_response_family("SDGMNet", _SDGMNET, doubled=True),
        _tfeat_family("TFeat", TFeat(), ("features.1", "features.4", "descr.0")),
        _tfeat_family("HardTFeat", _HARDTFEAT, ("features.0", "features.3", "classifier.1")),
    )


def _batch_norm_family(title: str, network: Any, convolutions: Sequence[tuple[str, int]]) -> Family:
    """`convolutions`: the module and the number in it of each; its normalization has the next number."""
    names: dict[str, str] = {}
    last = "last.norm" if isinstance(network, HardNet8) else "last"
    for k, (module, index) in enumerate(convolutions, start=1):
        norm = f"layers.norm{k}" if k < len(convolutions) else last
        names[f"{module}.{index}.weight"] = f"layers.conv{k}.weight"
        names |= {f"{module}.{index + 1}.{part}": f"{norm}.{part}" for part in _STATISTICS}
    if isinstance(network, HardNet8):
        names |= {part: f"last.projection.{part}" for part in ("components", "mean")}
    first, end = (f"{module}.{index}.weight" for module, index in (convolutions[0], convolutions[-1]))
    return Family(title, network, names, first, end)


def _filter_response_family(title: str, network: HyNet, doubled: bool = False) -> Family:
    """HyNet's names. SDGMNet's files hold every tensor twice, as `layer1...` and as `features.0...`."""
    names: dict[str, str] = {}
    norms = {"layer1.0": "norm0", "layer1.3": "norm1"} | {f"layer{k}.1": f"norm{k}" for k in range(2, 7)}
    for theirs, ours in norms.items():
        threshold = f"{theirs[:-1]}{int(theirs[-1]) + 1}"
        names |= {f"{theirs}.{part}": f"layers.{ours}.{part}" for part in ("weight", "bias")}
        names[f"{threshold}.tau"] = f"layers.{ours}.tau"
    for k in range(1, 7):
        index = 2 if k == 1 else 0
        names |= {f"layer{k}.{index}.{part}": f"layers.conv{k}.{part}" for part in ("weight", "bias")}
    names["layer7.1.weight"] = "layers.conv7.weight"
    names |= {f"layer7.2.{part}": f"last.{part}" for part in _STATISTICS}
    unused = {f"{theirs}.eps" for theirs in norms}
    if doubled:
        unused |= {f"features.{int(name[5]) - 1}{name[6:]}" for name in (*names, *unused)}
    return Family(title, network, names, "layer1.2.weight", "layer7.1.weight", frozenset(unused))


def _tfeat_family(title: str, network: TFeat, theirs: Sequence[str]) -> Family:
    ours = ("conv1", "conv2", "linear")
    names = {
        f"{a}.{part}": f"layers.{b}.{part}" for a, b in zip(theirs, ours, strict=True) for part in ("weight", "bias")
    }
    return Family(title, network, names, f"{theirs[0]}.weight", f"{theirs[2]}.weight")
