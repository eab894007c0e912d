"""The scripts of the browser example, run by Node: its cutter gives the test vector, its detector finds blobs."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(script: str, **values: Any) -> Any:
    """What the module leaves in `answer`; it finds the values in `given`."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node")
    text = f"const given = {json.dumps(values)};\nlet answer;\n{script}\nconsole.log(JSON.stringify(answer));"
    done = subprocess.run(
        [node, "--input-type=module", "-"],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=EXAMPLES / "web",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_cutter_gives_the_test_vector() -> None:
    cut = run(
        """
        import { readFileSync } from "node:fs";
        import { PatchCutter } from "./patches.js";
        const read = (name) => readFileSync(`../test-vector/${name}`);
        const pgm = (bytes) => {
          const [, width, height] = /^P5\\s(\\d+) (\\d+)\\s(255)\\s/.exec(bytes.subarray(0, 20).toString("latin1"));
          return { width: +width, height: +height, pixels: bytes.subarray(bytes.length - width * height) };
        };
        const [image, expected] = [pgm(read("image.pgm")), pgm(read("patches.pgm")).pixels];
        const lines = read("keypoints.csv").toString().trim().split("\\n").slice(1);
        const rows = lines.map((line) => line.split(",").map(Number));
        const cutter = new PatchCutter(image);
        const out = new Float32Array(rows.length * 1024);
        rows.forEach(([x, y, sigma, angle, ...shape], i) => {
          cutter.cut({ x, y, sigma, angle, shape }, 24, 32, out, i * 1024);
        });
        const differences = out.map((value, i) => Math.abs(value - expected[i]));
        answer = [expected.length, Math.max(...differences), differences.filter((value) => value > 0).length];
        """
    )
    assert cut[0] == 17 * 1024 and cut[1] <= 1 and cut[2] < 20


@pytest.mark.parametrize("sigma", [3.0, 7.0])
def test_the_detector_finds_a_blob_at_its_place_and_scale(sigma: float) -> None:
    x, y = 70.3, 51.8
    rows, columns = np.mgrid[:110, :140]
    blob = 200 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * sigma**2)) + 20
    found = run(
        'import { detect } from "./detect.js"; answer = detect({ width: 140, height: 110, pixels: given.pixels }, 5);',
        pixels=np.rint(blob).astype(int).ravel().tolist(),
    )
    assert abs(found[0]["x"] - x) < 0.3 and abs(found[0]["y"] - y) < 0.3 and found[0]["angle"] == 0
    # a difference of Gaussians, which lie a third of an octave apart, is largest at 2^(-1/6) of the blob's sigma
    assert found[0]["sigma"] == pytest.approx(0.89 * sigma, rel=0.1)
