"""Options that several commands share, so that they read the same everywhere."""

from pathlib import Path
from typing import Annotated, Any

import typer

from keypatch.errors import KeypatchError

Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps; auto is the best there is.")]
Precision = Annotated[str, typer.Option(help="auto, float32 or bfloat16; auto chooses by task and device.")]
Compile = Annotated[str, typer.Option(help="auto, on or off: whether to use torch.compile.")]

Images = Annotated[list[Path], typer.Argument(help="Images, folders, or .txt lists with a name on each line.")]
Root = Annotated[Path | None, typer.Option(help="Names of photos are paths below this folder.")]
TurnByExif = Annotated[bool, typer.Option("--turn-by-exif", help="Turn photos by their EXIF tag, not as stored.")]

Descriptor = Annotated[str, typer.Option(help="A name of `keypatch list`, a run folder or a weight file.")]
Detector = Annotated[str, typer.Option(help="dog, colmap, orb, keynet or grid.")]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the detector.")]
Keypoints = Annotated[int, typer.Option(help="The most keypoints of a photo; 0 keeps all.")]
Rule = Annotated[str, typer.Option(help="Which to keep: strongest, largest or spread.")]
MaxSize = Annotated[int | None, typer.Option(help="Detect in the photo made at most this many pixels long.")]
Upright = Annotated[bool, typer.Option("--upright", help="Every angle is 0.")]
PixelLimit = Annotated[int, typer.Option(help="Refuse photos of more pixels.")]

# Those of the Python functions, whose rooms are too heavy to import for a help text; tests compare them.
DESCRIPTOR, DETECTOR, KEYPOINTS, RULE, PIXEL_LIMIT = "hynet-notredame", "dog", 2048, "spread", 100_000_000

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


def chosen(context: typer.Context, *names: str) -> dict[str, Any]:
    """The values of these options, as arguments of the Python function of the same names, which checks them."""
    return {name: context.params[name] for name in names}


def chosen_describing(context: typer.Context) -> dict[str, Any]:
    """The same for all of `DESCRIBING`."""
    from keypatch.cli.detector_options import choose_detector

    values = chosen(context, *DESCRIBING)
    detector = choose_detector(values["detector"], values.pop("settings") or ())
    return values | {"detector": detector, "keypoints": values["keypoints"] or None}


def refuse_beside(context: typer.Context, other: str, *names: str) -> None:
    """KeypatchError if one of these parameters of the command was given beside `other`, where it would do nothing."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            raise KeypatchError(f"{parameter.opts[0]} does nothing beside {other}. Leave one of them out.")


def examples(*commands: str) -> str:
    """The end of a command's help: lines that work when pasted."""
    return "\n\n".join(["Examples:", *commands])
