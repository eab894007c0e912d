"""Networks by the names recipes and weight files use for them, and specs as plain dictionaries."""

from collections.abc import Mapping
from typing import Any

from keypatch.networks.central_surround import CentralSurround
from keypatch.networks.embedding import EmbeddingNet
from keypatch.networks.hardnet8 import HardNet8
from keypatch.networks.hynet import HyNet
from keypatch.networks.l2net import L2Net
from keypatch.networks.patch_network import NetworkSpec
from keypatch.networks.small import SmallNet
from keypatch.networks.spread_out import SpreadOutNet
from keypatch.networks.tfeat import TFeat
from keypatch.parts import table
from keypatch.settings import Types, checked, to_plain

NETWORKS: dict[str, type[Any]] = table(
    "network",
    {
        kind.__name__: kind
        for kind in (L2Net, HyNet, HardNet8, TFeat, SpreadOutNet, CentralSurround, EmbeddingNet, SmallNet)
    },
)
NETWORK_TYPES: Types = {NetworkSpec: NETWORKS}


def spec_to_dict(spec: NetworkSpec) -> dict[str, Any]:
    """The spec's fields, and its name under "type"."""
    plain: dict[str, Any] = to_plain(spec, NETWORK_TYPES, NetworkSpec)
    return plain


def spec_from_dict(values: Mapping[str, Any], where: str = "network") -> NetworkSpec:
    """The reverse of `spec_to_dict`; absent fields take their defaults. RecipeError says `where` it stands."""
    spec: NetworkSpec = checked(values, NetworkSpec, where, NETWORK_TYPES)
    return spec
