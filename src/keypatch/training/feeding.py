"""Batches made ahead in a background thread."""

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from keypatch.networks import prepare
from keypatch.patches import Classes, PatchSource
from keypatch.training.recipe import Recipe

_AHEAD = 2  # batches in waiting; making one takes a fraction of a step


@dataclass(frozen=True)
class Batches:
    """Batch `k` of a recipe on a data set: a pure function of the recipe, the data and k."""

    recipe: Recipe
    source: PatchSource
    classes: Classes
    device: torch.device

    def make(self, step: int) -> Tensor:
        """Network input (2 * pairs, 1, size, size): all anchors, then their positives in the same order."""
        recipe, preprocessing = self.recipe, self.recipe.network.preprocessing
        indices = recipe.sampler.batch(self.classes, recipe.seed, step)
        patches = torch.from_numpy(self.source.take(indices))  # (pairs, 2, side, side)
        if self.device.type == "cuda":
            patches = patches.pin_memory()
        patches = patches.to(self.device, non_blocking=True)
        patches = recipe.augment(patches, preprocessing.patch_sigmas, np.random.default_rng([recipe.seed, step, 1]))
        x = prepare(patches.transpose(0, 1).flatten(0, 1), preprocessing)
        return x.contiguous(memory_format=torch.channels_last)

    def feed(self, start: int, stop: int) -> Iterator[Tensor]:
        """Batches start..stop-1 in order; an error of the thread is raised here."""
        ready: queue.Queue[Tensor | BaseException] = queue.Queue(maxsize=_AHEAD)
        done = threading.Event()

        def offer(item: Tensor | BaseException) -> bool:
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
