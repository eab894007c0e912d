"""What cards say of the images behind a set, and what a descriptor remembers of the sets it was trained on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.errors import DataError
from keypatch.images import Photo
from keypatch.patches import PatchSet, join_sets, open_patches
from keypatch.patches.embedded import TEST_PHOTOS, photo_path
from keypatch.patches.hpatches import STRIPS
from keypatch.patches.patch_set import write_set_card
from keypatch.patches.phototour import write_phototour
from keypatch.patches.sources import (
    Source,
    TrainingSet,
    find_sources,
    identity_of,
    read_sources,
    remember,
    sources_of,
)

CAMERA, CAT = (Photo(photo.file, photo_path(photo)) for photo in TEST_PHOTOS[:2])


def patch_set(name: str = "one", seed: int = 0, **fields: object) -> PatchSet:
    patches = np.random.default_rng(seed).integers(0, 256, (12, 64, 64), np.uint8)
    return PatchSet(name, patches, np.arange(12) // 3, **fields)  # type: ignore[arg-type]


def test_a_card_keeps_its_sources_through_a_folder(tmp_path: Path) -> None:
    sources = find_sources([CAMERA, CAT], terms="CC0")
    given = patch_set()
    card = {"sources": [each.to_json() for each in sources]}
    write_phototour(tmp_path / "set", given.patches, given.point_id, card=card)
    read = open_patches(tmp_path / "set")
    assert sources_of(read) == sources
    assert set(read.card["sources"][0]) == {"name", "sha256", "perceptual", "terms"}
    assert remember(read) == (TrainingSet("set", identity_of(given), sources),)


def test_a_card_without_sources_has_none() -> None:
    assert read_sources({}) == () == sources_of(patch_set())


@pytest.mark.parametrize(
    "entry", [5, {"name": "a"}, {"name": 5, "sha256": "0" * 64, "perceptual": "0" * 144}, {"name": "a", "sha256": "x"}]
)
def test_sources_that_cannot_be_read_are_told(entry: object) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_sources({"sources": [entry]}, "The card of mine")


def test_a_set_is_known_by_its_patches_and_points_not_by_its_name() -> None:
    one = patch_set("one")
    assert identity_of(one) == identity_of(replace(one, name="copy"))
    assert identity_of(one) != identity_of(patch_set("one", seed=1))
    assert identity_of(one) != identity_of(replace(one, point_id=one.point_id[::-1].copy()))


def test_every_set_of_several_is_remembered() -> None:
    first, second = patch_set("one", 0), patch_set("two", 1)
    assert [each.name for each in remember(join_sets([first, second]))] == ["one", "two"]


def test_what_is_remembered_comes_back_from_json() -> None:
    known = TrainingSet("mine", "00", find_sources([CAMERA]))
    assert TrainingSet.from_json(known.to_json()) == known


@pytest.fixture
def strips(tmp_path: Path) -> Path:
    """Two sequences of three patches."""
    rng = np.random.default_rng(0)
    for name in ("i_one", "v_two"):
        (tmp_path / name).mkdir()
        for strip in STRIPS:
            pixels = rng.integers(0, 256, (3 * 65, 65), np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{strip}.png")
    return tmp_path


def test_sequences_without_a_card_are_known_by_their_reference_strips(strips: Path) -> None:
    sources = sources_of(open_patches(strips))
    assert [each.name for each in sources] == ["i_one", "v_two"]
    assert sources[0].fingerprint == find_sources([Photo("i_one", strips / "i_one" / "ref.png")])[0].fingerprint


def test_sequences_with_a_card_are_known_by_their_photos(strips: Path) -> None:
    sources = [
        Source(f"{name}/img1.png", each.fingerprint) for name in ("i_one", "v_two") for each in find_sources([CAMERA])
    ]
    write_set_card(strips, {"sources": [each.to_json() for each in sources]})
    assert sources_of(open_patches(strips)) == tuple(sources)
