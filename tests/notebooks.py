"""Runs a notebook cell by cell in this process; `python tests/notebooks.py NOTEBOOK` keeps what the cells show."""

import ast
import base64
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


def run_cells(cells: list[Cell]) -> list[Cell]:
    """The cells with the outputs of this run: what they print, and the value of a last line that is an expression."""
    names: dict[str, Any] = {"__name__": "__main__"}
    done, count = list[Cell](), 0
    for cell in cells:
        if cell["cell_type"] == "code":
            count += 1
            cell = {**cell, "execution_count": count, "outputs": _run("".join(cell["source"]), names, count)}
        done.append(cell)
    return done


def _run(source: str, names: dict[str, Any], count: int) -> list[Cell]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, outputs = io.StringIO(), list[Cell]()
    with redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last is not None else None
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(True)})
    if value is not None:
        data = _shown(value)
        outputs.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs


def _shown(value: Any) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if (picture := getattr(value, "_repr_png_", lambda: None)()) is not None:
        data["image/png"] = base64.b64encode(picture).decode()
    if (table := getattr(value, "_repr_html_", lambda: None)()) is not None:
        data["text/html"] = table.splitlines(True)
    return data | {"text/plain": repr(value).splitlines(True)}


if __name__ == "__main__":
    path = Path(sys.argv[1])
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"] = run_cells(notebook["cells"])
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
