"""Ctrl-C and SIGTERM as a wish that a long loop reads."""

import signal
import threading
from types import FrameType
from typing import Self


class StopWish:
    """True once the process was asked to stop; a second signal has its usual effect at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, signal._HANDLER] = {}

    def __bool__(self) -> bool:
        return self.asked

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # elsewhere handlers cannot be set
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *error: object) -> None:
        for number in list(self._before):
            self._restore(number)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._restore(number)

    def _restore(self, number: int) -> None:
        signal.signal(number, self._before.pop(number))
