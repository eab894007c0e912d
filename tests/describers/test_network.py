from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from keypatch.describers import folding
from keypatch.describers import network as network_module
from keypatch.describers.folding import Convolution
from keypatch.describers.network import NetworkDescriber, choose_plan
from keypatch.errors import KeypatchError
from keypatch.networks import (
    SOSNET_INPUT,
    CentralSurround,
    EmbeddingNet,
    HardNet8,
    HyNet,
    L2Net,
    PatchNetwork,
    SmallNet,
    SpreadOutNet,
    TFeat,
    has_fast_bfloat16,
    prepare,
    unit_length,
)

SPECS: dict[str, Any] = {
    "hardnet": L2Net(gain=0.0),
    "sosnet": L2Net(dim=24, width=8, preprocessing=SOSNET_INPUT),
    "hynet": HyNet(),
    "hardnet8": HardNet8(dim=24, features=48, width=8, gain=0.0),
    "tfeat": TFeat(dim=24, width=8),
    "hardtfeat": TFeat(dim=24, width=8, unit_length=True),
    "spread-out": SpreadOutNet(dim=24, width=8),
    "hynet-batch": HyNet(dim=24, width=8, normalization="batch"),
    "hynet-instance": HyNet(dim=24, width=8, normalization="instance"),
    "central-surround": CentralSurround(dim=24, width=8),
    "embedding": EmbeddingNet(dim=24, width=8),
    "small": SmallNet(),
}
NEEDS_BFLOAT16 = pytest.mark.skipif(not has_fast_bfloat16(torch.device("cpu")), reason="this processor has no bfloat16")


def random_patches(count: int, side: int = 64) -> NDArray[np.uint8]:
    return np.random.default_rng(side).integers(0, 256, (count, side, side), dtype=np.uint8)


@pytest.fixture(scope="module", params=SPECS)
def network(request: pytest.FixtureRequest) -> PatchNetwork:
    """A network with statistics of its own, left in training mode as a careless caller would."""
    torch.manual_seed(0)
    network: PatchNetwork = SPECS[request.param].build()
    for _ in range(3):
        network(prepare(torch.from_numpy(random_patches(32)), network.preprocessing))
    if request.param == "spread-out":
        for norm in (module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)):
            torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
            torch.nn.init.uniform_(norm.bias, -0.5, 0.5)
    return network


