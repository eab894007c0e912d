"""Command-line options: those made from dataclass fields, and those that several commands share."""

import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from keypatch.errors import KeypatchError, RecipeError
from keypatch.settings import (
    Change,
    Types,
    about_field,
    apply_changes,
    choices,
    choose_from,
    field_names,
    shown,
    without_none,
)

Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps; auto picks the best available.")]
Precision = Annotated[str, typer.Option(help="auto, float32 or bfloat16; auto chooses by task and device.")]

Images = Annotated[list[Path], typer.Argument(help="Images, folders, or .txt lists with one image per line.")]
Sources = Annotated[  # a Path would lose a slash of an address
    list[str], typer.Argument(help="Images, folders, .txt lists with one image per line, or addresses (s3://...).")
]
ShardOf = Annotated[
    str | None,
    typer.Option(metavar="i/N", help="Process only the i-th of N shards, as in a Slurm array; --out must be a folder."),
]
Descriptor = Annotated[
    str, typer.Option(help="A name from `keypatch list`, a run folder, a weight file or an exported .onnx file.")
]
PixelLimit = Annotated[int, typer.Option(help="Refuse photos with more pixels than this.")]
AllowPartial = Annotated[bool, typer.Option("--allow-partial", help="Accept an incomplete patch set.")]

_METAVARS = {int: "INTEGER", float: "FLOAT", str: "TEXT", Path: "PATH"}

Command = Callable[..., None]


def options_of(
    types: Types | None = None, without: Collection[str] = (), alternatives: Collection[str] = (), **defaults: Any
) -> Callable[[Command], Command]:
    """A command whose options are the fields of these values: `@options_of(matching=Matching())`.

    The command takes each value whole, as the parameter of that name. A field has no option of its own if it is one of
    `without`, or the command or a value before has a parameter of that name; `--set` reaches every field, with the
    value's name before it where it is needed (`--set matching.seed=1`). `alternatives` are names of values of which the
    command uses one: an option that several of them have is for all of them.
    """

    def decorate(command: Command) -> Command:
        own = [
            each
            for each in inspect.signature(command).parameters.values()
            if each.name not in defaults and each.kind is not inspect.Parameter.VAR_KEYWORD  # which takes values whole
        ]
        owners = dict[str, list[str]]()  # of a field: the first value that has it, and its alternatives
        for name in defaults:
            for field in field_names(defaults[name]):
                if field not in owners or {name, *owners[field]} <= {*alternatives}:
                    owners.setdefault(field, []).append(name)
        made = [
            option
            for name, value in defaults.items()
            for option in _options(value, name, types or {}, owners, defaults)
            if owners[option.name][0] == name and option.name not in [*without, *(each.name for each in own)]
        ]
        has_set = any(each.name == "settings" for each in own)  # of its own, for something else
        setting = typer.Option("--set", metavar="PATH=VALUE", help="Set a field, such as detector.orientations=one.")

        @wraps(command)
        def with_values(**given: Any) -> None:
            settings = () if has_set else given.pop("settings") or ()
            texts = {option.name: given.pop(option.name) for option in made}
            changes = [
                change
                for field, text in texts.items()
                if text not in (None, [])
                for change in _of_option(owners[field], field, text)
            ]
            changes += [change for setting in settings for change in _of_setting(owners, defaults, setting)]
            kinds = [(name, type(value)) for name, value in defaults.items()]
            whole = dataclasses.make_dataclass("Options", kinds, frozen=True)(**defaults)
            chosen = apply_changes(whole, changes, types)
            command(**given, **{name: getattr(chosen, name) for name in defaults})

        every = [*own, *made, *([] if has_set else [_option("settings", Annotated[list[str] | None, setting])])]
        with_values.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in every]
        )
        return with_values

    return decorate


def _options(
    value: Any, name: str, types: Types, owners: Mapping[str, list[str]], values: Mapping[str, Any]
) -> Iterator[inspect.Parameter]:
    """Text options, None where not given: settings reads them. `owners` have other defaults of a field, maybe."""
    hints = get_type_hints(type(value))
    for field in dataclasses.fields(value):
        hint, default, flag = without_none(hints[field.name]), getattr(value, field.name), _flag(field.name)
        several = get_origin(hint) is tuple
        item = get_args(hint)[0] if several else hint
        words = choices(item, types) or [_METAVARS.get(item, "PATH")]
        words += ["none"] if hint != hints[field.name] else []
        about = about_field(field)
        if default not in (None, ()) and hint is not bool:
            others = {each: getattr(values[each], field.name) for each in owners[field.name] if each != name}
            told = [f"{each} {shown(other, types)}" for each, other in others.items() if other != default]
            about += f" [dim]\\[default: {', '.join([shown(default, types), *told])}][/dim]"
        kind: Any = bool if hint is bool else list[str] if several else str
        option = typer.Option(
            f"{flag}/--no-{flag[2:]}" if default is True else flag,
            metavar=None if hint is bool else words[0] if len(words) == 1 else f"[{'|'.join(words)}]",
            help=about,
            rich_help_panel=name.capitalize(),
        )
        yield _option(field.name, Annotated[kind | None, option])


def _flag(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def _option(name: str, kind: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def _of_option(owners: Iterable[str], field: str, given: str | bool | list[str]) -> list[Change]:
    text = shown(tuple(given) if isinstance(given, list) else given)
    return [Change((owner, field), text, _flag(field)) for owner in owners]


def _of_setting(owners: Mapping[str, Iterable[str]], names: Iterable[str], setting: str) -> list[Change]:
    change = Change.of(setting, owners)
    first = change.path[0]
    if first in names:
        return [change]
    if first not in owners:
        raise RecipeError(f'{change.where}: there is no option "{first}".{choose_from(first, owners, "--help")}')
    return [dataclasses.replace(change, path=(owner, *change.path)) for owner in owners[first]]


def refuse_beside(context: typer.Context, other: str, *names: str, changed: bool = False) -> None:
    """KeypatchError if one of these options was given beside `other`, where it would do nothing.

    `changed`: the value that they belong to is not its default, so that --set may have done it.
    """
    names = (*names, "settings") if changed else names
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            raise KeypatchError(f"{parameter.opts[0]} has no effect with {other}. Leave one of them out.")


def examples(*commands: str) -> str:
    """The end of a command's help: lines that work when pasted."""
    return "\n\n".join(["Examples:", *commands])
