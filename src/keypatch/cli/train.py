"""`keypatch train`: a recipe and patches become a run folder."""

from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import AllowPartial, examples, options_of
from keypatch.progress import ProgressBar
from keypatch.training.conditions import Conditions

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "keypatch train hynet --data embedded --pairs 50000 --out runs/first",
        "keypatch train --resume runs/first",
    )
)
@options_of(conditions=Conditions())
def train(
    conditions: Conditions,
    recipe: Annotated[
        str | None, typer.Argument(help="A name from `keypatch list recipes`, or a recipe.toml.", show_default=False)
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="Patch folder, folder of images by class, or embedded; may be repeated.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; default: runs/RECIPE.")] = None,
    pairs: Annotated[
        int | None, typer.Option(help="Training budget in pairs; the schedule is stretched to fit.")
    ] = None,
    published: Annotated[
        bool,
        typer.Option(
            "--as-published", help="Train the recipe as printed in the paper, without our choices and detector noise."
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Set a field of the recipe, such as loss.margin=1.0."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Resume the run in this folder with the settings it was started with.")
    ] = None,
    start_from: Annotated[str | None, typer.Option("--from", help="Start from the weights of this descriptor.")] = None,
    teacher: Annotated[
        str | None,
        typer.Option(help="Descriptor to distil; a loss term pulls the network's descriptors towards it."),
    ] = None,
    validation: Annotated[
        list[str] | None,
        typer.Option(help="Patch set with pair lists, or HPatches strips, scored during training; may be repeated."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Train on the training part of this HPatches split: a, b or c.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed, instead of the recipe's.")] = None,
    allow_partial: AllowPartial = False,
) -> None:
    """Train a descriptor. Ctrl-C saves a checkpoint; --resume RUN continues from it."""
    from keypatch.commands.train import train as run
    from keypatch.training.ranks import launched

    rank, _ = launched()
    with ProgressBar(None if rank == 0 else StringIO()) as progress:
        folder = run(
            recipe,
            data,
            out,
            conditions if resume is None or conditions != Conditions() else None,
            published=published,
            settings=[*(settings or ()), *([] if seed is None else [f"seed={seed}"])],
            pairs=pairs,
            validation=validation or (),
            start_from=start_from,
            teacher=teacher,
            split=split,
            allow_partial=allow_partial,
            resume=resume,
            progress=progress,
        )
    if rank == 0:
        typer.echo(f"Written: {folder}\nScore it: keypatch evaluate {folder} --data embedded-test")
