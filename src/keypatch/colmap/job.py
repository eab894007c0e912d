"""A COLMAP job on a database, and its outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class MappingJob:
    """A database with matches, and what to do with it."""

    database: str
    model: str  # the folder to write the model to; made if there is a model
    scratch: str  # a folder for COLMAP's own files
    photos: dict[str, str]  # where each image lies
    fixed: list[str]  # images whose camera is known and stays as it is
    max_error: float  # pixels, of verification
    seed: int
    threads: int
    seconds: float | None  # limit of it all; the mapper then stops with what it has
    dense: str | None = None  # folder of the photos: only count the dense points of the model, which exists already


@dataclass(frozen=True)
class VerifiedPair:
    """What geometric verification found between two images."""

    images: tuple[str, str]
    matches: int
    inliers: int  # 0: no geometry was found
    configuration: str  # COLMAP's word: CALIBRATED, UNCALIBRATED, PLANAR_OR_PANORAMIC, ...


@dataclass(frozen=True)
class TwoViewPose:
    """How the second of two photos was taken from the first; the length of the way between them is unknown."""

    rotation: Sequence[Sequence[float]]  # (3, 3) from the first camera to the second
    direction: Sequence[float]  # (3,) unit length: the translation, x_2 = R x_1 + t
    rotation_degrees: float
    triangulation_degrees: float  # median angle between the two rays to a point


@dataclass(frozen=True)
class Statistics:
    """A model in numbers."""

    registered: int  # images with a pose
    points: int
    observations: int  # places in images that belong to a point
    track_length: float  # mean number of observations of a point
    observations_per_image: float
    reprojection_error: float  # mean, pixels


@dataclass(frozen=True)
class MappingOutcome:
    """Of a whole run of COLMAP; `statistics` is None where there is no model."""

    pairs: Sequence[VerifiedPair]
    statistics: Statistics | None = None
    registered: Sequence[str] = ()
    two_view: TwoViewPose | None = None  # only of exactly two photos
    notes: Sequence[str] = ()  # what could not be done, a sentence each
    dense_points: int | None = None  # only where they were asked for

    @property
    def verified(self) -> list[VerifiedPair]:
        """The pairs with a geometry, most inliers first."""
        return sorted((pair for pair in self.pairs if pair.inliers), key=lambda pair: -pair.inliers)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "MappingOutcome":
        pairs = [VerifiedPair(**{**pair, "images": tuple(pair["images"])}) for pair in value["pairs"]]
        statistics = value["statistics"] and Statistics(**value["statistics"])
        two_view = value["two_view"] and TwoViewPose(**value["two_view"])
        return cls(pairs, statistics, value["registered"], two_view, value["notes"], value["dense_points"])
