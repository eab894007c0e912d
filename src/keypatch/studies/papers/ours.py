"""What was trained and scored for a plan, and the tables and panels that scores alone make."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keypatch.benchmarks import Result, load_result
from keypatch.benchmarks.scores import find_score
from keypatch.describers import Describer
from keypatch.describers.protocol import HasWeights
from keypatch.files import hash_folder
from keypatch.patches.patch_set import JoinedSets, PatchSet
from keypatch.reports.published import PublishedFigure
from keypatch.studies.papers.drawing import Line, Panel
from keypatch.studies.papers.plan import Plan, Row
from keypatch.studies.rows import Milestone, Scores, Trial
from keypatch.studies.scoring import TestData
from keypatch.studies.table import Column, headlines_of, mean_over_seeds
from keypatch.studies.ubc.table import SETS, SPLITS

NOT_RUN = "not run"
PRINTED = "printed (the paper's data and budget)"
GAP = "retrieval.gap"  # SDGMNet's figure 6(d): how much easy patches are ahead of tough ones
_LEVELS = {"e": ("easy", "C2"), "h": ("hard", "C1"), "t": ("tough", "C3")}
_MOST = 6  # panels of a picture


@dataclass(frozen=True)
class Grid:
    """A table of texts."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Made:
    """What a form gives: tables, the panels of a picture or a finished picture, and remarks."""

    grids: tuple[Grid, ...] = ()
    panels: tuple[Panel, ...] = ()
    columns: int = 3  # of panels
    picture: bytes | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainedSet:
    """The rows of a plan trained on one set; `trials` have one entry per seed, by the label of the row."""

    name: str
    folder: Path
    source: PatchSet | JoinedSets
    tests: tuple[TestData, ...]
    trials: Mapping[str, tuple[Trial, ...]]

    def runs(self, row: Row) -> list[Path]:
        """The run folders of a row that came to their end, one per seed."""
        return [self.folder / "runs" / trial.name for trial in self.trials.get(row.label, ()) if trial.at(1.0)]


@dataclass(frozen=True)
class Ours:
    """Everything at hand for a plan."""

    plan: Plan
    sets: tuple[TrainedSet, ...]
    by_hand: Mapping[str, Mapping[str, Scores]] = field(default_factory=dict)  # by label and test set


class Place(NamedTuple):
    """A column of ours: the training set, and a score of a test set."""

    trained_on: str
    column: Column

    def heading(self, several: bool) -> str:
        score = find_score("retrieval.map" if self.column.score == GAP else self.column.score)
        title = "retrieval mAP, easy - tough" if self.column.score == GAP else score.title
        what = " ".join(filter(None, (score.of.split("_")[0], title, score.unit)))
        return f"{self.trained_on} > {self.column.test}: {what}" if several else f"{self.column.test}: {what}"


def kept_result(path: Path, describer: Describer, data_hash: str, make: Callable[[], Result]) -> Result:
    """The result in a file if it is of these weights and data, otherwise a new one, which the file then holds."""
    made_of = {"weights": describer.weights_hash if isinstance(describer, HasWeights) else "", "data": data_hash}
    if path.exists() and (kept := load_result(path)).notes.get("made_of") == made_of:
        return kept
    result = make()
    result = replace(result, notes={**result.notes, "made_of": made_of})
    path.parent.mkdir(parents=True, exist_ok=True)
    result.save(path)
    return result


def hash_below(folder: str | Path) -> str:
    """Of names and contents of all files in a folder."""
    return hash_folder(path for path in Path(folder).rglob("*") if path.is_file())


def at_the_end(ours: Ours, row: Row, place: Place) -> list[float]:
    """The score at the end of each seed's run, or of a describer made by hand; empty where there is none."""
    if row.label in ours.by_hand:
        scores = ours.by_hand[row.label].get(place.column.test)
        return [] if scores is None else [_score(scores, place.column.score)]
    trained = next(each for each in ours.sets if each.name == place.trained_on)
    ends = [end for trial in trained.trials.get(row.label, ()) if (end := trial.at(1.0))]
    return [_score(end.scores.get(place.column.test, {}), place.column.score) for end in ends]


