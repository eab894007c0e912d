import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from keypatch.errors import DataError, KeypatchError
from keypatch.networks import HyNet, L2Net, Preprocessing, load_weights, prepare, read_weights_card, save_weights

SPEC = HyNet(width=8, dim=16, preprocessing=Preprocessing(value_range=255.0, patch_sigmas=12.0))


def write(path: Path, **options: Any) -> torch.nn.Module:
    torch.manual_seed(0)
    network = SPEC.build().eval()
    save_weights(path, network, SPEC, {"data": "nd-train"}, **options)
    return network


def header_of(path: Path) -> dict[str, str]:
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata())


def test_a_weight_file_carries_the_network_and_its_preprocessing(tmp_path: Path) -> None:
    network = write(tmp_path / "a.safetensors")
    spec, loaded = load_weights(tmp_path / "a.safetensors")
    assert spec == SPEC and loaded.preprocessing.patch_sigmas == 12.0 and not loaded.training
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), loaded.parameters(), strict=True))
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    assert read_weights_card(tmp_path / "a.safetensors") == {"data": "nd-train"}


def test_half_precision_changes_only_the_large_tensors(tmp_path: Path) -> None:
    write(tmp_path / "half.safetensors", half=True)
    stored = load_file(tmp_path / "half.safetensors")
    assert stored["layers.conv7.weight"].dtype == torch.float16
    assert stored["last.running_var"].dtype == stored["layers.norm2.tau"].dtype == torch.float32
    _, loaded = load_weights(tmp_path / "half.safetensors")
    assert all(parameter.dtype == torch.float32 for parameter in loaded.parameters())


def test_hardnet_in_half_precision_is_under_three_megabytes(tmp_path: Path) -> None:
    spec = L2Net(gain=0.0)
    save_weights(tmp_path / "hardnet.safetensors", spec.build(), spec, {}, half=True)
    assert (tmp_path / "hardnet.safetensors").stat().st_size < 3_000_000


def test_loading_leaves_the_random_generator_alone(tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors")
    torch.manual_seed(7)
    before = torch.get_rng_state()
    load_weights(tmp_path / "a.safetensors")
    assert torch.equal(torch.get_rng_state(), before)


def test_loaded_weights_can_be_trained_on(tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors")
    _, network = load_weights(tmp_path / "a.safetensors")
    network.train()
    patches = torch.randint(0, 256, (4, 64, 64), dtype=torch.uint8)
    network(prepare(patches, network.preprocessing)).square().sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write(path)
    save_file(load_file(path), path, header_of(path) | {"format_number": "2"})
    with pytest.raises(DataError, match=r"newer keypatch \(format 2, this one reads up to 1\): update keypatch"):
        load_weights(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network": "{"}, "not a readable weight file"),
        ({"network": 100_000 * "["}, "not a readable weight file .it is nested too deeply"),
        ({"format_number": "²"}, "has no format number"),
        ({"network": json.dumps({"type": "Nothing"})}, r'a.safetensors: network: there is no "Nothing".*register'),
        (
            {"network": json.dumps({"type": "HyNet", "width": 8, "dim": 17})},
            r"has shape \(16,\), but HyNet\(dim=17\) needs \(17,\)",
        ),
        ({"format": "pt"}, "not a weight file .its format is pt"),
    ],
)
def test_a_wrong_header_is_told_in_a_sentence(change: dict[str, str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write(path)
    save_file(load_file(path), path, header_of(path) | change)
    with pytest.raises(KeypatchError, match=message):
        load_weights(path)


@pytest.mark.parametrize("card", ["[", "5", '"text"', 100_000 * "["])
def test_a_damaged_card_is_told_in_a_sentence(tmp_path: Path, card: str) -> None:
    path = tmp_path / "a.safetensors"
    write(path)
    save_file(load_file(path), path, header_of(path) | {"card": card})
    with pytest.raises(DataError, match=r"a\.safetensors is not a readable weight file"):
        read_weights_card(path)


def test_missing_tensors_and_cut_files_are_told_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write(path)
    tensors = {name: tensor for name, tensor in load_file(path).items() if name != "layers.conv3.bias"}
    save_file(tensors, tmp_path / "b.safetensors", header_of(path))
    with pytest.raises(DataError, match=r"lacks the tensor layers\.conv3\.bias"):
        load_weights(tmp_path / "b.safetensors")
    for length in (0, 5, 100, 5000):
        (tmp_path / "c.safetensors").write_bytes(path.read_bytes()[:length])
        with pytest.raises(DataError, match="may be cut off"):
            load_weights(tmp_path / "c.safetensors")
    with pytest.raises(DataError, match="no such file"):
        load_weights(tmp_path / "none.safetensors")
