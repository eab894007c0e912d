"""One entry point to all benchmarks: a descriptor, a benchmark name and a data folder give one result."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from keypatch.benchmarks.result import Result
from keypatch.benchmarks.table import BENCHMARKS, Benchmark, find_benchmark, kind_of
from keypatch.cache import without_cache
from keypatch.describers.protocol import Describer
from keypatch.engines import Parallel, use
from keypatch.errors import DataError, KeypatchError
from keypatch.files import require_place
from keypatch.matching.matching import PHOTO_TYPES
from keypatch.patches.layouts import EMBEDDED, open_patches
from keypatch.patches.online_products import has_product_lists
from keypatch.patches.patch_set import PatchSet
from keypatch.progress import Callback, Progress
from keypatch.settings import apply_settings
from keypatch.zoo import load
from keypatch.zoo.loading import load_form


def evaluate(
    descriptor: str | Path | Describer,
    benchmark: str,
    data: str | Path | PatchSet,
    out: str | Path | None = None,
    *,
    settings: object | Sequence[str] | None = None,
    device: str = "auto",
    precision: str = "auto",
    allow_partial: bool = False,
    cache: bool = True,
    parallel: Parallel = Parallel(),  # noqa: B008  a frozen value
    progress: Progress | Callback | None = None,
) -> Result:
    """Score a descriptor on a benchmark, and write the result to `out`.

    >>> kp.evaluate("rootsift", "ubc", "embedded-test")  # doctest: +SKIP
    <Result: ubc of rootsift, FPR95 % ...>

    Args:
        descriptor: a zoo name, run folder, weight file or any Describer; for benchmarks on photos also a feature file,
            for hpatches also a folder of csv descriptors.
        benchmark: a name of `keypatch list benchmarks`.
        data: a folder as described on the benchmark's page in docs/benchmarks/; for ubc and embedding also
            "embedded-test" or an open PatchSet.
        settings: the benchmark's own dataclass, such as `Ubc(rule="hynet")`, or a list of "path=value".
        device, precision: for a descriptor loaded by name.
        allow_partial: accept a PhotoTour folder that was copied in part (ubc, embedding).
        cache: keep descriptors and features for the next evaluation, and reuse cached ones.
        parallel: processes or a Ray cluster to describe photos on.
        progress: a `Progress`, or a function called with the count done, the total and the unit.
    """
    protocol = find_benchmark(benchmark)
    chosen = _choose_settings(protocol, benchmark, settings)
    if out is not None:
        require_place(Path(out))
    if protocol.on_patches and parallel != Parallel():
        raise KeypatchError(f"{benchmark} describes patches, not photos: leave out --workers and --engine.")
    source = _source(protocol, benchmark, descriptor, device, precision)
    opened = _data(protocol, benchmark, data, allow_partial)
    with nullcontext() if cache else without_cache(), use(parallel):
        result = protocol.run(source, opened, chosen, Progress.of(progress))
    if not isinstance(source, Path) and isinstance(descriptor, str | Path) and (form := load_form(descriptor)):
        result = replace(result, notes={**result.notes, "trained": form})
    if out is not None:
        result.save(out)
    return result


def _choose_settings(protocol: Benchmark, name: str, settings: object | Sequence[str] | None) -> Any:
    if isinstance(settings, protocol.settings):
        return settings
    words = [settings] if isinstance(settings, str) else settings or ()
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        wanted = protocol.settings.__name__
        raise KeypatchError(f'The settings of {name} must be a {wanted} or a list of "path=value", not {settings!r}.')
    return apply_settings(protocol.settings(), words, PHOTO_TYPES)


def _source(
    protocol: Benchmark, name: str, descriptor: str | Path | Describer, device: str, precision: str
) -> Describer | Path:
    """The describer, or the path of features or descriptors that others have computed."""
    if not isinstance(descriptor, str | Path):
        return descriptor
    path = Path(descriptor).expanduser()
    kind = kind_of(path)
    if kind is None:
        return load(descriptor, device, scoring_precision(precision))
    if kind not in protocol.takes:
        takers = ", ".join(other for other, each in BENCHMARKS.items() if kind in each.takes)
        raise KeypatchError(
            f"{path} is a {kind}, which {name} cannot score; {takers} can. Give a name from "
            "`keypatch list descriptors`, a run folder or a weight file."
        )
    if not path.exists():
        raise DataError(f"There is no {kind} {path}. Check the path.")
    return path


def scoring_precision(precision: str) -> str:
    """Scores are those of float32 unless another precision is asked for: the same on every machine."""
    return "float32" if precision == "auto" else precision


def _data(protocol: Benchmark, name: str, data: str | Path | PatchSet, allow_partial: bool) -> str | Path | PatchSet:
    if protocol.on_patches and not isinstance(data, PatchSet):
        whole = not allow_partial or has_product_lists(Path(data))  # the benchmark chooses one of their lists
        return data if whole else open_patches(data, allow_partial=True)
    if not protocol.on_patches and (isinstance(data, PatchSet) or str(data) in EMBEDDED):
        set_name = data.name if isinstance(data, PatchSet) else data
        raise KeypatchError(f"{set_name} is a patch set with pair lists. Score it with --on ubc, not {name}.")
    if allow_partial and not protocol.on_patches:
        raise KeypatchError(f"--allow-partial is for PhotoTour patch sets, which {name} does not use. Leave it out.")
    return data
