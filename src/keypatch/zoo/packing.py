"""From a trained run to a weight file with its card, as the zoo ships them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from keypatch.files import hash_file
from keypatch.networks import save_weights
from keypatch.zoo.cards import Card
from keypatch.zoo.finding import load_network


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
    spec, network = load_network(run)
    card = Card(name, about, spec.dim, type(spec).__name__, trained_on, terms, scores=dict(scores or {}))
    weights = folder / f"{name}.safetensors"
    save_weights(weights, network, spec, card.to_json(), half=True)
    card = replace(card, weights_hash=hash_file(weights))
    card.save(folder / f"{name}.json")
    return card
