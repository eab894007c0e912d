"""Options that several commands share, so that they read the same everywhere."""

from typing import Annotated

import typer

from keypatch.errors import KeypatchError

Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps; auto is the best there is.")]
Precision = Annotated[str, typer.Option(help="auto, float32 or bfloat16; auto takes bfloat16 only where it is fast.")]
Compile = Annotated[str, typer.Option(help="auto, on or off: whether to use torch.compile.")]

DESCRIBING = (
    "descriptor",
    "detector",
    "settings",
    "keypoints",
    "rule",
    "max_size",
    "upright",
    "precision",
    "pixel_limit",
)


def refuse_beside(context: typer.Context, other: str, *names: str) -> None:
    """KeypatchError if one of these parameters of the command was given beside `other`, where it would do nothing."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            raise KeypatchError(f"{parameter.opts[0]} does nothing beside {other}. Leave one of them out.")


def examples(*commands: str) -> str:
    """The end of a command's help: lines that work when pasted."""
    return "\n\n".join(["Examples:", *commands])
