"""The losses of pytorch-metric-learning as terms."""

import json
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from keypatch.errors import MissingExtra, RecipeError
from keypatch.losses.described import Described
from keypatch.losses.measures import exactly
from keypatch.settings import choose_from

# Made anew in every step, the library's object would forget its histogram; `DynamicMargin` keeps it.
_WITH_MEMORY = ("DynamicSoftMarginLoss",)


@dataclass(frozen=True)
class MetricLearning:
    """A loss of pytorch-metric-learning on the unit descriptors of the whole batch, equal points being one class.

    `arguments` are those of its constructor that are numbers or truth values, written "gamma=80". One value per batch;
    beware of the library's habit to average over the values that are not zero.
    """

    loss: str = "MultiSimilarityLoss"
    arguments: tuple[str, ...] = ()
    weight: float = 1.0

    def __post_init__(self) -> None:
        dict(map(_argument, self.arguments))

    def __call__(self, batch: Described) -> Tensor:
        with exactly(batch.unit.device):
            value: Tensor = self._build()(batch.unit[: 2 * batch.n], batch.labels)
        return value

    def _build(self) -> Any:
        known = _library()
        if self.loss not in known or self.loss in _WITH_MEMORY:
            usable = sorted(set(known) - set(_WITH_MEMORY))
            hint = choose_from(self.loss, usable, "The documentation of pytorch-metric-learning")
            raise RecipeError(f'MetricLearning: there is no usable loss "{self.loss}".{hint}')
        try:
            built = known[self.loss](**dict(map(_argument, self.arguments)))
        except (TypeError, KeyError, ValueError) as error:
            raise RecipeError(f"MetricLearning: {self.loss} cannot be made with these arguments ({error}).") from error
        if next(built.parameters(), None) is not None:
            raise RecipeError(
                f"MetricLearning: {self.loss} learns weights for each class, but a loss term cannot train any. Choose "
                "a pair or triplet loss."
            )
        return built


def _library() -> dict[str, type]:
    """Its losses by name. Imported only here, since that takes seconds."""
    try:
        from pytorch_metric_learning import losses
    except ImportError as error:
        raise MissingExtra.of("The loss MetricLearning needs pytorch-metric-learning", "metric-learning") from error
    base = losses.BaseMetricLossFunction
    return {
        name: kind
        for name, kind in vars(losses).items()
        if isinstance(kind, type) and issubclass(kind, base) and kind is not base
    }


def _argument(text: str) -> tuple[str, bool | int | float]:
    name, _, written = text.partition("=")
    try:
        value = json.loads(written)
    except json.JSONDecodeError:
        value = None
    if not name.isidentifier() or not isinstance(value, bool | int | float):
        raise RecipeError(
            'MetricLearning: arguments are written "gamma=80" or "swap=true", with a number, true or false; '
            f'not "{text}".'
        )
    return name, value
