"""Training as a user asks for it: names, folders and settings in, a run folder out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from keypatch.commands.validation import find_trained_on, open_validations
from keypatch.errors import DataError, RecipeError
from keypatch.files import safe_name
from keypatch.images import listed
from keypatch.losses import Distillation
from keypatch.networks.published import start_module
from keypatch.patches import PatchSet, join_sets, open_patches
from keypatch.patches.image_folders import SIDE
from keypatch.patches.layouts import EMBEDDED
from keypatch.patches.online_products import choose_list
from keypatch.patches.patch_set import JoinedSets
from keypatch.patches.sources import TrainingSet, remember
from keypatch.progress import Callback, Progress
from keypatch.recipes import as_published, find_recipe, form_of
from keypatch.settings import apply_settings
from keypatch.training import Recipe
from keypatch.training.conditions import Conditions
from keypatch.training.loop import run_training
from keypatch.training.ranks import join_ranks
from keypatch.training.recipe import TYPES
from keypatch.training.run_folder import Origin, read_origin
from keypatch.zoo.loading import is_published, load, load_network, load_training, names

Data = str | Path | PatchSet


def train(
    recipe: str | Path | Recipe | None = None,
    data: Data | JoinedSets | Sequence[Data] | None = None,
    out: str | Path | None = None,
    conditions: Conditions | None = None,
    *,
    published: bool = False,
    settings: Sequence[str] = (),
    pairs: int | None = None,
    validation: str | Path | Sequence[str | Path] = (),
    start_from: str | Path | None = None,
    teacher: str | Path | None = None,
    split: str | None = None,
    allow_partial: bool = False,
    resume: str | Path | None = None,
    progress: Progress | Callback | None = None,
) -> Path:
    """Train a descriptor and return its run folder.

    recipe: a name (`keypatch list`), a recipe.toml or a Recipe; `settings` ("loss.margin=1.0", "seed=1") and `pairs`
        (the budget) replace fields of the recipe.
    published: train the recipe as printed in its paper, without our detector noise (`as_published`); settings apply
        afterwards.
    data: a folder, "embedded" (the data inside the package), an open PatchSet, or several of these.
    out: the run folder, runs/<recipe> unless given.
    conditions: how the run is computed, and what is kept of it.
    validation: folders with pair lists or with strips of HPatches (with `split`, its test part), scored ten times
        during the run, or after every `keep_every` pairs, and never used otherwise. A set that is trained on itself
        is scored too, with a note that says so.
    start_from: a zoo name, run folder, checkpoint or weight file whose network has the recipe's shape; for a network
        of `image_network`, also a file with the tensors of its module (safetensors, or a state_dict saved by torch).
    teacher: any descriptor; the loss then also pulls the network's descriptors towards the teacher's (`Distillation`).
    split: train on the training part of this HPatches split.
    allow_partial: accept a PhotoTour set copied in part.
    resume: a run folder, which stores all other arguments; on a CPU with one thread, the result is bit-identical to
        that of an uninterrupted run.
    progress: a `Progress`, or a function called with the pairs done, the total and "pairs".

    Processes started by torchrun train one run together (docs/scaling.md).

    >>> kp.train("hynet", "embedded", "runs/mine", pairs=50_000)  # doctest: +SKIP
    PosixPath('runs/mine')
    >>> kp.train(resume="runs/mine")  # doctest: +SKIP
    PosixPath('runs/mine')
    """
    with join_ranks() as ranks:
        progress = ranks.progress(Progress.of(progress))
        folder, origin = out, Origin(split=split, allow_partial=allow_partial)
        if resume is not None:
            if ranks.first:  # the others may be on machines that do not see the folder
                folder, origin = resume, _resumed(Path(resume), out)
                recipe = find_recipe(resume) if recipe is None else recipe
            folder, origin, recipe = ranks.from_first((folder, origin, recipe))
            data = data if data is not None else _data_of(Path(resume), origin)
        if recipe is None:
            raise RecipeError("No recipe given. Name one of `keypatch list recipes`, or a run folder with --resume.")
        value = recipe if isinstance(recipe, Recipe) else find_recipe(recipe)
        value = as_published(value) if published else value
        if teacher is not None and not any(isinstance(term, Distillation) for term in value.loss):
            value = replace(value, loss=(*value.loss, Distillation()))
        value = apply_settings(value, settings, TYPES)
        if pairs is not None:
            value = replace(value, pairs=pairs)
        teacher = teacher if teacher is not None else origin.teacher
        origin = replace(
            origin,
            data=_places(data),
            validation=_all_lasting(validation) or origin.validation,
            teacher=_lasting_name(teacher) if teacher is not None else None,
            conditions=conditions or origin.conditions,
        )
        source = open_source(data if data is not None else (), origin.split, origin.allow_partial, value)
        if skipped := source.classes().skipped:
            progress.note(f"{source.name}: {skipped:,} points with a single patch are not used for training.")
        if value.needs_weights and start_from is None and resume is None:
            raise RecipeError(f"{value.name} starts from a trained network. Name one with --from.")
        trained_before = _trained_before(start_from if resume is None else None, teacher)
        validations = open_validations(origin.validation, origin.split)
        if validations:
            for note in find_trained_on(validations, [*trained_before, *remember(source)]):
                progress.note(note)
        return run_training(
            value,
            source,
            Path(folder) if folder is not None else Path("runs") / safe_name(value.name, "The recipe"),
            progress,
            conditions=origin.conditions,
            resume=resume is not None,
            weights=_weights(start_from, value, progress) if start_from is not None and resume is None else None,
            trained_before=trained_before,
            validate=validations,
            origin=origin,
            ranks=ranks,
            form=form_of(value),
            teacher=load(teacher, str(ranks.device(origin.conditions.device))) if teacher is not None else None,
        )


def _resumed(run: Path, out: str | Path | None) -> Origin:
    """What the run to be resumed was started with."""
    if out is not None and Path(out).resolve() != run.resolve():
        raise RecipeError(f"--out {out} has no effect with --resume {run}. Leave one of them out.")
    if not (run / "recipe.toml").exists():
        raise DataError(f"There is no run to resume in {run}. Check the path.")
    return read_origin(run)


def _data_of(run: Path, origin: Origin) -> Sequence[Data]:
    missing = [place for place in origin.data if place not in EMBEDDED and not Path(place).exists()]
    if missing or not origin.data:
        known = (
            f"was trained on {missing[0]}, which no longer exists" if missing else "does not record where its data is"
        )
        raise DataError(f"{run} {known}. Say where it is: keypatch train --resume {run} --data FOLDER")
    return origin.data


def _places(data: Data | JoinedSets | Sequence[Data] | None) -> tuple[str, ...]:
    """What run.json says of the data: nothing where some of them were opened before, and may be of any kind."""
    if data is None or isinstance(data, PatchSet | JoinedSets):
        return ()
    places = [data] if isinstance(data, str | Path) else data
    named = [_lasting(place) for place in places if isinstance(place, str | Path)]
    return tuple(named) if len(named) == len(places) else ()


def _lasting(place: str | Path) -> str:
    """A place that means the same in another working folder."""
    return str(place) if str(place) in EMBEDDED else str(Path(place).absolute())


def _all_lasting(places: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    return tuple(_lasting(place) for place in ([places] if isinstance(places, str | Path) else places))


def _lasting_name(descriptor: str | Path) -> str:
    """The same of a descriptor, which may have a name in the zoo."""
    return str(descriptor) if descriptor in [card.name for card in names()] else _lasting(descriptor)


def _trained_before(*descriptors: str | Path | None) -> list[TrainingSet]:
    """The sets that these saw, each once."""
    seen = [each for name in descriptors if name is not None for each in load_training(name)]
    return list({each.identity: each for each in seen}.values())


def open_source(
    data: Data | JoinedSets | Sequence[Data],
    split: str | None = None,
    allow_partial: bool = False,
    recipe: Recipe | None = None,
) -> PatchSet | JoinedSets:
    """One set, or several joined so that their classes stay apart; what is open is taken as it is.

    split: the training part of an HPatches split. allow_partial: accept a PhotoTour set copied in part.
    recipe: whose network says in which size and colours whole images are read.
    """
    shape = (SIDE, 1)
    if recipe is not None:
        preprocessing = recipe.network.preprocessing
        shape = (max(SIDE, preprocessing.side), preprocessing.channels)
    if isinstance(data, JoinedSets):
        return data
    places = [data] if isinstance(data, str | Path | PatchSet) else list(data)
    if not places:
        raise DataError("No training data given. Name a folder of patches with --data, or --data embedded.")
    return join_sets(
        [
            place
            if isinstance(place, PatchSet)
            else open_patches(choose_list(place, "train"), split, allow_partial, *shape)
            for place in places
        ]
    )


def _weights(start_from: str | Path, recipe: Recipe, progress: Progress) -> dict[str, Tensor]:
    started = start_module(recipe.network, Path(start_from), recipe.seed) if is_published(start_from) else None
    if started is not None:
        weights, unused = started
        if unused:
            progress.note(f"{start_from}: {len(unused)} tensors are not used by the network: {listed(unused)}.")
        return weights
    spec, network = load_network(start_from)
    weights = network.state_dict()
    wanted = {name: tensor.shape for name, tensor in recipe.network.build().state_dict().items()}
    same_input = spec.preprocessing == recipe.network.preprocessing
    if not same_input or {name: tensor.shape for name, tensor in weights.items()} != wanted:
        raise RecipeError(f"{start_from} holds a different network ({spec}) from the recipe's ({recipe.network}).")
    return weights
