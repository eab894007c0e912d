"""From names, run folders and files to describers."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import kornia
import numpy as np
import pytest
import torch

from keypatch.describers.protocol import HasWeights
from keypatch.errors import DataError, KeypatchError
from keypatch.files import hash_file
from keypatch.networks import L2Net
from keypatch.networks.weights import save_weights
from keypatch.recipes import HARDNET
from keypatch.training.checkpoints import Checkpoint, checkpoint_path, save_checkpoint
from keypatch.training.recipe_files import write_recipe
from keypatch.zoo import Card, cards, load, names

SPEC = L2Net(dim=16, width=8)
PATCHES = np.random.default_rng(0).integers(0, 256, (3, 64, 64), dtype=np.uint8)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    path = tmp_path / "small.safetensors"
    save_weights(path, SPEC.build().eval(), SPEC, {})
    return path


@pytest.fixture
def shelf(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zoo with one weight, "small"."""
    shelf = tmp_path / "weights"
    shelf.mkdir()
    weights.rename(shelf / "small.safetensors")
    card = Card("small", "for tests", dim=16, network="L2Net", weights_hash=hash_file(shelf / "small.safetensors"))
    card.save(shelf / "small.json")
    monkeypatch.setattr(cards, "WEIGHTS", shelf)
    return shelf


@pytest.mark.parametrize("name", ["sift", "rootsift"])
def test_sift_is_found_by_name(name: str) -> None:
    assert load(name).name == name


def test_every_known_name_is_found(shelf: Path) -> None:
    assert [card.name for card in names()] == ["sift", "rootsift", "small"]
    for card in names():
        describer = load(card.name, device="cpu")
        assert (describer.name, describer.dim) == (card.name, card.dim)


def test_what_is_really_shipped_can_be_described_with() -> None:
    for card in names():
        assert load(card.name, device="cpu").describe(PATCHES).shape == (3, card.dim)


def test_a_weight_file_is_found_by_its_path(weights: Path) -> None:
    for name in (weights, str(weights)):
        describer = load(name, device="cpu")
        assert (describer.name, describer.dim) == ("small", 16)


def test_a_found_network_names_its_weights_by_their_hash(weights: Path, tmp_path: Path) -> None:
    copy, other = tmp_path / "copy.safetensors", tmp_path / "other.safetensors"
    copy.write_bytes(weights.read_bytes())
    save_weights(other, SPEC.build(), SPEC, {})
    hashes = []
    for path in (weights, copy, other):
        describer = load(path, device="cpu")
        assert isinstance(describer, HasWeights)
        hashes.append(describer.weights_hash)
    assert len(hashes[0]) == 64
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_run_folder_and_a_checkpoint_are_found(tmp_path: Path) -> None:
    run = tmp_path / "night-0.1"
    network = SPEC.build()
    recipe = replace(HARDNET, network=SPEC)
    checkpoint = Checkpoint(
        recipe, 7, 1.0, network.state_dict(), optimizer={}, average={}, loss_state={}, sampler_state={}, provenance={}
    )
    (run / "checkpoints").mkdir(parents=True)
    write_recipe(run / "recipe.toml", recipe)
    save_checkpoint(checkpoint_path(run, 7), checkpoint)
    found = load(run, device="cpu")
    assert (found.name, found.dim) == ("night-0.1", 16)
    same = load(checkpoint_path(run, 7), device="cpu")
    np.testing.assert_array_equal(same.describe(PATCHES), found.describe(PATCHES))


def test_a_published_file_is_found(tmp_path: Path) -> None:
    torch.manual_seed(0)
    torch.save(kornia.feature.TFeat(pretrained=False).state_dict(), tmp_path / "tfeat.params")
    found = load(tmp_path / "tfeat.params", device="cpu")
    assert (found.name, found.dim, found.unit_length) == ("tfeat", 128, False)


def test_a_zoo_name_comes_before_a_file_of_the_same_name(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").mkdir()
    assert load("small", device="cpu").dim == 16
    for file in ("./small", Path("small")):
        with pytest.raises(DataError, match="not a run folder"):
            load(file)


def test_a_damaged_shipped_weight_is_noticed(shelf: Path) -> None:
    with (shelf / "small.safetensors").open("ab") as file:
        file.write(b"x")
    with pytest.raises(DataError, match="not the file its card describes"):
        load("small")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rootsfit", 'no descriptor, run folder or weight file "rootsfit". Did you mean "rootsift"[?]'),
        ("qqqq", 'weight file "qqqq". Choose one of sift, rootsift'),
        ("runs/none", 'weight file "runs/none"'),
    ],
)
def test_an_unknown_name_lists_the_known_ones(name: str, words: str) -> None:
    with pytest.raises(KeypatchError, match=words):
        load(name)


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a run folder"):
        load(tmp_path)
    (tmp_path / "cut.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    with pytest.raises(DataError, match="not a readable safetensors file"):
        load(tmp_path / "cut.safetensors")
    (tmp_path / "notes.pth").write_text("no weights")
    with pytest.raises(DataError, match=r"notes\.pth"):
        load(tmp_path / "notes.pth")


def test_finding_a_shipped_weight_does_not_import_the_compiler() -> None:
    code = "import sys, keypatch; keypatch.load('hynet-notredame'); print('torch._dynamo' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False"]
