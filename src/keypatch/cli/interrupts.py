"""A training stopped by Ctrl-C or SIGTERM: what it saved is said, and the exit code is that of an interrupt."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

INTERRUPTED = 130


@contextmanager
def interrupts() -> Iterator[None]:
    from keypatch.training.running import Interrupted

    try:
        yield
    except Interrupted as stop:
        typer.echo(f"keypatch: {stop}", err=True)
        raise typer.Exit(INTERRUPTED) from None
