"""docs/methods/embedding.md: its network of one's own is trained, interrupted, resumed and scored as the page says."""

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn

import keypatch
from keypatch import parts
from keypatch.cli.main import run
from keypatch.errors import DataError, Interrupted
from keypatch.networks import NETWORKS
from keypatch.progress import Progress
from keypatch.recipes import RECIPES
from keypatch.training.checkpoints import checkpoint_path, load_checkpoint, load_run_weights
from keypatch.training.conditions import Conditions

ONE = Conditions(threads=1)
PAGE = (Path(__file__).parents[2] / "docs" / "methods" / "embedding.md").read_text(encoding="utf-8")


class ResNet(nn.Module):
    """Images (n, 3, 224, 224) to 1000 classes by 2048 features, as torchvision's resnet50, with two convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 16, stride=16)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer4 = nn.Conv2d(8, 2048, 1)
        self.fc: nn.Module = nn.Linear(2048, 1000)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc(self.layer4(self.bn1(self.conv1(x)).relu()).mean((2, 3)))
        return y


class Told(Progress):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, message: str) -> None:
        self.said.append(message)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the page defines, its commands run with one step and its Python with two, on 40 classes for each part.

    In place of torchvision there is a network of its shape; its weights lie in resnet50.safetensors.
    """
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        for k, coarse in enumerate(rng.integers(0, 256, (40, 4, 4, 3)).repeat(4, axis=1).repeat(4, axis=2)):
            place = folder / "images" / part / f"class{k:02d}"
            place.mkdir(parents=True)
            for view in range(4):
                noisy = coarse + rng.normal(0, 20, (16, 16, 3))
                Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(place / f"{view}.png")
    mine, code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (folder / "mine.py").write_text(mine)
    commands = [line.split()[1:] for line in PAGE.splitlines() if line.startswith("keypatch ") and "--plugin" in line]
    assert code.count("pairs=5_000") == 1 and [words[0] for words in commands] == ["train", "evaluate"]
    code = code.replace("pairs=5_000", "ONE, pairs=128")
    defined: dict[str, Any] = {"keypatch": keypatch, "root": folder, "ONE": ONE}
    torch.manual_seed(1)
    defined["trained"] = ResNet().state_dict()
    save_file(defined["trained"], folder / "resnet50.safetensors")
    models = ModuleType("torchvision.models")
    models.resnet50 = ResNet  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(parts, "_PLUGINS", [*parts._PLUGINS])  # which workers of later tests would run
        patch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
        patch.setitem(sys.modules, "torchvision.models", models)
        for words in commands:
            assert run(["64" if word == "5000" else word for word in words]) == 0
        exec(compile(code, "docs/methods/embedding.md", "exec"), defined)
        yield defined
    del NETWORKS["ResNet50"]
    for name in ("embedding_products", "embedding_products_gor"):
        del RECIPES[name]


def test_the_network_of_the_page_starts_from_the_file_and_is_trained_and_scored(page: dict[str, Any]) -> None:
    spec, network = load_run_weights(page["run"])
    assert spec == NETWORKS["ResNet50"]() and network.dim == 128
    first = load_checkpoint(checkpoint_path(page["run"], 0)).network
    assert all(
        torch.equal(first[f"layers.image.module.{name}"], tensor)
        for name, tensor in page["trained"].items()
        if not name.startswith("fc")
    )
    assert not torch.equal(network.state_dict()["layers.image.module.conv1.weight"], page["trained"]["conv1.weight"])
    assert (page["result"].settings["classes"], page["result"].settings["input"]) == (40, "256x256 colour")
    assert page["result"].scores["recall@1"] > 3 / 159  # chance


def test_the_dimension_is_a_field_that_a_sweep_can_vary(page: dict[str, Any]) -> None:
    recipe = keypatch.find_recipe("embedding_products_gor")
    settings = [
        "network.dim=7",
        "sampler.pairs=12",
        "network.preprocessing.size=24",
        "network.preprocessing.crop_from=32",
    ]
    trained = keypatch.train(recipe, page["root"] / "images" / "train", "runs/7", ONE, settings=settings, pairs=24)
    result = keypatch.evaluate(trained, "embedding", page["root"] / "images" / "test")
    assert keypatch.load(trained).dim == 7 and result.settings["input"] == "64x64 colour"
    assert {"recall@1", "recall@10", "recall@100", "nmi", "f1"} <= set(result.scores)


def test_tensors_without_a_place_are_told_and_wrong_files_are_refused(page: dict[str, Any]) -> None:
    told = Told()
    images, file = page["root"] / "images" / "train", page["root"] / "resnet50.safetensors"
    keypatch.train("embedding_products", images, "runs/told", ONE, pairs=64, start_from=file, progress=told)
    assert any("2 tensors are not used by the network: fc.bias, fc.weight" in note for note in told.said)
    with pytest.raises(DataError, match="does not have the tensor names of any known network"):
        keypatch.train("embedding_images", images, "runs/small", ONE, pairs=64, start_from=file)
    assert not Path("runs/small").exists()


def test_it_is_interrupted_and_resumed_to_the_same_weights(
    page: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keypatch.training.loop._LOG_SECONDS", 0.0)

    class StopAfterOne(Progress):
        def count(self, done: int, total: int, unit: str = "", detail: str = "") -> None:
            if done:  # after the first step
                signal.raise_signal(signal.SIGINT)

    images = page["root"] / "images" / "train"
    with pytest.raises(Interrupted):
        weights = page["root"] / "resnet50.safetensors"
        keypatch.train(
            "embedding_products", images, "runs/cut", ONE, pairs=128, start_from=weights, progress=StopAfterOne()
        )
    keypatch.train(resume="runs/cut")
    whole, cut = (load_run_weights(Path(run))[1].state_dict() for run in (page["run"], "runs/cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_the_names_of_the_page_are_there() -> None:
    for name in ("embedding_lifted", "embedding_lifted_gor", "embedding_images", "embedding_images_gor"):
        assert f"`{name}`" in PAGE and keypatch.find_recipe(name).network.dim == 128
