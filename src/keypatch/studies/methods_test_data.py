"""What the rows of a study of methods are scored on."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from keypatch.benchmarks import Result, evaluate_rank1, evaluate_ubc
from keypatch.benchmarks.caching import without_cache
from keypatch.benchmarks.hpatches_rank1 import hash_strips
from keypatch.benchmarks.ubc import Ubc, hash_patches
from keypatch.describers import Describer
from keypatch.errors import DataError, KeypatchError
from keypatch.patches import PatchSet, open_patches
from keypatch.patches.hpatches import find_sequences, read_sequences
from keypatch.patches.pair_lists import find_pairs
from keypatch.studies.methods_rows import Row

EMBEDDED_TEST = "embedded-test"
SCORES_ONLY = Ubc(intervals=False, pictures=False)


@dataclass(frozen=True)
class TestData:
    """A set that every row is scored on: patches with pair lists, or a folder of HPatches strips."""

    __test__ = False  # not a class of tests, whatever its name makes pytest think

    name: str
    data: PatchSet | Path

    def score(self, describer: Describer) -> Result:
        if isinstance(self.data, PatchSet):
            with without_cache():  # every checkpoint is described once
                return evaluate_ubc(describer, self.data, SCORES_ONLY)
        return evaluate_rank1(describer, self.data)

    @cached_property
    def data_hash(self) -> str:
        """The hash that results on this set carry, without describing anything."""
        if isinstance(self.data, PatchSet):
            lists = find_pairs(self.data.folder, len(self.data), self.data.point_id) if self.data.folder else ()
            return hash_patches(self.data, lists)
        digest = hashlib.sha256()
        for name, strips in read_sequences(self.data, find_sequences(self.data)):
            hash_strips(digest, name, strips)
        return digest.hexdigest()


def open_tests(
    tests: Sequence[str | Path], hpatches: str | Path | None, data: Sequence[str | Path]
) -> tuple[TestData, ...]:
    """The test sets, looked into far enough to know that they can be scored.

    If none is named, the embedded one for a training on the embedded data.
    """
    if not tests and not hpatches:
        if [str(place) for place in data] != ["embedded"]:
            raise KeypatchError(
                "Name what to score on with --test or --hpatches: only a study on --data embedded has a test set of "
                "its own."
            )
        tests = [EMBEDDED_TEST]
    opened = []
    for place in tests:
        patches = open_patches(place)
        if not patches.folder or not find_pairs(patches.folder, len(patches), patches.point_id):
            raise DataError(f"{place} has no list of pairs to score; strips of HPatches are given with --hpatches.")
        opened.append(TestData(patches.name, patches))
    if hpatches:
        find_sequences(Path(hpatches))
        opened.append(TestData(Path(hpatches).resolve().name, Path(hpatches)))
    refuse_twice([test.name for test in opened], "test set")
    return tuple(opened)


def check_same_tests(tests: Iterable[TestData], rows: Iterable[Row]) -> None:
    """Scores stand in one column by the name of their test set, so a name must mean the same data in all rows."""
    rows = list(rows)
    for test in tests:
        for row in rows:
            if test.name in row.tests and row.tests[test.name] != test.data_hash:
                raise KeypatchError(
                    f'The test set "{test.name}" is not the one that {row.name} was scored on: its patches or pairs '
                    "differ. Give its folder another name, or choose another folder for the study with --out."
                )


def refuse_twice(names: Sequence[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise KeypatchError(f'The {what} "{name}" is given twice; their rows and scores would be one.')
