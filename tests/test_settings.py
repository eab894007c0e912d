"""From text and plain values to a dataclass and back; recipes and benchmarks have tests of their own beside them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from keypatch.errors import RecipeError
from keypatch.settings import (
    Setting,
    apply_settings,
    build,
    checked,
    choose_from,
    did_you_mean,
    list_settings,
    option,
    to_plain,
    to_toml,
)


@dataclass(frozen=True)
class Round:
    radius: float = 1.0


@dataclass(frozen=True)
class Square:
    side: float  # has no default
    depth: int = 2


class Shape: ...


TYPES: dict[Any, dict[str, Any]] = {Shape: {"round": Round, "square": Square}}


@dataclass(frozen=True)
class Inner:
    count: int | None = option(3, "How many; none is all.")
    mode: Literal["a", "b"] = option("a", "Which.")


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    shape: Shape = option(factory=Round, about="Its shape.")
    name: str | None = option(None, "A name")
    file: Path | None = option(None, "A file.")
    on: bool = option(True, "Whether.")
    sizes: tuple[int, ...] = option((1, 2), "Sizes.")
    root: str | Path | None = option(None, "A folder.")


def test_fields_are_listed_with_paths_defaults_and_meanings() -> None:
    assert list(list_settings(Outer(), TYPES)) == [
        Setting("inner.count", "3", "How many; none is all"),
        Setting("inner.mode", "a", "Which; one of a, b"),
        Setting("shape", "round", "Its shape; one of round, square"),
        Setting("name", "none", "A name"),
        Setting("file", "none", "A file"),
        Setting("on", "true", "Whether"),
        Setting("sizes", "[1, 2]", "Sizes"),
        Setting("root", "none", "A folder"),
    ]


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        (["inner.count=none", "inner.mode=b"], Outer(Inner(None, "b"))),
        (["shape=square", "shape.side=4"], Outer(shape=Square(4.0))),  # type: ignore[arg-type]
        (["shape.side=4", "shape=square"], Outer(shape=Square(4.0))),  # type: ignore[arg-type]
        (['shape={type="square", side=1, depth=5}'], Outer(shape=Square(1.0, 5))),  # type: ignore[arg-type]
        (["name=2020", "file=7", "on=false"], Outer(name="2020", file=Path("7"), on=False)),
        (["root=2020"], Outer(root="2020")),
        (["sizes=9"], Outer(sizes=(9,))),
        (["sizes=[007, 1]", "inner.count=007"], Outer(Inner(7), sizes=(7, 1))),
        (["shape.radius=.5"], Outer(shape=Round(0.5))),  # type: ignore[arg-type]
        (["shape=square", "shape.side=2."], Outer(shape=Square(2.0))),  # type: ignore[arg-type]
        (["sizes=[]", "name = a=b "], Outer(sizes=(), name="a=b")),
    ],
)
def test_settings_replace_fields_in_any_order(settings: list[str], value: Outer) -> None:
    assert apply_settings(Outer(), settings, TYPES) == value


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("shape=square", r"--set shape=square: Square needs side; add --set shape\.side=VALUE\."),
        ("shape=squre", 'there is no "squre". Did you mean "square"[?] Choose one of round, square.'),
        ("shape=3", "expected a table with type = one of round, square"),
        ("inner=3", "must be Inner, not 3"),
        ("inner.count=2.5", "must be an integer, not 2.5"),
        ("inner.mode=c", "must be one of a, b, not 'c'"),
        ("on=1", "must be true or false, not 1"),
        ("count=5", r'Outer has no field "count".*Did you mean "inner\.count"\?'),
        ("nmae=x", 'Outer has no field "nmae".*Did you mean "name"?'),
    ],
)
def test_a_wrong_setting_is_one_sentence(setting: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        apply_settings(Outer(), [setting], TYPES)


def test_a_value_goes_to_toml_and_back() -> None:
    import tomllib

    value = Outer(Inner(None, "b"), Square(2.0), name='"quoted"', sizes=(5,))  # type: ignore[arg-type]
    text = "\n".join(to_toml(to_plain(value, TYPES)))
    back = build(Outer, tomllib.loads(text), "file.toml", TYPES)
    assert back == Outer(Inner(3, "b"), value.shape, '"quoted"', sizes=(5,))  # None is left out: the default
    with pytest.raises(RecipeError, match=r"file\.toml: shape: Square needs side\.$"):
        build(Outer, {"shape": {"type": "square"}}, "file.toml", TYPES)


def test_a_number_must_be_finite_and_an_integer_is_a_number() -> None:
    assert checked(2, float, "x") == 2.0 and isinstance(checked(2, float, "x"), float)
    for wrong in (float("nan"), float("inf"), True, "2"):
        with pytest.raises(RecipeError, match="x must be a finite number"):
            checked(wrong, float, "x")


@pytest.mark.parametrize(
    ("name", "near"),
    [("hynt", "hynet-notredame"), ("HardNet", "hardnet"), ("sfit", "sift"), ("nothing", "")],
)
def test_the_nearest_name_is_found_by_its_first_part_and_in_capitals_too(name: str, near: str) -> None:
    known = ["sift", "hynet-notredame", "hardnet_star", "hardnet"]
    assert did_you_mean(name, known) == (f' Did you mean "{near}"?' if near else "")


def test_many_names_are_not_printed() -> None:
    names = [f"net{number}" for number in range(13)]
    assert choose_from("nt0", names[:2]).endswith('Did you mean "net0"? Choose one of net0, net1.')
    assert choose_from("net", names, "`keypatch list networks`").endswith("`keypatch list networks` shows all 13.")
