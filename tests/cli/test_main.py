"""The command itself: help, version, exit codes, and sentences instead of tracebacks."""

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from inspect import signature
from pathlib import Path

import pytest

from keypatch.cli import (
    adapt,
    build,
    convert,
    describe,
    doctor,
    evaluate,
    export,
    inspect,
    main,
    match,
    quickstart,
    reconstruct,
    report,
    study,
    train,
)
from keypatch.cli import list as list_
from keypatch.engines import Parallel
from keypatch.settings import field_names
from keypatch.training.conditions import Conditions

COMMANDS = (
    "quickstart",
    "list",
    "inspect",
    "train",
    "adapt",
    "evaluate",
    "study methods",
    "study sweep",
    "study compare",
    "study paper",
    "study gradients",
    "study ubc",
    "describe",
    "match",
    "reconstruct",
    "build",
    "export",
    "doctor",
    "report",
)
OUTPUTS = {  # words of a command, and the option that names a file to write
    "describe": (("{photos}", "--descriptor", "sift", "--keypoints", 5), "f.h5", "--out"),
    "describe --show": (("{photos}", "--descriptor", "sift", "--keypoints", 5, "--out", "f.h5"), "show.png", "--show"),
    "match": (("{photos}/a.png", "{photos}/b.jpg", "--descriptor", "sift", "--keypoints", 5), "m.csv", "--out"),
    "match --draw": (("{photos}/a.png", "{photos}/b.jpg", "--descriptor", "sift", "--keypoints", 5), "m.png", "--draw"),
    "evaluate": (("rootsift", "--data", "{patches}"), "r.json", "--out"),
    "report": (("r.json",), "page.html", "--out"),
}
EXAMPLES = [
    line
    for module in (
        adapt,
        build,
        describe,
        doctor,
        evaluate,
        export,
        inspect,
        list_,
        match,
        quickstart,
        reconstruct,
        report,
        study,
        train,
    )
    for command in module.app.registered_commands
    for line in command.epilog.splitlines()
    if line.startswith("keypatch")
]


