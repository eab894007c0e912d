"""Figures that need no training and no data: what the functions of `losses` say, by their own gradients."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from keypatch.losses import Euclidean, GradientModulation, Hybrid, InnerProduct, Measure, ScaleAware
from keypatch.losses.hybrid import largest_slope
from keypatch.reports.published import published_in
from keypatch.studies.papers.drawing import Floats, Line, Panel

_PAPERS_D = Euclidean(eps=0.0)


def hynet_figure_1(theta: float = math.radians(50), lengths: tuple[float, float] = (1.0, 1.5)) -> list[Panel]:
    """HyNet eq. 3: the steps on two descriptors at this angle, along them and across them."""
    panels = []
    for sign, pair in ((1, "positive"), (-1, "negative")):
        for unit in (False, True):
            for measure, name in ((InnerProduct(), "s"), (_PAPERS_D, "d")):
                kind = "unit" if unit else "raw"
                panels.append(_directions(measure, f"{name}, {kind}, {pair} pair", sign, unit, theta, lengths))
    return panels


def descent(measure: Measure, ends: Tensor, sign: int, *, unit: bool) -> Tensor:
    """The step on both descriptors (2, 2): against the gradient of the measure of a positive, along a negative's."""
    ends = ends.clone().requires_grad_()
    x, y = (normalize(ends) if unit else ends)[:, None]
    (gradient,) = torch.autograd.grad(sign * measure(x, y).sum(), ends)
    return -gradient


def _directions(
    measure: Measure, title: str, sign: int, unit: bool, theta: float, lengths: tuple[float, float]
) -> Panel:
    tilt = (math.pi / 2 - theta) / 2
    angles = torch.tensor([tilt, tilt + theta], dtype=torch.float64)
    ends = torch.stack([angles.cos(), angles.sin()], 1) * torch.tensor(lengths, dtype=torch.float64)[:, None]
    step = 0.5 * descent(measure, ends, sign, unit=unit)
    along = (step * normalize(ends)).sum(1, keepdim=True) * normalize(ends)
    parts = {"step": (step, "C3"), "along": (along, "C2"), "across": (step - along, "C0")}
    lines = [_arrows("descriptors", torch.zeros_like(ends), ends, "black")]
    lines += [_arrows(name, ends, ends + part, colour) for name, (part, colour) in parts.items()]
    return Panel(title, "first number", "second number", tuple(lines), square=True)


def _arrows(label: str, start: Tensor, tip: Tensor, colour: str) -> Line:
    (x, y), (low, high) = tip.numpy().T, start.numpy().T
    return Line(label, x, y, "arrows", low, high, colour)


def slope(measure: Measure, theta: Floats) -> Floats:
    """The slope of a measure by the angle between two unit vectors, by its own gradient."""
    angle = torch.from_numpy(theta).requires_grad_()
    x = torch.stack([torch.ones_like(angle), torch.zeros_like(angle)], 1)
    y = torch.stack([angle.cos(), angle.sin()], 1)
    (gradient,) = torch.autograd.grad(measure(x, y).sum(), angle)
    return np.asarray(gradient.numpy())


def hynet_slopes() -> Panel:
    """HyNet figure 2(b), eq. 4."""
    theta = np.linspace(1e-3, math.pi, 400)
    lines = (
        Line("s: |sin theta|", theta, slope(InnerProduct(), theta)),
        Line("d: cos(theta / 2)", theta, slope(_PAPERS_D, theta)),
        Line("where pairs are: up to pi/2", [0, math.pi / 2], [1.05, 1.05], "filled", colour="0.6"),
    )
    return Panel("(b) slopes of s and d", "angle theta (rad)", "size of the gradient", lines, y_limits=(0, 1.1))


def hynet_figure_5b(alphas: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0, 5.0, math.inf)) -> list[Panel]:
    """The slope of s_H = (alpha (1 - s) + d) / Z."""
    theta = np.linspace(1e-3, math.pi, 400)
    lines = []
    for alpha in alphas:
        if math.isinf(alpha):
            lines.append(Line("alpha to infinity: s", theta, slope(InnerProduct(), theta)))
            continue
        name = f"alpha = {alpha:g}" + (": d" if alpha == 0 else ", the paper's choice" if alpha == 2 else "")
        lines.append(Line(name, theta, slope(Hybrid(alpha, eps=0.0), theta) / largest_slope(alpha)))
    return [Panel("", "angle theta (rad)", "size of the gradient / Z", tuple(lines))]


def sphere_density(s: Floats, dim: int) -> Floats:
    """GOR, proposition 1: the density of the inner product of two random unit vectors in `dim` dimensions."""
    log_beta = math.lgamma((dim - 1) / 2) + math.lgamma(0.5) - math.lgamma(dim / 2)
    with np.errstate(divide="ignore"):
        log_density = ((dim - 1) / 2 - 1) * np.log1p(-np.square(s)) - log_beta
    return np.asarray(np.exp(log_density))


