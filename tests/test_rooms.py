"""A room imports only rooms above it, and only some rooms may know of torch."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "keypatch"
ROOMS = [
    "errors",
    "files",
    "storage",
    "sandbox",
    "cache",
    "images",
    "parts",
    "settings",
    "progress",
    "provenance",
    "geometry",
    "colmap",
    "detection",
    "metrics",
    "patches",
    "networks",
    "losses",
    "sampling",
    "training",
    "recipes",
    "describers",
    "zoo",
    "engines",
    "features",
    "matching",
    "reconstruction",
    "doctor",
    "benchmarks",
    "reports",
    "building",
    "commands",
    "studies",
    "cli",
]
FRONT_DOOR = {"__init__.py", "__main__.py"}  # the public names reach into every room
WITHOUT_TORCH = set(ROOMS[: ROOMS.index("patches") + 1])
SHAPELESS = ("util", "helper", "common", "misc", "manager")

FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.parts[0].removesuffix(".py")


def imported(nodes: Iterator[ast.AST], package: str) -> Iterator[tuple[str, int]]:
    """(module, line) of every import among the nodes; relative ones are resolved against the package."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*parents, *([node.module] if node.module else [])])
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


def package_of(path: Path) -> str:
    return ".".join(["keypatch", *path.parts[:-1]])


@pytest.mark.parametrize("path", [path for path in FILES if str(path) not in FRONT_DOOR], ids=str)
def test_a_file_imports_only_rooms_above_its_own(path: Path) -> None:
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    room = room_of(path)
    assert room in ROOMS, f"{path}: the list of rooms does not name {room}"
    for module, line in imported(ast.walk(tree), package_of(path)):
        if module.startswith("keypatch."):
            other = module.split(".")[1]
            assert other in ROOMS, f"{path}:{line} imports {module}, which is in no room"
            assert ROOMS.index(other) <= ROOMS.index(room), f"{path}:{line} imports {other}, a room below {room}"


@pytest.mark.parametrize("path", [path for path in FILES if room_of(path) in WITHOUT_TORCH], ids=str)
def test_rooms_of_plain_arrays_never_import_torch(path: Path) -> None:
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    assert not [line for module, line in imported(ast.walk(tree), package_of(path)) if module.split(".")[0] == "torch"]


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_file_is_named_after_one_thing(path: Path) -> None:
    assert not any(word in path.stem for word in SHAPELESS)
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    assert not tree.body or ast.get_docstring(tree), f"{path}: the first line should say what the file is for"


def test_an_upward_import_is_noticed() -> None:
    tree = ast.parse("from ..training import running\nfrom keypatch import recipes\nimport keypatch.cli.main")
    found = list(imported(ast.walk(tree), "keypatch.geometry"))
    assert found == [("keypatch.training.running", 1), ("keypatch.recipes", 2), ("keypatch.cli.main", 3)]


def test_the_architecture_page_names_the_rooms_in_their_order() -> None:
    page = (SOURCE.parent.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = page.split("```")[1]
    named = re.findall(r"^  (\w+)(?:/|\.py) ", tree, re.MULTILINE)
    present = {room_of(path) for path in FILES if str(path) not in FRONT_DOOR}
    assert named == [room for room in ROOMS if room in present]


def test_the_architecture_page_names_the_packages_of_benchmarks() -> None:
    page = (SOURCE.parent.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    packages = {path.parts[1] for path in FILES if path.parts[0] == "benchmarks" and len(path.parts) == 3}
    assert set(re.findall(r"^    (\w+)/ ", page, re.MULTILINE)) == packages
