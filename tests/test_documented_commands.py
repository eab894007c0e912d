"""What README and docs tell a reader to paste does what they say; `documented_commands.py` runs all of it."""

import re
import tomllib
from pathlib import Path

import pytest
from documented_commands import PAGES, ROOT, find_commands, run_page


def test_commands_are_found_as_a_reader_would_paste_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("documented_commands.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "`keypatch match` is a name, `keypatch list losses` a command.\n"
        "```\nD=sift  # or another\nkeypatch train hynet \\\n    --pairs 1\nfor n in 1 2; do\n  echo $n\ndone\n```\n"
        "```\nfolder/file   a tree\n```\n```python\nx = 1\n```\n"
    )
    assert [(found.line, found.kind, found.text) for found in find_commands(page)] == [
        (1, "shell", "keypatch list losses"),
        (3, "shell", "D=sift  # or another"),
        (4, "shell", "keypatch train hynet \\\n    --pairs 1"),
        (6, "shell", "for n in 1 2; do\n  echo $n\ndone"),
        (14, "python", "x = 1"),
    ]


def test_no_page_leaves_a_placeholder_in_a_command() -> None:
    found = [command for page in PAGES for command in find_commands(page) if command.kind == "shell"]
    assert len(found) > 200
    placeholders = ("...", " D ", " DIR", " FILE", " NAME", " PATH", " RUN", "path/to")
    assert [command for command in found if any(word in f"{command.text} " for word in placeholders)] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_runs_as_written(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATA", raising=False)  # what a reader has who downloads nothing
    rows = list(run_page(page, tmp_path / "page", short=True))
    assert [row for row in rows if row.failed] == []


def test_extras_are_installed_by_one_form_of_command() -> None:
    """It works in any folder once keypatch is installed, and names an extra that there is."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pages = [*PAGES, *ROOT.glob("src/**/*.py"), *ROOT.glob("bench/*.py")]
    command = re.compile(r'pip install [^"`\n]*\[[^"`\n]*')
    told = {(page.name, text) for page in pages for text in command.findall(page.read_text())}
    assert len(told) > 10
    wrong = [each for each in told if not re.match(r"pip install 'keypatch\[(\{extra\}|[\w-]+)\]'", each[1])]
    named = {name for _, text in told for name in re.findall(r"keypatch\[([\w-]+)\]", text)}
    assert not wrong and named <= set(extras)
    called = {name for page in pages for name in re.findall(r'MissingExtra\.of\([^)]*?, "([\w-]+)"', page.read_text())}
    assert len(called) > 5 and called <= set(extras)
