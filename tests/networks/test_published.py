import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from keypatch.errors import DataError
from keypatch.networks import HyNet, L2Net, PatchNetwork, TFeat, load_published, prepare, unit_length

Tensors = dict[str, torch.Tensor]
NAMES = ("hardnet", "sosnet", "hynet", "tfeat", "hardnet8")


def describe(network: PatchNetwork, patches: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        raw = network(prepare(patches, network.preprocessing))
        return unit_length(raw) if network.unit_length else raw


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("white", [1.0, 255.0])
def test_published_names_give_the_authors_descriptors(
    name: str, white: float, published: Callable[[str], Tensors], reference: Path, tmp_path: Path
) -> None:
    torch.save(published(name), tmp_path / "weights.pth")
    spec, network = load_published(tmp_path / "weights.pth")
    figures = np.load(reference / "networks.npz")
    expected = figures[f"{name}/out_{white:.0f}"]
    patches = torch.from_numpy(figures["patches"][:, 0])
    network.preprocessing = replace(spec.preprocessing, value_range=white)
    single = describe(network, patches).numpy()
    np.testing.assert_allclose(single[:4], expected[:4], atol=5e-6)  # rounding of float32, largest on textured patches
    double = describe(network.double(), patches.double()).numpy()
    np.testing.assert_allclose(double, expected, atol=1e-9)


def test_raw_hynet_is_the_output_before_the_unit_length(
    published: Callable[[str], Tensors], reference: Path, tmp_path: Path
) -> None:
    torch.save(published("hynet"), tmp_path / "weights.pth")
    _, network = load_published(tmp_path / "weights.pth")
    figures = np.load(reference / "networks.npz")
    with torch.no_grad():
        raw = network.double()(prepare(torch.from_numpy(figures["patches"][:, 0]).double(), network.preprocessing))
    np.testing.assert_allclose(raw.numpy(), figures["hynet/raw_255"], atol=1e-9)


def test_the_cdf_network_has_hardnet_s_names(
    published: Callable[[str], Tensors], reference: Path, tmp_path: Path
) -> None:
    torch.save(published("hardnet"), tmp_path / "model.state_dict")
    _, network = load_published(tmp_path / "model.state_dict")
    figures = np.load(reference / "networks.npz")
    double = describe(network.double(), torch.from_numpy(figures["patches"][:, 0]).double())
    np.testing.assert_allclose(double.numpy(), figures["cdf_l2net/out_1"], atol=1e-9)


def test_containers_prefixes_and_missing_counters(published: Callable[[str], Tensors], tmp_path: Path) -> None:
    tensors = published("hardnet")
    torch.save(tensors, tmp_path / "bare.pth")
    old = {name: tensor for name, tensor in tensors.items() if not name.endswith("num_batches_tracked")}
    torch.save({"epoch": 9, "state_dict": old}, tmp_path / "hardnet.pth", _use_new_zipfile_serialization=False)
    torch.save({f"module.{name}": tensor for name, tensor in tensors.items()}, tmp_path / "parallel.pth")
    save_file(tensors, tmp_path / "hardnet.safetensors")
    patches = torch.randint(0, 256, (3, 64, 64), dtype=torch.uint8)
    spec, network = load_published(tmp_path / "bare.pth")
    assert spec == L2Net()
    expected = describe(network, patches)
    for name in ("hardnet.pth", "parallel.pth", "hardnet.safetensors"):
        assert torch.equal(describe(load_published(tmp_path / name)[1], patches), expected)


def test_sdgmnet_holds_every_tensor_twice_and_an_optimizer(published: Callable[[str], Tensors], tmp_path: Path) -> None:
    tensors = published("hynet")
    twins = {f"features.{int(name[5]) - 1}{name[6:]}": tensor for name, tensor in tensors.items()}
    assert len(tensors | twins) == 88
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    optimizer = torch.optim.SGD([parameter], lr=1.0, momentum=0.9)
    optimizer.step()
    container = {"epoch": 3, "model_state_dict": tensors | twins, "FPR": 0.01, "opt": optimizer.state_dict()}
    torch.save(container, tmp_path / "model_li.pt")
    torch.save(tensors, tmp_path / "HyNet_LIB.pth")
    spec, network = load_published(tmp_path / "model_li.pt")
    assert isinstance(spec, HyNet) and spec.preprocessing.value_range == 1.0
    _, same = load_published(tmp_path / "HyNet_LIB.pth")
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), same.parameters(), strict=True))


def test_l2net_of_the_hynet_code(published: Callable[[str], Tensors], tmp_path: Path) -> None:
    tensors, layered = published("sosnet"), {}
    for name, tensor in tensors.items():
        index = int(name.split(".")[1])
        k, norm = divmod(index - 1, 3) if index < 20 else (6, index - 20)
        first = 1 if k in (0, 6) else 0
        layered[f"layer{k + 1}.{first + norm}.{name.split('.')[2]}"] = tensor
    torch.save(layered, tmp_path / "l2net.pth")
    torch.save(tensors, tmp_path / "sosnet.pth")
    patches = torch.randint(0, 256, (3, 64, 64), dtype=torch.uint8)
    expected = describe(load_published(tmp_path / "sosnet.pth")[1], patches)
    assert torch.equal(describe(load_published(tmp_path / "l2net.pth")[1], patches), expected)


