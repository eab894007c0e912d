"""`keypatch train`: a recipe and patches become a run folder."""

from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import Compile, Device, Precision, examples

EXAMPLES = examples(
    "keypatch train hynet --data embedded --pairs 50000 --out runs/first",
    "keypatch train hardnet --data embedded --pairs 50000 --set sampler.pairs=256",
)


def train(
    recipe: Annotated[str, typer.Argument(help="A name of `keypatch list recipes`, or a recipe.toml.")],
    data: Annotated[
        list[str], typer.Option(help="A folder of patches or of images per class, or embedded; may be repeated.")
    ],
    out: Annotated[Path | None, typer.Option(help="The run folder; runs/RECIPE if not given.")] = None,
    pairs: Annotated[int | None, typer.Option(help="Budget in pairs; the schedule stretches over it.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Replace a field, as loss.margin=1.0.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the run's last checkpoint.")] = False,
    start_from: Annotated[str | None, typer.Option("--from", help="A descriptor whose weights to start from.")] = None,
    validation: Annotated[str | None, typer.Option(help="A patch set with pair lists, scored on the way.")] = None,
    split: Annotated[str | None, typer.Option(help="The training part of an HPatches split: a, b or c.")] = None,
    seed: Annotated[int | None, typer.Option(help="Instead of the recipe's seed.")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads; with 1, a repeated run is bit-identical.")] = None,
    keep: Annotated[
        list[float] | None, typer.Option(help="Keep the weights at this share of the run, 0.5; may be repeated.")
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard events too.")] = False,
    allow_partial: Annotated[bool, typer.Option("--allow-partial", help="Accept a set copied in part.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    compile: Compile = "auto",
) -> None:
    """Train a descriptor. Ctrl-C saves a checkpoint; --resume goes on from it."""
    from keypatch.studies.training import train as run
    from keypatch.training.progress import reporter_for

    folder = run(
        recipe,
        data,
        out,
        settings=settings or (),
        pairs=pairs,
        seed=seed,
        split=split,
        allow_partial=allow_partial,
        validation=validation,
        start_from=start_from,
        resume=resume,
        device=device,
        precision=precision,
        compile=compile,
        threads=threads,
        keep=keep or (),
        tensorboard=tensorboard,
        reporter=reporter_for(),
    )
    typer.echo(f"Written: {folder}\nScore it: keypatch evaluate {folder} --data embedded-test")
