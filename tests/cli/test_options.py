"""A command and the Python function behind it take the same arguments and assume the same."""

from collections.abc import Callable
from inspect import Parameter, signature

import pytest

from keypatch.cli.describe import describe as describe_command
from keypatch.cli.match import match as match_command
from keypatch.cli.reconstruct import reconstruct as reconstruct_command
from keypatch.features.describing import describe
from keypatch.matching import match, match_pairs
from keypatch.reconstruction.reconstructing import reconstruct

TYPED = {"context", "settings"}  # the settings of a detector are part of it in Python
CALLED = {"reporter", "progress", "names"}

commands = pytest.mark.parametrize(
    ("command", "functions"),
    [(describe_command, [describe]), (match_command, [match, match_pairs]), (reconstruct_command, [reconstruct])],
)


@commands
def test_every_argument_is_an_option(command: Callable, functions: list[Callable]) -> None:
    arguments = {name for function in functions for name in signature(function).parameters}
    if match in functions:
        arguments = arguments - {"first", "second"} | {"images"}
    assert set(signature(command).parameters) - TYPED == arguments - CALLED


@commands
def test_the_defaults_are_the_same(command: Callable, functions: list[Callable]) -> None:
    options = {name: each.default for name, each in signature(command).parameters.items()}
    for function in functions:
        arguments = {name: each.default for name, each in signature(function).parameters.items()}
        shared = [name for name in options if arguments.get(name, Parameter.empty) is not Parameter.empty]
        assert len(shared) > 8
        assert {name: options[name] for name in shared} == {name: arguments[name] for name in shared}
