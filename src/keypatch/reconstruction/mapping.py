"""The options of a reconstruction: its inputs, and COLMAP's settings."""

from dataclasses import dataclass
from pathlib import Path

from keypatch.images import PIXEL_LIMIT
from keypatch.settings import CheckedFields, brief, option


@dataclass(frozen=True)
class Inputs:
    """What a reconstruction starts from besides the photos.

    >>> kp.Inputs(pairs="sequence:5").features is None
    True
    """

    features: str | Path | None = option(
        None, "Use this feature file (ours or hloc's) instead of describing the photos."
    )
    matches: str | Path | None = option(None, "Use this match file (ours or hloc's) instead of matching.")
    pairs: str | Path = option(
        "exhaustive", "Pairs to match: exhaustive, sequence:N, or a file with two names per line."
    )
    cameras: str | Path | None = option(
        None, "Known cameras (kept fixed) and poses (to compare with): a COLMAP model or Strecha's .camera files."
    )
    root: str | Path | None = option(None, "Name photos by their paths relative to this folder.")
    masks: str | Path | None = option(
        None, "Folder of masks, such as a.jpg.png for a.jpg; black areas get no keypoints, as in COLMAP."
    )
    pixel_limit: int = option(PIXEL_LIMIT, "Refuse photos with more pixels than this.")

    __repr__ = brief


@dataclass(frozen=True)
class Mapping(CheckedFields):
    """COLMAP's settings; `camera_model`, `focal` and `share_camera` apply to photos without a known camera.

    >>> kp.Mapping(focal=1200, share_camera=True).max_error
    4.0
    """

    camera_model: str = option("SIMPLE_RADIAL", "COLMAP's camera model.")
    focal: float | None = option(None, "Focal length in pixels, instead of the EXIF value or a guess.")
    share_camera: bool = option(False, "All photos were taken with one camera.")
    max_error: float = option(
        4.0, "Largest distance from the epipolar line in geometric verification, in pixels.", above=0
    )
    seed: int = option(
        0, "COLMAP's random seed; with one thread, the same seed gives the same model.", least=0, below=2**31
    )
    threads: int = option(
        1,
        "Threads for COLMAP's mapper; with more than one, models vary from run to run. Other stages use all.",
        above=0,
    )
    time_limit: float | None = option(
        None, "Stop verification and mapping after this many seconds and keep the model so far.", above=0
    )

    __repr__ = brief
