"""The commands by name, each imported when it is run, and the global options."""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMANDS = {  # modules of this room, and their lines in `keypatch --help`
    "quickstart": "Train and score your first descriptor in minutes, on photographs that come with the package.",
    "list": "List the names that commands and recipes accept, or show one recipe or benchmark.",
    "inspect": "Show what a file or folder is, what it contains and what is wrong with it.",
    "train": "Train a descriptor.",
    "adapt": "Fit a descriptor to your photos and measure what it gains.",
    "evaluate": "Score a descriptor on a benchmark.",
    "study": "Compare methods under the same conditions.",
    "describe": "Detect and describe keypoints in photos.",
    "match": "Match two photos, a folder of photos, or the photos in a feature file.",
    "convert": "Copy features or matches between a single file and a folder of many files.",
    "reconstruct": "Reconstruct photos in 3D with COLMAP.",
    "build": "Build a patch set to train on from photos.",
    "export": "Write a descriptor as ONNX or pt2 for other programs.",
    "doctor": "Detect wrong keypoint conventions by measuring them.",
    "report": "Show results on one HTML page.",
}


class _Commands(TyperGroup):
    """The help shows only `COMMANDS`, so that it imports no command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, typer.main.get_command(import_module(f"keypatch.cli.{name}").app), rest


app = typer.Typer(
    cls=_Commands,
    name="keypatch",
    help="Learn, score and use local image descriptors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _line in COMMANDS.items():
    app.command(_name, help=_line)(lambda: None)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"keypatch {version('keypatch')}")
        raise typer.Exit


def _load_plugins(paths: list[Path] | None) -> list[Path] | None:
    if paths:
        from keypatch.parts import load_plugin

        for path in paths:
            load_plugin(path)
    return paths


@app.callback()
def _every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            callback=_load_plugins,
            help="Run this Python file to register your own losses, detectors or other parts; may be repeated.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print how descriptors are computed on this machine.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Global options, which work anywhere on the line."""
