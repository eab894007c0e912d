"""Pictures as values: panels of lines, points, bars and maps; matplotlib draws them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import MissingExtra
from keypatch.files import write_atomically

Floats = NDArray[np.float64]
Look = Literal["line", "sweep", "dots", "points", "printed", "filled", "bars", "marks", "arrows"]

_MARKS = ("o", "s", "^", "D", "v", "P")
_STROKES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Line:
    """A curve, or points. `low` and `high` are the spread over seeds; of arrows x, y are tips and low, high starts."""

    label: str
    x: Sequence[float] | Floats
    y: Sequence[float] | Floats
    look: Look = "line"
    low: Sequence[float] | Floats | None = None
    high: Sequence[float] | Floats | None = None
    colour: int | str | None = None  # of matplotlib's tab10; the next one unless given
    mark: int = 0  # of "marks"


@dataclass(frozen=True)
class Panel:
    """One pair of axes; `levels` are horizontal lines by what they are of, `map` values (rows, columns) over both."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...] = ()
    levels: dict[str, float] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False
    ticks: tuple[str, ...] = ()  # names of 0, 1, 2, ... on the x axis
    map: Floats | None = None
    extent: tuple[float, float, float, float] | None = None  # of the map
    square: bool = False  # both axes in the same unit
    limits: tuple[float, float] | None = None  # of the x axis
    y_limits: tuple[float, float] | None = None


