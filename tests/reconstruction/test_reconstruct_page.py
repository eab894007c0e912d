"""docs/reconstruct.md runs as it stands, top to bottom."""

import re
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from skimage import data

pycolmap = pytest.importorskip("pycolmap")

PAGE = (Path(__file__).parents[2] / "docs" / "reconstruct.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    (tmp_path / "models").mkdir()
    for name, photo in zip(("a.png", "b.png"), data.stereo_motorcycle(), strict=False):
        Image.fromarray(cv2.resize(photo, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)).save(f"photos/{name}")
    numpy_route, mapping, python = BLOCKS
    defined: dict = {}
    exec(compile(numpy_route, "docs/reconstruct.md", "exec"), defined)
    with pycolmap.Database.open("database.db") as database:
        first = database.read_image_with_name("a.png")
        assert np.allclose(database.read_keypoints(first.image_id), defined["keypoints"]["a.png"] + 0.5, atol=1e-4)
        assert database.num_matches() == len(defined["matches"]["a.png", "b.png"]) > 100
        assert database.num_cameras() == 1
    subprocess.run([sys.executable, "-c", mapping], check=True)  # may end a process, so not this one
    with pycolmap.Database.open("database.db") as database:
        assert database.num_verified_image_pairs() == 1
    exec(compile(python, "docs/reconstruct.md", "exec"), defined)
    assert defined["made"].two_view is not None
    assert capsys.readouterr().out == "None\n"  # the statistics of two photos


def test_the_options_of_the_page_are_those_of_the_command() -> None:
    from typer.main import get_command

    from keypatch.cli.reconstruct import app

    known = {option for parameter in get_command(app).params for option in parameter.opts}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) <= known
