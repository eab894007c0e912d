"""`keypatch export`: a descriptor as a file for other runtimes."""

from pathlib import Path
from typing import Annotated

import typer

from keypatch.cli.options import examples, options_of
from keypatch.cli.printing import open_console, print_table
from keypatch.commands.export import Exporting
from keypatch.progress import ProgressBar

app = typer.Typer(add_completion=False)


@app.command(
    epilog=examples(
        "keypatch export hynet-notredame --out hynet.onnx",
        "keypatch export hynet-notredame --int8 --out hynet-int8.onnx",
    )
)
@options_of(exporting=Exporting())
def export(
    descriptor: Annotated[str, typer.Argument(help="A name from `keypatch list`, a run folder or a weight file.")],
    out: Annotated[Path, typer.Option(help="File to write, ending in .onnx or .pt2; the weights are inside.")],
    exporting: Exporting,
) -> None:
    """Write a trained descriptor as ONNX or pt2, and compare it with the original on real patches."""
    from keypatch.benchmarks.scores import find_score
    from keypatch.commands.export import export as write

    with ProgressBar() as progress:
        made = write(descriptor, out, exporting, progress=progress)
    console, parity, bound = open_console(), made.parity, made.bound
    rows = [["largest difference in any entry", "", f"{parity.difference:.2g}", f"{bound.difference:g}"]]
    rows.append(["smallest cosine", "", f"{parity.cosine:.6f}", ""])
    for name, before in parity.before.items():
        score = find_score(name)
        rows.append([name, score.text(before), score.text(parity.after[name]), f"{bound.points:.1f} points worse"])
    print_table(console, [f"{parity.patches:,} patches of {parity.data}", "original", "exported", "bound"], rows)
    for fault in parity.faults(bound):
        console.print(f"Kept anyway (--force): {fault}")
    console.print(f"Written: {made.path}, {made.precision}, {made.size / 1e6:.1f} MB")