def _score(scores: Scores, name: str) -> float:
    if name == GAP:
        return scores.get("retrieval.map.e.all", math.nan) - scores.get("retrieval.map.t.all", math.nan)
    return scores.get(name, math.nan)


def places(ours: Ours) -> list[Place]:
    """The columns with the paper's score; where no test set has it, the usual score of each."""
    found = []
    for trained in ours.sets:
        names = {test.name: _known_scores(ours, trained, test.name) for test in trained.tests}
        of_paper = [Column(test, score) for test, known in names.items() for score in _of_paper(ours.plan, known)]
        every = [Column(test, score) for test, known in names.items() for score in known]
        found += [Place(trained.name, column) for column in of_paper or headlines_of(every)]
    return found


def has_papers_score(ours: Ours) -> bool:
    return any(_is_of(place.column.score, ours.plan.scores) for place in places(ours))


def _known_scores(ours: Ours, trained: TrainedSet, test: str) -> list[str]:
    ends = [end.scores.get(test, {}) for trials in trained.trials.values() for t in trials if (end := t.at(1.0))]
    by_hand = [scores.get(test, {}) for scores in ours.by_hand.values()]
    return list(dict.fromkeys(name for scores in (*ends, *by_hand) for name in scores))


def _of_paper(plan: Plan, known: Sequence[str]) -> list[str]:
    names = [name for name in known if _is_of(name, plan.scores)]
    gap = GAP in plan.scores and "retrieval.map.e.all" in known
    return [*names, GAP] if gap else names


def _is_of(name: str, wanted: Sequence[str]) -> bool:
    score = find_score(name)
    return name in wanted or (score.kind in wanted and score.kind in ("fpr95", "ap"))


def headline_places(ours: Ours) -> list[Place]:
    """Of the columns those that a picture shows: of several lists of a test set the usual one."""
    every = places(ours)
    chosen = []
    for trained in dict.fromkeys(place.trained_on for place in every):
        columns = [place.column for place in every if place.trained_on == trained]
        lists = [column for column in columns if find_score(column.score).kind in ("fpr95", "ap")]
        kept = {*headlines_of(lists), *(column for column in columns if column not in lists)}
        chosen += [Place(trained, column) for column in columns if column in kept]
    return chosen


def score_table(ours: Ours) -> Grid:
    """Ours at the end of the runs, and what is printed, side by side."""
    columns, several = places(ours), len(ours.sets) > 1
    printed, missing = _printed_heads(ours.plan), _missing(ours.plan, columns)
    mean = ["mean"] if ours.plan.averages and len(headline_places(ours)) > 1 else []
    best = ["best moment" if ours.plan.best == 1 else f"mean of the {ours.plan.best} best moments"][: ours.plan.best]
    rows = []
    for row in ours.plan.rows:
        cells = [_cell(ours, row, place) for place in columns] + [NOT_RUN] * len(missing)
        cells += [_best_cell(ours, row)] if best else []
        cells += [_mean_cell(ours, row)] if mean else []
        rows.append((row.label, *cells, *(_printed_cell(row, head) for head in printed)))
    heads = [place.heading(several) for place in columns] + missing + best + mean
    return Grid("", ("", *(f"ours, {head}" for head in heads), *printed), tuple(rows))


def _mean_cell(ours: Ours, row: Row) -> str:
    """Of the columns that a picture shows, over all training and test sets."""
    chosen = headline_places(ours)
    values = _mean_of(ours, row, chosen)
    return text_of(chosen[0].column.score, mean_over_seeds(values)) if values else NOT_RUN


