"""Options as values: frozen dataclasses from plain values, TOML or `--set path=value`, checked by their annotations.

`types` says which types a field may name, by its annotation: `{Detector: {"dog": Dog, "orb": Orb}}`. A part is then
written as {type = "orb", fast_threshold = 9}, or "orb" for its defaults. No name in a file says what to import.
"""

import dataclasses
import difflib
import json
import math
import operator
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from keypatch.errors import RecipeError
from keypatch.parts import find_part

MANY = 12  # names: more are not printed in an error

T = TypeVar("T")
Types = Mapping[Any, Mapping[str, Any]]

_WORDS = {int: "an integer", float: "a finite number", str: "a string", bool: "true or false", Path: "a path"}


_LIMITS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "least": ("{:,} or more", operator.ge),
    "above": ("above {:,}", operator.gt),
    "most": ("at most {:,}", operator.le),
    "below": ("below {:,}", operator.lt),
}


def option(
    default: Any = MISSING, about: str = "", *, factory: Callable[[], Any] | None = None, **limits: float
) -> Any:
    """A dataclass field with a help text: `ratio: float = option(0.9, "Ratio test; 1 disables it.", above=0)`.

    `limits` are least, above, most and below, of a number or of each in a tuple: `CheckedFields` holds them.
    """
    metadata = {"about": about, "limits": limits}
    if factory is not None:
        return dataclasses.field(default_factory=factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def other_default(kind: Any, name: str, default: Any) -> Any:
    """A field of a subclass: as the parent's, with its help text and limits, but for the default."""
    return dataclasses.field(default=default, metadata=kind.__dataclass_fields__[name].metadata)


def brief(value: Any) -> str:
    """The `repr` of an options value: only the fields that differ from their defaults."""
    changed = list[str]()
    for field in dataclasses.fields(value):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if (given := getattr(value, field.name)) != default:
            changed.append(f"{field.name}={given!r}")
    return f"{type(value).__name__}({', '.join(changed)})"


def about_field(field: "dataclasses.Field[Any]") -> str:
    return str(field.metadata.get("about", ""))


@dataclass(frozen=True)
class Setting:
    """One line of a list of settings."""

    path: str
    default: str
    about: str


def list_settings(part: Any, types: Types | None = None, prefix: str = "") -> Iterator[Setting]:
    """Every field of a dataclass value; the fields of its parts by their paths."""
    types, hints = types or {}, get_type_hints(type(part))
    for field in dataclasses.fields(part):
        path, value, hint = f"{prefix}{field.name}", getattr(part, field.name), without_none(hints[field.name])
        if dataclasses.is_dataclass(value) and hint not in types:
            yield from list_settings(value, types, f"{path}.")
        else:
            known = choices(hint, types)
            about = [about_field(field).removesuffix("."), f"one of {', '.join(known)}" if known else ""]
            yield Setting(path, shown(value, types), "; ".join(filter(None, about)))


def choices(hint: Any, types: Types | None = None) -> list[str]:
    """The words an annotation allows: a Literal's, or the names of types."""
    if hint in (types or {}):
        return list((types or {})[hint])
    return [str(word) for each in (hint, *get_args(hint)) if get_origin(each) is Literal for word in get_args(each)]


def shown(value: Any, types: Types | None = None) -> str:
    """A value as `--set` and the command line take it."""
    if isinstance(value, tuple):
        return f"[{', '.join(shown(item, types) for item in value)}]"
    if isinstance(value, bool | NoneType):
        return str(value).lower()
    return type_name(value, types or {}) or str(value)


def differing(value: Any, other: Any, types: Types, path: str = "") -> Iterator[str]:
    """The settings of `value` that `other` has otherwise: `loss.alpha=7`."""
    parts = value if isinstance(value, tuple) and all(map(dataclasses.is_dataclass, value)) else ()
    if value == other:
        return
    if parts and isinstance(other, tuple) and list(map(type, parts)) == list(map(type, other)):
        for part, before in zip(parts, other, strict=True):
            for setting in differing(part, before, types):
                alone = sum(setting.split("=")[0].split(".")[0] in field_names(each) for each in parts) == 1
                yield f"{path}.{setting}" if alone else f"{path}.{type(part).__name__}.{setting}"
    elif dataclasses.is_dataclass(value) and type(value) is type(other):
        for name in field_names(value):
            yield from differing(getattr(value, name), getattr(other, name), types, f"{path}.{name}".lstrip("."))
    else:
        yield f"{path}={f'{value:g}' if isinstance(value, float) else shown(value, types)}"


def type_name(value: Any, types: Types) -> str | None:
    """The name of a part's type in the tables, if it is there."""
    return next((name for table in types.values() for name, kind in table.items() if type(value) is kind), None)


def without_none(hint: Any) -> Any:
    """`X | None` as `X`, `Literal["a"] | Literal["b"]` as one Literal; others as they are."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    options = tuple(each for each in get_args(hint) if each is not NoneType)
    if all(get_origin(each) is Literal for each in options):
        return Literal[tuple(word for each in options for word in get_args(each))]
    return options[0] if len(options) == 1 else hint


@dataclass(frozen=True)
class Change:
    """One field to be replaced: by its path, from text."""

    path: tuple[str, ...]
    text: str
    where: str  # as the user wrote it

    @staticmethod
    def of(setting: str, fields: Iterable[str]) -> "Change":
        path, equals, text = setting.partition("=")
        if not equals or not path:
            begins = f"where the path begins with one of {', '.join(fields)}"
            raise RecipeError(f"--set {setting}: expected path=value, {begins}.")
        return Change(tuple(path.strip().split(".")), text.strip(), f"--set {setting}")

    def below(self) -> "Change":
        return dataclasses.replace(self, path=self.path[1:])


def apply_settings(whole: T, settings: Iterable[str], types: Types | None = None) -> T:
    """The frozen dataclass with every "path=value" applied.

    A path goes through the fields: `network.dropout`. Among several parts in a tuple, the one that has the field is
    meant (`loss.margin`); where more than one has it, name it by type or place (`loss.HybridTriplet.margin`,
    `loss.0.margin`). A part whose type can vary is exchanged by name (`optimizer=AdamW`), and settings of its fields
    (`optimizer.lr=0.1`) then belong to the new one.
    """
    return apply_changes(whole, [Change.of(setting, field_names(whole)) for setting in settings], types)


def apply_changes(whole: T, changes: Sequence[Change], types: Types | None = None) -> T:
    changed: T = _change(whole, changes, types or {})
    return changed


def _change(part: Any, changes: Sequence[Change], types: Types) -> Any:
    if isinstance(part, tuple) and all(map(dataclasses.is_dataclass, part)):
        for change in changes:
            part = _change_one_of(part, change, types)
        return part
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        raise RecipeError(f"{changes[0].where}: {shown(part)} has no fields.")
    hints, new = get_type_hints(type(part)), {}
    for name in dict.fromkeys(change.path[0] for change in changes):
        mine = [change for change in changes if change.path[0] == name]
        if name not in field_names(part):
            below = [each for each in field_names(part) if name in _names_in(getattr(part, each))]
            hint = f' Did you mean "{below[0]}.{name}"?' if below else ""
            raise RecipeError(f"{mine[0].where}: {no_field(type(part), name, hint)}")
        new[name] = _new_value(getattr(part, name), hints[name], mine, types)
    return _made(changes[-1].where, dataclasses.replace, part, **new) if new else part


def _made(where: str, make: Callable[..., T], *part: Any, **values: Any) -> T:
    """What `make` gives; where the values do not go together, the error says where they stand."""
    try:
        return make(*part, **values)
    except RecipeError as error:
        raise RecipeError(f"{where}: {error}") from None


def _new_value(old: Any, hint: Any, changes: Sequence[Change], types: Types) -> Any:
    """A field's value, given as a whole or changed below."""
    deeper = [change.below() for change in changes if len(change.path) > 1]
    whole = [change for change in changes if len(change.path) == 1]
    if not whole:
        return _change(old, deeper, types)
    given = _read(whole[-1].text, hint)
    if without_none(hint) in types and isinstance(given, str | dict) and given != "none":
        # Its fields are read with it: some have no default.
        given = {"type": given} if isinstance(given, str) else given
        given |= {change.path[0]: _read(change.text) for change in deeper if len(change.path) == 1}
        deeper = [change for change in deeper if len(change.path) > 1]
    new = checked(given, hint, whole[-1].where, types)
    return _change(new, deeper, types) if deeper else new


def _change_one_of(parts: tuple[Any, ...], change: Change, types: Types) -> tuple[Any, ...]:
    name = change.path[0]
    meant = [i for i, part in enumerate(parts) if name in (str(i), type(part).__name__)]
    inner = change.below() if meant else change
    meant = meant or [i for i, part in enumerate(parts) if len(parts) == 1 or name in field_names(part)]
    if len(meant) != 1 or not inner.path:
        known = "; ".join(f"{type(part).__name__} ({', '.join(field_names(part))})" for part in parts)
        which = "several parts have" if len(meant) > 1 else "no part has"
        close = did_you_mean(name, [field for part in parts for field in field_names(part)])
        raise RecipeError(f'{change.where}: {which} "{name}": {known}.{close}')
    new = list(parts)
    new[meant[0]] = _change(parts[meant[0]], [inner], types)
    return tuple(new)


def _read(text: str, hint: Any = None) -> Any:
    """The value as TOML would read it; what TOML cannot read is a word, and so is what must be one."""
    plain = without_none(hint)
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except RecursionError:
        raise RecipeError(f"--set: the value {text[:20]}... is nested too deeply to be read.") from None
    except ValueError:  # no TOML, or a number of thousands of digits
        if get_origin(plain) is tuple and text.startswith("["):
            return [_read(item.strip(), get_args(plain)[0]) for item in text.strip("[]").split(",")]
        value = _number_or_word(text)
    kinds = set(get_args(plain)) - {NoneType} if get_origin(plain) in (Union, UnionType) else {plain}
    return text if not isinstance(value, str) and kinds <= {str, Path} else value


def _number_or_word(text: str) -> int | float | str:
    """.5, 2. and 007 are numbers to everyone but TOML."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


class CheckedFields:
    """A dataclass that derives from this checks its fields whenever it is made.

    RecipeError if a field of a Literal holds another word, or a number lies outside the limits of its `option`; or if a
    part has the type of a parent, whose other defaults nobody asked for.
    """

    def __post_init__(self: Any) -> None:
        hints = get_type_hints(type(self))
        for field in dataclasses.fields(self):
            given, hint = getattr(self, field.name), hints[field.name]
            if dataclasses.is_dataclass(hint) and isinstance(hint, type) and not isinstance(given, hint):
                instead = repr(given).replace(type(given).__name__, hint.__name__, 1)
                raise RecipeError(f"{field.name} must be {hint.__name__}, which has other defaults. Use {instead}.")
            if choices(hint):
                checked(given, hint, field.name)
            for kind, limit in field.metadata.get("limits", {}).items():
                words, holds = _LIMITS[kind]
                numbers = given if isinstance(given, tuple) else (given,)
                if not all(number is None or (holds(number, limit) and number < math.inf) for number in numbers):
                    must = "finite" if math.inf in numbers else words.format(limit)
                    raise RecipeError(f"{field.name} is {shown(given)}; it must be {must}.")


def build(kind: Any, values: Mapping[str, Any], where: str, types: Types | None = None) -> Any:
    """A dataclass of type `kind` from plain values, each checked against its annotation."""
    hints = get_type_hints(kind)
    for name in values:
        if name not in field_names(kind):
            raise RecipeError(f"{where}: {no_field(kind, name)}")
    missing = [field.name for field in dataclasses.fields(kind) if _is_required(field) and field.name not in values]
    if missing:
        path = where.removeprefix("--set ").removeprefix("--").partition("=")[0]
        add = f"; add --set {path}.{missing[0]}=VALUE" if where.startswith("--") else ""
        raise RecipeError(f"{where}: {kind.__name__} needs {', '.join(missing)}{add}.")
    given = {name: checked(value, hints[name], f"{where}: {name}", types) for name, value in values.items()}
    return _made(where, kind, **given)


def checked(value: Any, hint: Any, where: str, types: Types | None = None) -> Any:
    """`value` as the annotation `hint` wants it, or RecipeError."""
    types, plain = types or {}, without_none(hint)
    origin, options = get_origin(plain), get_args(plain)
    if plain is not hint and NoneType in get_args(hint) and value in (None, "none"):
        return None
    if plain in types:
        return _named(types[plain], value, where, types)
    if origin is Literal:
        if value in options:
            return value
        close = did_you_mean(str(value), map(str, options))
        raise RecipeError(f"{where} must be one of {', '.join(map(str, options))}, not {value!r}.{close}")
    if origin in (Union, UnionType):
        for each in options:
            try:
                return checked(value, each, where, types)
            except RecipeError:
                continue
    elif origin is tuple:
        items = value if isinstance(value, list | tuple) else [value]
        return tuple(checked(item, options[0], where, types) for item in items)
    elif dataclasses.is_dataclass(plain) and isinstance(value, Mapping):
        return build(plain, value, where, types)
    elif plain is float and isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):
            return float(value)
    elif plain is Path and isinstance(value, str):
        return Path(value).expanduser()
    elif isinstance(plain, type) and isinstance(value, plain) and (plain is bool or not isinstance(value, bool)):
        return value
    wanted = _WORDS.get(plain) or (plain.__name__ if isinstance(plain, type) else str(plain))
    raise RecipeError(f"{where} must be {wanted}, not {value!r}.")


def _named(table: Mapping[str, Any], value: Any, where: str, types: Types) -> Any:
    """A part whose type is named: {"type": "Adam", "lr": 0.01}, or "Adam" alone for its defaults."""
    given = {"type": value} if isinstance(value, str) else dict(value) if isinstance(value, Mapping) else {}
    name = given.pop("type", None)
    if not isinstance(name, str):
        raise RecipeError(f"{where}: expected a table with type = one of {', '.join(table)}.")
    kind = find_part(table, name)
    if kind is not None:
        return build(kind, given, where, types)
    if Unregistered in types:
        return Unregistered(name, given)
    own = "" if did_you_mean(name, table) else f" {_REGISTER}"
    raise RecipeError(f'{where}: there is no "{name}".{choose_from(name, table)}{own}')


_REGISTER = "A part of your own must be registered: --plugin FILE, or import the module that does it (docs/extend.md)."


@dataclass(frozen=True, repr=False)
class Unregistered:
    """A part whose type nobody has registered, read where `types` has this class as a key too.

    It prints, compares and is written as the part would be, and cannot be used.
    """

    name: str
    values: Mapping[str, Any]

    def __getattr__(self, field: str) -> Any:
        with suppress(KeyError):
            return self.__dict__.get("values", {})[field]
        raise AttributeError(field)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{field}={value!r}' for field, value in self.values.items())})"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence to append, or nothing. The first part of a name may stand for it: "hynt" for "hynet-notredame"."""
    whole = {each.lower(): each for each in known}
    parts = {re.split("[-_]", each)[0]: each for each in whole.values()}
    for meant in (whole, parts):
        if near := difflib.get_close_matches(name.lower(), meant, 1):
            return f' Did you mean "{meant[near[0]]}"?'
    return ""


def choose_from(name: str, known: Collection[str], where: str = "`keypatch list`") -> str:
    """Sentences to append: what may have been meant, and all names; of many, where they are listed."""
    listed = f"Choose one of {', '.join(known)}." if len(known) <= MANY else f"{where} shows all {len(known)}."
    return f"{did_you_mean(name, known)} {listed}"


def no_field(kind: Any, name: str, hint: str = "") -> str:
    known = field_names(kind)
    return f'{kind.__name__} has no field "{name}". Its fields: {", ".join(known)}.{hint or did_you_mean(name, known)}'


def field_names(kind: Any) -> list[str]:
    """Of a dataclass or of a value of it."""
    return [field.name for field in dataclasses.fields(kind)]


def _names_in(part: Any) -> list[str]:
    return field_names(part) if dataclasses.is_dataclass(part) else []


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def to_plain(value: Any, types: Types | None = None, hint: Any = None) -> Any:
    """Dataclasses as mappings; a part whose type can vary carries its type's name, registered or not."""
    if isinstance(value, Unregistered):
        return {"type": value.name, **value.values}
    types, plain = types or {}, without_none(hint)
    if isinstance(value, tuple):
        return [to_plain(item, types, next(iter(get_args(plain)), None)) for item in value]
    if plain in types and value is not None and not dataclasses.is_dataclass(value):
        raise RecipeError(
            f"{type(value).__name__} is not a dataclass, so it cannot be written to a file. Add "
            "@dataclass(frozen=True)."
        )
    if not dataclasses.is_dataclass(value):
        return value
    hints, name = get_type_hints(type(value)), type_name(value, types)
    name = type(value).__name__ if name is None and plain in types else name
    fields = {field: to_plain(getattr(value, field), types, hints[field]) for field in field_names(value)}
    return fields if name is None else {"type": name, **fields}


def to_toml(table: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The lines of plain values; None is left out."""
    tables = {  # and lists of them
        name: value
        for name, value in table.items()
        if isinstance(value, Mapping) or (isinstance(value, list) and value and isinstance(value[0], Mapping))
    }
    yield from (
        f"{name} = {_scalar(value)}" for name, value in table.items() if value is not None and name not in tables
    )
    for name, value in tables.items():
        heading = f"[[{prefix}{name}]]" if isinstance(value, list) else f"[{prefix}{name}]"
        for each in value if isinstance(value, list) else [value]:
            yield from ("", heading, *to_toml(each, f"{prefix}{name}."))


def _scalar(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_scalar, value)) + "]"
    try:  # strings, booleans, integers and finite floats are alike in TOML
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise RecipeError(
            f"{value!r} cannot be written to a file: fields hold finite numbers, text, true or false."
        ) from None
