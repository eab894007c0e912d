"""ONNX files as describers, and what is looked at before a runtime gets to see one.

No torch at the top: the child process that tries a file first has no use for it.
"""

import hashlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.describers.protocol import check_patches
from keypatch.errors import DataError, KeypatchError, MissingExtra
from keypatch.files import Format, parse_json, reading
from keypatch.patches.sources import TrainingSet
from keypatch.sandbox import try_reading

FORMAT = Format("keypatch-onnx", 1, "descriptor in ONNX")
PREFIX = "keypatch."  # of our names in the file's metadata
INPUT, OUTPUT = "patches", "descriptors"
_LARGEST = 2**31 - 1  # bytes of a message of protobuf
_ENDLESS = ("If", "Loop", "Scan")  # no descriptor needs one, and no trial shows how long one runs
_AT_ONCE = 32 * 32 * 32  # pixels of patches: fastest of 16 to 64 patches of 32x32 with either runtime

_AGREEMENT = {"float32": 1e-4, "int8": 0.03}  # of entries by two runtimes: in int8 each rounds in its own places

_LOG = logging.getLogger(__name__)

Array = NDArray[np.float32]
Run = Callable[[Array], Array]  # patches (n, 1, size, size) with values 0..255 to (n, dim)


class OnnxDescriber:
    """A file that `keypatch export` wrote, run by OpenVINO where it is installed and by onnxruntime otherwise."""

    def __init__(self, path: Path, name: str | None = None, device: str = "auto", runtime: str = "auto") -> None:
        from keypatch.networks.preprocessing import Preprocessing

        require_onnx(f"Reading {path} needs onnx and onnxruntime")
        if device not in ("auto", "cpu"):
            raise KeypatchError(f"{path} runs on the CPU: leave out --device {device}.")
        try_reading(try_graph, path)
        with reading(path, FORMAT.title):
            content = _read(path)
            self.facts, (size, self.dim) = check_graph(content, path)  # all that the metadata say
            self.precision = self.facts.get("precision", "float32")
            card = parse_json(self.facts.get("card", "{}"))
            self.training = tuple(TrainingSet.from_json(each) for each in card.get("training", ()))
            self.unit_length = self.facts["unit_length"] == "true"
            resize: Any = self.facts["resize"]  # checked with the others
            self._preprocessing = Preprocessing(  # the rest of it is in the graph
                size=size, value_range=255.0, resize=resize, patch_sigmas=float(self.facts["patch_sigmas"])
            )
        self.name = name or path.stem
        self.patch_size, self.patch_sigmas = size, self._preprocessing.patch_sigmas
        self.weights_hash = hashlib.sha256(content).hexdigest()
        self._at_once = max(1, _AT_ONCE // size**2)
        with reading(path, FORMAT.title):
            self.runtime, self._run = choose_runtime(
                runtime, content, self._at_once, size, _AGREEMENT.get(self.precision, 0.0)
            )
        _LOG.info("%s is computed by %s in %s.", self.name, self.runtime, self.precision)

    def __repr__(self) -> str:
        return f"<OnnxDescriber: {self.name}, {self.precision} by {self.runtime}>"

    def describe(self, patches: NDArray[np.uint8]) -> Array:
        """(n, side, side) grey patches of any side to (n, dim)."""
        import torch

        from keypatch.describers.network import in_chunks
        from keypatch.networks.preprocessing import prepare

        check_patches(patches)

        def describe(chunk: NDArray[np.uint8]) -> Array:
            return self._run(prepare(torch.from_numpy(np.array(chunk)), self._preprocessing).numpy())

        return in_chunks(patches, self._at_once, self.dim, describe)


def require_onnx(needs: str) -> None:
    if find_spec("onnx") is None or find_spec("onnxruntime") is None:
        raise MissingExtra.of(needs, "onnx")


def choose_runtime(name: str, content: bytes, at_once: int, size: int, agreement: float) -> tuple[str, Run]:
    """The runtime of this name, started; "auto" is OpenVINO where it is installed and agrees with onnxruntime.

    It is the faster one (docs/speed.md), but not every operator is right in it: 2026.4 reads bicubic smoothing wrongly.
    `agreement` is how far apart their entries may be.
    """
    if name not in ("auto", *_RUNTIMES):
        raise KeypatchError(f'There is no runtime "{name}" for ONNX files. Choose auto, {", ".join(_RUNTIMES)}.')
    if name != "auto" and find_spec(name) is None:
        raise MissingExtra.of(f"{name} is not installed", "onnx" if name == "onnxruntime" else name)
    if name != "auto":
        return name, _RUNTIMES[name](content, at_once)
    usual = _start_onnxruntime(content, at_once)
    if find_spec("openvino") is not None:
        noise = np.random.default_rng(0).uniform(0, 255, (4, 1, size, size)).astype(np.float32)
        with suppress(RuntimeError):  # an operator that it does not have
            fast = _start_openvino(content, at_once)
            if np.abs(fast(noise) - usual(noise)).max() <= agreement:
                return "openvino", fast
    return "onnxruntime", usual


def try_graph(path: Path) -> None:
    """What the child process does with a file: everything that describing will do, on one patch."""
    content = _read(path)
    _, (size, _) = check_graph(content, path)
    for name, start in _RUNTIMES.items():
        if find_spec(name) is not None:
            start(content, 1)(np.zeros((1, 1, size, size), np.float32))


def _read(path: Path) -> bytes:
    if path.stat().st_size > _LARGEST:
        raise DataError(f"{path} is larger than an ONNX file with its weights inside can be. Export it again.")
    return path.read_bytes()


def check_graph(content: bytes, path: Path) -> tuple[dict[str, str], tuple[int, int]]:
    """What the metadata of a file say, patch size and dimension; DataError unless it is a descriptor of ours.

    Nothing in it may lead out of the file, or go round in circles.
    """
    import onnx

    model = onnx.load_model_from_string(content)
    facts = {each.key.removeprefix(PREFIX): each.value for each in model.metadata_props if each.key.startswith(PREFIX)}
    if not FORMAT.is_of(facts):
        raise DataError(
            f"{path} is not a descriptor that `keypatch export` wrote: it does not record what its patches should "
            "show. Export the network again."
        )
    FORMAT.check_number(facts.get("format_number"), path)
    opset = max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=0)
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= opset <= newest:
        raise DataError(f"{path} needs ONNX opset {opset}, but this onnx supports 1 to {newest}. Export it again here.")
    for part in _parts(model):
        if isinstance(part, onnx.TensorProto) and part.data_location == onnx.TensorProto.EXTERNAL:
            raise DataError(f"{path} keeps weights in another file, which is not read. Export it again as one file.")
        if isinstance(part, onnx.NodeProto) and (part.op_type in _ENDLESS or part.domain not in ("", "ai.onnx")):
            kind = f"{part.domain}.{part.op_type}" if part.domain else part.op_type
            raise DataError(f"{path} has the operator {kind}, which no descriptor needs. Export the network again.")
    size, dim = _whole_number(facts, "patch_size", path), _whole_number(facts, "dim", path)
    expected = (INPUT, (1, size, size)), (OUTPUT, (dim,))
    found = _signature(model.graph.input), _signature(model.graph.output)
    if found != ((expected[0],), (expected[1],)):
        raise DataError(
            f"{path} has the inputs {_shown(found[0])} and the outputs {_shown(found[1])}, but its metadata promises "
            f"{_shown(expected[:1])} and {_shown(expected[1:])}. Export the network again."
        )
    return facts, (size, dim)