@torch.no_grad()
def plainly(network: PatchNetwork, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The network itself in evaluation mode, with nothing folded."""
    mode = network.training
    raw = network.eval()(prepare(torch.from_numpy(patches), network.preprocessing))
    network.train(mode)
    result: NDArray[np.float32] = (unit_length(raw) if network.unit_length else raw).numpy()
    return result


def test_the_fast_path_gives_the_network_s_descriptors(network: PatchNetwork) -> None:
    for side in (32, 64, 65):
        patches = random_patches(40, side)
        described = NetworkDescriber(network, "x", "cpu", "float32").describe(patches)
        assert described.dtype == np.float32
        np.testing.assert_allclose(described, plainly(network, patches), atol=5e-6)  # rounding of float32
    assert network.training  # describing has not touched the network


@pytest.mark.parametrize("absent", [("_winograd",), ("_winograd", "_packed")])
def test_without_a_compiler_and_without_the_operators_of_onednn(
    absent: tuple[str, ...], network: PatchNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in absent:
        monkeypatch.setattr(Convolution, name, lambda self, *rest: None)
    patches = random_patches(7)
    described = NetworkDescriber(network, "x", "cpu", "float32").describe(patches)
    np.testing.assert_allclose(described, plainly(network, patches), atol=2e-6)


def test_a_descriptor_does_not_depend_on_the_patches_beside_it(network: PatchNetwork) -> None:
    describer = NetworkDescriber(network, "x", "cpu", "float32")
    patches = random_patches(101)
    together = describer.describe(patches)
    for count in (1, 2, 33, 64):
        np.testing.assert_allclose(describer.describe(patches[:count]), together[:count], atol=1e-6)
    np.testing.assert_allclose(describer.describe(patches[::-1])[::-1], together, atol=1e-6)


def test_unit_length_none_and_one(network: PatchNetwork) -> None:
    describer = NetworkDescriber(network, "x", "cpu", "float32")
    assert describer.describe(random_patches(0)).shape == (0, network.dim)
    assert describer.describe(random_patches(1)).shape == (1, network.dim)
    if describer.unit_length:
        np.testing.assert_allclose(np.linalg.norm(describer.describe(random_patches(9)), axis=1), 1, atol=1e-5)


def test_flat_patches_give_finite_descriptors(network: PatchNetwork) -> None:
    flat = np.full((3, 64, 64), [[[0]], [[90]], [[255]]], np.uint8)
    assert np.isfinite(NetworkDescriber(network, "x", "cpu", "float32").describe(flat)).all()


@NEEDS_BFLOAT16
def test_bfloat16_is_as_close_as_stated(network: PatchNetwork) -> None:
    patches = random_patches(40)
    described = NetworkDescriber(network, "x", "cpu", "bfloat16").describe(patches)
    expected = plainly(network, patches)
    length = np.linalg.norm(expected, axis=1, keepdims=True)
    assert (np.abs(described - expected) / length).max() <= network_module.HALF_PRECISION
    cosine = (described * expected).sum(1) / np.linalg.norm(described, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosine.min() > 0.999


def test_the_describer_keeps_the_weights_of_its_day() -> None:
    network = HyNet(dim=24, width=8).build()
    describer = NetworkDescriber(network, "x", "cpu", "float32")
    before = describer.describe(random_patches(3))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    np.testing.assert_array_equal(describer.describe(random_patches(3)), before)


def test_read_only_and_strided_patches(tmp_path: Path) -> None:
    describer = NetworkDescriber(TFeat(dim=24, width=8).build(), "x", "cpu")
    patches = random_patches(80)
    expected = describer.describe(patches)
    np.save(tmp_path / "patches.npy", patches)
    mapped = np.load(tmp_path / "patches.npy", mmap_mode="r")
    np.testing.assert_array_equal(describer.describe(mapped), expected)
    doubled = np.repeat(patches, 2, axis=0)
    np.testing.assert_array_equal(describer.describe(doubled[::2]), expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_caller_s_number_of_threads_is_left_as_it_was(threads: int) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        NetworkDescriber(TFeat(dim=24, width=8).build(), "x", "cpu").describe(random_patches(100))
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_an_error_in_a_worker_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise MemoryError("no room")

    describer = NetworkDescriber(TFeat(dim=24, width=8).build(), "x", "cpu")
    monkeypatch.setattr(network_module, "prepare", fail)
    with pytest.raises(MemoryError, match="no room"):
        describer.describe(random_patches(100))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_nothing_stays_on_the_cpu_when_the_device_is_another(network: PatchNetwork, dtype: torch.dtype) -> None:
    meta = torch.device("meta")
    described = folding.fold(network, meta, dtype)(
        prepare(torch.from_numpy(random_patches(5)).to(meta), network.preprocessing)
    )
    assert described.device == meta and described.shape == (5, network.dim) and described.dtype == torch.float32


def test_the_plan_is_half_precision_where_that_is_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    for fast, dtype in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(network_module, "has_fast_bfloat16", lambda device, fast=fast: fast)
        assert choose_plan("cpu").dtype == dtype
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_plan("auto").dtype == torch.float16
    assert choose_plan("cuda", "float32").dtype == torch.float32


def test_wrong_precisions_are_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeypatchError, match="Choose auto, float32"):
        choose_plan("cpu", "float8")
    with pytest.raises(KeypatchError, match="float16 needs a GPU"):
        choose_plan("cpu", "float16")
    monkeypatch.setattr(network_module, "has_fast_bfloat16", lambda device: False)
    with pytest.raises(KeypatchError, match="far slower"):
        choose_plan("cpu", "bfloat16")


@pytest.mark.parametrize("wrong", [np.zeros((2, 64, 64), np.float32), np.zeros((2, 1, 32, 32), np.uint8)])
def test_wrong_patches_are_told_in_a_sentence(wrong: NDArray[Any]) -> None:
    with pytest.raises(KeypatchError, match="Patches must"):
        NetworkDescriber(TFeat(dim=24, width=8).build(), "x", "cpu").describe(wrong)
