"""`keypatch study`: several recipes under the same conditions."""

from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import Device, Precision, examples, options_of
from keypatch.cli.printing import open_console, print_table
from keypatch.progress import ProgressBar
from keypatch.training.conditions import Conditions

app = typer.Typer(no_args_is_help=True, add_completion=False)

Split = Annotated[
    str | None,
    typer.Option(
        help="Score the three HPatches tasks on a, b, c, full, illum, view or all sequences, not rank-1 alone; strips "
        "to train on: the training part."
    ),
]


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
    split: Split = None,
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
    from keypatch.studies.methods import MethodsSetup, study_methods
    from keypatch.studies.page import cell, dimension, main_columns, marked_heading, why

    with ProgressBar() as progress:
        table = study_methods(
            data,
            MethodsSetup(pairs, batch, tuple(seed or (0,)), tuple(settings or ())),
            out,
            conditions,
            recipes=recipe or (),
            tests=test or (),
            hpatches=hpatches,
            split=split,
            dry=dry,
            progress=progress,
        )
    columns, console = main_columns(table), open_console()
    if table.lines:
        rows = [
            [line.label, dimension(line), *(cell(column, line.scores(column)) for column in columns)]
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
    "paper",
    epilog=examples(
        "keypatch study paper",
        "keypatch study paper hynet-fig-5b",
        "keypatch study paper hynet-table-3 --data embedded --pairs 2000 --batch 128",
    ),
)
@options_of(without=("checkpoint_seconds", "tensorboard", "keep"), conditions=Conditions())
def paper(
    conditions: Conditions,
    name: Annotated[
        str | None, typer.Argument(help="A table or figure, such as hynet-table-3; without one, all are listed.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Training data: a patch folder, or embedded; may be repeated. Where the paper trains on several sets, "
            "each is trained on by itself and scored on the others."
        ),
    ] = None,
    pairs: Annotated[int | None, typer.Option(help="Training budget of every row, in pairs.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for page and study. Default: studies/papers/NAME.")] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Patch set with pair lists to score on; may be repeated.")
    ] = None,
    hpatches: Annotated[
        str | None, typer.Option(help="Folder of HPatches strips, scored by verification, matching and retrieval.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Split of the strips; default: all sequences. Strips to train on: its training part."),
    ] = None,
    scenes: Annotated[
        list[str] | None, typer.Option(help="Folder of photos to make a model of (ETH tables); may be repeated.")
    ] = None,
    poses: Annotated[str | None, typer.Option(help="Folder of scenes with known cameras (IMC table).")] = None,
    planes: Annotated[str | None, typer.Option(help="Folder of photos of planes with homographies.")] = None,
    study: Annotated[
        Path | None, typer.Option(help="Use the runs of this study folder, and add the missing ones to it.")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Random seed; may be repeated. Default: 0.")] = None,
    batch: Annotated[
        int | None, typer.Option(help="Pairs per batch, unless the plan varies it. Default: each recipe's own.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Set a field of every recipe."),
    ] = None,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published/--as-recipe", help="Train what the papers print, without detector noise, or our recipes."
        ),
    ] = True,
    dry: Annotated[bool, typer.Option("--dry", help="Do not train; show the plan with its cost.")] = False,
) -> None:
    """Make a table or figure of one of the five papers, what is printed beside it. Run it again to resume."""
    from keypatch.studies.papers.catalogue import PLANS
    from keypatch.studies.papers.page import PAGE
    from keypatch.studies.papers.photos import Photos
    from keypatch.studies.papers.study import PaperSetup, study_paper

    console = open_console()
    if name is None:
        rows = [[plan.name, plan.source, plan.title, plan.needs] for plan in PLANS.values()]
        print_table(console, ["name", "in the paper", "what it shows", "takes"], rows)
        return
    with ProgressBar() as progress:
        made = study_paper(
            name,
            data or (),
            PaperSetup(pairs, batch, tuple(seed or (0,)), tuple(settings or ()), as_published),
            out,
            conditions,
            tests=test or (),
            hpatches=hpatches,
            split=split,
            photos=Photos(tuple(scenes or ()), poses, planes),
            study=study,
            dry=dry,
            progress=progress,
        )
    console.print(f"{made.plan.source}: {made.plan.title}. {made.plan.metric}.")
    for grid in made.made.grids:
        if grid.title:
            console.print(grid.title)
        print_table(console, list(grid.head), [list(row) for row in grid.rows], numbers=True)
    for note in (*made.plan.says, *made.plan.notes, *made.notes):
        console.print(note)
    for row, why_not in made.unfinished:
        console.print(f"{row}: {why_not}")
    if not dry:
        console.print(f"Written: {(out or Path('studies/papers') / made.plan.name) / PAGE}")
