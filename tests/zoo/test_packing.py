from pathlib import Path

import numpy as np
import pytest
import torch

from keypatch.describers.network import NetworkDescriber
from keypatch.networks import L2Net, save_weights
from keypatch.zoo import cards, load
from keypatch.zoo.loading import pack


def test_a_packed_network_is_found_by_name_and_describes_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    spec = L2Net(dim=32, width=16)
    network = spec.build().eval()
    save_weights(tmp_path / "full.safetensors", network, spec, {})
    zoo = tmp_path / "zoo"
    zoo.mkdir()
    monkeypatch.setattr(cards, "WEIGHTS", zoo)
    card = pack(
        tmp_path / "full.safetensors",
        zoo,
        name="small",
        about="a test",
        trained_on="nothing",
        terms="none",
        scores={"fpr95": 0.5},
    )
    assert cards.Card.load(zoo / "small.json") == card
    assert (zoo / "small.safetensors").stat().st_size < 0.6 * (tmp_path / "full.safetensors").stat().st_size
    patches = np.random.default_rng(0).integers(0, 256, (20, 64, 64), dtype=np.uint8)
    ours, before = load("small").describe(patches), NetworkDescriber(network, "before").describe(patches)
    assert np.abs(ours - before).max() < 5e-3  # float16 keeps eleven bits of each weight
    (zoo / "small.safetensors").write_bytes(b"damaged")
    with pytest.raises(cards.DataError, match="not the file its card describes"):
        load("small")
