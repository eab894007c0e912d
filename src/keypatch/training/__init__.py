"""Training: recipes, the loop, checkpoints and run folders.

The names below are loaded when first used: `conditions` is imported without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keypatch.training.optimizers import OPTIMIZERS, SGD, Adam, AdamW
    from keypatch.training.recipe import Recipe
    from keypatch.training.schedules import SCHEDULES, Constant, Cosine, Linear, Steps

__all__ = ["OPTIMIZERS", "SCHEDULES", "SGD", "Adam", "AdamW", "Constant", "Cosine", "Linear", "Recipe", "Steps"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in ("recipe", "optimizers", "schedules"):
            if hasattr(home := import_module(f"keypatch.training.{module}"), name):
                return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
