"""A network as a file for other runtimes: ONNX, in float32 or int8, and torch's pt2.

The graph takes grey patches (n, 1, size, size) with values 0..255, has the preprocessing inside and gives what
`NetworkDescriber` does, for any n.
"""

import io
import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from keypatch.describers.onnx_file import FORMAT, INPUT, OUTPUT, PREFIX
from keypatch.errors import KeypatchError, MissingExtra
from keypatch.files import fault
from keypatch.networks import PatchNetwork, prepare, unit_length

OPSET = 20  # what torch's exporter writes unasked, named so that another torch writes the same
METADATA = "keypatch.json"  # of a pt2 file, among its extra files
_CALIBRATED_AT_ONCE = 64


class RawPatches(nn.Module):
    """Grey patches (n, 1, size, size), 0..255, to descriptors: a network and everything that is done around it."""

    def __init__(self, network: PatchNetwork) -> None:
        super().__init__()
        self.network = deepcopy(network).cpu().float()
        self.eval()

    def forward(self, patches: Tensor) -> Tensor:
        raw: Tensor = self.network(prepare(patches[:, 0], self.network.preprocessing))
        return unit_length(raw) if self.network.unit_length else raw


def facts_of(network: PatchNetwork) -> dict[str, str]:
    """What whoever cuts the patches and compares the descriptors has to know, for the metadata of a file."""
    preprocessing = network.preprocessing
    return {
        **{name: str(value) for name, value in FORMAT.head().items()},
        "patch_size": str(preprocessing.size),
        "patch_sigmas": str(preprocessing.patch_sigmas),
        "resize": preprocessing.resize,
        "dim": str(network.dim),
        "unit_length": "true" if network.unit_length else "false",
    }


def check_exportable(network: PatchNetwork) -> None:
    """Raise KeypatchError for a network whose input is more than a grey patch of its size."""
    if network.preprocessing.channels != 1 or network.preprocessing.crop_from:
        raise KeypatchError(
            "This network describes whole images, in colour or cropped, but exported files take grey patches. Export "
            "the module itself with torch: keypatch.zoo.loading.load_network(RUN)[1]."
        )


def to_onnx(network: PatchNetwork) -> Any:
    """The network as an `onnx.ModelProto`; raises KeypatchError where torch cannot write it as ONNX."""
    check_exportable(network)
    if find_spec("onnxscript") is None or find_spec("onnxruntime") is None:
        raise MissingExtra.of("Exporting to ONNX needs onnx, onnxscript and onnxruntime", "onnx")
    with _quiet(), _told(network, "ONNX"):
        program = torch.onnx.export(
            RawPatches(network),
            _example(network),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("n")},),
            input_names=[INPUT],
            output_names=[OUTPUT],
            opset_version=OPSET,
            verbose=False,
        )
    return None if program is None else program.model_proto


def to_pt2(network: PatchNetwork, metadata: str) -> bytes:
    """The network as a file for `torch.export.load`; raises KeypatchError where torch cannot export it."""
    check_exportable(network)
    file = io.BytesIO()
    with _quiet(), _told(network, "pt2"):
        program = torch.export.export(
            RawPatches(network), _example(network), dynamic_shapes=({0: torch.export.Dim("n")},)
        )
        torch.export.save(program, file, extra_files={METADATA: metadata})
    return file.getvalue()


def to_int8(model: Any, patches: NDArray[np.float32]) -> Any:
    """The `onnx.ModelProto` with convolutions and matrix products in 8 bits, in the ranges that these patches need.

    Per channel, with the scales in the graph (QDQ), as any runtime reads it. Weights have 7 bits: on processors without
    VNNI, the sums of 8-bit products overflow in 16 bits.
    """
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with _quiet(), tempfile.TemporaryDirectory() as folder:
        plain, folded, quantized = (Path(folder) / f"{name}.onnx" for name in ("plain", "folded", "int8"))
        onnx.save(model, plain)
        quant_pre_process(str(plain), str(folded), skip_symbolic_shape=True)
        first = next(node.name for node in onnx.load(folded).graph.node if node.op_type == "Conv")
        quantize_static(
            str(folded),
            str(quantized),
            _Calibration(patches),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            reduce_range=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["Conv", "MatMul", "Gemm"],
            nodes_to_exclude=[first],  # it has one channel: a hundredth of the work, and the patch's own precision
        )
        return onnx.load(quantized)


def with_metadata(model: Any, facts: Mapping[str, str]) -> bytes:
    """The bytes of the `onnx.ModelProto` as one file with these metadata."""
    del model.metadata_props[:]
    for name, value in facts.items():
        model.metadata_props.add(key=f"{PREFIX}{name}", value=value)
    content: bytes = model.SerializeToString()
    return content


class _Calibration:
    """Patches in batches, as onnxruntime's quantization asks for them."""

    def __init__(self, patches: NDArray[np.float32]) -> None:
        starts = range(0, len(patches), _CALIBRATED_AT_ONCE)
        self._batches = iter([{INPUT: patches[start : start + _CALIBRATED_AT_ONCE]} for start in starts])

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        return next(self._batches, None)


def _example(network: PatchNetwork) -> tuple[Tensor]:
    size = network.preprocessing.size
    return (torch.rand((2, 1, size, size), generator=torch.Generator().manual_seed(0)) * 255,)


@contextmanager
def _told(network: PatchNetwork, kind: str) -> Iterator[None]:
    """A network of a plugin may do what no graph can hold: the size of the batch in its code, a loop over patches."""
    try:
        yield
    except (KeypatchError, MemoryError):
        raise
    except Exception as error:
        layers = type(network.layers).__name__
        raise KeypatchError(f"torch cannot write this network ({layers}) as {kind}: {fault(error)}.") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporters' remarks: on packages they do not find, and deprecated calls of their own."""
    root, level = logging.getLogger(), logging.root.manager.disable
    handlers = list(root.handlers)
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        root.handlers[:] = handlers
