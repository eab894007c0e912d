"""Rank-1 on strips: what is averaged, which sequences are chosen, what is refused."""

from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks import evaluate_rank1
from keypatch.errors import DataError
from keypatch.patches.hpatches import STRIPS
from keypatch.patches.patch_set import reduce_patches

ROWS = 6
SEQUENCES = ("i_dark", "v_turn", "v_walk")


@dataclass(frozen=True)
class MiddlePixel:
    """Tells patches apart by the grey value in their middle alone."""

    name: str = "middle"
    dim: int = 1
    patch_size: int = 64
    patch_sigmas: float = 24.0
    unit_length: bool = False
    sides: list[int] = field(default_factory=list)

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        self.sides.append(patches.shape[1])
        return patches[:, 32, 32].astype(np.float32)[:, None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Flat patches, grey value 20 * row; in e1 of v_turn two rows are exchanged, in t of i_dark all are equal."""
    for sequence in SEQUENCES:
        (tmp_path / sequence).mkdir()
        for strip in STRIPS:
            greys = 20 * np.arange(ROWS)
            if (sequence, strip) == ("v_turn", "e1"):
                greys[[0, 1]] = greys[[1, 0]]
            if sequence == "i_dark" and strip.startswith("t"):
                greys[:] = 100
            pixels = np.repeat(greys, 65)[:, None].repeat(65, axis=1).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / sequence / f"{strip}.png")
    return tmp_path


def test_scores_are_means_over_sequences_and_strips(folder: Path) -> None:
    result = evaluate_rank1(MiddlePixel(), folder)
    exchanged = 1 - 2 / ROWS
    assert result.scores["rank1.e.v_turn"] == pytest.approx((4 + exchanged) / 5)
    assert result.scores["rank1.e.v"] == pytest.approx((9 + exchanged) / 10)
    assert result.scores["rank1.e"] == pytest.approx((14 + exchanged) / 15)
    assert result.scores["rank1.e.i"] == result.scores["rank1.h"] == 1
    assert result.scores["rank1.t.i_dark"] == 0  # all tied: a tie is a miss
    assert result.scores["rank1.t"] == pytest.approx(2 / 3)
    assert len(result.scores) == 3 * (1 + 2 + len(SEQUENCES))
    assert result.settings["sequences"] == list(SEQUENCES)


def test_describers_get_patches_of_64(folder: Path) -> None:
    middle = MiddlePixel()
    evaluate_rank1(middle, folder)
    assert set(middle.sides) == {64}


def test_patches_are_reduced_by_opencvs_8_bit_bilinear_resize() -> None:
    patches = np.random.default_rng(0).integers(0, 256, (3, 65, 65), dtype=np.uint8)
    expected = np.stack([cv2.resize(patch, (64, 64), interpolation=cv2.INTER_LINEAR) for patch in patches])
    np.testing.assert_array_equal(reduce_patches(patches, 64), expected)
    small = patches[:, :64, :64]
    assert reduce_patches(small, 64) is small


@pytest.mark.parametrize("chosen", [("turn", "dark"), ("v_turn", "i_dark"), ("dark", "v_turn", "turn")])
def test_sequences_are_chosen_by_name(folder: Path, chosen: tuple[str, ...]) -> None:
    steps: list[tuple[int, int]] = []
    result = evaluate_rank1(
        MiddlePixel(), folder, sequences=chosen, progress=lambda done, total, _: steps.append((done, total))
    )
    assert result.settings["sequences"] == ["i_dark", "v_turn"]
    assert result.scores["rank1.t"] == pytest.approx(1 / 2)
    assert "rank1.t.v_walk" not in result.scores
    assert steps == [(1, 2), (2, 2)]
    assert result.provenance.hashes != evaluate_rank1(MiddlePixel(), folder).provenance.hashes


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (("trun",), 'no sequence "trun". Did you mean "turn"[?] Its sequences: i_dark, v_turn, v_walk'),
        (("sunrise",), 'no sequence "sunrise". Its sequences'),
        ((), "No sequence was chosen"),
    ],
)
def test_an_unknown_sequence_is_named(folder: Path, chosen: tuple[str, ...], words: str) -> None:
    with pytest.raises(DataError, match=words):
        evaluate_rank1(MiddlePixel(), folder, sequences=chosen)


def test_a_folder_without_strips_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with pytest.raises(DataError, match="no HPatches sequences"):
        evaluate_rank1(MiddlePixel(), tmp_path)
    with pytest.raises(DataError):
        evaluate_rank1(MiddlePixel(), tmp_path / "nowhere")
