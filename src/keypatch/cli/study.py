"""`keypatch study`: several recipes under the same conditions."""

from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import Compile, Device, Precision, examples
from keypatch.cli.printing import open_console, print_table

EXAMPLES = examples(
    "keypatch study methods --data embedded --pairs 20000",
    "keypatch study methods --data embedded --pairs 20000 --recipe hynet",
)

UBC_EXAMPLES = examples(
    "keypatch study ubc --runs runs/liberty runs/notredame runs/yosemite --data data",
    "keypatch study ubc --beside sift --beside rootsift --data data",
)

app = typer.Typer(no_args_is_help=True)


@app.callback()
def study() -> None:
    """Compare methods: several recipes under the same conditions."""


@app.command("methods", epilog=EXAMPLES)
def methods(
    data: Annotated[list[str], typer.Option(help="A folder of patches, or embedded; repeat it to join several.")],
    pairs: Annotated[int, typer.Option(help="Budget in pairs of every recipe.")],
    out: Annotated[Path, typer.Option(help="The study's folder; a study in it is gone on with.")] = Path(
        "studies/methods"
    ),
    recipe: Annotated[
        list[str] | None, typer.Option(help="A name or a recipe.toml; may be repeated. All for patches if not given.")
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="A patch set with pair lists to score on; may be repeated.")
    ] = None,
    hpatches: Annotated[str | None, typer.Option(help="A folder of HPatches strips to score on.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="A seed; may be repeated. 0 if not given.")] = None,
    batch: Annotated[int, typer.Option(help="Pairs in a batch, for every recipe.")] = 256,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Replace a field in every recipe.")
    ] = None,
    dry: Annotated[
        bool, typer.Option("--dry", help="Train nothing; show the table as it stands and what is missing.")
    ] = False,
    threads: Annotated[int | None, typer.Option(help="CPU threads of the trainings.")] = None,
    device: Device = "auto",
    precision: Precision = "auto",
    compile: Compile = "auto",
) -> None:
    """Train every recipe on the same data, batch and budget and score it on the way; Ctrl-C and again goes on."""
    from keypatch.studies.methods import study_methods
    from keypatch.studies.methods_page import cell, dimension, heading, main_columns, why
    from keypatch.training.progress import reporter_for

    table = study_methods(
        data,
        pairs,
        out,
        recipes=recipe or (),
        tests=test or (),
        hpatches=hpatches,
        seeds=seed or (0,),
        batch=batch,
        settings=settings or (),
        dry=dry,
        device=device,
        precision=precision,
        compile=compile,
        threads=threads,
        reporter=reporter_for(),
    )
    columns, console = main_columns(table), open_console()
    if table.lines:
        rows = [
            [line.recipe, dimension(line), *(cell(column, line.scores(column)) for column in columns)]
            for line in table.lines
        ]
        print_table(console, ["", "d", *map(heading, columns)], rows, numbers=True)
    for row in table.unfinished:
        console.print(f"{row.name}: {why(row)}")
    if not dry:
        console.print(f"Written: {out / 'table.md'}")


@app.command("ubc", epilog=UBC_EXAMPLES)
def ubc(
    data: Annotated[Path, typer.Option(help="The folder that holds liberty, notredame and yosemite.")],
    runs: Annotated[
        tuple[str, str, str] | None,
        typer.Option(
            metavar="RUN RUN RUN", help="Run folders, one trained on each set; liberty=RUN says which it was."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The study's folder; rows are added to those in it.")] = Path("studies/ubc"),
    name: Annotated[str | None, typer.Option(help="Of the row; the recipe's name if not given.")] = None,
    beside: Annotated[list[str] | None, typer.Option(help="sift or rootsift, scored too; may be repeated.")] = None,
    pair_list: Annotated[
        str, typer.Option(help="The list of pairs that makes the table, without .txt.")
    ] = "m50_100000_100000_0",
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Score three runs on the six splits of PhotoTour, as the papers' tables; Ctrl-C and again goes on."""
    from keypatch.studies.ubc import study_ubc
    from keypatch.studies.ubc_page import COLUMNS, score_cells
    from keypatch.training.progress import reporter_for

    table = study_ubc(
        runs or (),
        data,
        out,
        name=name,
        beside=beside or (),
        pair_list=pair_list,
        device=device,
        precision=precision,
        reporter=reporter_for(),
    )
    rows = [[row.name, "last", *score_cells(row.last(), table.fpr95)] for row in table.rows]
    rows += [
        [row.name, "best on the test sets", *score_cells(row.best(table.fpr95), table.fpr95)]
        for row in table.rows
        if row.is_trained
    ]
    console = open_console()
    print_table(console, ["FPR95 %", "checkpoint", *COLUMNS], rows, numbers=True)
    console.print(f"Written: {out / 'table.md'}")
