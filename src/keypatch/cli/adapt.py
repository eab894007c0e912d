"""`keypatch adapt`: a folder of photos becomes a descriptor fitted to them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from keypatch.building.methods import METHODS
from keypatch.building.options import Building
from keypatch.cli.build import USUAL, chosen_method
from keypatch.cli.options import Images, examples, options_of
from keypatch.cli.printing import open_console, print_facts
from keypatch.commands.adapt.options import HELD_OUT, Adapting
from keypatch.features.extraction import DESCRIPTOR, Extraction
from keypatch.matching.matching import PHOTO_TYPES
from keypatch.progress import ProgressBar
from keypatch.reconstruction.mapping import Mapping
from keypatch.training.conditions import Conditions

app = typer.Typer(add_completion=False)

FINDERS = {name: usual for name, usual in USUAL.items() if hasattr(usual, "find")}


@app.command(
    epilog=examples(
        "keypatch adapt photos --out mine --share-camera",
        "keypatch adapt photos --out views --method homographies",
    )
)
@options_of(
    PHOTO_TYPES,
    without=("patch_sigmas", "tensorboard", "keep", "compile", "checkpoint_seconds"),
    alternatives=METHODS,
    adapting=Adapting(),
    building=Building(held_out=HELD_OUT),
    **FINDERS,
    mapping=Mapping(),
    extraction=Extraction(),
    conditions=Conditions(),
)
def adapt(
    context: typer.Context,
    photos: Images,
    out: Annotated[Path, typer.Option(help="Run folder to write; an interrupted adaptation in it is resumed.")],
    adapting: Adapting,
    building: Building,
    mapping: Mapping,
    extraction: Extraction,
    conditions: Conditions,
    method: Annotated[
        str,
        typer.Option(
            metavar=f"[{'|'.join(FINDERS)}]",
            help="Where patches of the same point come from: a 3D model, pairs of photos, or random views of "
            "single photos.",
        ),
    ] = next(iter(FINDERS)),
    descriptor: Annotated[
        str,
        typer.Option(help="Network to start from, also used to match the photos: a name, run folder or weight file."),
    ] = DESCRIPTOR,
    **methods: Any,
) -> None:
    """Fit a descriptor to your photos: build a patch set, fine-tune, and score before and after on held-out points.

    Run it again to resume after Ctrl-C.
    """
    chosen = chosen_method(context, method, methods)
    from keypatch.cli.scores import print_comparison
    from keypatch.commands.adapt.pipeline import adapt as run

    with ProgressBar() as progress:
        done = run(
            photos,
            out,
            chosen,
            building,
            adapting,
            describer=descriptor,
            extraction=extraction,
            mapping=mapping,
            conditions=conditions,
            progress=progress,
        )
    console = open_console()
    print_facts(console, done.built.facts())
    print_comparison(console, done.results)
    for text in (*done.warnings, f"{done.verdict.headline()}.", *done.verdict.reasons()):
        console.print(text)
    console.print(f"Written: {done.folder}, {done.page}")
