"""docs/methods/embedding.md: its network of one's own is trained, interrupted, resumed and scored as the page says."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import keypatch
from keypatch.errors import Interrupted
from keypatch.networks import NETWORKS
from keypatch.progress import Progress
from keypatch.training.checkpoints import load_run_weights
from keypatch.training.conditions import Conditions

ONE = Conditions(threads=1)
PAGE = (Path(__file__).parents[2] / "docs" / "methods" / "embedding.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the page defines, run with four steps in a folder with images/train and images/test of 40 classes each."""
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        for k, coarse in enumerate(rng.integers(0, 256, (40, 4, 4)).repeat(4, axis=1).repeat(4, axis=2)):
            place = folder / "images" / part / f"class{k:02d}"
            place.mkdir(parents=True)
            for view in range(4):
                noisy = coarse + rng.normal(0, 20, (16, 16))
                Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(place / f"{view}.png")
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    assert code.count("pairs=5_000") == code.count("pairs=2000") == 1
    code = code.replace("pairs=5_000", "ONE, pairs=256").replace("pairs=2000", "pairs=128")
    defined: dict[str, Any] = {"__name__": "embedding_page", "root": folder, "ONE": ONE}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(code, "docs/methods/embedding.md", "exec"), defined)
        yield defined
    del NETWORKS["Mine"]


def test_the_network_of_the_page_is_trained_and_scored(page: dict[str, Any]) -> None:
    spec, network = load_run_weights(page["run"])
    assert spec == page["Mine"]() and network.dim == 64
    assert page["result"].settings["classes"] == 40
    assert page["result"].scores["recall@1"] > 3 / 159  # chance


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
        keypatch.train(page["recipe"], images, "runs/cut", ONE, pairs=256, progress=StopAfterOne())
    keypatch.train(resume="runs/cut")
    whole, cut = (load_run_weights(Path(run))[1].state_dict() for run in (page["run"], "runs/cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_the_names_of_the_page_are_there() -> None:
    for name in ("embedding_lifted", "embedding_lifted_gor"):
        assert f"`{name}`" in PAGE and keypatch.find_recipe(name).network.dim == 128
