"""One door to all benchmarks: a descriptor by name, a benchmark by name and a folder give one result."""

import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from keypatch.benchmarks.caching import without_cache
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.settings import choose_settings
from keypatch.benchmarks.table import BENCHMARKS, Benchmark, find_benchmark, kind_of
from keypatch.describers.protocol import Describer, Progress
from keypatch.errors import DataError, KeypatchError
from keypatch.features.growing_file import require_place
from keypatch.files import reason
from keypatch.patches.online_products import has_product_lists
from keypatch.patches.opening import EMBEDDED, open_patches
from keypatch.patches.patch_set import PatchSet
from keypatch.zoo import find


def evaluate(
    descriptor: str | Path | Describer,
    on: str,
    data: str | Path,
    out: str | Path | None = None,
    *,
    settings: object | Sequence[str] | None = None,
    device: str = "auto",
    precision: str = "auto",
    allow_partial: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
) -> Result:
    """Score a descriptor (a zoo name, run folder, weight file or any Describer) and write the result to `out`.

    descriptor: for benchmarks on photos also a feature file, for hpatches also a folder of csv descriptors.
    on: a name of `BENCHMARKS`. data: a folder as that benchmark's page in docs/benchmarks/ says; "embedded-test" for
        ubc and embedding.
    settings: the benchmark's own dataclass, such as `Ubc(rule="hynet")`, or a list of "path=value".
    allow_partial: accept a PhotoTour folder that was copied in part (ubc, embedding).
    cache: keep descriptors and features for the next evaluation, and use those kept.
    progress: called with the steps done and the steps there are.
    """
    benchmark = find_benchmark(on)
    chosen = _choose_settings(benchmark, on, settings)
    if out is not None:
        _require_writable(Path(out))
    source, opened = _source(benchmark, on, descriptor, device, precision), _data(benchmark, on, data, allow_partial)
    with nullcontext() if cache else without_cache():
        result = benchmark.run(source, opened, chosen, progress)
    if out is not None:
        result.save(out)
    return result


def _choose_settings(benchmark: Benchmark, on: str, settings: object | Sequence[str] | None) -> Any:
    if isinstance(settings, benchmark.settings):
        return settings
    words = [settings] if isinstance(settings, str) else settings or ()
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        wanted = benchmark.settings.__name__
        raise KeypatchError(f'The settings of {on} are a {wanted} or a list of "path=value", not {settings!r}.')
    return choose_settings(benchmark.settings, words)


def _require_writable(out: Path) -> None:
    require_place(out)
    try:
        tempfile.TemporaryFile(dir=out.absolute().parent).close()
    except OSError as error:
        raise KeypatchError(f"{out} cannot be written: {reason(error)}. Choose another place.") from None


def _source(
    benchmark: Benchmark, on: str, descriptor: str | Path | Describer, device: str, precision: str
) -> Describer | Path:
    """The describer, or where that lies which others have computed."""
    if not isinstance(descriptor, str | Path):
        return descriptor
    path = Path(descriptor).expanduser()
    kind = kind_of(path)
    if kind is None:
        return find(descriptor, device, precision)
    if kind not in benchmark.takes:
        takers = ", ".join(name for name, each in BENCHMARKS.items() if kind in each.takes)
        raise KeypatchError(
            f"{path} is a {kind}, which {on} cannot score; {takers} can. Give a name of `keypatch list descriptors`, a "
            "run folder or a weight file."
        )
    if not path.exists():
        raise DataError(f"There is no {kind} {path}. Check the path.")
    return path


def _data(benchmark: Benchmark, on: str, data: str | Path, allow_partial: bool) -> str | Path | PatchSet:
    if benchmark.on_patches:
        whole = not allow_partial or has_product_lists(Path(data))  # the benchmark chooses one of their lists
        return data if whole else open_patches(data, allow_partial=True)
    if str(data) in EMBEDDED:
        raise KeypatchError(f"{data} is a set of patches with pair lists; score it with --on ubc, not {on}.")
    if allow_partial:
        raise KeypatchError(f"--allow-partial is for patch sets of PhotoTour; the benchmark {on} has none.")
    return data
