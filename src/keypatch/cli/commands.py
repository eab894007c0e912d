"""The commands by name, and the options before them."""

from typing import Annotated

import typer

from keypatch.cli import describe, doctor, evaluate, inspect, match, quickstart, reconstruct, report, study, train
from keypatch.cli import list as list_  # not the builtin
from keypatch.cli.stopping import telling

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
app.command("train", epilog=train.EXAMPLES)(telling(train.train))
app.command("evaluate", epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command("describe", epilog=describe.EXAMPLES)(telling(describe.describe))
app.command("match", epilog=match.EXAMPLES)(telling(match.match))
app.command("reconstruct", epilog=reconstruct.EXAMPLES)(telling(reconstruct.reconstruct))
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
