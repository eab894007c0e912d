"""The scripts of bench/ end as commands do: wrong input is a sentence and exit code 2."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import racing

BENCH = Path(__file__).parents[2] / "bench"


def test_missing_data_are_told_in_a_sentence(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCH / "sfm.py"), "--data", "missing", "--out", "table.json"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("keypatch: There is no folder missing/entry-P10/")


def test_a_race_that_is_stopped_leaves_no_contestant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = list["subprocess.Popen[str]"]()
    start = racing._start

    def keep(command: list[str]) -> Any:
        started.append(start(command))
        return started[-1]

    def stop(process: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(racing, "_start", keep)
    monkeypatch.setattr(racing, "_ask", stop)
    waiting = tmp_path / "waiting.py"
    waiting.write_text("import sys\nsys.stdin.read()\n")
    with pytest.raises(KeyboardInterrupt):
        racing.race(str(waiting), [{"who": "a"}, {"who": "b"}], [], rounds=1)
    assert len(started) == 2 and all(process.poll() is not None for process in started)
