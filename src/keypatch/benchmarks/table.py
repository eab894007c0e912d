"""The benchmarks by name. Each is imported when it is used: a list of their names needs no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from keypatch.benchmarks.scores import find_score
from keypatch.errors import KeypatchError
from keypatch.parts import find_part, table
from keypatch.progress import Progress
from keypatch.settings import choose_from

if TYPE_CHECKING:
    from keypatch.benchmarks.result import Result

Run = Callable[[Any, Any, Any, Progress], "Result"]  # source, data, settings and progress in
Given = Literal["feature file", "folder of keypoints.h5", "folder of descriptors/*.bin", "folder of csv descriptors"]


@dataclass(frozen=True)
class Benchmark:
    """How a benchmark is run, and what a person is told about it."""

    module: str  # with the settings' class and the function evaluate_<name>; ours are relative to keypatch.benchmarks
    kind: str  # the settings' class
    line: str
    headline: tuple[str, ...]  # patterns of the names of the scores that papers print
    conditions: tuple[str, ...]  # the settings that decide the scores: they stand above every table
    on_patches: bool = False  # the data are a patch set, as open_patches takes it
    details: tuple[str, ...] = ()  # kinds of scores (`find_score`) to print below the headline; all if none is named
    takes: tuple[Given, ...] = ()  # what others have computed, instead of a descriptor

    @property
    def name(self) -> str:
        return self.kind.lower()

    @property
    def settings(self) -> type[Any]:
        """A frozen dataclass whose defaults are the protocol's."""
        return self._named(self.kind)  # type: ignore[no-any-return]

    @property
    def run(self) -> Run:
        return self._named(f"evaluate_{self.name}")  # type: ignore[no-any-return]

    def _named(self, name: str) -> Any:
        return getattr(import_module(self.module, "keypatch.benchmarks"), name)


def find_benchmark(name: str) -> Benchmark:
    """The benchmark of that name; KeypatchError names those there are."""
    if benchmark := find_part(BENCHMARKS, name):
        return benchmark
    raise KeypatchError(f'There is no benchmark "{name}".{choose_from(name, BENCHMARKS)}')


def headline_scores(result: "Result") -> list[str]:
    """The names of a result's headline scores, in the order of the table."""
    patterns = BENCHMARKS[result.benchmark].headline if result.benchmark in BENCHMARKS else ("*",)
    return [name for pattern in patterns for name in result.scores if fnmatchcase(name, pattern)]


def detail_scores(result: "Result") -> list[str]:
    """The scores of the table below the headline, with those of the headline that stand in the same columns."""
    kinds = BENCHMARKS[result.benchmark].details if result.benchmark in BENCHMARKS else ()
    by_kind: dict[str, list[str]] = {}
    for name in result.scores:
        by_kind.setdefault(find_score(name).kind, []).append(name)
    headline = set(headline_scores(result))
    return [
        name
        for kind, names in by_kind.items()
        if (not kinds or kind in kinds) and not headline.issuperset(names)
        for name in names
    ]


def kind_of(path: Path) -> Given | None:
    """Which of the things that others have computed lies there; None if it is none of them."""
    if path.suffix.lower() in (".h5", ".hdf5") or (path / "store.json").is_file():
        return "feature file"
    if not path.is_dir() or (path / "recipe.toml").exists():
        return None
    kinds: dict[str, Given] = {
        "keypoints.h5": "folder of keypoints.h5",
        "*/keypoints.h5": "folder of keypoints.h5",
        "descriptors/*.bin": "folder of descriptors/*.bin",
        "*/*.csv": "folder of csv descriptors",
    }
    return next((kind for pattern, kind in kinds.items() if next(path.glob(pattern), None)), None)


_OF_PHOTOS = ("keypoints", "rule", "detector")

_OURS = {
    "ubc": Benchmark(
        ".ubc",
        "Ubc",
        "PhotoTour patches: FPR95, average precision and curves of every pair list; rank-1 over the points",
        headline=("fpr95.*", "rank1"),
        conditions=("rule",),
        on_patches=True,
    ),
    "hpatches": Benchmark(
        ".hpatches.benchmark",
        "Hpatches",
        "HPatches strips: verification, matching and retrieval of easy, hard and tough patches",
        headline=("verification.ap", "verification.auc", "matching.map", "retrieval.map"),
        conditions=("split", "tasks", "distance", "ap", "ties", "pca"),
        details=(*(f"matching.map.{level}" for level in "eht"), *(f"rank1.{level}" for level in "eht")),
        takes=("folder of csv descriptors",),
    ),
    "homography": Benchmark(
        ".planar.homography",
        "Homography",
        "photos of planes with known homographies: matching accuracy at 1 to 10 pixels, homography accuracy",
        headline=("mma3", "accuracy3", "auc5"),
        conditions=("estimator", "threshold", "ratio", *_OF_PHOTOS, "short_side"),
        details=("mma1", "mma3", "mma5", "mma10", "accuracy3", "auc5", "count.matches", "count.within3"),
        takes=("feature file",),
    ),
    "stereo": Benchmark(
        ".imc.stereo",
        "Stereo",
        "photos with known cameras, in pairs: mean average accuracy of the relative pose at 10 and 5 degrees",
        headline=("maa10", "maa5"),
        conditions=("estimator", "threshold", "ratio", *_OF_PHOTOS, "pairs"),
        takes=("feature file", "folder of keypoints.h5"),
    ),
    "multiview": Benchmark(
        ".imc.multiview",
        "Multiview",
        "photos with known cameras, in bags of 5, 10 and 25 through COLMAP: accuracy of the poses in its models",
        headline=("maa10", "maa5"),
        conditions=("pycolmap", "max_error", "ratio", *_OF_PHOTOS, "known_cameras"),
        takes=("feature file", "folder of keypoints.h5"),
    ),
    "sfm": Benchmark(
        ".eth.sfm",
        "Sfm",
        "photos reconstructed by COLMAP: registered photos, points, track length, reprojection error",
        headline=("registered", "count.points", "count.observations", "track_length", "error.reprojection"),
        conditions=("colmap", "max_error", "ratio", *_OF_PHOTOS, "known_cameras"),
        takes=("feature file", "folder of descriptors/*.bin"),
    ),
    "embedding": Benchmark(
        ".embedding",
        "Embedding",
        "images in class folders, or any patches: Recall@K among all, NMI and F1 of k-means clusters",
        headline=("recall@1", "nmi", "f1"),
        conditions=("images", "classes", "clustering"),
        on_patches=True,
    ),
    "rotation": Benchmark(
        ".planar.rotation",
        "Rotation",
        "photos rotated in steps of 15 degrees: share of keypoints found again that are matched correctly",
        headline=("share",),
        conditions=("step", "pixels", *_OF_PHOTOS),
    ),
}
BENCHMARKS: dict[str, Benchmark] = table("benchmark", _OURS)
