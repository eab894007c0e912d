"""The pages for people who come from elsewhere run as they stand, but for what needs hloc itself."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def run(page: str) -> dict[str, Any]:
    """What the page's Python blocks define, run top to bottom; a block marked `python hloc` is left out."""
    names: dict[str, Any] = {"__name__": page}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    return names


def test_from_opencv() -> None:
    names = run("from-opencv.md")
    moved = np.array([names["keypoints1"][m.trainIdx].pt for m in names["matches"]]) - [
        names["keypoints0"][m.queryIdx].pt for m in names["matches"]
    ]
    assert np.mean(np.abs(moved[:, 1]) < 1) > 0.6  # a rectified pair: points move along the rows
    assert len(names["described"]) == len(names["corners"]) > 100
    assert np.mean(np.abs(names["places"][:, 1] - names["places"][:, 3]) < 1) > 0.6


def test_from_kornia() -> None:
    pytest.importorskip("kornia")
    names = run("from-kornia.md")
    assert names["descriptors"].shape == (1, 200, 128)
    assert np.median(names["similar"]) > 0.97
    np.testing.assert_allclose(
        names["back"][0].numpy(), names["lafs"][0, names["filled"]].numpy(), rtol=1e-4, atol=1e-3
    )


def test_from_hloc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    run("from-hloc.md")
    assert capsys.readouterr().out.splitlines() == ["['db/a.png']", "(200, 2) (200, 128)", "(200,) (200,) 512 512"]
