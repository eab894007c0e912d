"""Draw docs/quickstart.png from a quickstart's result files: `python docs/quickstart_picture.py runs/quickstart`."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from keypatch.benchmarks import Result

COLOURS = {"sift": "#9aa5b1", "rootsift": "#5f6c7b", "untrained": "#e3b778", "trained": "#1f6f8b"}


def main(run: Path, out: Path) -> None:
    results = [Result.load(run / f"{name}.json") for name in COLOURS]
    hard = next(name.removeprefix("fpr95.") for name in results[0].scores if name.startswith("fpr95.hard"))
    figure, (bars, curves) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    names = list(COLOURS)[::-1]
    values = [100 * result.scores[f"fpr95.{hard}"] for result in results][::-1]
    bars.bar_label(bars.barh(names, values, color=[COLOURS[name] for name in names]), fmt="%.1f %%", padding=3)
    bars.set(title="FPR95 on hard pairs (lower is better)", xlim=(0, 1.15 * max(values)), xlabel="%")
    for result in results:
        curve = result.curves[f"roc.{hard}"]
        curves.plot(100 * curve.x, 100 * curve.y, color=COLOURS[result.descriptor])
    curves.set(
        title="ROC, in the same colours",
        xlabel="false positives, %",
        ylabel="true positives, %",
        xlim=(0, 30),
        ylim=(70, 100),
    )
    for axes in (bars, curves):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(out, dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/quickstart"), Path(__file__).with_name("quickstart.png"))
