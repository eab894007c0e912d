"""The log as TensorBoard events."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from keypatch.errors import MissingExtra
from keypatch.training.progress import Record


@contextmanager
def tensorboard_log(folder: Path) -> Iterator[Callable[[Record], None]]:
    """A function that writes each record as scalars over the number of pairs."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtra("TensorBoard is missing; pip install 'keypatch[tensorboard]' or leave it out.") from error
    writer = SummaryWriter(folder)

    def write(record: Record) -> None:
        scalars = {
            "loss/total": record.loss,
            **{f"loss/{name}": value for name, value in record.terms.items()},
            "distance/positive": record.positive,
            **{f"statistics/{name}": value for name, value in record.statistics.items()},
            "pairs per second": record.rate,
            "learning rate": record.lr,
        }
        if record.negative is not None:
            scalars["distance/negative"] = record.negative
        if record.validation is not None:
            scalars["validation FPR95 %"] = record.validation
        for name, value in scalars.items():
            writer.add_scalar(name, value, record.pairs)

    try:
        yield write
    finally:
        writer.close()
