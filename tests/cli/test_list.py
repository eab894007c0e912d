"""`keypatch list`."""

from collections.abc import Callable

import pytest

from keypatch.studies.listing import KINDS


def test_all_kinds_are_listed(keypatch: Callable) -> None:
    shown = keypatch("list")
    assert shown.code == 0
    assert all(kind in shown.out for kind in KINDS)
    assert all(name in shown.out for name in ("rootsift", "hynet", "L2Net", "HybridTriplet", "hpatches"))


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind_is_listed_alone(keypatch: Callable, kind: str) -> None:
    shown = keypatch("list", kind)
    assert shown.out.splitlines()[0].strip() == kind
    assert not any(other in shown.out.splitlines() for other in KINDS if other != kind)


def test_an_unknown_kind_is_told_the_kinds(keypatch: Callable) -> None:
    shown = keypatch("list", "recipies")
    assert shown.code == 2
    assert all(kind in shown.err for kind in KINDS)
