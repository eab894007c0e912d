"""Measure and draw docs/results/rotation.png: `python docs/rotation_figure.py [PHOTO ...]`; some minutes.

Without arguments on three photographs of scikit-image. Prints the table of docs/results/rotation.md.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import skimage

from keypatch.benchmarks import Result
from keypatch.benchmarks.planar.rotation import Rotation, evaluate_rotation
from keypatch.cli.main import answer
from keypatch.progress import ProgressBar
from keypatch.zoo import load

COLOURS = {"rootsift": "#5f6c7b", "hynet-notredame": "#1f6f8b"}
PHOTOS = ("astronaut.png", "camera.png", "coffee.png")
OUT = Path(__file__).parent / "results" / "rotation.png"


def main() -> None:
    photos = [Path(name) for name in sys.argv[1:]] or [Path(skimage.__file__).parent / "data" / name for name in PHOTOS]
    results = [evaluate_rotation(load(name, "cpu", "float32"), photos, progress=ProgressBar()) for name in COLOURS]
    draw(results)
    print_table(results)


def draw(results: list[Result]) -> None:
    names = list(results[0].curves)
    figure, panels = plt.subplots(
        1, len(names), figsize=(3.2 * len(names), 2.8), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, name in zip(panels[0], names, strict=True):
        for result in results:
            curve = result.curves[name]
            axes.plot(curve.x, 100 * curve.y, ".-", color=COLOURS[result.descriptor], label=result.descriptor)
        axes.axhline(93, color="#c0504d", linewidth=0.8, linestyle="--")
        axes.set(
            title=name.removeprefix("share."), xlabel="turned by, degrees", xticks=range(0, 361, 90), ylim=(90, 100.5)
        )
        axes.spines[["top", "right"]].set_visible(False)
    panels[0, 0].set_ylabel("matched correctly, %")
    panels[0, 0].legend(frameon=False, loc="lower left")
    figure.savefig(OUT, dpi=110)


def print_table(results: list[Result]) -> None:
    print("| photo | descriptor | lowest of the steps, % | mean, % |\n|---|---|---|---|")
    for name in results[0].curves:
        for result in results:
            shares = 100 * result.curves[name].y
            print(f"| {name.removeprefix('share.')} | {result.descriptor} | {shares.min():.1f} | {shares.mean():.1f} |")
    root, trained = results
    behind = max(float((root.curves[name].y - trained.curves[name].y).max()) for name in root.curves)
    print(f"\nfound again, mean over photos and steps: {100 * root.scores['found_again']:.1f} % of the keypoints")
    print(f"{trained.descriptor} minus {root.descriptor}, worst photo and step: {-100 * behind:+.1f} points")
    turns = Rotation().turns
    print(f"steps: {turns[0]} to {turns[-1]} degrees; written to {OUT.name}")


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
