"""`keypatch inspect`; what it finds is tested with the function behind it."""

from collections.abc import Callable
from pathlib import Path


def test_a_sound_set_is_described_and_exits_with_0(keypatch: Callable, phototour: Path) -> None:
    shown = keypatch("inspect", phototour)
    assert shown.code == 0
    assert shown.out.startswith(f"{phototour}: patch set (PhotoTour layout)")
    assert "60, 4.0 patches each" in shown.out


def test_a_faulty_set_says_what_is_wrong_and_exits_with_2(keypatch: Callable, tmp_path: Path) -> None:
    (tmp_path / "info.txt").write_text("0 0\n")
    shown = keypatch("inspect", tmp_path)
    assert shown.code == 2
    assert "Problem: " in shown.out


def test_brackets_in_a_path_are_printed_as_they_are(keypatch: Callable, tmp_path: Path) -> None:
    folder = tmp_path / "set [bold]"
    folder.mkdir()
    assert "set [bold]" in keypatch("inspect", folder).out
