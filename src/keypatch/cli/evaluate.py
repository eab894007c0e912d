"""`keypatch evaluate`: a descriptor's scores on a benchmark."""

from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import AllowPartial, Device, Precision, examples, options_of
from keypatch.cli.printing import open_console
from keypatch.engines.options import Parallel
from keypatch.progress import ProgressBar

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "keypatch evaluate rootsift --on ubc --data embedded-test",
        "keypatch evaluate rootsift --data embedded-test --set rule=hynet --out r.json",
    )
)
@options_of(parallel=Parallel())
def evaluate(
    parallel: Parallel,
    descriptor: Annotated[
        str,
        typer.Argument(
            help="A name from `keypatch list`, run folder, weight file or .onnx file; for photos, also a feature file."
        ),
    ],
    data: Annotated[str, typer.Option(help="Data folder of the benchmark; for ubc, also embedded-test.")],
    on: Annotated[str, typer.Option(help="Benchmark to run: a name from `keypatch list benchmarks`.")] = "ubc",
    out: Annotated[Path | None, typer.Option(help="Save the result, with its curves, to this JSON file.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change a setting; `keypatch list BENCHMARK` shows them all."),
    ] = None,
    allow_partial: AllowPartial = False,
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Cache descriptors and reuse cached ones.")] = True,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Score a descriptor on a benchmark."""
    from keypatch.benchmarks.evaluation import evaluate as score
    from keypatch.cli.scores import print_result

    with ProgressBar() as progress:
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
            parallel=parallel,
            progress=progress,
        )
    console = open_console()
    console.print(f"{result.descriptor} on {result.benchmark}, {result.settings.get('data', Path(data).name)}")
    printed, total = print_result(console, result), len(result.scores)
    if out is not None:
        console.print(f"Written: {out}" + (f", with all {total} scores" if printed < total else ""))
    elif printed < total:
        console.print(f"Showing {printed} of {total} scores; --out FILE saves all of them.")
