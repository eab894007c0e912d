"""The command `keypatch`, but a rank kills itself: `torchrun ... dying_rank.py RANK STEP ATTEMPT train ...`.

SIGKILL comes in the middle of a step, when the others wait for this rank, in the given attempt of torchrun.
"""

import os
import signal
import sys
from typing import Any

from keypatch.cli.main import main
from keypatch.training.step import Step

if __name__ == "__main__":
    rank, step, attempt, *words = sys.argv[1:]
    add_up, count = Step._add_up_gradients, 0

    def die(self: Any) -> None:
        global count
        count += 1
        here = os.environ["RANK"] == rank and os.environ["TORCHELASTIC_RESTART_COUNT"] == attempt
        if here and count == int(step):
            os.kill(os.getpid(), signal.SIGKILL)
        add_up(self)

    Step._add_up_gradients = die  # type: ignore[method-assign]
    sys.argv[1:] = words
    main()
