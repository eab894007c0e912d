"""What `reconstruct` leaves: its numbers as a value and as reconstruction.json, and the folder that holds it all."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keypatch.colmap.cameras import GUESS, Camera, StandIn
from keypatch.colmap.job import BuiltModel, MappingOutcome, Statistics, TwoViewPose
from keypatch.errors import DataError, Interrupted
from keypatch.files import Format, lock, make_folder, write_json
from keypatch.matching.relative_pose import CONVENTION
from keypatch.metrics.poses import PoseErrors
from keypatch.progress import StopWish
from keypatch.provenance import Provenance

FORMAT = Format("keypatch-reconstruction", 2, "report of a reconstruction")


KNOWN, GIVEN, EXIF, GUESSED = "known camera", "given", "EXIF", "guessed"


@dataclass(frozen=True)
class PhotoCamera:
    """The camera of a photo: what COLMAP was given, and what it made of it."""

    camera: Camera  # refined, where the photo is in a model
    focal: float  # pixels, along x: before it was refined
    source: str  # where that came from

    @classmethod
    def of(cls, camera: Camera, refined: Camera | None, known: bool, given: bool) -> "PhotoCamera":
        source = KNOWN if known else GIVEN if given else EXIF if camera.focal_known else GUESSED
        return cls(camera if refined is None or isinstance(refined, StandIn) else refined, camera.focal[0], source)

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.camera.model,
            "size": [self.camera.width, self.camera.height],
            "focal_from": self.source,
            "focal_before": self.focal,
            "K": self.camera.matrix.tolist(),
            "distortion": list(self.camera.distortion),
        }


def guess_warning(cameras: Mapping[str, PhotoCamera]) -> list[str]:
    """A sentence where focal lengths were guessed: of two photos the pose is wrong by as much as the guess."""
    guessed = [name for name, each in cameras.items() if each.source == GUESSED]
    if not guessed:
        return []
    whose = f"{guessed[0]}" if len(guessed) == 1 else f"{len(guessed)} of {len(cameras)} photos"
    result = "so the pose may be degrees off" if len(cameras) == 2 else "refined only by the mapper"
    return [
        f"The focal length of {whose} is a guess ({GUESS} times the longer side), {result}: if you know it, give "
        "--focal, in pixels, or --cameras."
    ]


def _focals(cameras: Sequence[PhotoCamera], refined: bool) -> str:
    """ "812.3 to 840.1 px, refined from 844.8 px (EXIF)", for each source."""
    texts = []
    for source in (KNOWN, GIVEN, EXIF, GUESSED):
        some = [each for each in cameras if each.source == source]
        before = _range([each.focal for each in some])
        origin = f"guessed: {GUESS} x the longer side" if source == GUESSED else source
        if some and refined and source != KNOWN:
            texts.append(f"{_range([each.camera.focal[0] for each in some])} px, refined from {before} px ({origin})")
        elif some:
            texts.append(f"{before} px ({origin})")
    return "; ".join(texts)


def _range(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{value:.1f}" for value in (min(values), max(values)))) if values else ""


@dataclass(frozen=True)
class Reconstruction:
    """A finished reconstruction; two photos have no model but `two_view`."""

    folder: Path
    photos: Sequence[str]
    outcome: MappingOutcome
    cameras: Mapping[str, PhotoCamera]  # by photo
    pose_errors: PoseErrors | None  # only where true cameras were given
    notes: Sequence[str]  # what could not be done, a sentence each
    settings: Mapping[str, Any]
    provenance: Provenance

    @property
    def models(self) -> Sequence[BuiltModel]:
        """All models, the largest first, as in `models/0, 1, ...`."""
        return self.outcome.models

    @property
    def statistics(self) -> Statistics | None:
        """Of the largest model."""
        return self.outcome.statistics

    @property
    def two_view(self) -> TwoViewPose | None:
        return self.outcome.two_view

    @property
    def model(self) -> Path | None:
        """The folder of the largest model in COLMAP's format, binary and text."""
        return self.folder / MODELS / "0" if self.models else None

    @property
    def files(self) -> list[Path]:
        """What is worth opening."""
        names = [MODELS, PICTURE, PAGE] if self.models else [DATABASE]
        return [self.folder / name for name in [*names, REPORT]]

    @property
    def unregistered(self) -> list[str]:
        """The photos that are in no model."""
        return sorted(set(self.photos).difference(*(each.registered for each in self.models))) if self.models else []

    def pairs(self) -> dict[str, int]:
        """How many pairs were matched and verified, and with how many matches."""
        pairs = self.outcome.pairs
        return {
            "matched": len(pairs),
            "verified": len(self.outcome.verified),
            "matches": sum(pair.matches for pair in pairs),
            "inliers": sum(pair.inliers for pair in pairs),
        }

    def facts(self) -> dict[str, str]:
        """The numbers as text, by name."""
        pairs = self.pairs()
        facts = {"pairs verified": f"{pairs['verified']} of {pairs['matched']}"}
        if self.statistics is not None:
            numbers = self.statistics
            facts = {
                "photos registered": f"{numbers.registered} of {len(self.photos)}",
                **facts,
                "points": f"{numbers.points:,}",
                "observations": f"{numbers.observations:,}",
                "mean track length": f"{numbers.track_length:.2f}",
                "reprojection error": f"{numbers.reprojection_error:.3f} px",
            }
        facts |= {f"model {number}": each.size for number, each in enumerate(self.models) if number}
        shown = [self.cameras[name] for name in (self.outcome.registered or self.photos)]
        facts["focal length"] = _focals(shown, refined=bool(self.models))
        bent = [each.camera.distortion[0] for each in shown if each.camera.distortion]
        if self.models and bent:
            ends = " to ".join(dict.fromkeys(f"{value:.3g}" for value in (min(bent), max(bent))))
            facts["distortion"] = f"{ends} ({shown[0].camera.model}, first parameter)"
        if self.pose_errors is not None:
            errors = self.pose_errors.summary()
            facts["rotation error"] = (
                f"{errors['rotation_median_degrees']:.3f}° median, {errors['rotation_max_degrees']:.3f}° largest"
            )
            facts["position error"] = (
                f"{errors['position_median']:.4g} median, {errors['position_max']:.4g} largest "
                f"({errors['position_median_percent']:.3f} and {errors['position_max_percent']:.3f} % of the span)"
            )
        return facts

    def short_facts(self) -> dict[str, str]:
        """The most important ones, errors as medians."""
        facts = {}
        if self.statistics is not None:
            facts = {
                "Photos": f"{self.statistics.registered} of {len(self.photos)}",
                "Points": f"{self.statistics.points:,}",
                "Track length": f"{self.statistics.track_length:.2f}",
                "Reprojection error": f"{self.statistics.reprojection_error:.2f} px",
            }
        if self.pose_errors is not None:
            errors = self.pose_errors.summary()
            facts["Rotation error"] = f"{errors['rotation_median_degrees']:.3f}°"
            facts["Position error"] = f"{errors['position_median_percent']:.3f} %"
        if len(self.models) > 1:
            facts[OTHERS] = "; ".join(each.size for each in self.models[1:])
        return facts

    def to_json(self) -> dict[str, Any]:
        return {
            **FORMAT.head(),
            "finished": True,
            "photos": list(self.photos),
            "registered": list(self.outcome.registered),
            "pairs": self.pairs(),
            "statistics": self.statistics and asdict(self.statistics),
            "models": [{"folder": f"{MODELS}/{number}", **asdict(each)} for number, each in enumerate(self.models)],
            "cameras": {name: each.to_json() for name, each in self.cameras.items()},
            "two_view": self.two_view and self._two_view(self.two_view),
            "pose_errors": self.pose_errors and self.pose_errors.to_json(),
            "notes": list(self.notes),
            "settings": dict(self.settings),
            "provenance": self.provenance.to_json(),
        }

    def _two_view(self, pose: TwoViewPose) -> dict[str, Any]:
        photos = sorted(self.photos)
        matrices = [self.cameras[name].camera.matrix.tolist() for name in photos]
        return {"photos": photos, "convention": CONVENTION, "K": matrices, **asdict(pose)}


