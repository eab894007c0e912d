"""Names and what they are."""

import pytest

from keypatch.errors import KeypatchError
from keypatch.losses import TERMS
from keypatch.networks import NETWORKS
from keypatch.recipes import RECIPES
from keypatch.studies.listing import KINDS, list_names
from keypatch.zoo import names


def test_every_table_is_listed_whole() -> None:
    listed = {kind: {entry.name for entry in entries} for kind, entries in list_names().items()}
    assert listed["descriptors"] == {card.name for card in names()}
    assert listed["recipes"] == set(RECIPES)
    assert listed["networks"] == set(NETWORKS)
    assert listed["losses"] == set(TERMS)
    assert listed["benchmarks"] == {"ubc", "hpatches"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_says_in_one_line_what_it_is(kind: str) -> None:
    for entry in list_names(kind)[kind]:
        assert entry.about
        assert "\n" not in entry.about


def test_an_unknown_kind_raises() -> None:
    with pytest.raises(KeypatchError, match="descriptors, recipes"):
        list_names("nets")
