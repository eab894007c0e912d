"""What a loss term is. Anything of this form is one: no base class, no registration beyond the table in `losses`."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from torch import Tensor

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