def _best_cell(ours: Ours, row: Row) -> str:
    """The mean over seeds of the mean of the best moments of each run, by the usual scores of the test sets."""
    chosen, found = headline_places(ours), []
    for trained in ours.sets:
        columns = [place.column for place in chosen if place.trained_on == trained.name]
        for trial in trained.trials.get(row.label, ()):
            moments = [_mean_at(each, columns) for each in trial.milestones]
            best = sorted(moments, reverse=not chosen[0].column.is_error)[: ours.plan.best]
            found.append(float(np.mean(best)))
    return text_of(chosen[0].column.score, mean_over_seeds(found)) if found and chosen else NOT_RUN


def _missing(plan: Plan, columns: Sequence[Place]) -> list[str]:
    """The paper's scores that no test set gives."""
    there = {find_score(place.column.score).kind for place in columns} | {place.column.score for place in columns}
    titles = {score: find_score("retrieval.map" if score == GAP else score).column for score in plan.scores}
    return [title for score, title in titles.items() if score not in there and score != GAP]


def _cell(ours: Ours, row: Row, place: Place) -> str:
    if row.recipe is None and not row.describer:
        return NOT_RUN
    values = at_the_end(ours, row, place)
    if not values:
        trained = next(each for each in ours.sets if each.name == place.trained_on)
        return "failed" if any(trial.failed for trial in trained.trials.get(row.label, ())) else NOT_RUN
    texts = [text_of(place.column.score, value) for value in values]
    mean = text_of(place.column.score, mean_over_seeds(values))
    return mean if len(texts) == 1 else f"{mean} ({', '.join(texts)})"


def text_of(score: str, value: float) -> str:
    """A value as the tables write it, shares in %."""
    if math.isnan(value):
        return "-"
    return find_score("retrieval.map" if score == GAP else score).text(value).removesuffix(" %")


def _printed_heads(plan: Plan) -> list[str]:
    figures = [each for row in plan.rows for each in row.figures]
    if plan.form == "splits":
        return [f"printed, {train} > {test}" for train, test in SPLITS] + ["printed, mean"] if figures else []
    return list(dict.fromkeys(_printed_head(each) for each in figures))


def _printed_head(each: PublishedFigure) -> str:
    score = find_score(each.score)
    return f"printed, {' '.join(filter(None, (score.title, score.unit)))}"


def _printed_cell(row: Row, head: str) -> str:
    for each in row.figures:
        if each.benchmark == "ubc" and each.rule != "ten best epochs":
            if head == "printed, mean" and each.data not in SETS:
                return each.value or _own_mean(row)
            if each.data in SETS and head.startswith("printed, ") and head.endswith(f"> {each.data}"):
                train = head.removeprefix("printed, ").partition(" > ")[0]
                if each.trained_on in (train, "", "not stated"):
                    return each.value
        elif _printed_head(each) == head:
            return each.value
    return ""


def _own_mean(row: Row) -> str:
    return f"{np.mean([float(each.value) for each in row.figures if each.data in SETS]):.2f}"


def printed_value(row: Row, score: str, split: tuple[str, str] | None = None) -> float | None:
    """What is printed for a score of the same kind, in its own unit (shares in %); of a `split`, or the mean of all."""
    kind = find_score(score).kind
    if split is not None:
        of_split = (each for each in row.figures if (each.trained_on, each.data) == split)
        return next((float(each.value) for each in of_split if find_score(each.score).kind == kind), None)
    values = [
        float(_own_mean(row) if not each.value else each.value)
        for each in row.figures
        if find_score(each.score).kind == kind and (each.benchmark != "ubc" or each.data not in SETS)
    ]
    return values[0] if values else None


def unit_of(score: str) -> float:
    """By which a score is multiplied for a picture: shares are drawn in %."""
    return 100.0 if score == GAP or find_score(score).unit == "%" else 1.0


def picture_of_scores(ours: Ours) -> list[Panel]:
    """Dots of the rows, a panel for each column or for the mean of all."""
    return ours_first([_dots(ours, group, title) for title, group in _panels(ours)])


