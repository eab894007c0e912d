"""What `reconstruct` gives: the model's numbers and where its files lie, as a value and as reconstruction.json."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keypatch.provenance import Provenance
from keypatch.reconstruction.outcome import Outcome, Statistics, TwoViewPose
from keypatch.reconstruction.pose_errors import PoseErrors

FORMAT, NUMBER = "keypatch-reconstruction", 1


@dataclass(frozen=True)
class Reconstruction:
    """A finished reconstruction; of two photos only there is no model but `two_view`."""

    folder: Path
    photos: Sequence[str]
    outcome: Outcome
    pose_errors: PoseErrors | None  # only where true cameras were given
    notes: Sequence[str]  # what could not be done, a sentence each
    settings: Mapping[str, Any]
    provenance: Provenance

    @property
    def statistics(self) -> Statistics | None:
        return self.outcome.statistics

    @property
    def two_view(self) -> TwoViewPose | None:
        return self.outcome.two_view

    @property
    def model(self) -> Path | None:
        """The folder of the model in COLMAP's format, binary and text."""
        return self.folder / "model" if self.statistics else None

    @property
    def files(self) -> list[Path]:
        """What is worth opening."""
        names = ["model", "model.png", "model.html"] if self.statistics else ["database.db"]
        return [self.folder / name for name in [*names, "reconstruction.json"]]

    @property
    def unregistered(self) -> list[str]:
        return sorted(set(self.photos) - set(self.outcome.registered)) if self.statistics else []

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
        """The numbers for people, by name."""
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
        """The same where there is little room, errors as medians."""
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
        return facts

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "format_number": NUMBER,
            "finished": True,
            "photos": list(self.photos),
            "registered": list(self.outcome.registered),
            "pairs": self.pairs(),
            "statistics": self.statistics and asdict(self.statistics),
            "two_view": self.two_view and asdict(self.two_view),
            "pose_errors": self.pose_errors and self.pose_errors.to_json(),
            "notes": list(self.notes),
            "settings": dict(self.settings),
            "provenance": self.provenance.to_json(),
        }
