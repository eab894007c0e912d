"""`keypatch study`: several recipes under the same conditions."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keypatch.cli.options import Device, Precision, examples, options_of
from keypatch.cli.printing import open_console, print_table
from keypatch.progress import ProgressBar
from keypatch.training.conditions import Conditions

if TYPE_CHECKING:
    from keypatch.studies.table import Line, Table

app = typer.Typer(no_args_is_help=True, add_completion=False)

TrainingData = Annotated[
    list[str], typer.Option("--data", help="Training data: a patch folder, or embedded; repeat to combine several.")
]
Test = Annotated[list[str] | None, typer.Option(help="Patch set with pair lists to score on; may be repeated.")]
Strips = Annotated[str | None, typer.Option(help="Folder of HPatches strips to score on.")]
Split = Annotated[
    str | None,
    typer.Option(
        help="Score the three HPatches tasks, not only rank-1, on split a, b, c, full, illum, view or all. Training "
        "strips use its training part."
    ),
]
OfEveryRecipe = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Set a field of every recipe.")
]
AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published", help="Train the recipes as printed in the papers, without our choices and detector noise."
    ),
]
Dry = Annotated[
    bool, typer.Option("--dry", help="Do not train; show the table so far, what is missing and what it will cost.")
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
@options_of(without=("checkpoint_seconds", "tensorboard", "keep", "keep_every"), conditions=Conditions())
def methods(
    data: TrainingData,
    pairs: Annotated[int, typer.Option(help="Training budget of every recipe, in pairs.")],
    conditions: Conditions,
    out: Annotated[Path, typer.Option(help="Study folder; a study already in it is resumed.")] = Path(
        "studies/methods"
    ),
    recipe: Annotated[
        list[str] | None,
        typer.Option(help="Recipe name or recipe.toml; may be repeated. Default: all patch recipes."),
    ] = None,
    test: Test = None,
    hpatches: Strips = None,
    split: Split = None,
    seed: Annotated[list[int] | None, typer.Option(help="Random seed; may be repeated. Default: 0.")] = None,
    batch: Annotated[int, typer.Option(help="Pairs per batch, for every recipe.")] = 256,
    settings: OfEveryRecipe = None,
    published: AsPublished = False,
    dry: Dry = False,
) -> None:
    """Train recipes with the same data, batch size and budget, and score them. Run it again to resume after Ctrl-C."""
    from keypatch.studies.methods import MethodsSetup, study_methods

    with ProgressBar() as progress:
        table = study_methods(
            data,
            MethodsSetup(pairs, batch, tuple(seed or (0,)), tuple(settings or ()), published),
            out,
            conditions,
            recipes=recipe or (),
            tests=test or (),
            hpatches=hpatches,
            split=split,
            dry=dry,
            progress=progress,
        )
    _print_study(table, table.lines)
    if not dry:
        open_console().print(f"Written: {out / 'table.md'}")


@app.command(
    "sweep",
    epilog=examples(
        "keypatch study sweep hynet --vary loss.alpha=1,2 --data embedded --pairs 9999",
        "keypatch study sweep hynet --vary pairs=999,9999 --data embedded --seeds 0,1",
    ),
)
@options_of(without=("checkpoint_seconds", "tensorboard", "keep_every"), conditions=Conditions())
def sweep(
    recipes: Annotated[list[str], typer.Argument(help="Names from `keypatch list recipes`, or recipe.toml files.")],
    data: TrainingData,
    conditions: Conditions,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH=V1,V2,...", help="Values of a field to try; repeat for more fields, in all combinations."
        ),
    ] = None,
    pairs: Annotated[
        int | None, typer.Option(help="Training budget of every run, in pairs, unless --vary pairs=N1,N2 sets it.")
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="S1,S2,...", help="Random seeds; everything is trained once per seed.")
    ] = ("0"),
    out: Annotated[Path, typer.Option(help="Study folder; a study already in it is resumed.")] = Path("studies/sweep"),
    test: Test = None,
    hpatches: Strips = None,
    split: Split = None,
    held_out: Annotated[
        float | None, typer.Option(help="Hold out this share of the training points, such as 0.1, and score on it.")
    ] = None,
    settings: OfEveryRecipe = None,
    published: AsPublished = False,
    dry: Dry = False,
) -> None:
    """Train recipes with varied fields and score them. Run it again to resume after Ctrl-C."""
    from keypatch.studies.sweep import FIGURE, parse_seeds, study_sweep
    from keypatch.studies.table import lines_in_order

    with ProgressBar() as progress:
        table = study_sweep(
            recipes,
            data,
            out,
            conditions,
            vary=vary or (),
            pairs=pairs,
            seeds=parse_seeds(seeds),
            settings=settings or (),
            published=published,
            tests=test or (),
            hpatches=hpatches,
            split=split,
            held_out=held_out,
            dry=dry,
            progress=progress,
        )
    _print_study(table, lines_in_order(table))
    if not dry:
        figure = f" and {out / FIGURE}" if (out / FIGURE).exists() else ""
        open_console().print(f"Written: {out / 'table.md'}{figure}")


@app.command(
    "compare",
    epilog=examples(
        'keypatch study compare studies/sweep "hynet pairs=9999" "hynet pairs=999"',
        "keypatch study compare studies/methods hynet hardnet",
    ),
)
def compare(
    folder: Annotated[Path, typer.Argument(help="Folder of a study.")],
    method: Annotated[str, typer.Argument(help="Label of the arm that is claimed to be better.")],
    control: Annotated[str, typer.Argument(help="Label of the arm to compare it with.")],
    column: Annotated[
        list[str] | None,
        typer.Option(
            help='Score that decides the verdict, such as "castle-test hard FPR95 %"; may be repeated. Default: the '
            "first score of every test set with pair lists."
        ),
    ] = None,
) -> None:
    """Compare two arms of a study seed by seed: the gain with its 95 % interval, and a verdict."""
    from keypatch.studies.page import cell
    from keypatch.studies.table import heading
    from keypatch.studies.verdicts import study_compare

    compared, console = study_compare(folder, method, control, column or ()), open_console()
    rows = []
    for each in compared.differences:
        gains = cell(each.column, each.gains)
        low, high = (cell(each.column, [end]) for end in each.interval)
        interval = "-" if low == "-" else f"{low} to {high}"
        rows.append(
            [heading(each.column), cell(each.column, each.method), cell(each.column, each.control), gains, interval]
        )
    print_table(console, ["", method, control, "gain", "95 % interval"], rows, numbers=True)
    seeds = ", ".join(map(str, compared.differences[0].seeds))
    console.print(f"Seeds: {seeds}. A positive gain means that {method} is better. Verdict: {compared.verdict}.")


def _print_study(table: "Table", lines: "Sequence[Line]") -> None:
    from keypatch.benchmarks.contamination import MARK
    from keypatch.studies.page import cell, dimension, main_columns, marked_heading, why

    columns, console = main_columns(table), open_console()
    if lines:
        rows = [
            [line.label, dimension(line), *(cell(column, line.scores(column)) for column in columns)] for line in lines
        ]
        print_table(console, ["", "d", *(marked_heading(table, column) for column in columns)], rows, numbers=True)
    for name, sentence in table.seen.items():
        console.print(f"{MARK} {name}: {sentence}")
    for row in table.unfinished:
        console.print(f"{row.name}: {why(row)}")
    if table.cost is not None:
        costs = [
            [arm.label, f"{arm.runs:,}", f"{arm.pairs:,}", f"{arm.rate:,.0f}" if arm.runs else "-", f"{arm.hours:.2f}"]
            for arm in table.cost.arms
        ]
        if costs:
            print_table(console, ["to do", "runs", "pairs", "pairs/s", "core-hours"], costs, numbers=True)
        console.print(table.cost.sentence())


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
        typer.Option(metavar="RUN RUN RUN", help="Three run folders, one per training set; liberty=RUN names the set."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Study folder; new rows are added to its table.")] = Path("studies/ubc"),
    name: Annotated[str | None, typer.Option(help="Name of the row; default: the recipe's.")] = None,
    beside: Annotated[list[str] | None, typer.Option(help="Also score sift or rootsift; may be repeated.")] = None,
    pair_list: Annotated[str, typer.Option(help="Pair list to score, without .txt.")] = "m50_100000_100000_0",
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Score three runs on the six splits of PhotoTour, as papers do. Run it again to resume after Ctrl-C."""
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
        "keypatch study paper hynet-fig-5b",
        "keypatch study paper hynet-table-3 --data embedded --pairs 2000",
    ),
)
@options_of(without=("checkpoint_seconds", "tensorboard", "keep", "keep_every"), conditions=Conditions())
def paper(
    conditions: Conditions,
    name: Annotated[
        str | None, typer.Argument(help="A table or figure, such as hynet-table-3; without one, all are listed.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Training data: a patch folder, or embedded; may be repeated. Where the paper uses several "
            "sets, one network is trained on each and scored on the others."
        ),
    ] = None,
    pairs: Annotated[int | None, typer.Option(help="Training budget of every row, in pairs.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the page and the study. Default: studies/papers/NAME.")
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Patch set with pair lists to score on; may be repeated.")
    ] = None,
    hpatches: Annotated[
        str | None, typer.Option(help="Folder of HPatches strips, scored by verification, matching and retrieval.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="HPatches split to score; default: all sequences. Training strips use its training part."),
    ] = None,
    scenes: Annotated[
        list[str] | None, typer.Option(help="Folder of photos to reconstruct (ETH tables); may be repeated.")
    ] = None,
    poses: Annotated[str | None, typer.Option(help="Folder of scenes with known cameras (IMC table).")] = None,
    planes: Annotated[str | None, typer.Option(help="Folder of photos of planes with homographies.")] = None,
    study: Annotated[
        Path | None, typer.Option(help="Use the runs in this study folder and add missing ones to it.")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Random seed; may be repeated. Default: 0.")] = None,
    batch: Annotated[
        int | None, typer.Option(help="Pairs per batch, unless the plan varies it. Default: each recipe's own.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Set a field of every recipe."),
    ] = None,
    published: Annotated[
        bool,
        typer.Option(
            "--as-published/--as-recipe", help="Train the recipes as printed, without detector noise, or our versions."
        ),
    ] = True,
    dry: Annotated[bool, typer.Option("--dry", help="Do not train; show the plan and its cost.")] = False,
) -> None:
    """Make a table or figure from one of the five papers, beside the printed values. Run it again to resume."""
    from keypatch.studies.papers.catalogue import PLANS
    from keypatch.studies.papers.page import PAGE
    from keypatch.studies.papers.study import PaperSetup, study_paper

    console = open_console()
    if name is None:
        rows = [[plan.name, plan.source, plan.title, plan.needs] for plan in PLANS.values()]
        print_table(console, ["name", "in the paper", "what it shows", "needs"], rows)
        return
    with ProgressBar() as progress:
        made = study_paper(
            name,
            data or (),
            PaperSetup(pairs, batch, tuple(seed or (0,)), tuple(settings or ()), published),
            out,
            conditions,
            tests=test or (),
            hpatches=hpatches,
            split=split,
            scenes=scenes or (),
            poses=poses,
            planes=planes,
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
            help="Run folders, measured at their kept (--keep) and newest weights, or other networks.",
        ),
    ],
    data: Annotated[str, typer.Option(help="Patch set to draw the pairs from, or embedded-test.")],
    out: Annotated[Path, typer.Option(help="Study folder; new runs are added to those already in it.")] = Path(
        "studies/gradients"
    ),
    pairs: Annotated[int, typer.Option(help="Pairs of different points; negatives are mined among them.")] = 256,
    seeds: Annotated[str, typer.Option(metavar="N,N,...", help="Random seeds of the pairs.")] = "0",
    noise: Annotated[
        str,
        typer.Option(
            metavar="X,X,...", help="Detector noise levels, an equal share of the pairs at each; 0 adds none."
        ),
    ] = "0,0.5,1,2",
    device: Device = "auto",
) -> None:
    """Correlate pair distances with gradient norms, as in AdaSample's figure 2. Run it again to resume after Ctrl-C."""
    from keypatch.settings import apply_settings
    from keypatch.studies.gradients.study import GradientsSetup, study_gradients
    from keypatch.studies.gradients.table import HEADS, PAGE, table_of

    setup = apply_settings(GradientsSetup(), [f"pairs={pairs}", f"seeds=[{seeds}]", f"noise=[{noise}]"])
    with ProgressBar() as progress:
        found = study_gradients(descriptors, data, out, setup, device=device, progress=progress)
    console = open_console()
    print_table(console, HEADS, table_of(found))
    console.print(f"Written: {out / PAGE}")
