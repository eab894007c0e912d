import os
import subprocess
import sys

import pytest
import torch

from keypatch.errors import KeypatchError
from keypatch.networks import choose_device, has_fast_bfloat16
from keypatch.networks.devices import cpu_capability


def test_auto_takes_the_best_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device("auto") == torch.device("cpu")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("auto") == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto") == torch.device("cuda")


def test_devices_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(KeypatchError, match="has 2"):
        choose_device("cuda:2")


@pytest.mark.parametrize(
    ("name", "message"),
    [("tpu", "Choose auto, cpu, cuda or mps"), ("cuda", "has no cuda device"), ("cuda:x", "has no cuda device")],
)
def test_wrong_devices_are_told_in_a_sentence(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(KeypatchError, match=message):
        choose_device(name)


def test_a_malformed_index_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(KeypatchError, match="is not a device"):
        choose_device("cuda:x")


def test_bfloat16_is_not_taken_where_torch_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    assert not has_fast_bfloat16(torch.device("cpu"))
    assert not has_fast_bfloat16(torch.device("mps"))


@pytest.mark.parametrize(
    ("found", "asked", "expected"),
    [
        ("AVX512", None, "AVX512"),
        ("AVX512", "avx2", "AVX2"),
        ("AVX512", "default", "DEFAULT"),
        ("AVX2", "avx512", "AVX2"),  # what is not there cannot be asked for
        ("NEON", None, "NEON"),
        ("NEON", "avx2", "NEON"),
        ("NEON", "default", "DEFAULT"),
    ],
)
def test_a_lesser_processor_can_be_asked_for(
    found: str, asked: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: found)
    monkeypatch.delenv("KEYPATCH_CPU", raising=False)
    if asked:
        monkeypatch.setenv("KEYPATCH_CPU", asked)
    assert cpu_capability() == expected


def test_an_unknown_processor_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYPATCH_CPU", "sse9")
    with pytest.raises(KeypatchError, match="KEYPATCH_CPU=sse9 is not a kind of processor"):
        cpu_capability()


def test_bfloat16_is_not_taken_on_a_lesser_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYPATCH_CPU", "avx2")
    assert not has_fast_bfloat16(torch.device("cpu"))


@pytest.mark.parametrize("limit", [{"ATEN_CPU_CAPABILITY": "avx2"}, {"ONEDNN_MAX_CPU_ISA": "AVX2"}], ids=str)
def test_bfloat16_is_not_taken_where_torch_was_told_not_to(limit: dict[str, str]) -> None:
    code = "import torch, keypatch.networks as n; print(n.has_fast_bfloat16(torch.device('cpu')))"
    run = subprocess.run([sys.executable, "-c", code], env=os.environ | limit, capture_output=True, check=True)
    assert run.stdout.split() == [b"False"]
