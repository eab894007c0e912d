"""A score on images that were trained on is marked, wherever it is shown; one on unseen images is not."""

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from skimage import data

from keypatch.benchmarks.contamination import Contamination, seen_patches, seen_photos, seen_strips
from keypatch.benchmarks.evaluation import evaluate
from keypatch.benchmarks.result import Result, load_result
from keypatch.cli.scores import print_comparison, print_result
from keypatch.commands.train import train
from keypatch.describers import SiftDescriber
from keypatch.errors import DataError
from keypatch.images import Photo, find_photos
from keypatch.networks import L2Net, save_weights
from keypatch.patches import open_patches
from keypatch.patches.hpatches import STRIPS
from keypatch.patches.patch_set import Pairs
from keypatch.patches.phototour import write_phototour
from keypatch.patches.sources import TrainingSet, find_sources, identity_of
from keypatch.reports import report
from keypatch.training.checkpoints import find_checkpoints, load_checkpoint
from keypatch.training.conditions import Conditions
from keypatch.zoo import load
from keypatch.zoo.loading import load_training, pack

THIN = ("sampler.pairs=16", "network.width=4", "network.dim=16")


class Trained:
    """Rows of pixels that claim to be trained."""

    name, dim, patch_size, patch_sigmas, unit_length = "trained", 64, 64, 12.0, False

    def __init__(self, *training: TrainingSet) -> None:
        self.training = training

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        return patches[:, ::8, ::8].reshape(len(patches), 64).astype(np.float32)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos that are trained on."""
    folder = tmp_path_factory.mktemp("originals")
    for name in ("camera", "astronaut", "coffee"):
        Image.fromarray(getattr(data, name)()).save(folder / f"{name}.png")
    return folder


@pytest.fixture(scope="module")
def trained(originals: Path) -> Trained:
    return Trained(TrainingSet("mine", "an identity", find_sources(find_photos([originals]))))


def small(name: str, path: Path) -> None:
    """A copy of half the size, in grey, as a JPEG."""
    image = Image.fromarray(getattr(data, name)()).convert("L")
    path.parent.mkdir(parents=True, exist_ok=True)
    image.resize((image.width // 2, image.height // 2), Image.Resampling.BILINEAR).save(path, quality=75)


def test_photos_are_recognized_in_small_copies(trained: Trained, tmp_path: Path) -> None:
    for name in ("camera", "coffee", "brick"):
        small(name, tmp_path / f"{name}.jpg")
    found = seen_photos(trained, find_photos([tmp_path]))
    assert found == Contamination(3, 2, ("camera.jpg", "coffee.jpg"))
    assert found.sentence() == (
        "Trained on 2 of the 3 test images (camera.jpg, coffee.jpg): not a score on unseen images."
    )


def test_unseen_photos_are_not_marked(trained: Trained, tmp_path: Path) -> None:
    small("brick", tmp_path / "brick.jpg")
    found = seen_photos(trained, find_photos([tmp_path]))
    assert found == Contamination(1, 0) and not found and found.sentence() == ""


@pytest.mark.parametrize("describer", [SiftDescriber(), Trained(), Trained(TrainingSet("old", "0"))])
def test_without_known_training_images_nothing_is_claimed(describer: object, originals: Path) -> None:
    assert seen_photos(describer, find_photos([originals])) is None


def patch_set(folder: Path, seed: int, sources: Path | None = None) -> Path:
    """A set in PhotoTour layout with a pair list; its card names the photos of a folder."""
    patches = np.random.default_rng(seed).integers(0, 256, (40, 64, 64), np.uint8)
    points = np.arange(40) // 2
    first = np.arange(0, 40, 2)
    pairs = Pairs(
        "m50_40_40_0", np.tile(first, 2), np.concatenate([first + 1, np.roll(first, 2)]), np.repeat([True, False], 20)
    )
    card = {"sources": [each.to_json() for each in find_sources(find_photos([sources]))]} if sources else {}
    write_phototour(folder, patches, points, pairs=[pairs], card=card)
    return folder


def test_a_patch_set_is_known_by_the_images_of_its_card(trained: Trained, tmp_path: Path) -> None:
    small("camera", tmp_path / "photos" / "a.jpg")
    small("brick", tmp_path / "photos" / "b.jpg")
    small("brick", tmp_path / "others" / "b.jpg")
    assert seen_patches(trained, open_patches(patch_set(tmp_path / "seen", 0, tmp_path / "photos"))) == Contamination(
        2, 1, ("a.jpg",)
    )
    assert seen_patches(trained, open_patches(patch_set(tmp_path / "unseen", 1, tmp_path / "others"))) == Contamination(
        1, 0
    )
    assert seen_patches(trained, open_patches(patch_set(tmp_path / "unknown", 2))) is None


def test_a_set_without_images_is_known_as_a_whole(tmp_path: Path) -> None:
    tested = open_patches(patch_set(tmp_path / "liberty", 0))
    assert seen_patches(Trained(TrainingSet("liberty", identity_of(tested))), tested) == Contamination(
        1, 1, ("liberty",)
    )
    assert seen_patches(Trained(TrainingSet("liberty", "another")), tested) is None


def test_strips_are_known_by_their_sequences(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("i_one", "v_two"):
        (tmp_path / name).mkdir()
        for strip in STRIPS:
            Image.fromarray(rng.integers(0, 256, (130, 65), np.uint8)).save(tmp_path / name / f"{strip}.png")
    known = find_sources([Photo("v_two", tmp_path / "v_two" / "ref.png")])
    describer = Trained(TrainingSet("hpatches-a", "0", known))
    assert seen_strips(describer, tmp_path, ["i_one", "v_two"]) == Contamination(2, 1, ("v_two",))
    assert seen_strips(describer, tmp_path, ["i_one"]) == Contamination(1, 0)


@pytest.mark.parametrize("benchmark", ["homography", "rotation"])
def test_benchmarks_of_photos_mark_what_was_trained_on(benchmark: str, trained: Trained, tmp_path: Path) -> None:
    for sequence, name in (("seen", "camera"), ("unseen", "brick")):
        for number in (1, 2):
            small(name, tmp_path / sequence / f"{number}.jpg")
        np.savetxt(tmp_path / sequence / "H_1_2", np.eye(3))
    settings = ["step=120"] if benchmark == "rotation" else ["pictures=false"]
    found = evaluate(trained, benchmark, tmp_path, settings=settings).contamination
    assert found is not None and (found.images, found.trained_on) == (4, 2)


@pytest.mark.parametrize(
    ("benchmark", "settings"),
    [
        ("stereo", ["extraction.keypoints=50"]),
        ("multiview", ["extraction.keypoints=50", "bags=[3]"]),
        ("sfm", ["extraction.keypoints=50"]),
    ],
)
def test_benchmarks_of_posed_photos_mark_what_was_trained_on(
    benchmark: str, settings: list[str], trained: Trained, tmp_path: Path
) -> None:
    if benchmark != "stereo":
        pytest.importorskip("pycolmap")
    (tmp_path / "cameras").mkdir()
    for number, name in enumerate(("camera", "brick", "gravel")):
        small(name, tmp_path / "images" / f"{name}.jpg")
        camera = f"300 0 128\n0 300 128\n0 0 1\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n{number} 0 0\n256 256\n"
        (tmp_path / "cameras" / f"{name}.jpg.camera").write_text(camera)
    found = evaluate(trained, benchmark, tmp_path, settings=settings).contamination
    assert found == Contamination(3, 1, ("camera.jpg",))


@pytest.mark.parametrize("training", [5, [{"name": "mine"}], [{"name": 5, "identity": "", "sources": []}]])
def test_weights_with_damaged_training_sets_are_told(training: object, tmp_path: Path) -> None:
    spec = L2Net(dim=8, width=4)
    save_weights(tmp_path / "w.safetensors", spec.build(), spec, {"training": training})
    with pytest.raises(DataError, match=r"w\.safetensors"):
        load(tmp_path / "w.safetensors")


def test_training_is_carried_from_the_card_of_a_set_to_a_marked_result(originals: Path, tmp_path: Path) -> None:
    """Train on a set, start another run from it, pack it: each remembers, and a score on a set of copies is marked."""
    conditions = Conditions(threads=1)
    first = train(
        "hardnet", patch_set(tmp_path / "train", 0, originals), tmp_path / "run", conditions, settings=THIN, pairs=16
    )
    own = load_checkpoint(find_checkpoints(first)[-1]).training
    assert [(each.name, len(each.sources)) for each in own] == [("train", 3)]
    more = patch_set(tmp_path / "more", 1)
    second = train("hardnet", more, tmp_path / "tuned", conditions, settings=THIN, pairs=16, start_from=first)
    assert [each.name for each in load_training(second)] == ["train", "more"]
    card = pack(second, tmp_path, name="packed", about="a test", trained_on="noise", terms="none")
    assert load_training(tmp_path / "packed.safetensors") == load_training(second) == card.training

    small("astronaut", tmp_path / "photos" / "face.jpg")
    small("brick", tmp_path / "others" / "wall.jpg")
    seen = patch_set(tmp_path / "seen", 2, tmp_path / "photos")
    unseen = patch_set(tmp_path / "unseen", 3, tmp_path / "others")
    for descriptor in (first, second, tmp_path / "packed.safetensors"):
        assert evaluate(descriptor, "ubc", seen).contamination == Contamination(1, 1, ("face.jpg",))
        assert evaluate(descriptor, "ubc", unseen).contamination == Contamination(1, 0)
    assert evaluate("rootsift", "ubc", seen).contamination is None
    assert evaluate(first, "ubc", tmp_path / "train").contamination == Contamination(
        3, 3, ("astronaut.png", "camera.png", "coffee.png")
    )
    assert evaluate(second, "ubc", more).contamination == Contamination(1, 1, ("more",))


@pytest.fixture
def results(tmp_path: Path) -> tuple[Result, Result, Result]:
    """Of one set: not known, clean, and marked with the best score."""
    unknown = evaluate("rootsift", "ubc", patch_set(tmp_path / "set", 0))
    clean = replace(unknown, descriptor="clean", contamination=Contamination(4, 0))
    best = {name: 0.0 if name.startswith("fpr95") else 1.0 for name in unknown.scores}
    marked = replace(unknown, descriptor="marked", scores=best, contamination=Contamination(4, 1, ("a.jpg",)))
    return unknown, clean, marked


def test_the_mark_is_kept_in_the_file(results: tuple[Result, ...], tmp_path: Path) -> None:
    for number, result in enumerate(results):
        result.save(tmp_path / f"{number}.json")
        assert load_result(tmp_path / f"{number}.json").contamination == result.contamination
    assert "contamination" not in results[0].to_json()


def test_results_of_0_1_load_unmarked() -> None:
    assert load_result(Path(__file__).parents[1] / "fixtures" / "0.1" / "result.json").contamination is None


def test_weights_and_runs_of_0_1_load_without_training_sets() -> None:
    for name in ("run", "weights.safetensors", "run/checkpoints/at-050.safetensors"):
        assert load_training(Path(__file__).parents[1] / "fixtures" / "0.1" / name) == ()
    assert load("hynet-notredame").training == ()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value", [5, {}, {"images": 1, "trained_on": 2, "examples": []}, {"images": 1, "trained_on": 0, "examples": [5]}]
)
def test_a_damaged_mark_is_refused(value: object, results: tuple[Result, ...]) -> None:
    with pytest.raises(DataError):
        Result.from_json({**results[0].to_json(), "contamination": value})


def printed(show: Callable[[Console], object]) -> str:
    file = StringIO()
    show(Console(file=file, width=200))
    return file.getvalue()


def test_printing_marks_the_marked_alone(results: tuple[Result, ...]) -> None:
    unknown, clean, marked = results
    sentence = "Trained on 1 of the 4 test images (a.jpg): not a score on unseen images."
    assert sentence in printed(lambda console: print_result(console, marked))
    assert "trained on test images" in repr(marked) and sentence in marked._repr_html_()
    for result in (unknown, clean):
        assert "rained on" not in printed(lambda console: print_result(console, result)) + repr(result)  # noqa: B023
    table = printed(lambda console: print_comparison(console, results))
    assert table.count("\N{DAGGER}") == 2 and f"\N{DAGGER} marked: {sentence}" in table


def test_the_page_marks_the_marked_alone_and_calls_it_never_the_best(
    results: tuple[Result, ...], tmp_path: Path
) -> None:
    page = report(results, tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<p class="seen"><strong>marked \N{DAGGER}</strong> Trained on 1 of the 4 test images (a.jpg)' in page
    assert "clean \N{DAGGER}" not in page and "rootsift \N{DAGGER}" not in page
    rows = [row for row in page.split("<tr") if "marked \N{DAGGER}</span>" in row]
    assert rows and not any('<strong class="number">' in row for row in rows)
    clean = report(results[:2], tmp_path / "clean.html").read_text(encoding="utf-8")
    assert "\N{DAGGER}" not in clean and 'class="seen"' not in clean
