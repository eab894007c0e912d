"""AdaSample's figure 2 over the checkpoints of several runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from keypatch.errors import DataError, KeypatchError, MissingExtra
from keypatch.files import hold_chosen_folder
from keypatch.networks import choose_device, hash_weights
from keypatch.patches import PatchSet, open_patches
from keypatch.patches.sources import identity_of
from keypatch.progress import Callback, Progress, interruptible
from keypatch.settings import CheckedFields, option
from keypatch.studies.gradients.figure import draw_gradients
from keypatch.studies.gradients.measure import NOISE, Floats, GradientNorms, measure_gradients
from keypatch.studies.gradients.table import FIGURE, MEASUREMENTS, Gradients, Measurement
from keypatch.training.checkpoints import find_kept, load_checkpoint, newest_checkpoint
from keypatch.zoo.loading import load_network


@dataclass(frozen=True)
class GradientsSetup(CheckedFields):
    """The pairs on which gradients are measured.

    >>> kp.GradientsSetup(pairs=128, seeds=(0, 1)).noise
    (0.0, 0.5, 1.0, 2.0)
    """

    pairs: int = option(256, "Pairs of different points; negatives are mined among them.", least=2)
    seeds: tuple[int, ...] = option((0,), "Random seed of the pairs.", least=0)
    noise: tuple[float, ...] = option(
        NOISE,
        "Detector noise levels, an equal share of the pairs at each; 0 adds none.",
        least=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.seeds or not self.noise:
            raise KeypatchError("Give at least one seed and one level of noise.")


class Point(NamedTuple):
    """A network to be measured: the label of its run, the pairs it was trained on, its file or name."""

    run: str
    pairs: int | None
    network: str | Path


def study_gradients(
    descriptors: Sequence[str | Path],
    data: str | Path | PatchSet,
    out: str | Path = "studies/gradients",
    setup: GradientsSetup = GradientsSetup(),  # noqa: B008 (frozen)
    *,
    device: str = "auto",
    progress: Progress | Callback | None = None,
) -> Gradients:
    """Correlate the angles of pairs with the norms of their gradients, at every kept milestone of the runs.

    descriptors: run folders, measured at all kept weights (`--keep`) and the newest; or anything else with a network,
        measured once.
    data: a patch set, preferably one that was not trained on.
    setup: the pairs to measure on.
    out: gets gradients.json, gradients.md and gradients.png. Existing measurements are not repeated; new runs are
        added.

    >>> kp.study_gradients(["runs/hardnet", "runs/hynet"], "embedded-test")  # doctest: +SKIP

    Raises:
        KeypatchError: two descriptors have one name, or the folder holds measurements on other pairs.
        Interrupted: Ctrl-C; the same call resumes.
    """
    progress, folder, place = Progress.of(progress), Path(out), choose_device(device)
    patches = data if isinstance(data, PatchSet) else open_patches(data)
    points = _find_points(descriptors)
    empty = Gradients(patches.name, identity_of(patches), setup.pairs, setup.noise)
    with (
        hold_chosen_folder(folder),
        interruptible(f"{folder} has what was measured so far", "the same command resumes it"),
    ):
        found = _earlier(folder, empty)
        for number, point in enumerate(points):
            progress.count(number, len(points), "checkpoints", point.run)
            network = load_network(point.network)[1].to(place)
            weights = hash_weights(network)
            known = {(*each.place, each.weights) for each in found.measured}
            for seed in setup.seeds:
                if (point.run, point.pairs, seed, weights) not in known:
                    norms = measure_gradients(network, patches, setup.pairs, seed, setup.noise)
                    found = found.with_one(_measurement(point, seed, weights, norms))
                    found.save(folder)
        progress.count(len(points), len(points), "checkpoints")
        try:
            draw_gradients(folder / FIGURE, found)
        except MissingExtra as error:
            progress.note(str(error))
    return found


def _find_points(descriptors: Sequence[str | Path]) -> list[Point]:
    points = [_points_of(name) for name in descriptors]
    if not points:
        raise KeypatchError("Name at least one run folder or other descriptor with a network.")
    names = [each[0].run for each in points]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise KeypatchError(f'Two of the descriptors are called "{twice}". Rename one, or measure them in two folders.')
    return [point for each in points for point in each]


def _points_of(name: str | Path) -> list[Point]:
    """The milestones of a run folder and its newest checkpoint, in the order of training; anything else as it is."""
    path = Path(name).expanduser()
    if not (path / "recipe.toml").exists():
        load_network(name)  # raises where there is none, before anything is measured
        return [Point(path.stem if path.is_file() else str(name), None, name)]
    found = dict[int, Path]()
    for file in filter(None, [*find_kept(path), newest_checkpoint(path)]):
        checkpoint = load_checkpoint(file, ())
        found.setdefault(checkpoint.step * checkpoint.recipe.sampler.pairs, file)
    if not found:
        raise DataError(f"{path}: the run has no checkpoint yet. Train it until the first is saved.")
    return [Point(path.resolve().name, pairs, found[pairs]) for pairs in sorted(found)]


def _earlier(folder: Path, empty: Gradients) -> Gradients:
    """What the folder has; KeypatchError where it was measured on other pairs, which could not stand beside them."""
    if not (folder / MEASUREMENTS).exists():
        return empty
    before = Gradients.load(folder / MEASUREMENTS)
    for name, told in (("identity", "data"), ("pairs", "pairs"), ("noise", "noise")):
        if getattr(before, name) != getattr(empty, name):
            raise KeypatchError(
                f"{folder} holds measurements with {told} = {getattr(before, told)}, not {getattr(empty, told)}. "
                "Use the same pairs, or another folder with --out."
            )
    return before


def _measurement(point: Point, seed: int, weights: str, norms: GradientNorms) -> Measurement:
    positive, full = (norms.correlation(each) for each in (norms.positive, norms.full))
    return Measurement(
        point.run,
        point.pairs,
        seed,
        weights,
        positive=None if math.isnan(positive) else positive,
        full=None if math.isnan(full) else full,
        open=norms.open,
        angles=_five_digits(norms.angles),
        positive_norms=_five_digits(norms.positive),
        full_norms=_five_digits(norms.full),
    )


def _five_digits(values: Floats) -> tuple[float, ...]:
    return tuple(float(f"{value:.5g}") for value in values)
