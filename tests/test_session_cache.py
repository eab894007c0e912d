"""The tests leave the user's cache as it is."""

import subprocess
import sys
from pathlib import Path

import pytest

from keypatch.cache import cache_folder


def test_the_cache_of_the_tests_and_of_processes_they_start_is_a_temporary_one(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    code = "from keypatch.cache import cache_folder; print(cache_folder())"
    started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert cache_folder().is_relative_to(tmp_path_factory.getbasetemp())
    assert Path(started.stdout.strip()) == cache_folder()
