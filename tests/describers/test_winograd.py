import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from keypatch.describers import winograd as module
from keypatch.describers.winograd import load_library, winograd


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


def test_channels_that_do_not_fill_the_vectors_are_left_to_others() -> None:
    needs_library()
    assert winograd(*weights(24, 64), relu=True) is None
    assert winograd(*weights(32, 24), relu=True) is None


def test_it_is_built_once(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_library()
    assert [path.suffix for path in (fresh / "native").iterdir()] == [".so"]
    load_library.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert load_library() is not None


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
    wrong = fresh / "winograd.cpp"
    wrong.write_text(module._SOURCE.read_text().replace("5.f * a2", "4.f * a2"))
    monkeypatch.setattr(module, "_SOURCE", wrong)
    assert load_library() is None


@pytest.mark.parametrize("capability", ["DEFAULT", "AVX2"])
def test_each_kind_of_processor_has_its_own_library(
    capability: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_library()  # a processor with AVX-512 also runs what is made for AVX2
    load_library.cache_clear()
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    library = load_library()
    assert (library is None) == (capability == "DEFAULT")
    if library is not None:
        assert library.lanes() == 8
