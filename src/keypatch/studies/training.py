"""Training as a user asks for it: names, folders and settings in, a run folder out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from keypatch.errors import DataError, RecipeError
from keypatch.patches import PatchSource, join_sets, open_patches
from keypatch.patches.online_products import choose_list
from keypatch.patches.pair_lists import find_pairs
from keypatch.recipes import find_recipe
from keypatch.training import Recipe
from keypatch.training.progress import Reporter, Silent
from keypatch.training.running import Conditions, run
from keypatch.training.settings import apply_settings
from keypatch.training.validation import Validation
from keypatch.zoo.finding import load_network


def train(
    recipe: str | Path | Recipe,
    data: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    settings: Sequence[str] = (),
    pairs: int | None = None,
    seed: int | None = None,
    split: str | None = None,
    validation: str | Path | None = None,
    start_from: str | Path | None = None,
    resume: bool = False,
    allow_partial: bool = False,
    device: str = "auto",
    precision: str = "auto",
    compile: str = "auto",
    threads: int | None = None,
    checkpoint_seconds: float = 60.0,
    tensorboard: bool = False,
    keep: Sequence[float] = (),
    reporter: Reporter | None = None,
) -> Path:
    """Train a descriptor and return its run folder.

    recipe: a name (`keypatch list`), a recipe.toml or a Recipe; `settings` ("loss.margin=1.0"), `pairs` (the budget)
        and `seed` replace fields of it.
    out: the run folder, runs/<recipe> unless given.
    data: one folder or several; "embedded" is the data inside the package. `split` chooses an HPatches split.
    validation: a folder with pair lists, scored ten times during the run and never used otherwise.
    start_from: a zoo name, run folder, checkpoint or weight file whose network is of the recipe's shape.
    allow_partial: accept a PhotoTour set copied in part.
    resume: go on with the run in `out`, on a CPU with one thread to the bits of an uninterrupted run.
    keep: shares of the run whose weights stay beside the last ones, as checkpoints/at-025.safetensors.
    device, precision, compile, threads: how it is computed (`Conditions`).
    """
    reporter = reporter or Silent()
    if not all(0 < share <= 1 for share in keep):
        raise RecipeError(
            f"Weights are kept at shares of the run above 0 and up to 1, 0.5 for half; not at {list(keep)}."
        )
    value = _changed(find_recipe(recipe) if not isinstance(recipe, Recipe) else recipe, settings, pairs, seed)
    source = open_source(data, split, allow_partial)
    _say_skipped(source, reporter)
    weights = None
    if value.needs_weights and start_from is None and not resume:
        raise RecipeError(f"{value.name} goes on with a trained network; name one with --from.")
    if start_from is not None and not resume:
        weights = _weights(start_from, value)
    return run(
        value,
        source,
        Path(out) if out is not None else Path("runs") / value.name,
        reporter,
        conditions=Conditions(device, precision, compile, threads, checkpoint_seconds, tensorboard, tuple(keep)),
        resume=resume,
        weights=weights,
        validate=_validation(validation) if validation is not None else None,
    )


def open_source(
    data: str | Path | Sequence[str | Path], split: str | None = None, allow_partial: bool = False
) -> PatchSource:
    """One set, or several joined so that their classes stay apart."""
    folders = [data] if isinstance(data, str | Path) else list(data)
    if not folders:
        raise DataError("No training data given. Name a folder of patches with --data, or --data embedded.")
    sets = [open_patches(choose_list(folder, "train"), split, allow_partial) for folder in folders]
    return sets[0] if len(sets) == 1 else join_sets(sets)


def _changed(recipe: Recipe, settings: Sequence[str], pairs: int | None, seed: int | None) -> Recipe:
    recipe = apply_settings(recipe, settings)
    if pairs is not None:
        recipe = replace(recipe, pairs=pairs)
    return recipe if seed is None else replace(recipe, seed=seed)


def _say_skipped(source: PatchSource, reporter: Reporter) -> None:
    classes = source.classes()
    if classes.skipped:
        reporter.say(f"{source.name}: {classes.skipped:,} points have a single patch and are left out of the training.")


def _weights(start_from: str | Path, recipe: Recipe) -> dict[str, Tensor]:
    spec, network = load_network(start_from)
    weights: dict[str, Tensor] = network.state_dict()
    wanted = {name: tensor.shape for name, tensor in recipe.network.build().state_dict().items()}
    same_input = spec.preprocessing == recipe.network.preprocessing
    if not same_input or {name: tensor.shape for name, tensor in weights.items()} != wanted:
        raise RecipeError(f"{start_from} holds another network ({spec}) than the recipe trains ({recipe.network}).")
    return weights


def _validation(folder: str | Path) -> Validation:
    patches = open_patches(folder)
    lists = find_pairs(patches.folder, len(patches)) if patches.folder else ()
    if not lists:
        raise DataError(f"{folder}: no pair list to validate on; it needs one such as m50_1000_1000_0.txt.")
    hard = [pairs for pairs in lists if pairs.name.startswith("hard")]
    return Validation(patches, (hard or list(lists))[0])
