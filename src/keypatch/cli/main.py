"""The command `keypatch`: wires the commands together and turns errors into sentences and exit codes."""

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from keypatch.cli import describe, doctor, evaluate, inspect, match, quickstart, reconstruct, report, study, train
from keypatch.cli import list as list_  # not the builtin
from keypatch.errors import Interrupted, KeypatchError

USER_ERROR, OUR_ERROR, INTERRUPTED = 2, 1, 130

app = typer.Typer(
    name="keypatch",
    help="Learn, score and use local image descriptors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("quickstart", epilog=quickstart.EXAMPLES)(quickstart.quickstart)
app.command("list", epilog=list_.EXAMPLES)(list_.list_command)
app.command("inspect", epilog=inspect.EXAMPLES)(inspect.inspect)
app.command("train", epilog=train.EXAMPLES)(train.train)
app.command("evaluate", epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command("describe", epilog=describe.EXAMPLES)(describe.describe)
app.command("match", epilog=match.EXAMPLES)(match.match)
app.command("reconstruct", epilog=reconstruct.EXAMPLES)(reconstruct.reconstruct)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.add_typer(study.app, name="study")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"keypatch {version('keypatch')}")
        raise typer.Exit


@app.callback()
def _every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; works at any place.")] = False,
) -> None:
    """Options that stand before every command."""


def run(words: Sequence[str]) -> int:
    """Run one command line and return its exit code: 0, 2 (the user can mend it), 1 (our fault), 130 (interrupted)."""
    debug = "--debug" in words  # also behind a command: people append it to the line that failed
    try:
        app([word for word in words if word != "--debug"], prog_name="keypatch")
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer's answer to Ctrl-C
            return _say("keypatch: Stopped.", INTERRUPTED, debug)
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        return _say("keypatch: Stopped.", INTERRUPTED, debug)
    except Interrupted as stop:
        return _say(f"keypatch: {stop}", INTERRUPTED, debug)
    except KeypatchError as error:
        return _say(f"keypatch: {error}", USER_ERROR, debug)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sentence = f"keypatch: {where}{error.strerror or error}. Check that it is there and that you may use it."
        return _say(sentence, USER_ERROR, debug)
    except Exception as error:
        fault = f"keypatch failed, and it is not your fault: {type(error).__name__}: {error}"
        return _say(f"{fault}\nThe same command with --debug shows where.", OUR_ERROR, debug)
    return 0


def _say(sentence: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(sentence, file=sys.stderr)
    return code


def main() -> None:
    sys.exit(run(sys.argv[1:]))
