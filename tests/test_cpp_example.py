"""The C++ example, built where cmake, OpenCV and onnxruntime are at hand (ONNXRUNTIME_ROOT, examples/cpp/README.md)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from skimage import data

ROOT = Path(__file__).parents[1]
RUNTIME = os.environ.get("ONNXRUNTIME_ROOT", "")


def run(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600, cwd=ROOT)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("no cmake or no C++ compiler")
    if not (Path(RUNTIME) / "include" / "onnxruntime_cxx_api.h").exists():
        pytest.skip("ONNXRUNTIME_ROOT names no folder with include/ and lib/ of onnxruntime")
    folder = tmp_path_factory.mktemp("cpp")
    configured = run("cmake", "-S", ROOT / "examples" / "cpp", "-B", folder, f"-DONNXRUNTIME_ROOT={RUNTIME}")
    if "OpenCVConfig.cmake" in configured.stderr:
        pytest.skip("no OpenCV for C++")
    assert configured.returncode == 0, configured.stderr
    made = run("cmake", "--build", folder)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    return folder


@pytest.mark.slow
def test_the_cutter_gives_the_test_vector(built: Path) -> None:
    checked = run(built / "check_cutter", ROOT / "examples" / "test-vector")
    assert checked.returncode == 0 and checked.stdout.startswith("17 patches"), checked.stderr


@pytest.mark.slow
def test_wrong_input_is_a_sentence(built: Path, tmp_path: Path) -> None:
    told = run(built / "match", tmp_path / "no.onnx", "a.png", "b.png")
    assert told.returncode == 2 and "no.onnx" in told.stderr
    assert run(built / "match").stderr.startswith("match: usage: match MODEL.onnx FIRST SECOND")


@pytest.mark.slow
def test_descriptors_and_matches_are_those_of_python(built: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    keypatch = (sys.executable, "-m", "keypatch")
    if "export" not in run(*keypatch, "--help").stdout:
        pytest.skip("this version has no command export")
    left, right, _ = data.stereo_motorcycle()
    for name, photo in (("a.png", left), ("b.png", right)):
        Image.fromarray(photo[100:400, 200:600]).save(tmp_path / name)
    exported = run(*keypatch, "export", "hynet-notredame", "--format", "onnx", "--out", tmp_path / "hynet.onnx")
    assert exported.returncode == 0, exported.stderr
    photos = (tmp_path / "a.png", tmp_path / "b.png")
    matched = run(built / "match", tmp_path / "hynet.onnx", *photos, "--keypoints", "500", "--write", tmp_path)
    assert matched.returncode == 0 and len(matched.stdout.splitlines()) > 100, matched.stderr
    compared = run(sys.executable, "examples/cpp/compare.py", tmp_path, "hynet-notredame", *photos)
    assert compared.returncode == 0, compared.stdout + compared.stderr
