"""From a name, a run folder or a file to a describer."""

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from keypatch.describers.protocol import Describer
from keypatch.describers.sift import SiftDescriber
from keypatch.errors import DataError, KeypatchError
from keypatch.zoo.cards import HANDMADE, Card, shipped_cards, shipped_file

if TYPE_CHECKING:
    from keypatch.networks import NetworkSpec, PatchNetwork


def names() -> list[Card]:
    """Everything `find` knows by name: what is made by hand, then the shipped weights."""
    return [*HANDMADE, *shipped_cards()]


def find(name: str | Path, device: str = "auto", precision: str = "auto") -> Describer:
    """The describer of a zoo name, a run folder, a checkpoint, a weight file of ours or a published one.

    A zoo name comes before a file of the same name; write ./name, or give a Path, for the file. Device and precision
    are the network's and mean nothing to SIFT.

    Raises:
        KeypatchError: there is neither such a name nor such a file, or the file is of another kind.
    """
    card = _card(name)
    if card is not None and not card.network:
        return SiftDescriber(root=card.name == "rootsift")
    from keypatch.describers.network import NetworkDescriber

    path = Path(name).expanduser()
    title = card.name if card else path.resolve().name if path.is_dir() else path.stem
    return NetworkDescriber(load_network(name)[1], title, device=device, precision=precision)


def load_network(name: str | Path) -> "tuple[NetworkSpec, PatchNetwork]":
    """The network behind anything `find` takes but SIFT, on the CPU and in evaluation mode."""
    card = _card(name)
    if card is not None and not card.network:
        raise KeypatchError(f'"{name}" is made by hand and has no network.')
    path = shipped_file(card) if card else Path(name).expanduser()
    if not path.exists():
        raise KeypatchError(_unknown(str(name)))
    if path.is_dir() and not (path / "recipe.toml").exists():
        raise DataError(f"{path} is a folder without recipe.toml, so not a training run. Give a run folder or a file.")
    kind = "run" if path.is_dir() else _format_of(path)
    if kind in ("run", "keypatch-checkpoint"):
        from keypatch.training.checkpoints import load_run_weights

        return load_run_weights(path)
    if kind == "keypatch-weights":
        from keypatch.networks.weights import load_weights

        return load_weights(path)
    from keypatch.networks.published import load_published

    return load_published(path)


def _card(name: str | Path) -> Card | None:
    return next((card for card in names() if card.name == name), None)


def _format_of(path: Path) -> str:
    """The format a safetensors file of ours names in its header; empty for every other file."""
    if path.suffix != ".safetensors":
        return ""
    try:
        with safe_open(path, framework="np") as file:
            return str((file.metadata() or {}).get("format", ""))
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path} is not a readable safetensors file ({error}). Copy it again.") from None


def _unknown(name: str) -> str:
    known = [card.name for card in names()]
    close = get_close_matches(name, known, n=1)
    hint = f' Did you mean "{close[0]}"?' if close else ""
    return (
        f'There is no descriptor, run folder or weight file "{name}".{hint} '
        f"Descriptors known by name: {', '.join(known)}."
    )