def test_half_precision_and_another_dimension(published: Callable[[str], Tensors], tmp_path: Path) -> None:
    tensors = published("hynet")
    tensors["layer7.1.weight"] = tensors["layer7.1.weight"][:64]
    tensors |= {f"layer7.2.{part}": tensors[f"layer7.2.{part}"][:64] for part in ("running_mean", "running_var")}
    torch.save({name: t.half() if t.is_floating_point() else t for name, t in tensors.items()}, tmp_path / "half.pth")
    spec, network = load_published(tmp_path / "half.pth")
    assert spec == HyNet(dim=64) and network.dim == 64
    assert all(parameter.dtype == torch.float32 for parameter in network.parameters())


@pytest.mark.parametrize("name", ["tfeat-liberty", "tfeat-notredame", "tfeat-yosemite", "hardtfeat"])
def test_the_real_tfeat_files_load(name: str, shared: Path) -> None:
    spec, network = load_published(shared / "data" / "peers" / f"{name}.safetensors")
    assert isinstance(spec, TFeat) and spec.unit_length == (name == "hardtfeat")
    patches = torch.randint(0, 256, (4, 64, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    descriptors = describe(network, patches)
    assert descriptors.shape == (4, 128) and descriptors.std() > 0.01


def write_truncated(tensors: Tensors, path: Path) -> None:
    torch.save(tensors, path)
    path.write_bytes(path.read_bytes()[:100_000])


def write_truncated_safetensors(tensors: Tensors, path: Path) -> None:
    save_file(tensors, path)
    path.write_bytes(path.read_bytes()[:100_000])


WRONG = {
    "cut off": (write_truncated, "is not a readable torch checkpoint"),
    "cut off safetensors": (write_truncated_safetensors, "may be cut off"),
    "text": (lambda tensors, path: path.write_text("hello, world"), "is not a readable torch checkpoint"),
    "empty": (lambda tensors, path: path.write_bytes(b""), "may be cut off"),
    "a list": (lambda tensors, path: torch.save([1, 2], path), "does not hold a state dict"),
    "a whole module": (lambda tensors, path: torch.save(torch.nn.Linear(2, 2), path), "Save the state_dict by itself"),
    "unknown names": (
        lambda tensors, path: torch.save({"a": torch.ones(2)}, path),
        "tensor names of any known network",
    ),
    "a missing tensor": (
        lambda tensors, path: torch.save({k: t for k, t in tensors.items() if k != "layer3.0.weight"}, path),
        "lacks the tensor layer3.0.weight",
    ),
    "a foreign tensor": (
        lambda tensors, path: torch.save({**tensors, "extra": torch.ones(1)}, path),
        "has the unknown tensor extra",
    ),
    "a wrong shape": (
        lambda tensors, path: torch.save({**tensors, "layer4.0.bias": torch.ones(63)}, path),
        r"layer4\.0\.bias has shape \(63,\)",
    ),
    "not finite": (
        lambda tensors, path: torch.save({**tensors, "layer4.0.bias": torch.full((64,), torch.nan)}, path),
        r"layer4\.0\.bias holds values that are not finite",
    ),
    "a learned eps": (
        lambda tensors, path: torch.save({**tensors, "layer4.1.eps": torch.tensor([0.01])}, path),
        "a learned eps",
    ),
    "no file": (lambda tensors, path: None, "cannot be read: no such file"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_are_told_in_a_sentence(case: str, published: Callable[[str], Tensors], tmp_path: Path) -> None:
    write, message = WRONG[case]
    path = tmp_path / "weights.pth"
    write(published("hynet"), path)
    with pytest.raises(DataError, match=message) as caught:
        load_published(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_cut_anywhere_is_told_in_a_sentence(
    zipped: bool, published: Callable[[str], Tensors], tmp_path: Path
) -> None:
    path = tmp_path / "weights.pth"
    torch.save(published("tfeat"), path, _use_new_zipfile_serialization=zipped)
    content = path.read_bytes()
    for length in (1, 2, 3, 10, 60, 100, 200, 300, 500, 700, 1000, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(DataError):
            load_published(path)


class Harmful:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("false",)


@pytest.mark.parametrize(
    ("write", "more"),
    [
        (lambda content, path: torch.save(content, path), f" and asks for {os.name}.system"),
        (lambda content, path: path.write_bytes(pickle.dumps(content)), ""),
        (lambda content, path: path.write_bytes(pickle.dumps(content, protocol=2)), f" and asks for {os.name}.system"),
    ],
    ids=["torch", "protocol 4", "protocol 2"],
)
def test_the_refusal_of_a_pickle_is_one_whole_sentence(
    tmp_path: Path, write: Callable[[object, Path], object], more: str
) -> None:
    path = tmp_path / "w.pth"
    write({"a": Harmful()}, path)
    with pytest.raises(DataError) as refused:
        load_published(path)
    assert str(refused.value) == (
        f"{path} holds more than tensors{more}. Only tensors are loaded, since anything else could run code. Save the "
        "state_dict by itself."
    )
