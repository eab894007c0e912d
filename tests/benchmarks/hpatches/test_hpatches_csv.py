"""Descriptors as csv: read with either delimiter, written and read back, every wrong file named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keypatch.benchmarks import Hpatches, evaluate_hpatches
from keypatch.benchmarks.hpatches.descriptors import StripDescriptors
from keypatch.benchmarks.hpatches.strips import is_csv_folder, read_csv_strips, write_csv_strips
from keypatch.errors import DataError, KeypatchError
from keypatch.patches.hpatches import STRIPS


def evaluate(copied: Any) -> None:
    folder = copied.descriptors["mini"]
    evaluate_hpatches(folder, folder, Hpatches(split="mini", tasks=str(copied.tasks)))


def edit(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    return lambda path: path.write_text("\n".join(change(path.read_text().splitlines())) + "\n") and None


WRONG: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "missing strip": ("v_yuri/t3.csv", Path.unlink, "t3.csv cannot be read: no such file"),
    "missing ref": ("v_yuri/ref.csv", Path.unlink, "ref.csv cannot be read"),
    "row missing": ("i_fog/h2.csv", edit(lambda lines: lines[:-1]), "h2.csv has 95 rows, but i_fog has 96 patches"),
    "row too many": ("i_fog/e1.csv", edit(lambda lines: [*lines, lines[0]]), "e1.csv has 97 rows, but"),
    "columns": (
        "v_yuri/e2.csv",
        edit(lambda lines: [x + ",1" for x in lines]),
        "e2.csv has 17 columns, .* before it have 16",
    ),
    "ragged": (
        "v_yuri/e2.csv",
        edit(lambda x: [*x[:4], x[4] + ",1", *x[5:]]),
        "e2.csv .* columns changed from 16 to 17 at row 5",
    ),
    "one column": (
        "i_fog/ref.csv",
        edit(lambda x: [y.replace(",", "\t") for y in x]),
        r"ref.csv is not a readable table of numbers .*row 0",
    ),
    "one number": ("i_fog/ref.csv", edit(lambda x: [y.split(",")[0] for y in x]), "only one column. Its delimiter"),
    "a head": (
        "i_fog/ref.csv",
        edit(lambda x: ["a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", *x[1:]]),
        r"ref.csv is not a readable table of numbers .*'a'",
    ),
    "nan": ("i_zion/t5.csv", edit(lambda x: [*x[:6], "nan" + ",0" * 15, *x[7:]]), "t5.csv, line 7: .* nan"),
    "too large for float32": (
        "i_zion/t5.csv",
        edit(lambda x: ["1e300" + ",0" * 15, *x[1:]]),
        "t5.csv, line 1: .* float32",
    ),
    "empty": ("i_zion/t5.csv", lambda path: path.write_text("") and None, "t5.csv is empty"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_named(copied: Any, case: str) -> None:
    name, damage, words = WRONG[case]
    damage(copied.descriptors["mini"] / name)
    with pytest.raises(DataError, match=words):
        evaluate(copied)


def test_a_missing_sequence_is_named(copied: Any, tmp_path: Path) -> None:
    for path in (copied.descriptors["mini"] / "v_yuri").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="lacks 1 of the 6 sequences of the split mini: v_yuri"):
        evaluate(copied)


def test_stray_folders_and_files_do_no_harm(copied: Any) -> None:
    (copied.descriptors["mini"] / "notes").mkdir()
    (copied.descriptors["mini"] / "readme.txt").write_text("hello")
    evaluate(copied)


def test_both_delimiters_give_the_same(copied: Any) -> None:
    folder = copied.descriptors["mini"]
    plain = read_csv_strips(folder, ["i_fog"], [96])
    path = folder / "i_fog" / "ref.csv"
    path.write_text(path.read_text().replace(",", ";") + "\n")  # and a blank line at the end
    np.testing.assert_array_equal(read_csv_strips(folder, ["i_fog"], [96]), plain)
    np.testing.assert_array_equal(plain[:96], np.loadtxt(path, np.float32, delimiter=";"))
    assert plain.shape == (16 * 96, 16) and plain.dtype == np.float32


def test_what_is_written_comes_back_unchanged(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((16 * 5, 3)).astype(np.float32) * np.float32(1e-3)
    descriptors = StripDescriptors(("i_a", "v_b"), np.array([2, 3]), rows)
    write_csv_strips(descriptors, tmp_path / "out")
    assert is_csv_folder(tmp_path / "out") and not is_csv_folder(tmp_path)
    np.testing.assert_array_equal(read_csv_strips(tmp_path / "out", ["i_a", "v_b"], [2, 3]), rows)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "out/v_b/t5.csv", np.float32, delimiter=","), rows[-3:])
    assert {path.stem for path in (tmp_path / "out" / "i_a").iterdir()} == set(STRIPS)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("mine")
    descriptors = StripDescriptors(("i_a",), np.array([1]), np.ones((16, 2), np.float32))
    for target in (tmp_path, tmp_path / "kept.txt"):
        with pytest.raises(KeypatchError, match="not an empty folder"):
            write_csv_strips(descriptors, target)
    assert (tmp_path / "kept.txt").read_text() == "mine"
