import getpass
import os
import tempfile
from pathlib import Path

import pytest
import torch

from keypatch.training.machine import compiled


@pytest.mark.parametrize("is_open", [False, True])
def test_torch_loads_compiled_code_from_a_folder_of_this_user_alone(
    is_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "set")  # so that it is as before at the end
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    monkeypatch.setenv("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")  # likewise
    monkeypatch.setattr(torch, "compile", lambda trunk, dynamic: trunk)
    planted = tmp_path / f"torch-{os.geteuid()}"
    if is_open:
        planted.mkdir()
        planted.chmod(0o777)
        with pytest.warns(UserWarning, match="is open to other users"):
            compiled(torch.relu, print)
    else:
        compiled(torch.relu, print)
    folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder == planted) is not is_open


def test_what_torch_chose_for_itself_is_no_choice_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making an optimizer imports torch._dynamo, which puts its default into the environment."""
    monkeypatch.setenv("KEYPATCH_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", f"{tempfile.gettempdir()}/torchinductor_{getpass.getuser()}")
    monkeypatch.setattr(torch, "compile", lambda trunk, dynamic: trunk)
    compiled(torch.relu, print)
    assert Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) == tmp_path / f"torch-{os.geteuid()}"


def test_a_folder_that_the_user_chose_for_torch_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(torch, "compile", lambda trunk, dynamic: trunk)
    compiled(torch.relu, print)
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path)