def _panels(ours: Ours) -> list[tuple[str, list[Place]]]:
    """Titles and columns of a picture's panels: each column, or the mean of all where the paper shows means."""
    chosen, several = headline_places(ours), len(ours.sets) > 1
    if ours.plan.averages and len(chosen) > 1:
        return [("mean of all columns", chosen)]
    return [(place.heading(several), [place]) for place in chosen[:_MOST]]


def ours_first(groups: Sequence[list[Panel]]) -> list[Panel]:
    """The panels of ours, then those of printed values that need axes of their own."""
    return [panel for place in (0, 1) for group in groups for panel in group[place : place + 1]]


def _mean_of(ours: Ours, row: Row, chosen: Sequence[Place]) -> list[float]:
    """The mean over places, one per seed; empty where one of them is missing."""
    values = [at_the_end(ours, row, place) for place in chosen]
    if not values or any(len(each) != len(values[0]) or not each for each in values):
        return []
    return [float(mean) for mean in np.mean(values, axis=0)]


def _dots(ours: Ours, chosen: Sequence[Place], title: str) -> list[Panel]:
    score, rows = chosen[0].column.score, ours.plan.rows
    unit, x = unit_of(score), list(range(len(rows)))
    found = [[unit * value for value in _mean_of(ours, row, chosen)] for row in rows]
    low, high = ([end(values, default=math.nan) for values in found] for end in (min, max))
    own = Line("ours", x, [mean_over_seeds(values) for values in found], "dots", low, high)
    stars = _stars(rows, x, score)
    panel = Panel(title, "", _axis(score), (own, *stars), ticks=tuple(row.label for row in rows))
    panel = replace(panel, limits=(-0.5, len(rows) - 0.5))
    if not stars or _overlap([own], stars):
        return [panel]
    return [replace(panel, lines=(own,)), replace(panel, title=PRINTED, lines=tuple(stars))]


def _stars(rows: Sequence[Row], x: Sequence[float], score: str) -> list[Line]:
    printed = {place: value for row, place in zip(rows, x, strict=True) if (value := printed_value(row, score))}
    if not printed:
        return []
    return [Line("printed", list(printed), list(printed.values()), "printed", colour=3)]


def _axis(score: str) -> str:
    if score == GAP:
        return "retrieval mAP, easy - tough (%)"
    found = find_score(score)
    better = {"lower": ", lower is better", "higher": ", higher is better", "neither": ""}[found.better]
    return f"{found.title} ({found.unit}{better})" if found.unit else found.title


def picture_of_sweep(ours: Ours) -> list[Panel]:
    """Scores against what is varied, a curve for each series; printed ones beside, apart where the scales differ."""
    return ours_first([_sweep(ours, group, title) for title, group in _panels(ours)])


def _sweep(ours: Ours, chosen: Sequence[Place], title: str) -> list[Panel]:
    plan, score = ours.plan, chosen[0].column.score
    unit = unit_of(score)
    lines, stars = [], []
    for number, series in enumerate(dict.fromkeys(row.series for row in plan.rows if row.x is not None)):
        rows = [row for row in plan.rows if row.series == series and row.x is not None]
        found = {row.x: values for row in rows if (values := _mean_of(ours, row, chosen))}
        if found:
            y = [unit * mean_over_seeds(values) for values in found.values()]
            low, high = ([unit * end(values) for values in found.values()] for end in (min, max))
            lines.append(Line(f"ours, {series}", [x or 0.0 for x in found], y, "sweep", low, high, number))
        printed = {row.x or 0.0: value for row in rows if (value := printed_value(row, score)) is not None}
        if printed:
            label = f"printed, {series}"
            stars.append(Line(label, list(printed), list(printed.values()), "printed", colour=number))
    levels = {
        what: value
        for what, where in (plan.lines or {}).items()
        if (value := printed_value(Row("", printed=where), score, plan.split)) is not None
    }
    kind = {"log_x": plan.log, "ticks": plan.ticks}
    if not stars or _overlap(lines, stars):
        return [Panel(title, plan.axis, _axis(score), (*lines, *stars), levels, **kind)]  # type: ignore[arg-type]
    return [
        Panel(title, plan.axis, _axis(score), tuple(lines), levels, **kind),  # type: ignore[arg-type]
        Panel(PRINTED, plan.axis, _axis(score), tuple(stars), **kind),  # type: ignore[arg-type]
    ]


