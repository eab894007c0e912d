"""A descriptor by name, a benchmark by name and a folder: one result."""

from collections.abc import Sequence
from pathlib import Path

from keypatch.benchmarks.embedding import evaluate_embedding
from keypatch.benchmarks.hpatches import evaluate_rank1
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.ubc import evaluate_ubc
from keypatch.describers.protocol import Describer
from keypatch.errors import KeypatchError
from keypatch.metrics import FPR_RULES, FprRule
from keypatch.patches.opening import EMBEDDED, open_patches
from keypatch.zoo import find

BENCHMARKS = {
    "ubc": "PhotoTour patches: FPR95, average precision and curves of every pair list; rank-1 over the points",
    "hpatches": "HPatches strips: rank-1 of the reference patches in the easy, hard and tough strips",
    "embedding": "images in class folders, or any patches: Recall@K among all, NMI and F1 of k-means clusters",
}


def evaluate(
    descriptor: str | Path | Describer,
    on: str,
    data: str | Path,
    out: str | Path | None = None,
    *,
    rule: FprRule = "rank",
    sequences: Sequence[str] | None = None,
    device: str = "auto",
    precision: str = "auto",
    allow_partial: bool = False,
) -> Result:
    """Score a descriptor (a zoo name, run folder, weight file or any Describer) and write the result to `out`.

    on: "ubc", "hpatches" or "embedding". data: a folder of that benchmark's patches or images; "embedded-test" for
    ubc and embedding.
    rule: whose definition of FPR95 (ubc). sequences: only these (hpatches).
    allow_partial: accept a PhotoTour folder that was copied in part (ubc).
    """
    _check(on, data, out, rule, sequences)
    describer = find(descriptor, device, precision) if isinstance(descriptor, str | Path) else descriptor
    if on == "ubc":
        result = evaluate_ubc(describer, open_patches(data, allow_partial=allow_partial), rule)
    elif on == "embedding":
        result = evaluate_embedding(describer, open_patches(data, allow_partial=allow_partial))
    else:
        result = evaluate_rank1(describer, data, sequences)
    if out is not None:
        result.save(out)
    return result


def _check(on: str, data: str | Path, out: str | Path | None, rule: str, sequences: Sequence[str] | None) -> None:
    """Everything that can be known to be wrong before minutes of describing."""
    if on not in BENCHMARKS:
        raise KeypatchError(f'There is no benchmark "{on}". Choose one of {", ".join(BENCHMARKS)}.')
    if on != "hpatches" and sequences:
        raise KeypatchError(f"The benchmark {on} has no sequences; --sequence belongs to --on hpatches.")
    if on != "ubc" and rule != "rank":
        raise KeypatchError(f"The benchmark {on} has no FPR95; --rule belongs to --on ubc.")
    if on == "hpatches" and str(data) in EMBEDDED:
        raise KeypatchError(f"{data} has pair lists and no strips of HPatches; score it with --on ubc.")
    if rule not in FPR_RULES:
        raise KeypatchError(f'There is no FPR95 rule "{rule}"; choose one of {", ".join(FPR_RULES)}.')
    if out is not None and not Path(out).absolute().parent.is_dir():
        raise KeypatchError(f"{out} cannot be written: there is no folder {Path(out).parent}. Create it first.")
