"""Networks as ONNX and pt2 files: the same descriptors, for any number of patches."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from keypatch.describers.export import facts_of, to_int8, to_onnx, to_pt2, with_metadata
from keypatch.describers.network import NetworkDescriber
from keypatch.describers.onnx_file import OnnxDescriber
from keypatch.errors import DataError, KeypatchError
from keypatch.networks import NETWORKS, HyNet, L2Net, PatchNetwork, prepare

onnx = pytest.importorskip("onnx")

ROUNDING = 1e-5  # float32 sums in another order
COUNTS = (1, 7, 1000)


def untrained(spec: Any) -> PatchNetwork:
    """With the batch statistics of some patches, so that the numbers have their usual size."""
    torch.manual_seed(0)
    network: PatchNetwork = spec.build()
    with torch.no_grad():
        network(prepare(torch.from_numpy(noise(64, spec.preprocessing.size)), spec.preprocessing))
    return network.eval()


def noise(count: int, side: int) -> NDArray[np.uint8]:
    return np.random.default_rng(count).integers(0, 256, (count, side, side), np.uint8)


def written(network: PatchNetwork, path: Path, **facts: str) -> Path:
    path.write_bytes(with_metadata(to_onnx(network), facts_of(network) | facts))
    return path


def agree_at_any_count(network: PatchNetwork, folder: Path) -> None:
    original = NetworkDescriber(network, "original", "cpu", "float32")
    from_onnx = OnnxDescriber(written(network, folder / "x.onnx"), runtime="onnxruntime")
    module = torch.export.load(io.BytesIO(to_pt2(network, "{}"))).module()
    size = network.preprocessing.size
    for count in (0, *COUNTS):
        patches = noise(count, size)
        expected = original.describe(patches)
        np.testing.assert_allclose(from_onnx.describe(patches), expected, atol=ROUNDING)
        with torch.no_grad():
            of_pt2 = module(torch.from_numpy(patches).float().unsqueeze(1)).numpy()
        np.testing.assert_allclose(of_pt2, expected, atol=ROUNDING)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_narrow_network_of_every_kind_gives_the_same_as_onnx_and_pt2(name: str, tmp_path: Path) -> None:
    agree_at_any_count(untrained(NETWORKS[name](width=4)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_gives_the_same_as_onnx_and_pt2(name: str, tmp_path: Path) -> None:
    agree_at_any_count(untrained(NETWORKS[name]()), tmp_path)


SMALL = L2Net(dim=16, width=8)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[PatchNetwork, Path]:
    network = untrained(SMALL)
    return network, written(network, tmp_path_factory.mktemp("onnx") / "small.onnx")


def test_patches_of_another_side_are_resized_as_the_network_s_own(small: tuple[PatchNetwork, Path]) -> None:
    network, path = small
    described = OnnxDescriber(path)
    original = NetworkDescriber(network, "original", "cpu", "float32")
    for side in (64, 45):
        np.testing.assert_allclose(described.describe(noise(5, side)), original.describe(noise(5, side)), atol=ROUNDING)


def test_the_file_says_what_whoever_cuts_patches_must_know(small: tuple[PatchNetwork, Path]) -> None:
    described = OnnxDescriber(small[1])
    assert (described.name, described.dim, described.patch_size, described.patch_sigmas) == ("small", 16, 32, 24.0)
    assert described.unit_length and described.training == ()
    model = onnx.load(small[1])
    (given,), (made,) = model.graph.input, model.graph.output
    assert (given.name, made.name) == ("patches", "descriptors")
    assert given.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert given.type.tensor_type.shape.dim[0].dim_param  # any number of patches


def test_int8_is_close_smaller_and_runs_everywhere_the_same(tmp_path: Path) -> None:
    network = untrained(replace(SMALL, width=16))
    patches = noise(128, 32)
    model = to_int8(to_onnx(network), patches[:, None].astype(np.float32))
    path = tmp_path / "int8.onnx"
    path.write_bytes(with_metadata(model, facts_of(network) | {"precision": "int8"}))
    described = OnnxDescriber(path, runtime="onnxruntime").describe(patches)
    original = NetworkDescriber(network, "original", "cpu", "float32").describe(patches)
    assert ((described * original).sum(1) > 0.99).all()
    assert np.abs(described - original).max() > 1e-4  # so it is not float32
    assert path.stat().st_size < 0.5 * written(network, tmp_path / "float.onnx").stat().st_size
    with pytest.raises(KeypatchError, match=r"runs on the CPU: leave out --device cuda\."):
        OnnxDescriber(path, device="cuda")


def test_a_runtime_that_is_wrong_is_not_chosen(
    small: tuple[PatchNetwork, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from keypatch.describers import onnx_file

    with monkeypatch.context() as patch:
        right = onnx_file._start_onnxruntime
        patch.setattr(onnx_file, "find_spec", lambda name: name)
        patch.setattr(onnx_file, "_start_openvino", right)
        assert OnnxDescriber(small[1]).runtime == "openvino"
        patch.setattr(onnx_file, "_start_openvino", lambda *given: lambda x: right(*given)(x)[:, ::-1])
        assert OnnxDescriber(small[1]).runtime == "onnxruntime"


def changed(path: Path, folder: Path, change: Any) -> Path:
    model = onnx.load(path)
    change(model)
    other = folder / "other.onnx"
    other.write_bytes(model.SerializeToString())
    return other


def fact(name: str, value: str | None) -> Any:
    def change(model: Any) -> None:
        (entry,) = (each for each in model.metadata_props if each.key == f"keypatch.{name}")
        if value is None:
            model.metadata_props.remove(entry)
        else:
            entry.value = value

    return change


def rename_input(model: Any) -> None:
    model.graph.input[0].name = "x"
    for node in model.graph.node:
        node.input[:] = ["x" if name == "patches" else name for name in node.input]


def other_opset(model: Any) -> None:
    model.opset_import[0].version = 99


def weights_elsewhere(model: Any) -> None:
    tensor = next(each for each in model.graph.initializer if each.dims)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def weights_elsewhere_in_a_constant(model: Any) -> None:
    node = model.graph.node.add(op_type="Constant", output=["secret"])
    node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    node.attribute[0].t.data_location = onnx.TensorProto.EXTERNAL


def loop(model: Any) -> None:
    model.graph.node.add(op_type="Loop", input=["", ""], output=["never"])


def foreign_operator(model: Any) -> None:
    model.graph.node.add(op_type="Run", domain="evil", output=["code"])


WRONG = {
    "another network": (fact("format", None), r"is not a descriptor that `keypatch export` wrote"),
    "a newer format": (fact("format_number", "7"), r"newer keypatch \(format 7"),
    "another opset": (other_opset, r"needs ONNX opset 99, but this onnx supports 1 to \d+\."),
    "a renamed input": (rename_input, r"has the inputs x \(n, 1, 32, 32\).*promises patches \(n, 1, 32, 32\)"),
    "another size": (fact("patch_size", "64"), r"has the inputs patches \(n, 1, 32, 32\)"),
    "another dim": (fact("dim", "128"), r"outputs descriptors \(n, 16\).*descriptors \(n, 128\)"),
    "no size": (fact("patch_size", "-1"), r"does not state its patch_size"),
    "no scale": (fact("patch_sigmas", "wide"), r"is not a readable descriptor in ONNX"),
    "weights elsewhere": (weights_elsewhere, r"keeps weights in another file, which is not read"),
    "a constant elsewhere": (weights_elsewhere_in_a_constant, r"keeps weights in another file"),
    "a loop": (loop, r"has the operator Loop, which no descriptor needs"),
    "another domain": (foreign_operator, r"has the operator evil\.Run"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_is_one_sentence(kind: str, small: tuple[PatchNetwork, Path], tmp_path: Path) -> None:
    change, sentence = WRONG[kind]
    path = changed(small[1], tmp_path, change)
    with pytest.raises(DataError, match=sentence) as told:
        OnnxDescriber(path)
    assert str(path) in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_truncated_file_is_one_sentence(share: float, small: tuple[PatchNetwork, Path], tmp_path: Path) -> None:
    content, path = small[1].read_bytes(), tmp_path / "cut.onnx"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError, match=r"cut\.onnx is not a ") as told:
        OnnxDescriber(path)
    assert "\n" not in str(told.value)


def test_a_file_that_asks_for_all_memory_is_one_sentence(small: tuple[PatchNetwork, Path], tmp_path: Path) -> None:
    def swell(model: Any) -> None:
        shape = onnx.helper.make_tensor("shape", onnx.TensorProto.INT64, [2], [1_000_000, 1_000_000])
        model.graph.initializer.append(shape)
        model.graph.node.add(op_type="ConstantOfShape", input=["shape"], output=["huge"])
        model.graph.node.add(op_type="ReduceSum", input=["huge"], output=["sum"])
        last = model.graph.node[-3]
        last.output[0] = "before"
        model.graph.node.add(op_type="Add", input=["before", "sum"], output=["descriptors"])

    with pytest.raises(DataError, match=r"other\.onnx cannot be read: a trial read needed more than 4 GB of memory"):
        OnnxDescriber(changed(small[1], tmp_path, swell))


def test_a_network_that_no_graph_can_hold_is_one_sentence() -> None:
    class Stubborn(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if float(x.sum()) > 0 else -x  # a decision that depends on the patches

    network = untrained(HyNet(dim=8, width=4))
    network.layers = torch.nn.Sequential(Stubborn(), *network.layers)
    with pytest.raises(KeypatchError, match=r"torch cannot write this network \(Sequential\) as pt2: ") as told:
        to_pt2(network, "{}")
    assert "\n" not in str(told.value)