def draw_panels(path: Path, panels: Sequence[Panel], title: str = "", columns: int = 3) -> None:
    """The panels side by side, in rows of so many, as a PNG file."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra.of("The figure was not drawn because it needs matplotlib", "plot") from error
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    width = max(5.6, 4.6 * columns)
    figure = Figure(figsize=(width, 0.5 + 3.7 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    if title:
        figure.suptitle(title, fontsize="medium")
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    for panel, axis in zip(panels, axes, strict=False):
        _draw(panel, axis, figure)
    with write_atomically(path) as file:
        figure.savefig(file, format="png", dpi=130, bbox_inches="tight")


def _draw(panel: Panel, axis: Any, figure: Any) -> None:
    if panel.map is not None:
        image = axis.imshow(panel.map, origin="lower", extent=panel.extent, aspect="auto", cmap="magma")
        figure.colorbar(image, ax=axis)
    bars = [line for line in panel.lines if line.look == "bars"]
    number = 0
    for line in panel.lines:
        if line.colour is None:
            colour, number = f"C{number % 10}", number + 1
        else:
            colour = f"C{line.colour}" if isinstance(line.colour, int) else line.colour
        if line.look == "bars":
            _draw_bars(line, axis, colour, bars.index(line), len(bars))
        else:
            _draw_line(line, axis, colour, number)
    for (what, level), stroke in zip(panel.levels.items(), ("--", ":", "-.") * 3, strict=False):
        axis.axhline(level, color="0.35", linestyle=stroke, linewidth=1.2, label=what)
    _finish(panel, axis)


def _draw_bars(line: Line, axis: Any, colour: str, number: int, count: int) -> None:
    width = 0.8 / count
    places = np.asarray(line.x) - 0.4 + width * (number + 0.5)
    axis.bar(places, line.y, width * 0.92, color=colour, label=line.label, yerr=_spread(line), capsize=2, alpha=0.85)


def _draw_line(line: Line, axis: Any, colour: str, number: int) -> None:
    mark = _MARKS[(line.colour if isinstance(line.colour, int) else number - 1) % len(_MARKS)]
    label = line.label or None
    if line.look == "line":
        stroke = _STROKES[max(number - 1, 0) // 10 % len(_STROKES)]
        axis.plot(line.x, line.y, color=colour, linestyle=stroke, label=label)
    elif line.look == "sweep":
        axis.errorbar(line.x, line.y, _spread(line), color=colour, marker=mark, markersize=5, capsize=3, label=label)
    elif line.look == "dots":
        axis.errorbar(line.x, line.y, _spread(line), color=colour, fmt=mark, markersize=7, capsize=4, label=label)
    elif line.look == "points":
        axis.plot(line.x, line.y, ".", color=colour, markersize=4, alpha=0.6, label=label)
    elif line.look == "printed":  # hollow, so that nobody takes them for measured
        axis.plot(line.x, line.y, "*", color=colour, markersize=11, markerfacecolor="none", label=label)
    elif line.look == "marks":
        axis.plot(line.x, line.y, _MARKS[line.mark], color=colour, markersize=6, markeredgewidth=0, label=label)
    elif line.look == "filled":
        axis.fill_between(line.x, line.y, color=colour, alpha=0.25, linewidth=0, label=label)
    elif line.look == "arrows":
        assert line.low is not None and line.high is not None
        for tip_x, tip_y, start_x, start_y in zip(line.x, line.y, line.low, line.high, strict=True):
            if np.hypot(tip_x - start_x, tip_y - start_y) > 1e-6:
                width = 4.0 if colour == "C3" else 1.5  # what lies under another one is still seen
                style = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
                axis.annotate("", (tip_x, tip_y), (start_x, start_y), arrowprops=style)
        axis.plot([], [], color=colour, label=label)
        axis.plot([*line.x, *line.low], [*line.y, *line.high], ".", markersize=0)  # arrows do not move the limits


def _spread(line: Line) -> Floats | None:
    if line.low is None or line.high is None or np.array_equal(line.low, line.high, equal_nan=True):
        return None
    y = np.asarray(line.y, dtype=np.float64)
    return np.stack([y - line.low, np.asarray(line.high) - y]).clip(min=0)


def _finish(panel: Panel, axis: Any) -> None:
    axis.set_title(panel.title, loc="left", fontsize="medium")
    axis.set_xlabel(panel.x)
    axis.set_ylabel(panel.y)
    if panel.log_x:
        places = sorted({float(x) for line in panel.lines for x in line.x})
        positive = [place for place in places if place > 0]
        if places and places[0] <= 0:  # 0 stands apart, left of the smallest
            axis.set_xscale("symlog", linthresh=positive[0] if positive else 1.0)
        else:
            axis.set_xscale("log")
        if len(places) <= 12:
            axis.set_xticks(places, [f"{place:g}" for place in places])
            axis.minorticks_off()
    if panel.log_y:
        axis.set_yscale("log")
    if panel.ticks:
        axis.set_xticks(range(len(panel.ticks)), panel.ticks)
        if sum(map(len, panel.ticks)) > 36:
            axis.tick_params("x", rotation=35)
            for text in axis.get_xticklabels():
                text.set_horizontalalignment("right")
    if panel.limits:
        axis.set_xlim(*panel.limits)
    if panel.y_limits:
        axis.set_ylim(*panel.y_limits)
    if panel.square:
        axis.set_aspect("equal", adjustable="datalim")
    if panel.map is None:
        axis.grid(alpha=0.3)
        axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    labels = [line.label for line in panel.lines if line.label] + list(panel.levels)
    if labels:  # below, where it hides nothing
        longest = max(map(len, labels))
        ticks = axis.get_xticklabels()
        rotated = bool(ticks) and bool(ticks[0].get_rotation())
        depth = -0.1 - 0.0165 * max(map(len, panel.ticks), default=0) if rotated else -0.16
        columns = 1 if longest > 30 else 2 if longest > 15 else 3
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, depth), "frameon": False}
        axis.legend(fontsize="small", ncols=columns, columnspacing=1.2, **place)


def panel_values(panel: Panel) -> dict[str, Any]:
    """Plain values for JSON; what is not defined is null."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, np.ndarray | list | tuple | range):
            return [plain(each) for each in (value.tolist() if isinstance(value, np.ndarray) else value)]
        if isinstance(value, float):
            return float(f"{value:.6g}") if np.isfinite(value) else None
        return value

    values = plain(asdict(panel))
    return {key: value for key, value in values.items() if value not in (None, [], {}, False)}
