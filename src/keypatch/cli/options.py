"""Options that several commands share, so that they read the same everywhere."""

from typing import Annotated

import typer

Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps; auto is the best there is.")]
Precision = Annotated[str, typer.Option(help="auto, float32 or bfloat16; auto takes bfloat16 only where it is fast.")]
Compile = Annotated[str, typer.Option(help="auto, on or off: whether to use torch.compile.")]


def examples(*commands: str) -> str:
    """The end of a command's help: lines that work when pasted."""
    return "\n\n".join(["Examples:", *commands])
