"""Looking at what training and scoring write: runs, recipes, checkpoints, weights, cards, results."""

from collections.abc import Sequence
from pathlib import Path

from keypatch.benchmarks.result import load_result
from keypatch.benchmarks.scores import find_score
from keypatch.commands.adapt.options import PAGE, SET, STATE
from keypatch.commands.inspect.patches import Findings
from keypatch.errors import DataError
from keypatch.files import hash_file
from keypatch.networks import NetworkSpec, PatchNetwork, load_published, load_weights, read_weights_card
from keypatch.patches.sources import TrainingSet
from keypatch.recipes import form_of
from keypatch.training import Recipe
from keypatch.training.checkpoints import Checkpoint, find_checkpoints, find_kept, load_checkpoint
from keypatch.training.recipe import TRAINED
from keypatch.training.recipe_files import read_recipe
from keypatch.training.run_folder import read_origin
from keypatch.zoo import Card
from keypatch.zoo.cards import shipped_file, training_of


def look_at_run(folder: Path) -> Findings:
    yield from _recipe_facts(read_recipe(folder / "recipe.toml", TRAINED))
    if teacher := read_origin(folder).teacher:
        yield "teacher", teacher
    checkpoints = find_checkpoints(folder)
    if not checkpoints:
        yield DataError(f"{folder} has no checkpoint yet. Continue training it: keypatch train --resume {folder}")
        return
    newest = load_checkpoint(checkpoints[-1])
    yield from _progress(newest)
    yield from _training_facts(newest.training)
    yield "newest weights", str(checkpoints[-1])
    if kept := find_kept(folder):
        yield "kept weights", f"{len(kept)}: {', '.join(path.name for path in kept)}"
    log = folder / "log.jsonl"
    yield "log", f"{log} ({log.read_text(encoding='utf-8').count(chr(10)):,} records)" if log.exists() else "none"


def look_at_adaptation(folder: Path) -> Findings:
    """A folder of `keypatch adapt`: a run with its set and what it gained."""
    state = STATE.format.read_json(folder / STATE.name)
    if state["finished"]:
        yield "verdict", str(state["verdict"])
        yield "page", str(folder / PAGE)
    else:
        yield DataError(f"{folder} is not finished. Run the same `keypatch adapt` again to resume it.")
    yield "set", str(folder / SET)
    if (folder / "recipe.toml").exists():
        yield from look_at_run(folder)


def look_at_checkpoint(file: Path) -> Findings:
    checkpoint = load_checkpoint(file)
    yield from _recipe_facts(checkpoint.recipe)
    yield from _progress(checkpoint)
    yield from _training_facts(checkpoint.training)


def look_at_recipe(file: Path) -> Findings:
    yield from _recipe_facts(read_recipe(file))


def look_at_weights(file: Path) -> Findings:
    yield from _network_facts(*load_weights(file))
    card = read_weights_card(file)
    for name, value in card.items():
        if name != "training":
            yield name, str(value)
    yield from _training_facts(training_of(card, file))
    yield "SHA-256", hash_file(file)


def look_at_published(file: Path) -> Findings:
    yield from _network_facts(*load_published(file))
    yield "SHA-256", hash_file(file)


def look_at_onnx(file: Path) -> Findings:
    from keypatch.describers.onnx_file import OnnxDescriber

    describer = OnnxDescriber(file)
    yield "name", describer.facts["name"]
    yield "descriptors", f"{describer.dim} numbers, {'unit length' if describer.unit_length else 'raw length'}"
    yield "precision", describer.precision
    yield "patches", f"{describer.patch_size} pixels, {describer.patch_sigmas:g} sigma"
    if describer.facts.get("terms"):
        yield "terms", describer.facts["terms"]
    yield from _training_facts(describer.training)
    yield "SHA-256", describer.weights_hash


def look_at_card(file: Path) -> Findings:
    yield from _card_facts(Card.load(file))


def look_at_zoo(card: Card, _: Path) -> Findings:
    """A name of the zoo: its card, and whether its weights are the ones the card describes."""
    yield from _card_facts(card)
    if card.network:
        yield "weights", f"{shipped_file(card).stat().st_size:,} bytes"


def look_at_result(file: Path) -> Findings:
    result = load_result(file)
    yield "benchmark", result.benchmark
    yield "descriptor", result.descriptor
    if result.contamination:
        yield "marked", result.contamination.sentence()
    for name, setting in {**result.notes, **result.settings}.items():
        yield name, str(setting)
    for name, score in result.scores.items():
        yield name, find_score(name).text(score)
    yield "made", f"{result.provenance.date} by keypatch {result.provenance.version} ({result.provenance.command})"


def _training_facts(training: Sequence[TrainingSet]) -> Findings:
    for each in training:
        images = f"{len(each.sources):,} images with fingerprints" if each.sources else "images unknown"
        yield "trained on", f"{each.name} ({images})"


def _card_facts(card: Card) -> Findings:
    yield "name", card.name
    yield "about", card.about
    yield "descriptors", f"{card.dim} numbers"
    for name, value in (("network", card.network), ("trained on", card.trained_on), ("terms", card.terms)):
        if value:
            yield name, value
    yield from _training_facts(card.training)
    for name, score in card.scores.items():
        yield name, find_score(name).text(score)
    if card.weights_hash:
        yield "SHA-256", card.weights_hash


def _recipe_facts(recipe: Recipe) -> Findings:
    yield "recipe", recipe.name
    yield "form", form_of(recipe)
    yield "network", str(recipe.network)
    yield "loss", " + ".join(str(term) for term in recipe.loss)
    yield "optimizer", f"{recipe.optimizer}, {recipe.schedule}"
    yield "budget", f"{recipe.pairs:,} pairs in {recipe.steps:,} steps of {recipe.sampler.pairs}"


def _progress(checkpoint: Checkpoint) -> Findings:
    recipe, done = checkpoint.recipe, checkpoint.step
    state = "finished" if done >= recipe.steps else f"{done / recipe.steps:.0%}, resume it with keypatch train --resume"
    yield "trained", f"{done * recipe.sampler.pairs:,} pairs in {checkpoint.seconds / 60:.1f} minutes ({state})"


def _network_facts(spec: NetworkSpec, module: PatchNetwork) -> Findings:
    yield "network", str(spec)
    yield "descriptors", f"{module.dim} numbers, {'unit length' if module.unit_length else 'raw length'}"
    yield "weights", f"{sum(parameter.numel() for parameter in module.parameters()):,}"
