"""Batches made ahead in a background thread."""

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from keypatch.networks import prepare
from keypatch.patches import Classes, PatchSource
from keypatch.sampling import Augmentation, Draw, Place, turn_patches
from keypatch.training.ranks import ALONE, Ranks
from keypatch.training.recipe import Recipe
from keypatch.training.teaching import Teacher, teach

_AHEAD = 2  # batches in waiting; making one takes a fraction of a step
_AS_CUT = Augmentation(flips="none", detector_noise=0.0, window="centre")


@dataclass(frozen=True, eq=False)
class Batch:
    """Network input (views * own pairs, channels, size, size), all anchors, then all positives; and what was drawn.

    `draw` is of the whole batch; `rows` are those of it that are this rank's, all where there is one rank. `teacher`
    (views * own pairs, dim) are a teacher's descriptors of the same patches, where there is a teacher.
    """

    x: Tensor
    draw: Draw
    rows: range | None = None
    teacher: Tensor | None = None

    @classmethod
    def of_pairs(cls, x: Tensor) -> "Batch":
        """Input (2 * pairs, ...) that was made elsewhere, of pairs of different points."""
        row = np.arange(len(x) // 2)
        return cls(x, Draw(np.stack([row, row + len(row)], axis=1), row))

    @property
    def pairs(self) -> int:
        """Of the whole batch."""
        return len(self.draw.indices)

    @property
    def own(self) -> range:
        return range(self.pairs) if self.rows is None else self.rows

    @property
    def point_id(self) -> Tensor | None:
        """(pairs,) on the device; None where all rows show different points."""
        classes = self.draw.classes
        if len(np.unique(classes)) == len(classes):
            return None
        return torch.from_numpy(classes).to(self.x.device)


@dataclass(frozen=True)
class Batches:
    """Batch `k` of a recipe on a data set: a pure function of the recipe, the data, the teacher and k.

    Every rank draws the whole batch, which is cheap, and reads and changes its own rows.
    """

    recipe: Recipe
    source: PatchSource
    classes: Classes
    device: torch.device
    ranks: Ranks = ALONE
    teacher: Teacher | None = None

    def make(self, step: int) -> Batch:
        """The pairs to train on; of a sampler that chooses among candidates, these.

        Candidates have no detector noise, which would be chosen with them, and no teacher looks at them.
        """
        draw = self.recipe.sampler.draw(self.classes, self.recipe.seed, step)
        if not getattr(self.recipe.sampler, "chooses", False):
            return self.cut(draw, step)
        quiet = replace(self.recipe.augment, detector_noise=0.0)
        augment = quiet if draw.pool is None else _AS_CUT  # a memory knows patches as they are
        return self._cut(draw, step, augment, None)[0]

    def cut(self, whole: Draw, step: int, columns: Tensor | None = None, views: int = 0) -> Batch:
        """Pairs to train on, as they are changed in this step.

        Where they are `columns` (pairs, k) of `views` candidates, they are changed as these were, with detector noise.
        """
        batch, patches = self._cut(whole, step, self.recipe.augment, columns, views)
        return batch if self.teacher is None else replace(batch, teacher=teach(self.teacher, patches))

    def _cut(
        self, whole: Draw, step: int, augment: Augmentation, columns: Tensor | None, views: int = 0
    ) -> tuple[Batch, Tensor]:
        """The batch with this rank's rows of what was drawn, and their pixels; empty places show the first patch."""
        recipe, preprocessing = self.recipe, self.recipe.network.preprocessing
        n, shown = whole.indices.shape
        rows = self.ranks.share(n)
        draw = whole.part(slice(rows.start, rows.stop))
        taken = self.source.take(np.where(draw.indices < 0, draw.indices[:, :1], draw.indices))
        if draw.turns is not None:
            taken = turn_patches(taken, draw.turns)
        patches = torch.from_numpy(taken)  # (pairs, views, [3,] side, side)
        if self.device.type == "cuda":
            patches = patches.pin_memory()
        patches = patches.to(self.device, non_blocking=True)
        rng = np.random.default_rng([recipe.seed, step, 1])
        mine = None if columns is None else columns[rows.start : rows.stop].cpu().numpy()
        place = Place((n, views or shown), rows, mine)
        patches = augment(patches, preprocessing.patch_sigmas, rng, place)
        patches = patches.transpose(0, 1).flatten(0, 1)
        rng = np.random.default_rng([recipe.seed, step, 3])  # so that candidates and chosen ones are cropped alike
        corners = augment.corners(place, preprocessing.side - preprocessing.size, rng)
        x = prepare(patches, preprocessing, corners).contiguous(memory_format=torch.channels_last)
        return Batch(x, whole, rows), patches

    def feed(self, start: int, stop: int) -> Iterator[Batch]:
        """Batches start..stop-1 in order; an error of the thread is raised here."""
        ready: queue.Queue[Batch | BaseException] = queue.Queue(maxsize=_AHEAD)
        done = threading.Event()

        def offer(item: Batch | BaseException) -> bool:
            while not done.is_set():
                try:
                    ready.put(item, timeout=0.1)
                    return True
                except queue.Full:
                    continue
            return False

        def work() -> None:
            torch.set_num_threads(1)  # of this thread: the step needs the others
            try:
                for step in range(start, stop):
                    if not offer(self.make(step)):
                        return
            except BaseException as error:
                offer(error)

        thread = threading.Thread(target=work, name="keypatch-batches", daemon=True)
        thread.start()
        try:
            for _ in range(start, stop):
                item = ready.get()
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            done.set()
            thread.join()
