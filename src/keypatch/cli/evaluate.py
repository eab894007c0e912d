"""`keypatch evaluate`: a descriptor's scores on a benchmark."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from keypatch.cli.options import Device, Precision, examples
from keypatch.cli.printing import open_console
from keypatch.cli.scores import print_result

if TYPE_CHECKING:
    from keypatch.metrics import FprRule

EXAMPLES = examples(
    "keypatch evaluate rootsift --on ubc --data embedded-test",
    "keypatch evaluate runs/quickstart --data embedded-test --out result.json",
)


def evaluate(
    descriptor: Annotated[str, typer.Argument(help="A name of `keypatch list`, a run folder or a weight file.")],
    data: Annotated[str, typer.Option(help="The folder of patches or class folders of images, or embedded-test.")],
    on: Annotated[str, typer.Option(help="The benchmark: ubc, hpatches or embedding.")] = "ubc",
    out: Annotated[Path | None, typer.Option(help="Write the result with its curves to this JSON file.")] = None,
    rule: Annotated[
        str, typer.Option(help="Definition of FPR95: rank, optimistic, hynet, discovery or interpolated.")
    ] = "rank",
    sequence: Annotated[list[str] | None, typer.Option(help="Only this sequence of hpatches; may be repeated.")] = None,
    allow_partial: Annotated[bool, typer.Option("--allow-partial", help="Accept a set copied in part.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Score a descriptor on a benchmark."""
    from keypatch.benchmarks.evaluating import evaluate as score

    chosen = cast("FprRule", rule)  # the function checks it
    result = score(
        descriptor,
        on,
        data,
        out,
        rule=chosen,
        sequences=sequence,
        device=device,
        precision=precision,
        allow_partial=allow_partial,
    )
    console = open_console()
    console.print(f"{result.descriptor} on {result.benchmark}, {result.settings['data']}")
    print_result(console, result)
    if out is not None:
        console.print(f"Written: {out}")
