"""`keypatch build`: photos become a patch set to train on."""

from collections.abc import Mapping as TypingMapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keypatch.building.methods import METHODS
from keypatch.building.options import Building
from keypatch.cli.options import Descriptor, Device, Precision, examples, options_of, refuse_beside
from keypatch.cli.printing import open_console, print_facts
from keypatch.engines.options import Parallel
from keypatch.errors import KeypatchError
from keypatch.features.extraction import DESCRIPTOR, Extraction
from keypatch.matching.matching import PHOTO_TYPES
from keypatch.progress import ProgressBar
from keypatch.reconstruction.mapping import Mapping
from keypatch.settings import choose_from, field_names

if TYPE_CHECKING:
    from keypatch.building.pipeline import BuiltSet

app = typer.Typer(add_completion=False)

USUAL: dict[str, Any] = {name: kind() for name, kind in METHODS.items()}


@app.command(
    epilog=examples(
        "keypatch build photos --out mine --held-out 0.2",
        "keypatch build photos --out views --method homographies",
    )
)
@options_of(
    PHOTO_TYPES,
    alternatives=METHODS,
    building=Building(),
    **USUAL,
    mapping=Mapping(),
    extraction=Extraction(),
    parallel=Parallel(),
)
def build(
    context: typer.Context,
    photos: Annotated[
        list[Path],
        typer.Argument(
            help="Images, folders, or .txt lists with one image per line; for --method sequences, folders of sequences."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Output folder; an interrupted build in it is resumed.")],
    building: Building,
    mapping: Mapping,
    extraction: Extraction,
    parallel: Parallel,
    method: Annotated[
        str,
        typer.Option(
            metavar=f"[{'|'.join(METHODS)}]",
            help="Where patches of the same point come from: a 3D model, pairs of photos, random views of single "
            "photos, or known homographies (HPatches strips).",
        ),
    ] = next(iter(METHODS)),
    descriptor: Descriptor = DESCRIPTOR,
    device: Device = "auto",
    precision: Precision = "auto",
    **methods: Any,
) -> None:
    """Build a patch set from photos, in PhotoTour layout or as HPatches strips. Run it again to resume after Ctrl-C."""
    chosen = chosen_method(context, method, methods)
    from keypatch.building.pipeline import build as run

    with ProgressBar() as progress:
        made = run(
            photos,
            out,
            chosen,
            building,
            describer=descriptor,
            extraction=extraction,
            mapping=mapping,
            parallel=parallel,
            device=device,
            precision=precision,
            progress=progress,
        )
    _print(made)


def chosen_method(context: typer.Context, method: str, methods: TypingMapping[str, Any]) -> Any:
    """The method of that name with its options; KeypatchError if there is none, or options of another were given."""
    if method not in methods:
        raise KeypatchError(f"--method {method}: there is no such method.{choose_from(method, methods, '--help')}")
    for other, value in methods.items():
        theirs = set(field_names(value)) - set(field_names(methods[method]))
        changed = any(getattr(value, name) != getattr(USUAL[other], name) for name in theirs)
        refuse_beside(context, f"--method {method}", *theirs, changed=changed)
    return methods[method]


def _print(made: "BuiltSet") -> None:
    console = open_console()
    print_facts(console, made.facts())
    for text in made.warnings:
        console.print(text)
    console.print(f"Written: {', '.join(str(path) for path in (*made.sets.values(), made.page))}")
