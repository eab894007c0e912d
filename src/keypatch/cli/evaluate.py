"""`keypatch evaluate`: a descriptor's scores on a benchmark."""

from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import Device, Precision, examples
from keypatch.cli.printing import open_console, show_progress

EXAMPLES = examples(
    "keypatch evaluate rootsift --on ubc --data embedded-test",
    "keypatch evaluate rootsift --data embedded-test --set rule=hynet --out r.json",
)


def evaluate(
    descriptor: Annotated[
        str,
        typer.Argument(help="A name of `keypatch list`, a run folder or a weight file; on photos also a feature file."),
    ],
    data: Annotated[str, typer.Option(help="The folder of the benchmark's data; embedded-test for ubc.")],
    on: Annotated[
        str, typer.Option(help="ubc, hpatches, homography, stereo, multiview, sfm, embedding or rotation.")
    ] = "ubc",
    out: Annotated[Path | None, typer.Option(help="Write the result with its curves to this JSON file.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="A setting; `keypatch list ubc` names those of ubc."),
    ] = None,
    allow_partial: Annotated[bool, typer.Option("--allow-partial", help="Accept a set copied in part.")] = False,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep descriptors for the next time, and use those kept.")
    ] = True,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Score a descriptor on a benchmark."""
    from keypatch.benchmarks.evaluating import evaluate as score
    from keypatch.benchmarks.table import find_benchmark
    from keypatch.cli.scores import print_result

    with show_progress(find_benchmark(on).counts) as progress:
        result = score(
            descriptor,
            on,
            data,
            out,
            settings=settings or (),
            device=device,
            precision=precision,
            allow_partial=allow_partial,
            cache=cache,
            progress=progress,
        )
    console = open_console()
    console.print(f"{result.descriptor} on {result.benchmark}, {result.settings.get('data', Path(data).name)}")
    shown, there_are = print_result(console, result), len(result.scores)
    if out is not None:
        console.print(f"Written: {out}" + (f", with all {there_are} scores" if shown < there_are else ""))
    elif shown < there_are:
        console.print(f"{shown} of {there_are} scores are shown; --out FILE writes all of them.")
