"""Networks by the names recipes and weight files use for them, and specs as plain dictionaries."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from keypatch.errors import RecipeError
from keypatch.networks.central_surround import CentralSurround
from keypatch.networks.embedding import EmbeddingNet
from keypatch.networks.hardnet8 import HardNet8
from keypatch.networks.hynet import HyNet
from keypatch.networks.l2net import L2Net
from keypatch.networks.patch_network import NetworkSpec
from keypatch.networks.preprocessing import Preprocessing
from keypatch.networks.spread_out import SpreadOutNet
from keypatch.networks.tfeat import TFeat

NETWORKS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (L2Net, HyNet, HardNet8, TFeat, SpreadOutNet, CentralSurround, EmbeddingNet)
}


def spec_to_dict(spec: NetworkSpec) -> dict[str, Any]:
    """The spec's fields, and its name under "type"."""
    return {"type": type(spec).__name__, **asdict(spec)}


def spec_from_dict(values: Mapping[str, Any]) -> NetworkSpec:
    """The reverse of `spec_to_dict`; absent fields take their defaults."""
    rest = dict(values)
    name = rest.pop("type", None)
    if name not in NETWORKS:
        raise RecipeError(f'There is no network "{name}". The networks: {", ".join(NETWORKS)}.')
    kind = NETWORKS[name]
    if isinstance(rest.get("preprocessing"), Mapping):
        rest["preprocessing"] = _with_known_fields(Preprocessing, rest["preprocessing"])
    spec: NetworkSpec = _with_known_fields(kind, rest)
    return spec


def _with_known_fields(kind: type[Any], values: Mapping[str, Any]) -> Any:
    known = [field.name for field in fields(kind)]
    for name in values:
        if name not in known:
            raise RecipeError(f'{kind.__name__} has no field "{name}". Its fields: {", ".join(known)}.')
    return kind(**values)
