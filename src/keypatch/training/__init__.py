"""Training: recipes, the loop, checkpoints and run folders."""

from keypatch.training.optimizers import OPTIMIZERS, SGD, Adam, AdamW
from keypatch.training.recipe import Recipe
from keypatch.training.schedules import SCHEDULES, Constant, Cosine, Linear, Steps

__all__ = ["OPTIMIZERS", "SCHEDULES", "SGD", "Adam", "AdamW", "Constant", "Cosine", "Linear", "Recipe", "Steps"]
