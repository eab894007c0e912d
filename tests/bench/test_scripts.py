"""The scripts of bench/ end as commands do: wrong input is a sentence and exit code 2."""

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"


def test_missing_data_are_told_in_a_sentence(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCH / "sfm.py"), "--data", "missing", "--out", "table.json"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("keypatch: There is no folder missing/entry-P10/")
