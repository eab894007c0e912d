"""Readers that fail as libraries do: for the trials of files in a child process."""

import os
import signal
from pathlib import Path

GIGABYTES = 8


def count(path: Path) -> None:
    with path.with_suffix(".count").open("a") as file:
        file.write("x")


def fail(path: Path) -> None:
    raise KeyError("no such thing")


def hang(path: Path) -> None:
    while True:
        pass


def hang_after_a_word(path: Path) -> None:
    with path.open("w") as fifo:
        fifo.write(str(os.getpid()))
    hang(path)


def crash(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def take_memory(path: Path) -> None:
    bytearray(GIGABYTES * 2**30)
