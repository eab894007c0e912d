"""Cards: there and back, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from keypatch.errors import DataError
from keypatch.zoo.cards import WEIGHTS, Card, shipped_cards, shipped_file

CARD = Card("night", "a test", dim=16, network="L2Net", trained_on="noise", terms="none", scores={"fpr95.x": 0.01})


def test_a_card_comes_back_from_its_file(tmp_path: Path) -> None:
    CARD.save(tmp_path / "night.json")
    assert Card.load(tmp_path / "night.json") == CARD


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "not a card"),
        ({"format_number": 2}, "reads up to 1.: update"),
        ({"format_number": None}, "no format number"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    (tmp_path / "card.json").write_text(json.dumps({**CARD.to_json(), **change}))
    with pytest.raises(DataError, match=words):
        Card.load(tmp_path / "card.json")


@pytest.mark.parametrize("text", ["", "[]", '{"format": "keypatch-card", "format_number": 1}'])
def test_damaged_cards_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "card.json").write_text(text)
    with pytest.raises(DataError, match=r"card\.json"):
        Card.load(tmp_path / "card.json")
    with pytest.raises(DataError, match="no such file"):
        Card.load(tmp_path / "other.json")


def test_shipped_weights_and_cards_belong_together() -> None:
    cards = shipped_cards()
    assert {card.name for card in cards} == {path.stem for path in WEIGHTS.glob("*.safetensors")}
    for card in cards:
        assert shipped_file(card).stat().st_size <= 3_000_000
        assert card.network and card.trained_on and card.terms and card.about
