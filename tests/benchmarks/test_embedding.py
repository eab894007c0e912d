"""Images with classes: retrieval, clusters, and what the result says about them."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks import Embedding, evaluate_embedding, load_result
from keypatch.benchmarks.comparison import compare
from keypatch.benchmarks.evaluation import evaluate
from keypatch.errors import DataError, KeypatchError
from keypatch.patches import PatchSet

CLASSES, EACH = 5, 4


@dataclass(frozen=True)
class Corners:
    """Four pixels, as they are or of unit length."""

    name: str = "corners"
    dim: int = 4
    patch_size: int = 8
    patch_sigmas: float = 24.0
    unit_length: bool = False

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        rows = patches[:, [0, 0, -1, -1], [0, -1, 0, -1]].astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True) if self.unit_length else rows


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def images() -> PatchSet:
    """Five classes of four images; a class has its own grey value, an image a little noise."""
    grey = np.repeat(50 * np.arange(1, CLASSES + 1), EACH)[:, None, None]
    noise = np.random.default_rng(0).integers(0, 4, (CLASSES * EACH, 8, 8))
    return PatchSet("greys", (grey + noise).clip(0, 255).astype(np.uint8), np.repeat(np.arange(CLASSES), EACH))


def test_classes_that_are_apart_are_found(images: PatchSet) -> None:
    result = evaluate_embedding(Corners(), images, Embedding(starts=5))
    assert (result.scores["recall@1"], result.scores["recall@10"]) == (1, 1)
    assert "recall@100" not in result.scores  # there are only 19 others
    assert 0.5 < result.scores["nmi"] <= 1 and result.scores["nmi.sd"] > 0  # random starts miss some of the five
    assert result.benchmark == "embedding" and result.settings["classes"] == CLASSES
    assert "k-means, 5 random starts from seed 0" in result.settings["clustering"]
    assert result.conditions().endswith("clustering k-means, 5 random starts from seed 0")


def test_the_result_has_the_card_of_the_set_where_there_is_one(images: PatchSet) -> None:
    assert "card" not in evaluate_embedding(Corners(), images).settings
    result = evaluate_embedding(Corners(), replace(images, card={"made_from": "greys"}))
    assert result.settings["card"] == {"made_from": "greys"}


def test_embeddings_are_compared_as_the_describer_gives_them(images: PatchSet) -> None:
    grey_is_gone = evaluate_embedding(Corners(unit_length=True), images)
    assert grey_is_gone.scores["recall@1"] < 0.7


def test_the_seed_decides_the_clusters(images: PatchSet) -> None:
    first, again, other = (evaluate_embedding(Corners(), images, Embedding(1, seed)) for seed in (0, 0, 7))
    assert first.scores == again.scores
    assert first.scores["nmi"] != other.scores["nmi"]
    assert first.scores["recall@1"] == other.scores["recall@1"]


def test_images_without_another_of_their_class_are_counted(images: PatchSet) -> None:
    labels = images.point_id.copy()
    labels[0] = 99
    result = evaluate_embedding(Corners(), PatchSet("greys", images.patches, labels))
    assert result.settings["alone"] == 1
    assert result.scores["recall@1"] <= (CLASSES * EACH - 1) / (CLASSES * EACH)
    assert result.provenance.hashes != evaluate_embedding(Corners(), images).provenance.hashes


def test_replicates_draw_images(images: PatchSet) -> None:
    labels = images.point_id.copy()
    labels[::3] = (labels[::3] + 1) % CLASSES  # some images are found, some are not
    result = evaluate_embedding(Corners(), PatchSet("greys", images.patches, labels))
    assert set(result.replicates) == {"recall@1", "recall@10", "nmi", "f1"}
    for name, replicates in result.replicates.items():
        assert (replicates.units, replicates.count) == ("images", CLASSES * EACH)
        low, high = result.interval(name) or (1, 0)
        assert low <= result.scores[name] <= high, name
        assert replicates.values.mean() == pytest.approx(result.scores[name], abs=replicates.values.std() / 2), name
        assert replicates.values.std() > 0 or name == "recall@10", name


@pytest.mark.parametrize("wrong", [{"starts": 0}, {"seed": -1}])
def test_settings_that_cluster_nothing_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(KeypatchError, match=r"it must be [01] or more"):
        Embedding(**wrong)


def test_one_class_is_refused(images: PatchSet) -> None:
    with pytest.raises(DataError, match="at least two such points"):
        evaluate_embedding(Corners(), PatchSet("one", images.patches, np.zeros(len(images), np.int64)))


@dataclass(frozen=True)
class Hues(Corners):
    """The mean red, green and blue of an image in colour."""

    name: str = "hues"
    dim: int = 3
    patch_size: int = 80
    channels: int = 3

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        assert patches.shape[1:] == (3, 80, 80)
        return patches.mean((2, 3)).astype(np.float32)


def test_images_are_read_in_the_size_and_the_colours_of_the_describer(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, colour in (("red", (200, 50, 50)), ("blue", (50, 50, 200)), ("green", (50, 160, 60))):
        (tmp_path / "hues" / name).mkdir(parents=True)
        for k in range(4):
            noisy = np.array(colour) + rng.integers(-30, 30, (1, 1, 3)) // 10 + rng.integers(0, 5, (9, 9, 3))
            Image.fromarray(noisy.astype(np.uint8)).save(tmp_path / "hues" / name / f"{k}.png")
    result = evaluate_embedding(Hues(), tmp_path / "hues")
    assert (result.scores["recall@1"], result.settings["input"]) == (1, "80x80 colour")
    other = evaluate_embedding(Corners(), tmp_path / "hues")
    assert other.settings["input"] == "64x64 grey"
    assert other.provenance.hashes["data"] == result.provenance.hashes["data"]  # the same images: comparable
    assert compare(result, other)["recall@1"].value == result.scores["recall@1"] - other.scores["recall@1"]


@pytest.fixture
def folder(images: PatchSet, tmp_path: Path) -> Path:
    for k, image in enumerate(images.patches):
        place = tmp_path / "greys" / str(images.point_id[k])
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{k:02d}.png")
    return tmp_path / "greys"


def test_class_folders_are_scored_by_name(folder: Path, tmp_path: Path) -> None:
    result = evaluate("sift", "embedding", folder, tmp_path / "result.json")
    written = load_result(tmp_path / "result.json")
    assert written.scores == dict(result.scores) and written.settings["data"] == "greys"
    assert not any(math.isnan(result.scores[name]) for name in ("recall@1", "nmi", "f1", "spread.dm2"))
