"""What a loss term is. Anything of this form is one: no base class; `keypatch.register` gives it a name in files."""

from collections.abc import Mapping
from functools import wraps
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from keypatch.errors import KeypatchError
from keypatch.losses.described import Described

State = Mapping[str, Tensor]


class LossTerm(Protocol):
    """One value per pair, (n,), before weights and reduction; a batch statistic gives a single value, ().

    A term that is not about how hard a pair is may say `weighted: ClassVar[bool] = False`: the batch's weights pass it
    by. One that looks at layers of the network names them in `layers: ClassVar[tuple[str, ...]]`; it finds them in the
    batch's `maps`.
    """

    @property
    def weight(self) -> float: ...

    def __call__(self, batch: Described) -> Tensor: ...


@runtime_checkable
class StatefulTerm(Protocol):
    """A term with running statistics: it takes its state and returns the next one, detached; checkpoints save it."""

    @property
    def weight(self) -> float: ...

    def start(self) -> State: ...

    def __call__(self, batch: Described, state: State) -> tuple[Tensor, State]: ...


AnyTerm = LossTerm | StatefulTerm


def explains_its_batch(term: type[Any]) -> type[Any]:
    """The same class; called with tensors, as losses of other libraries are, its values say what they take instead."""
    call, name = term.__call__, term.__name__

    @wraps(call)
    def checked(self: Any, batch: Any, *rest: Any, **named: Any) -> Any:
        if not isinstance(batch, Described):
            raise KeypatchError(
                f"{name} takes a described batch of pairs, not a {type(batch).__name__}: call "
                f"LossModule({name}())(anchors, positives, point_id=labels), row i of both showing the same point."
            )
        return call(self, batch, *rest, **named)

    term.__call__ = checked
    return term
