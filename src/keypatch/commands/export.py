"""Export: a trained descriptor as a file for other runtimes, compared with the original before it is kept."""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.files import require_place, write_atomically
from keypatch.patches import Pairs, PatchSet, open_patches
from keypatch.patches.phototour import find_pair_lists
from keypatch.progress import Callback, Progress
from keypatch.settings import CheckedFields, option

if TYPE_CHECKING:
    from keypatch.networks import PatchNetwork

CALIBRATED_ON, COMPARED_ON = "embedded", "embedded-test"
CALIBRATION = 512  # patches
LEAST_CALIBRATION = 64
COMPARED = 8192  # patches at most: some seconds

Describe = Callable[[NDArray[np.uint8]], NDArray[np.float32]]


@dataclass(frozen=True)
class Exporting(CheckedFields):
    """The kind of file to export, and how it is checked.

    >>> kp.Exporting(int8=True).format
    'onnx'
    """

    format: Literal["onnx", "pt2"] = option("onnx", "ONNX for any runtime, or pt2 for torch.export.load.")
    int8: bool = option(
        False, "Quantize to 8 bits (ONNX only): smaller and faster, with slightly different descriptors."
    )
    data: str | None = option(
        None, "Patch set to calibrate int8 and to compare on; by default, the embedded photographs."
    )
    force: bool = option(False, "Keep the file even if its descriptors differ too much from the original's.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.int8 and self.format != "onnx":
            raise KeypatchError("int8 is only for ONNX files. Choose --format onnx, or leave out int8.")


@dataclass(frozen=True)
class Bound:
    """How far the descriptors of a file may be from the original's."""

    difference: float  # of an entry, in lengths of a descriptor
    points: float  # of FPR95 up and rank-1 down, in %


# float32 differs by rounding, 1e-6 or so. The bound of int8 is a judgement: what training noise does to a score.
BOUNDS = {"float32": Bound(1e-4, 0.1), "int8": Bound(0.1, 1.0)}


@dataclass(frozen=True)
class Parity:
    """A file's descriptors beside the original's, on the same real patches; rates are fractions."""

    data: str
    patches: int
    difference: float  # the largest of an entry, in lengths of a descriptor
    cosine: float  # the least between a descriptor and the original's
    before: dict[str, float]  # "fpr95.<list>" and "rank1" of the original
    after: dict[str, float]

    def faults(self, bound: Bound) -> list[str]:
        """What goes beyond the bound, in words; nan counts."""
        found = []
        if not self.difference <= bound.difference:
            found.append(f"entries differ by up to {self.difference:.2g} (bound {bound.difference:g})")
        for name, before in self.before.items():
            loss = 100 * (before - self.after[name]) * (1 if name == "rank1" else -1)
            if not loss <= bound.points:
                found.append(f"{name} is {loss:.2f} points worse (bound {bound.points:g})")
        return found


@dataclass(frozen=True)
class Exported:
    """The exported file, and how close its descriptors are to the original's.

    >>> kp.export("hynet-notredame", "hynet.onnx").parity.difference < 1e-4  # doctest: +SKIP
    True
    """

    path: Path
    size: int  # bytes
    precision: str
    parity: Parity
    bound: Bound


def export(
    descriptor: str | Path,
    out: str | Path,
    exporting: Exporting = Exporting(),  # noqa: B008  a frozen value
    *,
    progress: Progress | Callback | None = None,
) -> Exported:
    """Write a trained descriptor as one ONNX or pt2 file, for patches (n, 1, size, size) of grey values 0..255, any n.

    The ONNX file can be used wherever a descriptor is expected.

    >>> kp.export("hynet-notredame", "hynet.onnx").precision  # doctest: +SKIP
    'float32'

    Raises:
        KeypatchError: there is no network to export; or the file's descriptors differ by more than `BOUNDS` allows and
            `force` is not set, in which case nothing is written.
    """
    from keypatch.describers.network import NetworkDescriber
    from keypatch.describers.onnx_file import try_graph
    from keypatch.sandbox import trust
    from keypatch.zoo.loading import load_network

    progress, path = Progress.of(progress), Path(out)
    if path.suffix != f".{exporting.format}":
        raise KeypatchError(f"{path}: the name of a file in this format must end in .{exporting.format}.")
    require_place(path)
    _, network = load_network(descriptor)
    patches = _calibration(exporting.data) if exporting.int8 else None
    compared = _compared(exporting.data or COMPARED_ON)
    progress.note(f"Exporting {descriptor}, then comparing it on {compared[0].name}.")
    facts = _facts(descriptor, network, "int8" if exporting.int8 else "float32")
    content, describe = _pt2(network, facts) if exporting.format == "pt2" else _onnx(network, facts, patches)
    original = NetworkDescriber(network, "original", "cpu", "float32")
    parity = compare_on(*compared, original.describe, describe)
    bound = BOUNDS[facts["precision"]]
    faults = parity.faults(bound)
    if faults and not exporting.force:
        raise KeypatchError(
            f"{path} was not written: on {parity.data}, {'; '.join(faults)}. Use --force to keep it anyway"
            f"{', or calibrate on patches like yours with --data' if exporting.int8 else ''}."
        )
    with write_atomically(path) as file:
        file.write(content)
    if exporting.format == "onnx":
        trust(try_graph, path)
    return Exported(path, len(content), facts["precision"], parity, bound)


def _facts(descriptor: str | Path, network: "PatchNetwork", precision: str) -> dict[str, str]:
    """The metadata of a file: what it takes to use it, and where it comes from."""
    from keypatch.describers.export import facts_of
    from keypatch.networks import hash_weights
    from keypatch.provenance import provenance
    from keypatch.zoo.loading import load_card

    card, recipe = load_card(descriptor)
    return {
        **facts_of(network),
        "name": card.name,
        "precision": precision,
        "card": json.dumps(card.to_json(), ensure_ascii=False),
        "recipe": recipe,
        "terms": card.terms,
        "weights": hash_weights(network),
        "provenance": json.dumps(provenance().to_json(), ensure_ascii=False),
    }


def _onnx(network: "PatchNetwork", facts: dict[str, str], patches: NDArray[np.uint8] | None) -> tuple[bytes, Describe]:
    from keypatch.describers.export import to_int8, to_onnx, with_metadata
    from keypatch.describers.onnx_file import OnnxDescriber, try_graph
    from keypatch.sandbox import trust

    model = to_onnx(network)
    if patches is not None:
        model = to_int8(model, _resized(patches, network))
    content = with_metadata(model, facts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "exported.onnx"
        path.write_bytes(content)
        trust(try_graph, path)
        return content, OnnxDescriber(path, runtime="onnxruntime").describe


def _pt2(network: "PatchNetwork", facts: dict[str, str]) -> tuple[bytes, Describe]:
    import io

    import torch

    from keypatch.describers.export import to_pt2
    from keypatch.describers.network import in_chunks

    content = to_pt2(network, json.dumps(facts, ensure_ascii=False))
    module: Any = torch.export.load(io.BytesIO(content)).module()  # written a moment ago, by us

    def describe(patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        with torch.no_grad():
            described: NDArray[np.float32] = module(torch.from_numpy(_resized(patches, network))).numpy()
        return described

    return content, lambda patches: in_chunks(patches, 64, network.dim, describe)


def _resized(patches: NDArray[np.uint8], network: "PatchNetwork") -> NDArray[np.float32]:
    """(n, 1, size, size) of values 0..255, as the files take them."""
    import torch

    from keypatch.networks import prepare

    only_resized = replace(network.preprocessing, value_range=255.0, normalization="none")
    prepared: NDArray[np.float32] = prepare(torch.from_numpy(np.array(patches)), only_resized).numpy()
    return prepared


def _calibration(data: str | None) -> NDArray[np.uint8]:
    """Patches from all over a set."""
    try:
        source = open_patches(data or CALIBRATED_ON)
    except KeypatchError as error:
        raise KeypatchError(
            f"int8 needs real patches to calibrate on. {error} Name a patch set with --data."
        ) from error
    if len(source) < LEAST_CALIBRATION:
        raise KeypatchError(
            f"int8 is calibrated on at least {LEAST_CALIBRATION} patches, but {source.name} has {len(source)}. Name a "
            "larger set with --data."
        )
    return source.take(np.linspace(0, len(source) - 1, min(CALIBRATION, len(source))).astype(np.int64))


def _compared(data: str) -> "tuple[PatchSet, list[Pairs]]":
    """A set, or the beginning of a large one, and the pairs within it of every list."""
    whole = open_patches(data)
    lists = list[Pairs]()
    for pairs in find_pair_lists(whole):
        inside = np.maximum(pairs.first, pairs.second) < COMPARED
        first, second, is_match = pairs.first[inside], pairs.second[inside], pairs.is_match[inside]
        if is_match.any() and not is_match.all():
            lists.append(replace(pairs, first=first, second=second, is_match=is_match))
    beginning = whole.patches[:COMPARED], whole.point_id[:COMPARED]
    return PatchSet(whole.name, *beginning), lists


def compare_on(patch_set: PatchSet, lists: Sequence[Pairs], original: Describe, exported: Describe) -> Parity:
    """How the descriptors of a file differ from the original's, and what that does to rank-1 and FPR95."""
    patches = patch_set.take(np.arange(len(patch_set)))
    a, b = original(patches), exported(patches)
    lengths = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
    cosines = (a * b).sum(1) / np.maximum(lengths[0] * lengths[1], 1e-12)
    difference = np.abs(a - b).max() / np.sqrt(np.mean(lengths[0] ** 2))
    before, after = (_scores(each, patch_set, lists) for each in (a, b))
    return Parity(patch_set.name, len(patches), float(difference), float(cosines.min()), before, after)


def _scores(descriptors: NDArray[np.float32], patch_set: PatchSet, lists: Sequence[Pairs]) -> dict[str, float]:
    from keypatch.benchmarks.ubc import pair_distances, rank1_over_points
    from keypatch.metrics import fpr95

    rates = {f"fpr95.{pairs.name}": fpr95(pair_distances(descriptors, pairs), pairs.is_match) for pairs in lists}
    return {"rank1": float(rank1_over_points(descriptors, patch_set).mean()), **rates}
