"""The options of every building method, `Building`, and how a folder says that it was built."""

from dataclasses import dataclass
from pathlib import Path

from keypatch.files import Format
from keypatch.images import PIXEL_LIMIT
from keypatch.settings import CheckedFields, brief, option

FORMAT = Format("keypatch-build", 1, "state of a build")
STATE = "build.json"
TRAIN, TEST = "train", "test"  # the folders of a split
UNFINISHED = "unfinished"  # the folder of what is not whole yet
SIDE = 24.0  # of a patch, in sigmas


@dataclass(frozen=True)
class Building(CheckedFields):
    """How patches are cut and listed, and what is held out.

    >>> kp.Building(held_out=0.2).list_size
    10000
    """

    held_out: float = option(
        0.0,
        "Hold out this share of the points, a region or whole scenes, and write DIR/train and DIR/test.",
        least=0,
        below=1,
    )
    terms: str = option("", "Terms of use of the photos, to state on the card.")
    masks: str | Path | None = option(
        None, "Folder of masks, such as a.jpg.png for a.jpg; black areas are ignored, as in COLMAP."
    )
    pairs: str | Path | None = option(
        None, "Pairs to match: exhaustive, sequence:N, or a file with two names per line; by default the method's own."
    )
    separation: float = option(
        2.0,
        "Of points of similar scale within this many sigmas in a photo, keep only the one seen most.",
        least=0,
    )
    list_size: int = option(10_000, "Maximum number of pairs in each pair list, half of them matches.", least=2)
    patch_sigmas: float | None = option(
        None, "Patch side in sigmas; by default 24, or 10 with --method sequences, as in HPatches.", above=0
    )
    root: str | Path | None = option(None, "Name photos by their paths relative to this folder.")
    pixel_limit: int = option(PIXEL_LIMIT, "Skip photos with more pixels than this.", above=0)
    seed: int = option(0, "Random seed for pair lists, samples, views and frame errors.", least=0, below=2**31)

    __repr__ = brief

    @property
    def side(self) -> float:
        """The side of a patch in sigmas; `build` has filled in the method's default."""
        return SIDE if self.patch_sigmas is None else self.patch_sigmas
