import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from keypatch.describers import kernels as module
from keypatch.describers.kernels import filter_responses, load_library, winograd
from keypatch.networks.frn import FilterResponse


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder and no library loaded yet; afterwards the usual one is looked for again."""
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path))
    load_library.cache_clear()
    yield tmp_path
    load_library.cache_clear()


def needs_library() -> None:
    if load_library() is None:
        pytest.skip("no compiler, or a processor without AVX2")


def weights(inside: int, outside: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(inside)
    weight = torch.randn((outside, inside, 3, 3), generator=generator) * (2 / (9 * inside)) ** 0.5
    return weight, torch.randn(outside, generator=generator)


@pytest.mark.parametrize(("inside", "outside", "side"), [(32, 32, 32), (64, 64, 16), (128, 128, 8), (32, 96, 4)])
@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_it_is_torch_s_convolution(inside: int, outside: int, side: int, relu: bool, count: int) -> None:
    needs_library()
    weight, bias = weights(inside, outside)
    x = torch.randn((count, inside, side, side), generator=torch.Generator().manual_seed(1))
    convolution = winograd(weight, bias, relu)
    assert convolution is not None
    y = convolution(x)
    expected = F.conv2d(x.double(), weight.double(), bias.double(), padding=1)
    expected = expected.relu() if relu else expected
    assert y.shape == expected.shape and y.is_contiguous(memory_format=torch.channels_last)
    # entries of size 1 to 8; the transforms multiply by up to 8 and cancel: about ten times the error of a direct one
    torch.testing.assert_close(y.double(), expected, atol=3e-4, rtol=0)


@pytest.mark.parametrize("given", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("wanted", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("channels", "side", "count"), [(32, 32, 3), (128, 8, 2), (64, 3, 5), (32, 1, 1), (32, 4, 0)])
def test_responses_are_those_of_the_layer(
    given: torch.dtype, wanted: torch.dtype, channels: int, side: int, count: int
) -> None:
    needs_library()
    generator = torch.Generator().manual_seed(side)
    layer = FilterResponse(channels).requires_grad_(False)
    for parameter in layer.parameters():
        parameter += torch.randn(parameter.shape, generator=generator) / 3
    x = (3 * torch.randn((count, channels, side, side), generator=generator)).to(given)
    expected = layer(x.float()).to(wanted).float()
    normalize = filter_responses(layer, wanted)
    assert normalize is not None
    y = normalize(x.clone())
    assert y.dtype == wanted and y.shape == x.shape
    torch.testing.assert_close(y.float(), expected, atol=1e-5, rtol=0 if wanted == torch.float32 else 2**-7)  # one step


def test_channels_that_do_not_fill_the_vectors_are_left_to_others() -> None:
    needs_library()
    library = load_library()
    assert library is not None
    lanes = library.lanes()  # floats of a vector: 16 or 8
    assert winograd(*weights(2 * lanes, 2 * lanes), relu=True) is not None
    assert winograd(*weights(3 * lanes // 2, 4 * lanes), relu=True) is None
    assert winograd(*weights(2 * lanes, 3 * lanes), relu=True) is None


def test_it_is_built_once(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_library()
    (folder,) = fresh.iterdir()
    assert sorted(path.suffix for path in folder.iterdir()) == [".lock", ".so"]
    load_library.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert load_library() is not None


PLANTED = '#include <cstdio>\n__attribute__((constructor)) void run() {{ fclose(fopen("{marker}", "w")); }}\n'


@pytest.fixture
def planted(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A library under the name of ours that leaves a marker when it is loaded, and the marker."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    with monkeypatch.context() as patch:  # ours itself is not loaded: the system would not load its name again
        asked = list[str]()
        patch.setattr(module.ctypes, "CDLL", lambda name: asked.append(name) or module.ctypes.PyDLL("there is none"))
        load_library()
    if compiler is None or not asked:
        pytest.skip("no compiler, or a processor without AVX2")
    load_library.cache_clear()
    library, marker, source = Path(asked[0]), fresh / "ran", fresh / "planted.cpp"
    source.write_text(PLANTED.format(marker=marker))
    library.unlink()
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return library, marker


def test_code_of_this_user_alone_is_run(planted: tuple[Path, Path]) -> None:
    """As the planted one would be in the tests below."""
    library, marker = planted
    library.chmod(0o700)
    with pytest.raises(AttributeError, match="convolve"):
        load_library()
    assert marker.exists()


def test_code_that_others_may_write_is_built_again_and_never_run(planted: tuple[Path, Path]) -> None:
    library, marker = planted
    library.chmod(0o777)
    assert load_library() is not None
    assert not marker.exists() and library.stat().st_mode & 0o777 == 0o700


def test_code_behind_a_link_is_built_again_and_never_run(planted: tuple[Path, Path], tmp_path: Path) -> None:
    library, marker = planted
    library.rename(tmp_path / "elsewhere.so").chmod(0o700)
    library.symlink_to(tmp_path / "elsewhere.so")
    assert load_library() is not None
    assert not marker.exists() and not library.is_symlink()


def test_a_folder_open_to_others_gives_no_code(planted: tuple[Path, Path]) -> None:
    library, marker = planted
    library.parent.chmod(0o777)
    with pytest.warns(UserWarning, match="is open to other users, so no code is loaded from it"):
        assert load_library() is None
    assert not marker.exists()


def test_a_folder_of_another_user_gives_no_code(planted: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    library, marker = planted
    me = os.geteuid() + 1
    library.parent.rename(library.parent.with_name(f"native-{me}"))  # as if it had been waiting for us
    monkeypatch.setattr(os, "geteuid", lambda: me)
    with pytest.warns(UserWarning, match=f"native-{me} is open to other users"):
        assert load_library() is None
    assert not marker.exists()


def test_without_a_compiler_there_is_none(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert winograd(*weights(32, 32), relu=True) is None


def test_a_compiler_that_fails_leaves_nothing_behind(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/false")
    assert load_library() is None
    assert not list(fresh.rglob("*.so"))


def test_a_cache_that_cannot_be_written_is_no_error(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fresh / "file").touch()
    monkeypatch.setenv("KEYPATCH_CACHE", str(fresh / "file"))
    assert load_library() is None


def test_a_library_with_wrong_numbers_is_not_used(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_library()
    load_library.cache_clear()
    wrong = fresh / "kernels.cpp"
    wrong.write_text(module._SOURCE.read_text().replace("5.f * a2", "4.f * a2"))
    monkeypatch.setattr(module, "_SOURCE", wrong)
    assert load_library() is None


@pytest.mark.parametrize("capability", ["DEFAULT", "AVX2"])
def test_each_kind_of_processor_has_its_own_library(
    capability: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_library()  # a processor with AVX-512 also runs what is made for AVX2
    load_library.cache_clear()
    monkeypatch.setenv("KEYPATCH_CPU", capability.lower())
    library = load_library()
    assert (library is None) == (capability == "DEFAULT")
    if library is not None:
        assert library.lanes() == 8
