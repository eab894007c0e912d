"""The HPatches benchmark (Balntas et al. 2017): verification of pairs, matching of images, retrieval of patches."""

from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from keypatch.benchmarks.hpatches_csv import check_csv_target, write_csv_strips
from keypatch.benchmarks.hpatches_descriptors import StripDescriptors
from keypatch.benchmarks.hpatches_distances import DISTANCES, Distance
from keypatch.benchmarks.hpatches_draws import PUBLIC_SEED, SEED, draw_tasks, redraw_public_tasks
from keypatch.benchmarks.hpatches_scores import score_strips
from keypatch.benchmarks.hpatches_strips import (
    EVERY,
    Strips,
    describe_strips,
    find_strips,
    hash_of_strips,
    read_strips,
)
from keypatch.benchmarks.hpatches_tasks import Tasks, read_tasks
from keypatch.benchmarks.hpatches_whitening import find_whitening, whiten
from keypatch.benchmarks.result import Result, provenance_of
from keypatch.describers.protocol import Describer, Progress
from keypatch.errors import DataError, KeypatchError
from keypatch.metrics.listed import AP_RULES, TIES, ApRule, Ties
from keypatch.provenance import Provenance, provenance


@dataclass(frozen=True)
class Hpatches:
    """Which sequences and lists are scored, and by which rules; the public tool's are ties="public" and the others."""

    split: str = EVERY  # a, b, c, full, illum, view, one of the tasks' own, or all that are there and in given lists
    tasks: str | None = None  # folder of the public lists; none: they are drawn
    ties: Ties = "pessimistic"  # among equal distances the wrong ones come first, or the public tool's order
    ap: ApRule = "trapezoid"  # average precision as the public Python tool has it, or the mean of precisions
    distance: Distance = "L2"
    pca: bool = False  # whiten by the training part of the split, then the power law
    sequences: tuple[str, ...] = ()  # of split all only these, with or without i_ and v_
    write: str | None = None  # also write the descriptors as csv to this folder

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("ties", self.ties, TIES),
            ("ap", self.ap, AP_RULES),
            ("distance", self.distance, DISTANCES),
        ):
            if value not in choices:
                raise KeypatchError(f'{name} cannot be "{value}"; choose {" or ".join(choices)}.')
        if self.sequences and self.split != EVERY:
            raise KeypatchError(f'sequences choose among all, and the split is "{self.split}". Leave one of them out.')
        if self.sequences and self.tasks:
            raise KeypatchError("The lists of tasks name the sequences that are scored. Leave out sequences or tasks.")
        if self.pca and self.split == EVERY:
            raise KeypatchError("pca learns from the training part of a split; choose split a, b or c.")


def evaluate_hpatches(
    source: Describer | str | Path,
    data: str | Path,
    settings: Hpatches = Hpatches(),  # noqa: B008  a frozen value
    progress: Progress | None = None,
) -> Result:
    """The three tasks at the levels easy, hard and tough (e, h, t), and rank-1.

    source: a describer, or a folder of descriptors `<sequence>/<strip>.csv`. data: the folder of strips; for csv
    descriptors without them, the folder of descriptors again. `progress` counts patches described.

    - "verification.ap.e.inter" (imbalanced, average precision), "verification.auc.e.intra" (balanced, ROC area), ...;
      "verification.ap" is the mean of six, "verification.ap.inter" of three.
    - "matching.map" is the mean over levels, sequences and images, "matching.map.e", ".i", ".v", ".e.i" over parts of
      them, "matching.map.e.<sequence>" over one; "matching.sr" and so on the share of right matches.
    - "retrieval.map" is the mean over levels and queries among all distractors, "retrieval.map.1000" in a pool of 1,000
      patches, "retrieval.map.e.all" and "retrieval.map.e.1000" at one level.
    - "rank1.e" and so on as in `evaluate_rank1`, by the chosen distance.

    Replicates draw sequences: for verification each with the pairs whose first patch is in it, for retrieval with its
    queries, the distractors stay. Scores that need two sequences are nan for one.
    """
    target = Path(settings.write).expanduser() if settings.write else None
    if target:
        check_csv_target(target)
    lists = Path(settings.tasks).expanduser() if settings.tasks else None
    strips = find_strips(Path(data), settings.split, settings.sequences, lists, settings.pca)
    if strips.is_csv and not isinstance(source, str | Path):
        raise DataError(f"{data} holds descriptors as csv and no strips to describe. Give it as the descriptor too.")
    tasks, origin = _find_tasks(strips, settings.split, lists)
    digest = hash_of_strips(strips)
    if isinstance(source, str | Path):
        descriptors, training = read_strips(Path(source), strips)
    else:
        descriptors, training = describe_strips(source, strips, digest.hexdigest(), progress)
    if target:
        write_csv_strips(descriptors, target)
    if settings.pca:
        descriptors = whiten(descriptors, find_whitening(training))
    scored = score_strips(descriptors, tasks, settings.distance, settings.ties, settings.ap)
    tasks.update(digest)
    return Result(
        benchmark="hpatches",
        descriptor=Path(source).resolve().name if isinstance(source, str | Path) else source.name,
        settings=_settings_of(settings, strips, tasks) | {"tasks": origin},
        scores=scored.scores,
        curves=scored.curves,
        provenance=_provenance(source, descriptors, digest.hexdigest()),
        replicates=scored.replicates,
    )


def _find_tasks(strips: Strips, split: str, folder: Path | None) -> tuple[Tasks, str]:
    """The lists, and where they come from."""
    if folder:
        return read_tasks(folder, split, strips.names, strips.counts), f"files of {folder.resolve().name}"
    if split == EVERY:
        return draw_tasks(strips.names, strips.counts), f"drawn, seed {SEED}"
    if strips.is_csv:
        raise DataError(
            f"The lists of the split {split} choose patches by their contrast, and {strips.folder} holds no patches. "
            "Give the folder of strips as the data, or the public lists with tasks=DIR."
        )
    lists = redraw_public_tasks(strips.folder, strips.names, strips.counts)
    return lists, f"drawn as published, seed {PUBLIC_SEED}"


def _settings_of(settings: Hpatches, strips: Strips, tasks: Tasks) -> dict[str, Any]:
    """What the result says beside the scores."""
    return {
        "data": strips.folder.resolve().name,
        **{name: value for name, value in asdict(settings).items() if name != "write"},
        "sequences": list(strips.names),
        **{name: len(getattr(tasks, name)) for name in ("positives", "queries", "distractors")},
    }


def _provenance(source: Describer | str | Path, descriptors: StripDescriptors, data_hash: str) -> Provenance:
    if isinstance(source, str | Path):
        return provenance(data=data_hash, descriptors=sha256(descriptors.rows.ravel().data).hexdigest())
    return provenance_of(source, data_hash)
