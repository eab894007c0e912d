"""The HPatches benchmark (Balntas et al. 2017): verification of pairs, matching of images, retrieval of patches."""

from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from keypatch.benchmarks.contamination import seen_strips
from keypatch.benchmarks.hpatches.descriptors import StripDescriptors, find_whitening, whiten
from keypatch.benchmarks.hpatches.distances import Distance
from keypatch.benchmarks.hpatches.lists import PUBLIC_SEED, SEED, Tasks, draw_tasks, read_tasks, redraw_public_tasks
from keypatch.benchmarks.hpatches.scores import score_strips
from keypatch.benchmarks.hpatches.strips import (
    EVERY,
    Strips,
    check_csv_target,
    describe_strips,
    find_strips,
    hash_of_strips,
    read_strips,
    write_csv_strips,
)
from keypatch.benchmarks.result import Result, provenance_of
from keypatch.describers.protocol import Describer
from keypatch.errors import DataError, KeypatchError
from keypatch.metrics.listed import ApRule, Ties
from keypatch.progress import Progress
from keypatch.provenance import Provenance, provenance
from keypatch.settings import CheckedFields, option


@dataclass(frozen=True)
class Hpatches(CheckedFields):
    """Which sequences and lists are scored, and by which rules; the public tool's are ties="public" and the others."""

    split: str = option(EVERY, "a, b, c, full, illum, view, a split of the tasks folder, or all sequences present.")
    tasks: str | None = option(None, "Folder of the public task lists; none draws new ones.")
    ties: Ties = option(
        "pessimistic", "Order of equal distances: wrong matches first (pessimistic), or as in the public tool."
    )
    ap: ApRule = option("trapezoid", "Average precision as in the public Python tool, or as the mean of precisions.")
    distance: Distance = option("L2", "Distance between descriptors.")
    pca: bool = option(False, "Whiten with PCA learned on the split's training part, then apply the power law.")
    sequences: tuple[str, ...] = option((), "Score only these sequences (split all), with or without i_ and v_.")
    write: str | None = option(None, "Also save the descriptors as csv in this folder.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sequences and self.split != EVERY:
            raise KeypatchError(
                f'sequences only works with split all, but the split is "{self.split}". Leave one of them out.'
            )
        if self.sequences and self.tasks:
            raise KeypatchError("The task lists already name the sequences to score. Leave out sequences or tasks.")
        if self.pca and self.split == EVERY:
            raise KeypatchError("pca needs the training part of a split. Choose split a, b or c.")


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
        raise DataError(f"{data} holds csv descriptors, not strips to describe. Give it as the descriptor too.")
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
        settings={
            "data": strips.folder.resolve().name,
            **{name: value for name, value in asdict(settings).items() if name != "write"},
            "sequences": list(strips.names),
            **{name: len(getattr(tasks, name)) for name in ("positives", "queries", "distractors")},
            "tasks": origin,
        },
        scores=scored.scores,
        curves=scored.curves,
        provenance=_provenance(source, descriptors, digest.hexdigest()),
        replicates=scored.replicates,
        contamination=None if strips.is_csv else seen_strips(source, strips.folder, strips.names),
    )


def _find_tasks(strips: Strips, split: str, folder: Path | None) -> tuple[Tasks, str]:
    """The lists, and where they come from."""
    if folder:
        return read_tasks(folder, split, strips.names, strips.counts), f"files of {folder.resolve().name}"
    if split == EVERY:
        return draw_tasks(strips.names, strips.counts), f"drawn, seed {SEED}"
    if strips.is_csv:
        raise DataError(
            f"The lists of split {split} choose patches by contrast, but {strips.folder} holds no patches. "
            "Give the folder of strips as the data, or the public lists with tasks=DIR."
        )
    lists = redraw_public_tasks(strips.folder, strips.names, strips.counts)
    return lists, f"drawn as published, seed {PUBLIC_SEED}"


def _provenance(source: Describer | str | Path, descriptors: StripDescriptors, data_hash: str) -> Provenance:
    if isinstance(source, str | Path):
        return provenance(data=data_hash, descriptors=sha256(descriptors.rows.ravel().data).hexdigest())
    return provenance_of(source, data_hash)