def _parts(message: Any) -> Iterator[Any]:
    """Every message within it, as tensors in the attributes of nodes of graphs in attributes."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in (value,) if hasattr(value, "ListFields") else value:
                yield from _parts(each)


def _whole_number(facts: dict[str, str], name: str, path: Path) -> int:
    if not re.fullmatch("[1-9][0-9]{0,5}", facts.get(name, "")):
        raise DataError(f"{path} does not state its {name}, so it is damaged. Export the network again.")
    return int(facts[name])


Signature = tuple[tuple[str, tuple[int, ...]], ...]  # names, and shapes without the number of patches


def _signature(values: Any) -> Signature:
    shapes = (each.type.tensor_type.shape.dim[1:] for each in values)
    return tuple((each.name, tuple(dim.dim_value for dim in dims)) for each, dims in zip(values, shapes, strict=True))


def _shown(signature: Signature) -> str:
    return ", ".join(f"{name} (n, {', '.join(map(str, shape))})" for name, shape in signature) or "none"


def _start_onnxruntime(content: bytes, at_once: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # chunks go to threads, not operators
    options.log_severity_level = 4  # what is wrong is raised too
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return lambda patches: np.asarray(session.run([OUTPUT], {INPUT: patches})[0], np.float32)


def _start_openvino(content: bytes, at_once: int, precision: str = "f32") -> Run:
    import openvino

    model = openvino.Core().read_model(content)
    model.reshape([at_once, *[int(side.get_length()) for side in list(model.inputs[0].partial_shape)[1:]]])
    streams = os.cpu_count() or 1
    settings = {"NUM_STREAMS": streams, "INFERENCE_NUM_THREADS": streams, "INFERENCE_PRECISION_HINT": precision}
    compiled = openvino.Core().compile_model(model, "CPU", settings)
    own = threading.local()  # a request works on one chunk at a time

    def run(patches: Array) -> Array:
        if not hasattr(own, "request"):
            own.request = compiled.create_infer_request()
        full = np.zeros((at_once, *patches.shape[1:]), np.float32)  # of a fixed size, which is a tenth faster
        full[: len(patches)] = patches
        return np.array(own.request.infer({0: full}, share_inputs=True)[0][: len(patches)])

    return run


_RUNTIMES: dict[str, Callable[[bytes, int], Run]] = {
    "onnxruntime": _start_onnxruntime,
    "openvino": _start_openvino,
}
