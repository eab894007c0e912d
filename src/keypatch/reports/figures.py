"""Curves as pictures in the page (SVG); a person points at one and the page's script reads the value off the line."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from keypatch.metrics import Curve
from keypatch.reports.axes import Axis, fitted
from keypatch.reports.markup import Markup, element

WIDTH, HEIGHT = 360, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 350, 10, 206
_POINTS = 160  # of a line: closer than two pixels
_LEAST = 0.1  # of an axis of shares: a smaller one would make noise look like a fall
_COLOURS, _DASHES = 8, 4  # as in page.css


@dataclass(frozen=True, eq=False)
class Line:
    """A curve and whose it is: the number of a descriptor in the legend."""

    of: int
    name: str
    curve: Curve


@dataclass(frozen=True)
class Kind:
    """How curves of a kind are drawn."""

    title: str
    x: str
    y: str
    log: bool = False
    shares: bool = False  # x too is a share, in %
    from_zero: bool = False  # the heights of several figures are to be compared


KINDS = {  # the first part of a curve's name
    "roc": Kind("ROC", "false-positive rate, %", "recall, %", log=True, shares=True),
    "pr": Kind("Precision and recall", "recall, %", "precision, %", shares=True),
    "mma": Kind("Mean matching accuracy", "pixels", "right matches, %", from_zero=True),
    "maa": Kind("Pose accuracy", "degrees", "right poses, %", from_zero=True),
    "share": Kind("Turned photographs", "degrees turned", "matched correctly, %"),
}


def curve_title(name: str) -> str:
    """ "roc.m50_100" -> "ROC, m50_100"; a kind without a title is called by its own name."""
    kind, _, of = name.partition(".")
    title = KINDS[kind].title if kind in KINDS else kind
    return f"{title}, {of}" if of else title


def curve_figure(name: str, lines: Sequence[Line]) -> Markup:
    """The curves of one name, a line for each descriptor."""
    kind = KINDS.get(name.partition(".")[0], Kind(name, "", ""))
    shares = kind.title != name
    xs = np.concatenate([line.curve.x for line in lines])
    positive = xs[np.isfinite(xs) & (xs > 0)]
    if kind.log and positive.size and positive.min() < 1:
        x = Axis(kind.x, 10.0 ** max(-6, np.floor(np.log10(positive.min()))), 1.0, log=True, percent=True)
    else:
        x = fitted(kind.x, xs, percent=kind.shares)
    ys = np.concatenate([[0.0] if kind.from_zero else [], *(line.curve.y for line in lines)])
    y = fitted(kind.y, ys, percent=shares, span=_LEAST if shares else 0.0)
    return draw(curve_title(name), x, y, lines)


def draw(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> Markup:
    """A figure with its caption: axes, the lines, and what the script needs to turn a place back into values."""
    drawn = [element("g", *(_line(x, y, line) for line in lines), class_="lines")]
    picture = element(
        "svg",
        _grid(x, y),
        *drawn,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        tabindex=0,
        aria_label=f"{title}: {y.label} over {x.label}; arrow keys read the values",
        data_axes=json.dumps({"x": _spoken(x, _LEFT, _RIGHT), "y": _spoken(y, _BOTTOM, _TOP)}),
        class_="curves",
    )
    return element("figure", element("figcaption", title), picture, class_="plot")


def similarity_axes(curves: Sequence[Curve]) -> tuple[Axis, Axis]:
    """Axes that hold all these densities, so that figures of several descriptors compare."""
    x, y = (np.concatenate([getattr(curve, side) for curve in curves]) for side in "xy")
    seen = y > 1e-3 * np.nanmax(y, initial=0.0)
    low = np.floor(4 * min(x[seen], default=-1.0)) / 4
    return Axis("cosine similarity", float(max(-1.0, min(low, 0.75))), 1.0), fitted("density", np.append(y, 0.0))


def histogram(title: str, of: int, matching: Curve, others: Curve, axes: tuple[Axis, Axis]) -> Markup:
    """Densities of the similarity of matching pairs and of others (GOR, figure 5)."""
    x, y = axes
    areas = []
    for kind, curve in (("others", others), ("matching", matching)):
        shown = np.isfinite(curve.x) & np.isfinite(curve.y) & (curve.x >= x.low)
        at, height = x.places(curve.x[shown], _LEFT, _RIGHT), y.places(curve.y[shown], _BOTTOM, _TOP)
        if len(at):
            corners = [(at[0], _BOTTOM), *zip(at, height, strict=True), (at[-1], _BOTTOM)]
            areas.append(element("polygon", points=_points(corners), class_=f"area {kind}"))
    label = f"{title}: densities of the cosine similarity of matching and of other pairs"
    picture = element("svg", _grid(x, y), *areas, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=label)
    return element("figure", element("figcaption", swatch(of), title), picture, class_="plot", data_of=of)


def swatch(of: int) -> Markup:
    """The sign of a descriptor: a bit of its line, in its colour and with its dashes."""
    line = element("line", x1=1, y1=5, x2=27, y2=5, class_=line_class(of))
    return element("svg", line, viewBox="0 0 28 10", class_="swatch", aria_hidden="true")


def line_class(of: int) -> str:
    return f"line c{of % _COLOURS} d{(of + of // _COLOURS) % _DASHES}"


def _line(x: Axis, y: Axis, line: Line) -> Markup:
    shown = np.isfinite(line.curve.x) & np.isfinite(line.curve.y)
    before = np.flatnonzero(shown & (line.curve.x < x.low))  # of a rate of 0 on a logarithmic axis: the last point
    shown[before[:-1]] = False
    at = Curve(x.places(line.curve.x[shown], _LEFT, _RIGHT), y.places(line.curve.y[shown], _BOTTOM, _TOP))
    thin = at.thinned(_POINTS)
    points = _points(zip(thin.x, thin.y, strict=True))
    return element("polyline", points=points, class_=line_class(line.of), data_of=line.of, data_name=line.name)


def _points(corners: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{a:.2f},{b:.2f}" for a, b in corners)


def _grid(x: Axis, y: Axis) -> list[Markup]:
    parts = []
    for value, at in zip(y.ticks(), y.places(np.array(y.ticks()), _BOTTOM, _TOP), strict=True):
        parts.append(element("line", x1=_LEFT, x2=_RIGHT, y1=f"{at:.1f}", y2=f"{at:.1f}", class_="grid"))
        parts.append(element("text", y.text(value), x=_LEFT - 7, y=f"{at + 4:.1f}", text_anchor="end"))
    for value, at in zip(x.ticks(), x.places(np.array(x.ticks()), _LEFT, _RIGHT), strict=True):
        parts.append(element("line", x1=f"{at:.1f}", x2=f"{at:.1f}", y1=_BOTTOM, y2=_BOTTOM + 4, class_="tick"))
        parts.append(element("text", x.text(value), x=f"{at:.1f}", y=_BOTTOM + 18, text_anchor="middle"))
    parts.append(element("line", x1=_LEFT, x2=_RIGHT, y1=_BOTTOM, y2=_BOTTOM, class_="tick"))
    middle = (_LEFT + _RIGHT) / 2
    parts.append(element("text", x.label, x=middle, y=HEIGHT - 6, text_anchor="middle", class_="name"))
    turned = f"translate(11 {(_TOP + _BOTTOM) / 2}) rotate(-90)"
    parts.append(element("text", y.label, transform=turned, text_anchor="middle", class_="name"))
    return parts


def _spoken(axis: Axis, start: float, end: float) -> dict[str, object]:
    """What the script needs to turn a place on the axis into a value and to write it."""
    label = axis.label.removesuffix(", %")
    return {
        "label": label, "low": axis.low, "high": axis.high, "log": axis.log, "percent": axis.percent,
        "start": start, "end": end,
    }  # fmt: skip
