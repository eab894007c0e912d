"""Photos become a descriptor fitted to them: what `keypatch adapt` does, stage by stage."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from keypatch.benchmarks.evaluation import evaluate
from keypatch.benchmarks.result import Result, load_result
from keypatch.building.methods import METHODS, method_name
from keypatch.building.observations import Finder
from keypatch.building.options import TEST, TRAIN, Building
from keypatch.building.pipeline import BuiltSet, build
from keypatch.building.tracks import Tracks
from keypatch.commands.adapt.options import HELD_OUT, PAGE, REPORT, SET, STATE, Adapting
from keypatch.commands.adapt.page import write_adapt_page
from keypatch.commands.adapt.verdict import Verdict, judge
from keypatch.commands.train import train
from keypatch.errors import Interrupted, KeypatchError
from keypatch.features.extraction import DESCRIPTOR, Extraction
from keypatch.networks import NetworkSpec
from keypatch.networks.weights import hash_weights
from keypatch.patches import open_patches
from keypatch.progress import Callback, Progress, interruptible
from keypatch.recipes.adapt import ADAPT
from keypatch.reconstruction.mapping import Mapping as MapperOptions
from keypatch.reports import report
from keypatch.sampling import RandomPairs
from keypatch.settings import choose_from, to_plain
from keypatch.training import Recipe
from keypatch.training.conditions import Conditions
from keypatch.zoo import load
from keypatch.zoo.loading import load_network

BEFORE, AFTER, ROOTSIFT = "before.json", "after.json", "rootsift.json"  # results on the held-out part
OTHERS, ON_OTHERS = "embedded-test", {"before": "others-before.json", "after": "others-after.json"}
LEAST_POINTS = 64  # to train on: fewer have no negatives to learn from
PER_POINT, LEAST_PAIRS, MOST_PAIRS = 16, 20_000, 60_000  # docs/your-own-descriptor.md has what was tried


@dataclass(frozen=True)
class Adaptation:
    """The result of `adapt`: a run folder that is a descriptor, the set it was trained on, and what it gained.

    >>> done = kp.adapt("photos", "mine")  # doctest: +SKIP
    >>> done.verdict.headline()  # doctest: +SKIP
    'Use mine: it is better on these photos than hynet-notredame'
    """

    folder: Path
    built: BuiltSet
    before: Result  # on the held-out part
    after: Result
    rootsift: Result
    others: tuple[Result, Result]  # before and after, on photographs that have nothing to do with these
    verdict: Verdict
    start: str  # the descriptor it began from, as `load` takes it

    @property
    def page(self) -> Path:
        return self.folder / PAGE

    @property
    def warnings(self) -> Sequence[str]:
        """The warnings on the card of the training part; the verdict covers the held-out part."""
        return tuple(self.built.cards[TRAIN]["warnings"])

    @property
    def recommended(self) -> str:
        """The descriptor to use, as `load` accepts it."""
        return str(self.folder) if self.verdict.outcome == "better" else self.start

    @property
    def results(self) -> tuple[Result, Result, Result]:
        """The results on the held-out part, in the order of the tables."""
        return self.rootsift, self.before, self.after


def adapt(
    photos: str | Path | Sequence[str | Path],
    out: str | Path,
    method: Finder | str = Tracks(),  # noqa: B008  a frozen value
    building: Building = Building(held_out=HELD_OUT),  # noqa: B008
    adapting: Adapting = Adapting(),  # noqa: B008
    *,
    describer: str | Path = DESCRIPTOR,
    extraction: Extraction = Extraction(),  # noqa: B008
    mapping: MapperOptions = MapperOptions(),  # noqa: B008
    conditions: Conditions = Conditions(),  # noqa: B008
    progress: Progress | Callback | None = None,
) -> Adaptation:
    """Fit a descriptor to photos: build a patch set, fine-tune, score before and after on a held-out part.

    photos, method, building, extraction, mapping: as for `build`, but `building.held_out` must not be zero.
    out: the run folder, which is then a descriptor like any other; the patch set is in `out/set`.
    describer: the network to start from, also used to match the photos.
    conditions: how the training is computed; its device and precision are used throughout.

    >>> kp.adapt("photos", "mine", building=kp.Building(held_out=0.25, masks="masks"))  # doctest: +SKIP

    Raises:
        KeypatchError: the describer is not a network, the photos do not give a large enough set, or `out` was made
            with other settings.
        Interrupted: Ctrl-C; the same call resumes at the stage it had reached.
    """
    progress, folder = Progress.of(progress), Path(out)
    method = _find_method(method)
    if not building.held_out:
        raise KeypatchError("Without held-out data the gain cannot be measured: set --held-out above 0.")
    spec, network = load_network(describer)
    if building.patch_sigmas is None:
        building = replace(building, patch_sigmas=spec.preprocessing.patch_sigmas)
    start = {"descriptor": load(describer).name, "descriptor.weights": hash_weights(network)}
    settings = {**start, **{f"adapting.{name}": value for name, value in to_plain(adapting).items()}}
    with interruptible(f"{folder} has what was saved so far"), STATE.hold(folder, settings) as is_finished:
        built = build(
            photos,
            folder / SET,
            method,
            building,
            describer=DESCRIPTOR if "descriptor" in method.unused else describer,
            extraction=extraction,
            mapping=mapping,
            device=conditions.device,
            precision=conditions.precision,
            progress=progress,
        )
        if is_finished:
            progress.note(f"{folder} already has the finished adaptation.")
            return _read(folder, built, describer)
        _train(folder, built, spec, adapting, building.seed, describer, conditions, progress)
        _score(folder, built, describer, conditions, progress)
        done = _read(folder, built, describer)
        results = [folder / each for each in (BEFORE, AFTER, ROOTSIFT)]
        report(results, folder / REPORT, baseline=start["descriptor"], title=f"{folder.resolve().name}, held-out part")
        write_adapt_page(done.page, done)
        STATE.finish(folder, settings, verdict=done.verdict.headline())
    return done


def _find_method(method: Finder | str) -> Finder:
    finders = {name: usual for name, kind in METHODS.items() if isinstance(usual := kind(), Finder)}
    name = method if isinstance(method, str) else method_name(method)
    if name not in finders:
        raise KeypatchError(f"--method {name} does not make a training set.{choose_from(name, finders)}")
    return finders[name] if isinstance(method, str) else method


def fine_tuning(points: int, spec: NetworkSpec, adapting: Adapting = Adapting(), seed: int = 0) -> Recipe:  # noqa: B008
    """The recipe for a set with so many points to train on."""
    budget = adapting.budget or min(max(PER_POINT * points, LEAST_PAIRS), MOST_PAIRS)
    batch = min(ADAPT.sampler.pairs, points // 2, budget)  # half of the points, so that batches differ
    return replace(
        ADAPT,
        network=spec,
        sampler=RandomPairs(batch),
        optimizer=replace(ADAPT.optimizer, lr=adapting.learning_rate or ADAPT.optimizer.lr),
        pairs=budget,
        seed=seed,
    )


def _train(
    folder: Path,
    built: BuiltSet,
    spec: NetworkSpec,
    adapting: Adapting,
    seed: int,
    describer: str | Path,
    conditions: Conditions,
    progress: Progress,
) -> None:
    """A new run in the folder, or the rest of the one that is there."""
    points = open_patches(built.sets[TRAIN]).classes().count
    if points < LEAST_POINTS:
        raise KeypatchError(
            f"{built.sets[TRAIN]} has {points:,} points, too few to train on: {LEAST_POINTS} or more are needed. Add "
            "photos, or take more points from each (--keypoints, or --points for single photos)."
        )
    recipe = fine_tuning(points, spec, adapting, seed)
    begun = (folder / "recipe.toml").exists()
    progress.note(f"fine-tuning on {points:,} points, {recipe.pairs:,} pairs")
    try:
        train(
            recipe,
            built.sets[TRAIN],
            folder,
            conditions,
            start_from=None if begun else describer,
            resume=folder if begun else None,
            progress=progress,
        )
    except Interrupted as stop:  # which knows of `train --resume`, but the other stages are to follow
        raise Interrupted(f"{folder} has what was saved so far") from stop


def _score(folder: Path, built: BuiltSet, describer: str | Path, conditions: Conditions, progress: Progress) -> None:
    """Result files of the start, the outcome and RootSIFT; of the first two also on other photographs."""
    progress.note("scoring on the held-out part and on other photographs")
    device, precision = conditions.device, conditions.precision
    held_out = built.sets[TEST]
    for file, descriptor, data in (
        (ROOTSIFT, "rootsift", held_out),
        (BEFORE, describer, held_out),
        (AFTER, folder, held_out),
        (ON_OTHERS["before"], describer, OTHERS),
        (ON_OTHERS["after"], folder, OTHERS),
    ):
        evaluate(descriptor, "ubc", data, folder / file, device=device, precision=precision, progress=progress)


def _read(folder: Path, built: BuiltSet, describer: str | Path) -> Adaptation:
    before, after, rootsift = (load_result(folder / file) for file in (BEFORE, AFTER, ROOTSIFT))
    others = load_result(folder / ON_OTHERS["before"]), load_result(folder / ON_OTHERS["after"])
    points = int(built.cards[TEST]["counts"]["classes"])
    verdict = judge(before, after, points, others)
    return Adaptation(folder, built, before, after, rootsift, others, verdict, str(describer))
