"""`keypatch reconstruct`: photos become a 3D model through COLMAP."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keypatch.cli.options import Descriptor, Device, Images, Precision, examples, options_of, refuse_beside
from keypatch.cli.printing import open_console, print_facts
from keypatch.engines.options import Parallel
from keypatch.features.extraction import DESCRIPTOR, Extraction
from keypatch.matching.matching import PHOTO_TYPES, Matching
from keypatch.progress import ProgressBar
from keypatch.reconstruction.mapping import Inputs, Mapping
from keypatch.settings import field_names

if TYPE_CHECKING:
    from keypatch.reconstruction.result import Reconstruction

app = typer.Typer(add_completion=False)

VERIFICATION = ("model", "estimator", "threshold", "tries", "confidence", "iterations")  # as `match` has them


@app.command(
    epilog=examples(
        "keypatch reconstruct photos --out scene --share-camera",
        "keypatch reconstruct photos --features f.h5 --matches m.h5 --out scene",
    )
)
@options_of(
    PHOTO_TYPES,
    VERIFICATION,
    inputs=Inputs(),
    mapping=Mapping(),
    matching=Matching(),
    extraction=Extraction(),
    parallel=Parallel(),
)
def reconstruct(
    context: typer.Context,
    images: Images,
    out: Annotated[Path, typer.Option(help="Output folder; features and matches already in it are reused.")],
    inputs: Inputs,
    mapping: Mapping,
    matching: Matching,
    extraction: Extraction,
    parallel: Parallel,
    descriptor: Descriptor = DESCRIPTOR,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Reconstruct photos in 3D with COLMAP (extra `colmap`). Run it again to resume after Ctrl-C."""
    if inputs.features is not None:
        names = ("descriptor", "precision", "pixel_limit", "masks", *field_names(Extraction))
        refuse_beside(context, "--features", *names, changed=extraction != Extraction())
    if inputs.matches is not None:
        names = ("pairs", "mode", "ratio", "ratio_sides", "neighbours")
        refuse_beside(context, "--matches", *names, changed=matching != Matching())
    from keypatch.reconstruction.pipeline import reconstruct as run

    with ProgressBar() as progress:
        made = run(
            images,
            out,
            mapping,
            inputs=inputs,
            describer=descriptor,
            extraction=extraction,
            matching=matching,
            parallel=parallel,
            device=device,
            precision=precision,
            progress=progress,
        )
    _print(made)


def _print(made: "Reconstruction") -> None:
    console = open_console()
    facts = made.facts()
    if made.two_view is not None:
        facts |= {
            "rotation": f"{made.two_view.rotation_degrees:.2f}°",
            "direction": "({:.3f}, {:.3f}, {:.3f}), of t in x1 = R x0 + t".format(*made.two_view.direction),
            "angle between rays": f"{made.two_view.triangulation_degrees:.2f}° median",
        }
    print_facts(console, facts)
    if made.unregistered:
        console.print(f"In no model: {', '.join(made.unregistered)}")
    if made.model is None:
        console.print("A model needs at least three photos; for two, this is their relative geometry.")
    for note in made.notes:
        console.print(note)
    console.print(f"Written: {', '.join(str(path) for path in made.files)}")
