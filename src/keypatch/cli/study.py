"""`keypatch study`: several recipes under the same conditions."""

from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import Device, Precision, examples, options_of
from keypatch.cli.printing import open_console, print_table
from keypatch.progress import ProgressBar
from keypatch.training.conditions import Conditions

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def study() -> None:
    """Compare methods: several recipes under the same conditions."""


@app.command(
    "methods",
    epilog=examples(
        "keypatch study methods --data embedded --pairs 20000",
        "keypatch study methods --data embedded --pairs 20000 --recipe hynet",
    ),
)
@options_of(without=("checkpoint_seconds", "tensorboard", "keep"), conditions=Conditions())
def methods(
    data: Annotated[
        list[str], typer.Option(help="Training data: a patch folder, or embedded; repeat to combine several.")
    ],
    pairs: Annotated[int, typer.Option(help="Training budget of every recipe, in pairs.")],
    conditions: Conditions,
    out: Annotated[Path, typer.Option(help="Study folder; a study already in it is resumed.")] = Path(
        "studies/methods"
    ),
    recipe: Annotated[
        list[str] | None,
        typer.Option(help="Recipe name or recipe.toml; may be repeated. Default: all patch recipes."),
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Patch set with pair lists to score on; may be repeated.")
    ] = None,
    hpatches: Annotated[str | None, typer.Option(help="Folder of HPatches strips to score on.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Random seed; may be repeated. Default: 0.")] = None,
    batch: Annotated[int, typer.Option(help="Pairs per batch, for every recipe.")] = 256,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Set a field of every recipe."),
    ] = None,
    dry: Annotated[
        bool, typer.Option("--dry", help="Do not train; show the table so far and what is missing.")
    ] = False,
) -> None:
    """Train recipes on the same data, batch and budget, and score them. After Ctrl-C, run it again to resume."""
    from keypatch.benchmarks.contamination import MARK
    from keypatch.studies.methods.page import cell, dimension, main_columns, marked_heading, why
    from keypatch.studies.methods.plan import MethodsSetup
    from keypatch.studies.methods.study import study_methods

    with ProgressBar() as progress:
        table = study_methods(
            data,
            MethodsSetup(pairs, batch, tuple(seed or (0,)), tuple(settings or ())),
            out,
            conditions,
            recipes=recipe or (),
            tests=test or (),
            hpatches=hpatches,
            dry=dry,
            progress=progress,
        )
    columns, console = main_columns(table), open_console()
    if table.lines:
        rows = [
            [line.recipe, dimension(line), *(cell(column, line.scores(column)) for column in columns)]
            for line in table.lines
        ]
        print_table(console, ["", "d", *(marked_heading(table, column) for column in columns)], rows, numbers=True)
    for name, sentence in table.seen.items():
        console.print(f"{MARK} {name}: {sentence}")
    for row in table.unfinished:
        console.print(f"{row.name}: {why(row)}")
    if not dry:
        console.print(f"Written: {out / 'table.md'}")


@app.command(
    "ubc",
    epilog=examples(
        "keypatch study ubc --runs runs/lib runs/nd runs/yos --data phototour",
        "keypatch study ubc --beside sift --beside rootsift --data data",
    ),
)
def ubc(
    data: Annotated[Path, typer.Option(help="Folder with liberty, notredame and yosemite.")],
    runs: Annotated[
        tuple[str, str, str] | None,
        typer.Option(
            metavar="RUN RUN RUN", help="Three run folders, one per training set; liberty=RUN states the set."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Study folder; new rows are added to its table.")] = Path("studies/ubc"),
    name: Annotated[str | None, typer.Option(help="Name of the row; default: the recipe's.")] = None,
    beside: Annotated[list[str] | None, typer.Option(help="Also score sift or rootsift; may be repeated.")] = None,
    pair_list: Annotated[str, typer.Option(help="Pair list to score, without .txt.")] = "m50_100000_100000_0",
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Score three runs on the six splits of PhotoTour, as papers do. After Ctrl-C, run it again to resume."""
    from keypatch.studies.ubc.page import COLUMNS, score_cells, seen_notes
    from keypatch.studies.ubc.study import study_ubc

    with ProgressBar() as progress:
        table = study_ubc(
            runs or (),
            data,
            out,
            name=name,
            beside=beside or (),
            pair_list=pair_list,
            device=device,
            precision=precision,
            progress=progress,
        )
    rows = [[row.name, "last", *score_cells(row.last(), table.fpr95)] for row in table.rows]
    rows += [
        [row.name, "best on the test sets", *score_cells(row.best(table.fpr95), table.fpr95)]
        for row in table.rows
        if row.is_trained
    ]
    console = open_console()
    print_table(console, ["FPR95 %", "checkpoint", *COLUMNS], rows, numbers=True)
    for note in seen_notes(table.rows):
        console.print(note)
    console.print(f"Written: {out / 'table.md'}")


@app.command(
    "gradients",
    epilog=examples(
        "keypatch study gradients runs/hardnet runs/hynet --data embedded-test",
        "keypatch study gradients runs/hynet --data embedded-test --seeds 0,1",
    ),
)
def gradients(
    descriptors: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Run folders, whose kept weights (--keep) and newest are measured, or other networks.",
        ),
    ],
    data: Annotated[str, typer.Option(help="Patch set that the pairs are drawn from, or embedded-test.")],
    out: Annotated[Path, typer.Option(help="Study folder; other runs are added to what it holds.")] = Path(
        "studies/gradients"
    ),
    pairs: Annotated[int, typer.Option(help="Pairs of different points; negatives are mined among them.")] = 256,
    seeds: Annotated[str, typer.Option(metavar="N,N,...", help="Random seeds of the pairs.")] = "0",
    noise: Annotated[
        str,
        typer.Option(metavar="X,X,...", help="Detector noise of the pairs, an equal share at each; 0: as in the set."),
    ] = "0,0.5,1,2",
    device: Device = "auto",
) -> None:
    """Correlate distances of pairs with the size of their gradients, as AdaSample's figure 2. Resumes after Ctrl-C."""
    from keypatch.settings import apply_settings
    from keypatch.studies.gradients.study import GradientsSetup, study_gradients
    from keypatch.studies.gradients.table import HEADS, PAGE, table_of

    setup = apply_settings(GradientsSetup(), [f"pairs={pairs}", f"seeds=[{seeds}]", f"noise=[{noise}]"])
    with ProgressBar() as progress:
        found = study_gradients(descriptors, data, out, setup, device=device, progress=progress)
    console = open_console()
    print_table(console, HEADS, table_of(found))
    console.print(f"Written: {out / PAGE}")
