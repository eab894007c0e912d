"""The examples in the docstrings of all public names, run as they stand."""

import doctest
import inspect
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

import keypatch
from keypatch.benchmarks.result import Replicates, Result
from keypatch.provenance import provenance

# Examples that are only compiled, by the name they belong to, and why.
NOT_RUN = {
    "Adaptation": "trains for minutes; tests/commands runs it",
    "adapt": "trains for minutes; tests/commands runs it",
    "BuiltSet": "two photos make no model; tests/building runs it",
    "build": "two photos make no model; tests/building runs it",
    "Exported": "compares thousands of patches; tests/cli runs it",
    "export": "compares thousands of patches; tests/cli runs it",
    "evaluate": "cuts and describes 8,000 pairs; examples/first-steps.ipynb runs it",
    "open_patches": "needs a folder of PhotoTour",
    "quickstart": "trains for minutes; tests/commands runs it",
    "reconstruct": "two photos make no model; tests/reconstruction runs it",
    "study_compare": "needs a study; tests/studies runs it",
    "study_paper": "trains; tests/studies runs it",
    "study_sweep": "trains; tests/studies runs it",
    "study_gradients": "needs runs; tests/studies runs it",
    "study_methods": "trains; tests/studies runs it",
    "study_ubc": "needs three runs; tests/studies runs it",
    "train": "trains for minutes; tests/training runs it",
}


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the examples speak of: two photos, also in a folder, and results of two descriptors."""
    folder = tmp_path_factory.mktemp("examples")
    left, right, _ = data.stereo_motorcycle()
    (folder / "photos").mkdir()
    for name, photo in (("a.jpg", left), ("b.jpg", right)):
        Image.fromarray(photo[100:400, 200:600]).save(folder / name, quality=95)
        shutil.copy(folder / name, folder / "photos" / name)
    draws = np.random.default_rng(0).normal(0, 0.01, 1000)
    for name, rank1 in (("rootsift", 0.85), ("sift", 0.80)):
        replicates = {"rank1": Replicates(rank1 + draws, "points", 500)}
        origin = provenance(data="0" * 64)
        Result("ubc", name, {"data": "mine"}, {"rank1": rank1}, {}, origin, replicates).save(folder / f"{name}.json")
    return folder


@pytest.mark.usefixtures("own_parts")
@pytest.mark.parametrize("name", keypatch.__all__)
def test_the_example_of_a_public_name_does_what_it_says(
    name: str, material: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(material, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(getattr(keypatch, name)) or ""
    found = doctest.DocTestParser().get_doctest(text, {"kp": keypatch}, name, None, None)
    assert found.examples, f"{name} has no example"
    skipped = [example for example in found.examples if doctest.SKIP in example.options]
    assert bool(skipped) == (name in NOT_RUN)
    for example in skipped:
        compile(example.source, name, "single")
    told = list[str]()
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL).run(found, out=told.append)
    assert not told, "".join(told)
