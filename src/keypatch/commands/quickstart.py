"""The quickstart: a descriptor trained on embedded photographs, compared with SIFT and shown; minutes, offline."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks import Result, evaluate_ubc
from keypatch.commands.train import train
from keypatch.describers import Describer, SiftDescriber
from keypatch.describers.network import NetworkDescriber
from keypatch.errors import Interrupted
from keypatch.features import Extraction
from keypatch.geometry.keypoints import rotations
from keypatch.images import as_png, open_image
from keypatch.matching.image_matches import match
from keypatch.matching.matching import Matching
from keypatch.patches.embedded import TEST_PHOTOS, photo_path, read_embedded_photo
from keypatch.progress import Callback, Progress
from keypatch.recipes import HARDNET
from keypatch.reports import report
from keypatch.sampling import RandomPairs
from keypatch.training import SGD, Recipe
from keypatch.training.checkpoints import load_run_weights

TRAIN, TEST = "embedded", "embedded-test"

# The paper's batch of 1024 and learning rate of 10 are for 50 million pairs; a thousandth of that budget wants
# more and smaller steps.
RECIPE = replace(
    HARDNET,
    name="quickstart",
    network=replace(HARDNET.network, dropout=0.1),
    sampler=RandomPairs(pairs=256),
    optimizer=SGD(lr=1.0, momentum=0.9, dampening=0.0, weight_decay=1e-4),
    pairs=50_000,
)


@dataclass(frozen=True)
class Quickstart:
    """The run folder, the results on the embedded test split, from hand-made to trained, and what shows them."""

    folder: Path
    results: tuple[Result, ...]
    picture: Path  # of matches
    page: Path  # the report


def quickstart(
    out: str | Path = "runs/quickstart", pairs: int | None = None, progress: Progress | Callback | None = None
) -> Quickstart:
    """Train on the embedded photographs, score SIFT, RootSIFT and the network before and after training, and show all.

    A run already in `out` is resumed, so a second call only scores and shows.

    >>> kp.quickstart("runs/first").page  # doctest: +SKIP
    PosixPath('runs/first/report.html')
    """
    progress = Progress.of(progress)
    folder = Path(out)
    recipe = replace(RECIPE, pairs=pairs) if pairs is not None else RECIPE
    progress.note("Cutting patches from the embedded photographs (once)")
    try:
        train(recipe, TRAIN, folder, resume=folder if (folder / "recipe.toml").exists() else None, progress=progress)
    except Interrupted as stop:  # which knows of --resume, and the quickstart needs none
        raise Interrupted(f"{folder} has what was saved so far") from stop
    progress.note("Scoring on photographs not used in training")
    trained = NetworkDescriber(load_run_weights(folder)[1], "trained", precision="float32")
    describers: tuple[Describer, ...] = (SiftDescriber(), SiftDescriber(root=True), _untrained(recipe), trained)
    results = [evaluate_ubc(describer, TEST) for describer in describers]
    progress.note("Matching a photograph with a rotated view of it")
    picture = draw_embedded_matches(folder, folder / "match.png")
    with open_image(picture) as image:
        small = as_png(image, max(image.size), COLOURS)
    pictures = {"a photograph and a turned view of it, matched": small, **results[-1].pictures}
    results[-1] = replace(results[-1], pictures=pictures)
    for result in results:
        result.save(folder / f"{result.descriptor}.json")
    page = report([folder], folder / "report.html", title="Quickstart")
    return Quickstart(folder, tuple(results), picture, page)


def _untrained(recipe: Recipe) -> Describer:
    """The network with the weights the training began from."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(recipe.seed)
        return NetworkDescriber(recipe.network.build().eval(), "untrained", precision="float32")


KEYPOINTS, LINES = 500, 80
COLOURS = 64  # of the picture for a page: a third of the size, and nobody sees it


def draw_embedded_matches(descriptor: str | Path, out: Path) -> Path:
    """Match chelsea.png, which is not trained on, with a turned view of it; right matches are green, others red."""
    [photo] = [photo for photo in TEST_PHOTOS if photo.file == "chelsea.png"]
    pixels = read_embedded_photo(photo)
    view = _view(pixels.shape[1], pixels.shape[0])
    seen = cv2.warpPerspective(pixels, view, (pixels.shape[1], pixels.shape[0]), borderValue=235)
    with tempfile.TemporaryDirectory() as folder:
        turned = Path(folder, "turned.png")
        Image.fromarray(seen).save(turned)
        few, plane = Extraction(keypoints=KEYPOINTS), Matching(model="H")
        matches = match(photo_path(photo), turned, plane, describer=descriptor, extraction=few)
    return matches.judged(view).save(out, LINES)


def _view(width: int, height: int) -> NDArray[np.float64]:
    """The homography to a view turned by 25 degrees, smaller and from the side, with the same pixel in the middle."""
    view = np.eye(3)
    view[:2, :2], view[2, :2] = 0.8 * rotations(np.radians(25)), (2e-4, 1e-4)
    middle = np.array([width / 2, height / 2, 1.0])
    moved = view @ middle
    shift = np.eye(3)
    shift[:2, 2] = middle[:2] - moved[:2] / moved[2]
    return np.asarray(shift @ view)
