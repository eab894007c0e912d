"""Options made from the fields of values: none is lost, none has a second default, and all are read by one parser."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from keypatch.cli.describe import describe as describe_command
from keypatch.cli.match import match as match_command
from keypatch.cli.options import options_of
from keypatch.cli.reconstruct import VERIFICATION
from keypatch.cli.reconstruct import reconstruct as reconstruct_command
from keypatch.detection import DETECTOR_TYPES, DETECTORS, Detector, Dog, Grid, Orb
from keypatch.errors import RecipeError
from keypatch.features.description import describe
from keypatch.features.extraction import Extraction, FileOptions
from keypatch.matching.matching import Matching
from keypatch.reconstruction.pipeline import reconstruct
from keypatch.settings import field_names, option


@dataclass(frozen=True)
class Finding:
    detector: Detector = option(factory=Dog, about="Keypoint detector.")
    most: int | None = option(2048, "At most; none keeps all.")
    upright: bool = option(False, "Angles are 0.")
    seed: int = option(1, "Of finding.")


@dataclass(frozen=True)
class Pairing:
    ratio: float = option(0.9, "Ratio test.")
    mode: Literal["mutual", "one-way"] = option("mutual", "Which neighbours.")
    table: Path | None = option(None, "Where to.")
    seed: int = option(2, "Of pairing.")
    drawn: bool = option(True, "Draw it.")


Made = tuple[str, Finding, Pairing]


def run(*words: str) -> Made:
    made = list[Made]()
    app = typer.Typer(rich_markup_mode="rich")

    @app.command()
    @options_of(DETECTOR_TYPES, finding=Finding(most=100), pairing=Pairing())
    def command(
        finding: Finding, pairing: Pairing, name: Annotated[str, typer.Argument()], table: str | None = None
    ) -> None:
        made.append((f"{name} {table}", finding, pairing))

    result = CliRunner().invoke(app, [*words], catch_exceptions=True, env={"COLUMNS": "200"})
    if isinstance(result.exception, RecipeError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return made[0] if made else (result.output, Finding(), Pairing())


def test_without_options_the_values_are_the_defaults_given() -> None:
    assert run("a") == ("a None", Finding(most=100), Pairing())


@pytest.mark.parametrize(
    ("words", "finding", "pairing"),
    [
        ("--most 5 --upright --ratio 0.5", Finding(most=5, upright=True), Pairing(ratio=0.5)),
        ("--most none --mode one-way --no-drawn", Finding(most=None), Pairing(mode="one-way", drawn=False)),
        ("--detector grid --set detector.step=8", Finding(Grid(8.0), 100), Pairing()),
        ("--set detector.fast_threshold=9 --detector orb", Finding(Orb(fast_threshold=9), 100), Pairing()),
        ("--set ratio=0.7 --set most=none", Finding(most=None), Pairing(ratio=0.7)),
        (
            "--seed 7 --set pairing.seed=8 --set pairing.table=1",
            Finding(most=100, seed=7),
            Pairing(seed=8, table=Path("1")),
        ),
    ],
)
def test_options_and_settings_reach_the_fields(words: str, finding: Finding, pairing: Pairing) -> None:
    assert run("a", *words.split()) == ("a None", finding, pairing)


def test_a_parameter_of_the_command_is_its_own() -> None:
    assert run("a", "--table", "x") == ("a x", Finding(most=100), Pairing())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--ratio high", "--ratio must be a finite number, not 'high'"),
        ("--most 1.5", "--most must be an integer, not 1.5"),
        ("--mode both", "--mode must be one of mutual, one-way, not 'both'"),
        ("--detector gird", 'there is no "gird".*Did you mean "grid"'),
        ("--set detector.stp=3", 'Dog has no field "stp"'),
        ("--set ratoi=3", 'there is no option "ratoi".*Did you mean "ratio"'),
        ("--set ratio", "expected path=value"),
        ("--detector keynet", "KeyNet needs weights; add --set detector.weights=VALUE"),
    ],
)
def test_a_wrong_value_is_one_sentence(words: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        run("a", *words.split())


def test_the_help_shows_meanings_choices_and_defaults() -> None:
    shown = " ".join(run("--help")[0].split())
    for part in (f"[{'|'.join(DETECTORS)}]", "[INTEGER|none]", "[default: 100]", "Which neighbours.", "--no-drawn"):
        assert part in shown


@pytest.mark.parametrize(
    ("command", "values"),
    [(describe_command, [Extraction, FileOptions]), (match_command, [Extraction, Matching])],
)
def test_every_field_is_an_option(command: Callable, values: list[Any]) -> None:
    assert {field for value in values for field in field_names(value)} <= set(signature(command).parameters)


def test_describe_has_no_other_options_than_its_function() -> None:
    arguments = {name: each.default for name, each in signature(describe).parameters.items()}
    arguments["descriptor"] = arguments.pop("describer")  # the command line takes it by its name or file alone
    options = {name: each.default for name, each in signature(describe_command).parameters.items()}
    values = {field for name in ("extraction", "files", "parallel") for field in field_names(arguments.pop(name))}
    assert set(options) - values - {"settings"} == set(arguments) - {"progress"}
    shared = [name for name, default in arguments.items() if name in options and default is not Parameter.empty]
    assert {name: options[name] for name in shared} == {name: arguments[name] for name in shared}


def test_reconstruct_has_no_other_options_than_its_function() -> None:
    arguments = {name: each.default for name, each in signature(reconstruct).parameters.items()}
    arguments["descriptor"] = arguments.pop("describer")
    options = set(signature(reconstruct_command).parameters)
    values = [arguments.pop(name) for name in ("mapping", "inputs", "extraction", "matching", "parallel")]
    fields = {field for value in values for field in field_names(value)}
    assert options - fields - {"settings", "context"} == set(arguments) - {"progress"}
    assert fields - options == {*VERIFICATION}