def test_help_names_every_command(keypatch: Callable) -> None:
    shown = keypatch("--help")
    assert shown.code == 0
    assert all(f" {command.split()[0]} " in shown.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_ends_with_two_examples(keypatch: Callable, command: str) -> None:
    shown = keypatch(*command.split(), "--help")
    assert shown.code == 0
    assert shown.out.rstrip().splitlines()[-1].strip().startswith(f"keypatch {command}")
    assert shown.out.count(f"\n keypatch {command}") == 2


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_fits_one_line_and_uses_only_options_that_exist(keypatch: Callable, example: str) -> None:
    assert len(example) < 78
    command = next(command for command in COMMANDS if example.startswith(f"keypatch {command}"))
    help_text = keypatch(*command.split(), "--help").out
    assert all(re.search(rf"{word}\b", help_text) for word in example.split() if word.startswith("--"))


HEAVY = {"train": "torch numpy cv2 skimage"}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_imports_nothing_heavy(command: str) -> None:
    code = (
        f"import sys; from keypatch.cli.main import run; run([*{command.split()}, '--help']);"
        f"print('heavy:', *({{*{HEAVY.get(command, 'torch').split()}}} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "heavy:"


def test_no_arguments_show_the_help(keypatch: Callable) -> None:
    assert "Commands" in keypatch().out


INSTALLED = str(Path(sys.executable).with_name("keypatch"))


@pytest.mark.parametrize("start", [[sys.executable, "-m", "keypatch"], [INSTALLED]])
def test_the_installed_command_and_the_module_print_the_version(start: list[str]) -> None:
    if shutil.which(start[0]) is None:
        pytest.skip("the package is not installed with its command")
    shown = subprocess.run([*start, "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"keypatch \d+\.\d+\.\d+", shown.stdout.strip())


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["trian"], "trian"),
        (["train", "hynet"], "--data"),
        (["train", "hynet", "--data", "x", "--pears", "3"], "--pears"),
        (["train", "hynet", "--data", "x", "--pairs", "many"], "--pairs"),
    ],
)
def test_a_wrong_command_line_exits_with_2_and_names_the_word(keypatch: Callable, words: list[str], part: str) -> None:
    shown = keypatch(*words)
    assert shown.code == 2
    assert part in shown.err


def test_a_wrong_input_is_one_sentence_on_stderr(keypatch: Callable, tmp_path: Path) -> None:
    shown = keypatch("inspect", tmp_path / "nowhere")
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith("keypatch: ")
    assert shown.err.count("\n") == 1
    assert "nowhere" in shown.err


@pytest.mark.parametrize("place", ["before", "behind"])
def test_debug_shows_the_traceback_wherever_it_stands(keypatch: Callable, tmp_path: Path, place: str) -> None:
    words = ["inspect", tmp_path / "nowhere"]
    shown = keypatch("--debug", *words) if place == "before" else keypatch(*words, "--debug")
    assert shown.code == 2
    assert "Traceback" in shown.err


def test_a_fault_of_ours_exits_with_1_and_says_so(keypatch: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> None:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr("keypatch.commands.inspect.inspection.inspect", fail)
    shown = keypatch("inspect", "embedded")
    assert shown.code == 1
    assert "ZeroDivisionError: of all things" in shown.err
    assert "Traceback" not in shown.err


def test_what_the_system_refuses_is_named_and_exits_with_2(keypatch: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", "liberty/info.txt")

    monkeypatch.setattr("keypatch.commands.inspect.inspection.inspect", refuse)
    shown = keypatch("inspect", "embedded")
    assert shown.code == 2
    assert "liberty/info.txt: Permission denied" in shown.err


def test_an_interrupt_exits_with_130(keypatch: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(path: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("keypatch.commands.inspect.inspection.inspect", interrupt)
    said = keypatch("inspect", "embedded")
    assert (said.code, said.err) == (
        130,
        "keypatch: Stopped; nothing was written. Run the same command to start again.\n",
    )


def test_a_script_ends_as_a_command_does(capsys: pytest.CaptureFixture[str]) -> None:
    def stop() -> None:
        sys.exit("the child ended with 3")

    assert (main.answer(stop, []), capsys.readouterr().err) == (1, "the child ended with 3\n")
    assert main.answer(lambda: sys.exit(), []) == 0


def test_main_exits_with_the_code_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["keypatch", "list", "nonsense"])
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with pytest.raises(SystemExit) as end:
            main.main()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert end.value.code == 2


@pytest.mark.parametrize(
    ("command", "function", "renamed", "only_in_python"),
    [
        (train.train, "train", {}, {"progress", "conditions"}),
        (evaluate.evaluate, "evaluate", {"on": "benchmark"}, {"progress", "parallel"}),
        (convert.convert, "convert", {}, {"progress"}),
        (inspect.inspect, "inspect", {}, set()),
        (quickstart.quickstart, "quickstart", {}, {"progress"}),
        (list_.list_command, "list_names", {}, set()),
        (report.report, "report", {}, set()),
    ],
)
def test_a_command_takes_the_arguments_of_its_function(
    command: Callable, function: str, renamed: dict[str, str], only_in_python: set[str]
) -> None:
    import keypatch

    options = {renamed.get(name, name) for name in signature(command).parameters}
    if command is train.train:
        options -= {*field_names(Conditions), "seed"}  # of the recipe in Python
    if command is evaluate.evaluate:
        options -= {*field_names(Parallel)}
    assert options == set(signature(getattr(keypatch, function)).parameters) - only_in_python


def test_options_that_messages_name_exist(keypatch: Callable) -> None:
    source = Path(main.__file__).parent.parent
    named = {
        option
        for path in source.rglob("*.py")
        if path.parent.name != "cli"
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", path.read_text(encoding="utf-8"))
    }
    offered = " ".join(keypatch(*command.split(), "--help").out for command in ["", *COMMANDS])
    others = {"--force-reinstall", "--max-restarts", "--nproc-per-node"}  # pip's and torchrun's
    assert sorted(option for option in named - others if f"{option} " not in offered) == []


@pytest.mark.parametrize("command", OUTPUTS)
def test_folders_of_an_output_are_made(
    keypatch: Callable, photos: Path, phototour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path / "cache"))
    if command == "report":
        assert keypatch("evaluate", "rootsift", "--data", phototour, "--out", "r.json").code == 0
    words, name, option = OUTPUTS[command]
    given = [str(word).format(photos=photos, patches=phototour) for word in words]
    shown = keypatch(command.split()[0], *given, option, f"a/b/{name}")
    assert shown.code == 0, shown.err
    assert (tmp_path / "a" / "b" / name).stat().st_size > 0
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == [name]


def test_what_a_file_holds_does_not_steer_the_terminal(keypatch: Callable, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("\x1b[2J\x9b31m/../a.jpg\n")
    said = keypatch("describe", tmp_path / "list.txt", "--out", tmp_path / "f.h5", "--descriptor", "sift")
    assert said.code == 2 and "list.txt, line 1" in said.err
    assert "\x1b" not in said.err and "\x9b" not in said.err
