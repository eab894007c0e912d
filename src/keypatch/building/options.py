"""What every method of building is told, `Building`, and how a folder says that it was built."""

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
        "Hold out this share of the points, a region or whole scenes: writes DIR/train and DIR/test.",
        least=0,
        below=1,
    )
    terms: str = option("", "Terms under which the photos may be used, as the card states them.")
    masks: str | Path | None = option(
        None, "Folder of masks, a.jpg.png for a.jpg: nothing is taken where they are black, as in COLMAP."
    )
    pairs: str | Path | None = option(
        None, "Photos to match: exhaustive, sequence:N, or a file with two names per line. By default the method's own."
    )
    separation: float = option(
        2.0,
        "Points of about one scale nearer than so many sigmas in a photo are one: the one seen most is kept.",
        least=0,
    )
    list_size: int = option(10_000, "Most lines of each pair list, half of them matches.", least=2)
    patch_sigmas: float | None = option(
        None, "Patch side in sigmas; by default 24, for the strips of --method sequences 10 as in HPatches.", above=0
    )
    root: str | Path | None = option(None, "Name photos by their paths relative to this folder.")
    pixel_limit: int = option(PIXEL_LIMIT, "Skip photos with more pixels than this.", above=0)
    seed: int = option(0, "Random seed of pair lists, samples, views and errors of frames.", least=0, below=2**31)

    __repr__ = brief

    @property
    def side(self) -> float:
        """Of a patch, in sigmas; `build` has filled in what is usual for the method."""
        return SIDE if self.patch_sigmas is None else self.patch_sigmas
