"""Small copies of photos: how large, how many bytes, and what is left out."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from keypatch.reconstruction import thumbnails
from keypatch.reconstruction.thumbnails import make_thumbnails


def noise(path: Path, size: tuple[int, int] = (400, 300), mode: str = "RGB") -> Path:
    """Of all photos the one that takes the most bytes."""
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)
    return path


def sizes(made: dict[str, bytes]) -> list[tuple[int, int]]:
    return [Image.open(BytesIO(encoded)).size for encoded in made.values()]


def test_a_few_photos_are_as_large_as_can_be(tmp_path: Path) -> None:
    photos = {"wide": noise(tmp_path / "a.png"), "tall": noise(tmp_path / "b.png", (300, 400))}
    photos["small"] = noise(tmp_path / "c.png", (30, 20))
    assert sizes(make_thumbnails(photos)) == [(160, 120), (120, 160), (30, 20)]


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK"])
def test_photos_of_any_colours_become_rgb(tmp_path: Path, mode: str) -> None:
    made = make_thumbnails({"a": noise(tmp_path / "a.tif", mode=mode)})
    assert Image.open(BytesIO(made["a"])).mode == "RGB"


def test_the_more_photos_the_smaller_and_never_too_much_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = noise(tmp_path / "a.png")
    whole = len(make_thumbnails({"a": path})["a"])
    monkeypatch.setattr(thumbnails, "MOST_BYTES", 4 * whole)
    found = {}
    for count in (1, 4, 5, 20, 400):
        made = make_thumbnails(dict.fromkeys(map(str, range(count)), path))
        assert sum(map(len, made.values())) <= 4 * whole
        found[count] = set(sizes(made))
    assert found == {1: {(160, 120)}, 4: {(160, 120)}, 5: {(96, 72)}, 20: {(64, 48)}, 400: set()}


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    good, cut, text = noise(tmp_path / "good.jpg"), tmp_path / "cut.jpg", tmp_path / "text.jpg"
    cut.write_bytes(good.read_bytes()[:3000])
    text.write_text("no photo")
    photos = {"cut": cut, "good": good, "text": text, "missing": tmp_path / "missing.jpg", "folder": tmp_path}
    assert list(make_thumbnails(photos)) == ["good"]


def test_no_photos_are_no_thumbnails() -> None:
    assert make_thumbnails({}) == {}
