"""The page of a table or figure: paper.md, paper.json and figure.png."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keypatch.errors import MissingExtra
from keypatch.files import Format, write_atomically, write_json, write_text
from keypatch.progress import Progress
from keypatch.provenance import provenance
from keypatch.studies.page import render_page
from keypatch.studies.papers.drawing import draw_panels, panel_values
from keypatch.studies.papers.ours import Made
from keypatch.studies.papers.plan import Plan

PAPER = Format("keypatch-paper", 1, "table or figure of a paper")
PAGE, FIGURE, VALUES = "paper.md", "figure.png", "paper.json"


@dataclass(frozen=True)
class PaperPage:
    """A table or figure as it was made: its plan, its tables and panels, under which conditions, and remarks."""

    plan: Plan
    made: Made
    conditions: Mapping[str, Any]
    notes: tuple[str, ...]
    unfinished: tuple[tuple[str, str], ...] = ()  # rows that failed or are still to come, and why

    def save(self, folder: Path, progress: Progress) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        has_figure = self._draw(folder / FIGURE, progress)
        page = render_page(
            "paper.md",
            plan=self.plan,
            grids=self.made.grids,
            conditions=self.conditions,
            notes=self.notes,
            unfinished=[list(row) for row in self.unfinished],
            figure=FIGURE if has_figure else "",
        )
        write_text(folder / PAGE, page)
        write_json(
            folder / VALUES,
            {
                **PAPER.head(),
                "name": self.plan.name,
                "source": self.plan.source,
                "title": self.plan.title,
                "metric": self.plan.metric,
                "conditions": dict(self.conditions),
                "tables": [
                    {"title": grid.title, "head": list(grid.head), "rows": [list(row) for row in grid.rows]}
                    for grid in self.made.grids
                ],
                "panels": [panel_values(panel) for panel in self.made.panels],
                "notes": list(self.notes),
                "provenance": provenance().to_json(),
            },
        )

    def _draw(self, path: Path, progress: Progress) -> bool:
        if self.made.picture is not None:
            with write_atomically(path) as file:
                file.write(self.made.picture)
            return True
        if not self.made.panels:
            return False
        try:
            draw_panels(path, self.made.panels, f"{self.plan.source}: {self.plan.title}", self.made.columns)
        except MissingExtra as missing:
            progress.note(str(missing))
            return False
        return True