def gor_figure_2(dims: tuple[int, ...] = (4, 16, 64, 128, 512)) -> list[Panel]:
    s = np.linspace(-1, 1, 2001)
    lines = tuple(Line(f"d = {dim}", s, sphere_density(s, dim)) for dim in dims)
    return [Panel("", "inner product", "probability density", lines)]


def printed_statistics(epoch: int = 190, trained_on: str = "liberty") -> dict[str, Tensor]:
    """SDGMNet's Table II, as a state of `GradientModulation`."""
    return {
        each.score.partition("/")[2]: torch.tensor(float(each.value), dtype=torch.float64)
        for each in published_in("SDGMNet, Table II", "SDGMNet")
        if (each.data, each.trained_on) == (f"epoch {epoch} of 200", trained_on)
    }


def sdgmnet_figure_2(
    state: Mapping[str, Tensor] | None = None, seen: Mapping[str, Floats] | None = None, m: float = 0.6
) -> list[Panel]:
    """SDGMNet eq. 9 to 11 with these statistics; `seen` are measured angles, whose densities lie behind the curves."""
    state = dict(state or printed_statistics())
    seen = seen or {}
    half = np.linspace(0, math.pi / 2, 181)
    focus, coupling = GradientModulation(m=0.0, psm=False), GradientModulation(m=m, self_weight="theta")

    def weights(term: GradientModulation, positive: Floats, negative: Floats) -> Floats:
        return np.asarray(term.pair_weights(torch.from_numpy(np.stack([positive, negative])), state).numpy())

    w_positive, w_negative = weights(focus, half, half)
    relative = np.linspace(-1.2, 0.8, 201)
    w_coupled = weights(coupling, relative + math.pi / 2, np.full_like(relative, math.pi / 2))[0]
    grid_p, grid_n = (each.ravel() for each in np.meshgrid(half, half[::-1]))
    own = weights(focus, grid_p, grid_n)
    product = (own[0] * own[1] * weights(coupling, grid_p, grid_n)[0]).reshape(len(half), len(half))
    low, high = 0.0, math.pi / 2
    panels = [
        Panel(
            "(a) self weight of positives",
            "theta+ (rad)",
            "weight",
            (Line("w_s+", half, w_positive),),
            y_limits=(0, 1.05),
        ),
        Panel(
            "(b) self weight of negatives",
            "theta- (rad)",
            "weight",
            (Line("w_s-", half, w_negative),),
            y_limits=(0, 1.05),
        ),
        Panel(f"(c) coupled weight, m = {m:g}", "theta+ - theta- (rad)", "weight", (Line("w_c", relative, w_coupled),)),
    ]
    names = ("positive", "negative", "r")
    panels = [_behind(panel, seen.get(name)) for panel, name in zip(panels, names, strict=True)]
    # Hard triplets at the top right, as in the paper: theta- falls upwards.
    heat = Panel("(d) w_c w_s+ w_s-", "theta+ (rad)", "theta- (rad)", map=product, extent=(low, high, high, low))
    return [*panels, heat]


def _behind(panel: Panel, angles: Floats | None) -> Panel:
    """The panel with the density of measured angles, scaled to its height."""
    if angles is None:
        return panel
    density, edges = np.histogram(angles, 60, density=True)
    shadow = Line("angles seen", (edges[1:] + edges[:-1]) / 2, density / density.max(), "filled", colour="0.5")
    return replace(panel, lines=(*panel.lines, shadow))


def loss_slope(loss: ScaleAware, rho: Floats) -> Floats:
    """The derivative of a triplet loss by the performance rho."""
    performance = torch.from_numpy(rho).requires_grad_()
    (gradient,) = torch.autograd.grad(loss.of_performance(performance).sum(), performance)
    return np.asarray(gradient.numpy())


def scale_aware_figure_4(alpha: float = 0.0) -> list[Panel]:
    """Keller et al., eq. 76 to 78."""
    rho = np.linspace(-2, 2, 801)
    panels = []
    for loss, title in (("log", "log loss (76)"), ("sse", "sse loss (77)")):
        lines = [
            Line(f"delta = {delta:g}", rho, loss_slope(ScaleAware(loss, alpha=alpha, delta=delta), rho))  # type: ignore[arg-type]
            for delta in (1.0, 2.0, 5.0, 10.0)
        ]
        panels.append(Panel(title, "performance rho = d- - d+", "slope of the loss", tuple(lines)))
    hinge = Line("alpha = 0", rho, loss_slope(ScaleAware("hinge", alpha=alpha), rho))
    return [*panels, Panel("hinge, L_sub (78)", "performance rho = d- - d+", "slope of the loss", (hinge,))]


FUNCTIONS: dict[str, Callable[[], list[Panel]]] = {
    "hynet-fig-1": hynet_figure_1,
    "hynet-fig-2": lambda: [hynet_slopes()],
    "hynet-fig-5b": hynet_figure_5b,
    "gor-fig-2": gor_figure_2,
    "sdgmnet-fig-2": sdgmnet_figure_2,
    "scale-aware-fig-4": scale_aware_figure_4,
}