def _overlap(ours: Sequence[Line], printed: Sequence[Line]) -> bool:
    """Whether both can be read on one axis: the printed ones are not far outside of ours."""
    if not ours:
        return True
    own, theirs = ([value for line in lines for value in line.y if not math.isnan(value)] for lines in (ours, printed))
    if not own:
        return True
    reach = max(max(own) - min(own), 0.02 * abs(max(own)))
    return bool(min(theirs) > min(own) - 2 * reach and max(theirs) < max(own) + 2 * reach)


def picture_of_run(ours: Ours) -> list[Panel]:
    """Scores along the runs, against the pairs seen."""
    panels = []
    for title, group in _panels(ours):
        score, columns = group[0].column.score, [place.column for place in group]
        trained = next(each for each in ours.sets if each.name == group[0].trained_on)
        unit, lines = unit_of(score), []
        for row in ours.plan.trained:
            trials = [trial for trial in trained.trials.get(row.label, ()) if trial.at(1.0)]
            by_moment = list(zip(*(trial.milestones for trial in trials), strict=False))
            values = [[unit * _mean_at(each, columns) for each in seeds] for seeds in by_moment]
            if values:
                pairs = [seeds[0].pairs for seeds in by_moment]
                low, high = ([end(seeds) for seeds in values] for end in (min, max))
                means = [mean_over_seeds(seeds) for seeds in values]
                lines.append(Line(row.label, pairs, means, "sweep", low, high))
        panels.append(Panel(title, "pairs trained on", _axis(score), tuple(lines)))
    return panels


def _mean_at(moment: Milestone, columns: Sequence[Column]) -> float:
    """The mean of some scores at a moment of a run."""
    return float(np.mean([_score(moment.scores.get(column.test, {}), column.score) for column in columns]))


_PARTS = {  # of each task: the parts that the figures mark, by what stands behind the level
    "verification.ap": {"inter": "different sequences", "intra": "same sequence"},
    "matching.map": {"i": "light", "v": "viewpoint"},
    "retrieval.map": {"all": "all distractors"},
}


def picture_of_tasks(ours: Ours) -> list[Panel]:
    """The three tasks of HPatches: bars of the means, marks of the parts, as the papers draw them."""
    panels = []
    for place in places(ours):
        task = place.column.score
        if task not in _PARTS:
            continue
        rows = [row for row in ours.plan.rows if at_the_end(ours, row, place)]
        rows.sort(key=lambda row: mean_over_seeds(at_the_end(ours, row, place)))
        means = [100 * mean_over_seeds(at_the_end(ours, row, place)) for row in rows]
        x = list(range(len(rows)))
        lines = [Line("mean", x, means, "bars", colour="0.8")]
        for number, (end, of) in enumerate(_PARTS[task].items()):
            for level, (name, colour) in _LEVELS.items():
                part = Place(place.trained_on, Column(place.column.test, f"{task}.{level}.{end}"))
                values = [100 * mean_over_seeds(at_the_end(ours, row, part) or [math.nan]) for row in rows]
                shift = [each - 0.15 + 0.3 * number for each in x] if len(_PARTS[task]) > 1 else x
                lines.append(Line(f"{name}, {of}", shift, values, "marks", colour=colour, mark=number))
        title = f"{find_score(task).title}, {place.column.test}"
        labels = tuple(f"{row.label} {mean:.1f}" for row, mean in zip(rows, means, strict=True))
        panels.append(Panel(title, "", _axis(task), tuple(lines), ticks=labels))
    return panels or picture_of_scores(ours)
