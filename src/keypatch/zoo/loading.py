"""From a name, a run folder or a file to a describer; from a trained run to the files that the zoo ships."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from keypatch.describers import Describer, SiftDescriber
from keypatch.errors import DataError, KeypatchError
from keypatch.files import hash_file
from keypatch.patches.sources import TrainingSet
from keypatch.settings import choose_from
from keypatch.zoo.cards import HANDMADE, Card, shipped_cards, shipped_file, training_of

if TYPE_CHECKING:
    from keypatch.networks import NetworkSpec, PatchNetwork

ONNX = "onnx"  # a file's kind, beside the names of our formats


def names() -> list[Card]:
    """Everything `load` knows by name: what is made by hand, then the shipped weights."""
    return [*HANDMADE, *shipped_cards()]


def load(name: str | Path, device: str = "auto", precision: str = "auto") -> Describer:
    """Load a describer from a zoo name, run folder, checkpoint, weight file (ours or published) or ONNX file.

    A zoo name takes precedence over a file of the same name; write ./name or pass a Path for the file. Device and
    precision apply to networks, not to SIFT; an ONNX file has its own precision.

    >>> describer = kp.load("hynet-notredame")
    >>> describer.name, describer.dim
    ('hynet-notredame', 128)

    Raises:
        KeypatchError: there is no such name or file, or the file is of another kind.
    """
    card = _card(name)
    if card is not None and not card.network:
        return SiftDescriber(root=card.name == "rootsift")
    if card is None and _file(name)[0] == ONNX:
        from keypatch.describers.onnx_file import OnnxDescriber

        return OnnxDescriber(Path(name).expanduser(), _title(name), device)
    from keypatch.describers.network import NetworkDescriber

    return NetworkDescriber(load_network(name)[1], _title(name), device, precision, load_training(name))


def _title(name: str | Path) -> str:
    path = Path(name).expanduser()
    return str(name) if _card(name) else path.resolve().name if path.is_dir() else path.stem


def is_published(name: str | Path) -> bool:
    """Whether it is a file of others, with tensors that may be those of any network."""
    return _card(name) is None and _file(name)[0] == ""


def load_network(name: str | Path) -> "tuple[NetworkSpec, PatchNetwork]":
    """The network behind anything `load` takes but SIFT and ONNX files, on the CPU and in evaluation mode."""
    card = _card(name)
    if card is not None and not card.network:
        raise KeypatchError(
            f'"{name}" is hand-crafted and has no network. Name a trained one from `keypatch list descriptors`.'
        )
    kind, path = ("keypatch-weights", shipped_file(card)) if card else _file(name)
    if kind == "keypatch-checkpoint":
        from keypatch.training.checkpoints import load_run_weights

        return load_run_weights(path)
    if kind == "keypatch-weights":
        from keypatch.networks.weights import load_weights

        return load_weights(path)
    if kind == ONNX:
        raise KeypatchError(
            f"{path} is an exported graph: it can describe patches, but cannot be trained, changed or exported again. "
            "Give the run folder or the weights it was exported from."
        )
    from keypatch.networks.published import load_published

    return load_published(path)


def load_card(name: str | Path) -> tuple[Card, str]:
    """The card of anything `load_network` takes, as far as it is known, and its recipe as TOML, or an empty text."""
    known = _card(name)
    if known is not None:
        return known, ""
    kind, path = _file(name)
    spec, _ = load_network(name)
    card = Card(_title(name), "", spec.dim, type(spec).__name__, training=load_training(name))
    if kind == "keypatch-checkpoint":
        from keypatch.training.checkpoints import read_recipe_text

        return card, read_recipe_text(path)
    if kind == "keypatch-weights":
        from keypatch.networks.weights import read_weights_card

        told = read_weights_card(path)
        about, trained_on, terms = (str(told.get(field, "")) for field in ("about", "trained_on", "terms"))
        return replace(card, about=about, trained_on=trained_on, terms=terms), ""
    return replace(card, about="a published checkpoint"), ""


def load_training(name: str | Path) -> tuple[TrainingSet, ...]:
    """The sets that anything `load` takes was trained on, as far as its card or its file says."""
    card = _card(name)
    if card is not None:
        return card.training
    kind, path = _file(name)
    if kind == "keypatch-checkpoint":
        from keypatch.training.checkpoints import read_training

        return read_training(path)
    if kind == "keypatch-weights":
        from keypatch.networks.weights import read_weights_card

        return training_of(read_weights_card(path), path)
    return ()


def load_form(name: str | Path) -> str:
    """Whether anything `load` takes was trained as published or with choices of ours (`form_of`); "" if unknown."""
    from keypatch.recipes import form_of
    from keypatch.training.recipe import TRAINED
    from keypatch.training.recipe_files import recipe_from_toml

    if _card(name) is not None or _file(name)[0] != "keypatch-checkpoint":
        return ""
    text = load_card(name)[1]
    return form_of(recipe_from_toml(text, str(name), TRAINED)) if text else ""


def _file(name: str | Path) -> tuple[str, Path]:
    """The format of what is not named in the zoo, a run folder's that of its checkpoints, and where it lies."""
    path = Path(name).expanduser()
    if not path.exists():
        known = [each.name for each in names()]
        raise KeypatchError(
            f'There is no descriptor, run folder or weight file "{name}".'
            f"{choose_from(str(name), known, '`keypatch list descriptors`')}"
        )
    if path.is_dir() and not (path / "recipe.toml").exists():
        raise DataError(f"{path} has no recipe.toml, so it is not a run folder. Give a run folder or a file.")
    return "keypatch-checkpoint" if path.is_dir() else _format_of(path), path


def _card(name: str | Path) -> Card | None:
    return next((card for card in names() if card.name == name), None)


def _format_of(path: Path) -> str:
    """ONNX, or the format a safetensors file of ours names in its header; empty for every other file."""
    if path.suffix.lower() == ".pt2":  # whose loader unpickles
        raise KeypatchError(
            f"{path} is for torch.export.load, which can run code from a file, so keypatch does not load it. Give an "
            "ONNX file, the run folder or the weights."
        )
    if path.suffix.lower() == ".onnx":
        return ONNX
    if path.suffix != ".safetensors":
        return ""
    from keypatch.networks.weights import open_safetensors

    with open_safetensors(path) as file:
        return str((file.metadata() or {}).get("format", ""))


def pack(
    run: str | Path,
    folder: Path,
    *,
    name: str,
    about: str,
    trained_on: str,
    terms: str,
    scores: Mapping[str, float] | None = None,
) -> Card:
    """Write folder/name.safetensors, its large tensors as float16, and folder/name.json, the card; return the card."""
    from keypatch.networks import save_weights

    spec, network = load_network(run)
    network_name, training = type(spec).__name__, load_training(run)
    card = Card(name, about, spec.dim, network_name, trained_on, terms, scores=dict(scores or {}), training=training)
    weights = folder / f"{name}.safetensors"
    save_weights(weights, network, spec, card.to_json(), half=True)
    card = replace(card, weights_hash=hash_file(weights))
    card.save(folder / f"{name}.json")
    return card
