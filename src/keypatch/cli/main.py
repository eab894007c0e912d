"""The command `keypatch`: runs one of the commands and turns errors into sentences and exit codes."""

import logging
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from io import TextIOWrapper
from itertools import pairwise
from pathlib import Path

from keypatch.errors import Interrupted, KeypatchError

USER_ERROR, OUR_ERROR, INTERRUPTED = 2, 1, 130
_CONTROLS = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]")  # quoted from a file, they would steer the terminal


def run(words: Sequence[str]) -> int:
    """Run one command line and return its exit code."""

    def command() -> None:
        from keypatch.cli.commands import app  # here, so that Ctrl-C is heard while it is imported

        with _spoken() if "--verbose" in words else nullcontext():
            app(_plugins_first(words), prog_name="keypatch")

    return answer(command, words)


@contextmanager
def _spoken() -> Iterator[None]:
    """What the package logs is printed."""
    log, handler = logging.getLogger("keypatch"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("keypatch: %(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def answer(work: Callable[[], object], words: Sequence[str]) -> int:
    """Do the work of a command line; its exit code: 0, 2 (the user can fix it), 1 (our fault), 130 (interrupted)."""
    debug = "--debug" in words  # also behind a command: people append it to the line that failed
    try:
        work()
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer's answer to Ctrl-C
            return _say(f"keypatch: {_stopped(words)}", INTERRUPTED, debug)
        if isinstance(end.code, str):
            return _say(end.code, OUR_ERROR, debug)
        return end.code or 0
    except KeyboardInterrupt:
        return _say(f"keypatch: {_stopped(words)}", INTERRUPTED, debug)
    except Interrupted as stop:
        return _say(f"keypatch: {stop}", INTERRUPTED, debug)
    except KeypatchError as error:
        return _say(f"keypatch: {error}", USER_ERROR, debug)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sentence = (
            f"keypatch: {where}{error.strerror or error}. Check that it exists and that you have permission to use it."
        )
        return _say(sentence, USER_ERROR, debug)
    except Exception as error:
        fault = f"keypatch failed, and it is not your fault: {type(error).__name__}: {error}"
        return _say(f"{fault}\nRun the same command with --debug to see where.", OUR_ERROR, debug)
    return 0


def _plugins_first(words: Sequence[str]) -> list[str]:
    """--plugin before the command, whose help and options then know the parts; --debug and --verbose left out."""
    before, after, rest = list[str](), list[str](), iter(words)
    for word in rest:
        if word == "--plugin":
            before += [word, next(rest, "")]
        elif word.startswith("--plugin="):
            before.append(word)
        elif word not in ("--debug", "--verbose"):
            after.append(word)
    return [*before, *after]


def _stopped(words: Sequence[str]) -> Interrupted:
    """Ctrl-C that no function handled: before the work began, or pressed a second time."""
    split = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    out = next((Path(value) for option, value in pairwise(split) if option in ("--out", "--resume")), None)
    return Interrupted(f"{out} has what was saved so far" if out is not None and out.exists() else "")


def _say(sentence: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(_CONTROLS.sub("?", sentence), file=sys.stderr)
    return code


def main() -> None:
    if isinstance(sys.stdout, TextIOWrapper):  # a file's name that is no text is shown escaped, as on stderr
        sys.stdout.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nothing temporary stays, children end
    code = run(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):  # all is done: libraries that clean up now would only be torn
        signal.signal(number, signal.SIG_IGN)
    if "TORCHELASTIC_RUN_ID" in os.environ:  # gloo's threads abort now and then while the interpreter ends
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
