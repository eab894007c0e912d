"""A COLMAP job on a database, and its outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from keypatch.progress import counted


@dataclass(frozen=True)
class MappingJob:
    """A database with matches, and what to do with it."""

    database: str
    models: str  # the folder to write the models to, as 0, 1, ... by size; made if there is a model
    scratch: str  # a folder for COLMAP's own files
    photos: dict[str, str]  # where each image lies
    fixed: list[str]  # images whose camera is known and stays as it is
    max_error: float  # pixels, of verification
    seed: int
    threads: int
    seconds: float | None  # limit of it all; the mapper then stops with what it has
    dense: str | None = None  # folder of the photos: only count the dense points of the largest model, made before
    begun: str | None = None  # folder of a model to go on with, alone; the database is verified already


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
class BuiltModel:
    """A model that was written, and the images that have a pose in it."""

    statistics: Statistics
    registered: Sequence[str]

    @property
    def size(self) -> str:
        return f"{counted(self.statistics.registered, 'photo')}, {counted(self.statistics.points, 'point')}"


@dataclass(frozen=True)
class MappingOutcome:
    """Of a whole run of COLMAP."""

    pairs: Sequence[VerifiedPair]
    models: Sequence[BuiltModel] = ()  # the largest first; an image may have a pose in several
    two_view: TwoViewPose | None = None  # only of exactly two photos
    notes: Sequence[str] = ()  # what could not be done, a sentence each
    dense_points: int | None = None  # only where they were asked for

    @property
    def statistics(self) -> Statistics | None:
        """Of the largest model; None where there is no model."""
        return self.models[0].statistics if self.models else None

    @property
    def registered(self) -> Sequence[str]:
        """The images of the largest model."""
        return self.models[0].registered if self.models else ()

    @property
    def verified(self) -> list[VerifiedPair]:
        """The pairs with a geometry, most inliers first."""
        return sorted((pair for pair in self.pairs if pair.inliers), key=lambda pair: -pair.inliers)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "MappingOutcome":
        pairs = [VerifiedPair(**{**pair, "images": tuple(pair["images"])}) for pair in value["pairs"]]
        models = [BuiltModel(Statistics(**each["statistics"]), each["registered"]) for each in value["models"]]
        two_view = value["two_view"] and TwoViewPose(**value["two_view"])
        return cls(pairs, models, two_view, value["notes"], value["dense_points"])