REPORT, DATABASE, MODELS = "reconstruction.json", "database.db", "models"
OLD_MODEL = "model"  # in format 1: the largest alone
OTHERS = "Other models"
FEATURES, MATCHES, PICTURE, PAGE = "features.h5", "matches.h5", "model.png", "model.html"
LOCK, UNFINISHED = ".lock", "unfinished"


@contextmanager
def hold_reconstruction(folder: Path) -> Iterator[Path]:
    """Locks `folder`, which is new, empty or of an earlier run, and yields a folder inside it for unfinished work.

    The inner folder is removed at the end, except after an error that comes once its database is written: it is then
    kept for inspection. A new folder is removed altogether if an error comes before anything worth keeping.

    Raises:
        KeypatchError: the folder holds something else, cannot be written to, or is used by another process.
    """
    was_there, content = folder.exists(), _open(folder)
    with lock(folder / LOCK, str(folder)):
        if not content:
            _write_unfinished(folder)
        unfinished, kept, refused = folder / UNFINISHED, False, False
        shutil.rmtree(unfinished, ignore_errors=True)  # of a failed or killed process
        unfinished.mkdir()
        try:
            yield unfinished
        except Exception as error:
            refused = not isinstance(error, Interrupted)
            kept = refused and (unfinished / DATABASE).exists()
            raise
        finally:
            if not kept:
                shutil.rmtree(unfinished, ignore_errors=True)
            if refused and not content and {entry.name for entry in folder.iterdir()} == {REPORT, LOCK}:
                (folder / REPORT).unlink()
            with suppress(OSError):  # Windows does not remove what is open, and the lock stays there
                (folder / LOCK).unlink()  # while it is held: afterwards it might be another process's
                if not was_there:
                    folder.rmdir()  # only if it is empty


def swap_in(folder: Path, unfinished: Path, report: dict[str, Any]) -> None:
    """Replaces the files of an earlier run by the finished ones; Ctrl-C waits until all are in place."""
    write_json(unfinished / REPORT, report)
    old = unfinished / "old"
    old.mkdir()
    with StopWish():
        _write_unfinished(folder)  # a process killed in between must not leave files of two models that look like one
        for path in _parts(folder):
            path.rename(old / path.name)
        for path in _parts(unfinished):
            path.rename(folder / path.name)
        (unfinished / REPORT).replace(folder / REPORT)


def _parts(folder: Path) -> list[Path]:
    """What belongs to one model."""
    named = [folder / name for name in (MODELS, OLD_MODEL, PICTURE, PAGE)]
    return [*folder.glob(f"{DATABASE}*"), *(path for path in named if path.exists())]  # also SQLite's journals


def _write_unfinished(folder: Path) -> None:
    write_json(folder / REPORT, {**FORMAT.head(), "finished": False})


def _open(folder: Path) -> set[str]:
    """Makes the folder if it does not exist; returns the names in it, all of which are ours."""
    content = {entry.name for entry in make_folder(folder).iterdir()} - {LOCK}
    if content and REPORT not in content:
        raise DataError(
            f"{folder} is not empty and is not a keypatch reconstruction. Choose a new folder, so that none of your "
            "files are overwritten."
        )
    if content:
        FORMAT.read_json(folder / REPORT)  # raises for a file of others
    return content
