"""A set built once from the rendered room."""

import pytest
from room_fixtures import QUICK, Room

import keypatch as kp


@pytest.fixture(scope="session")
def built(room: Room, tmp_path_factory: pytest.TempPathFactory) -> kp.BuiltSet:
    pytest.importorskip("pycolmap")
    return kp.build(room.photos, tmp_path_factory.mktemp("built") / "out", kp.Tracks(), **QUICK)
