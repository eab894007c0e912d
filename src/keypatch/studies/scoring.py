"""What the rows of a study are scored on, looked into before hours are spent, and the training data beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from keypatch.benchmarks import Result, evaluate_rank1, evaluate_ubc
from keypatch.benchmarks.hpatches.benchmark import Hpatches, evaluate_hpatches
from keypatch.benchmarks.hpatches.strips import EVERY, find_strips, hash_of_strips
from keypatch.benchmarks.ubc import Ubc, hash_patches
from keypatch.cache import without_cache
from keypatch.commands.train import Data, open_source
from keypatch.describers import Describer
from keypatch.errors import DataError, KeypatchError
from keypatch.files import hash_file
from keypatch.patches import PatchSet, open_patches
from keypatch.patches.hpatches import SEQUENCES, STRIPS
from keypatch.patches.layouts import EMBEDDED, find_layout
from keypatch.patches.patch_set import JoinedSets
from keypatch.patches.phototour import find_pair_lists
from keypatch.patches.sources import DRAWN_FROM, identity_of
from keypatch.studies.rows import Trial

EMBEDDED_TEST = "embedded-test"
TRAINABLE = ("a", "b", "c")  # splits of HPatches with a part to train on
SCORES_ONLY = Ubc(intervals=False, pictures=False)


@dataclass(frozen=True)
class TestData:
    """A set that every row is scored on: patches with pair lists, or a folder of HPatches strips."""

    __test__ = False  # not a class of tests, whatever its name makes pytest think

    name: str
    data: PatchSet | Path
    split: str | None = None  # of strips: the three tasks on it; without one rank-1 alone, on all sequences

    def score(self, describer: Describer) -> Result:
        with without_cache():  # every checkpoint is described once
            if isinstance(self.data, PatchSet):
                return evaluate_ubc(describer, self.data, SCORES_ONLY)
            if self.split is not None:
                return evaluate_hpatches(describer, self.data, Hpatches(split=self.split))
            return evaluate_rank1(describer, self.data)

    @cached_property
    def data_hash(self) -> str:
        """Of the patches and what is asked about them, without describing anything."""
        if isinstance(self.data, PatchSet):
            return hash_patches(self.data, find_pair_lists(self.data))
        digest = hash_of_strips(find_strips(self.data, self.split or EVERY))
        if self.split is not None:  # whose lists follow from the strips
            digest.update(f"tasks of {self.split}".encode())
        return digest.hexdigest()

    @cached_property
    def patches(self) -> int:
        """How many are described for a score."""
        if isinstance(self.data, PatchSet):
            return len(self.data)
        return len(STRIPS) * sum(find_strips(self.data, self.split or EVERY).counts)

    def is_of(self, patches: PatchSet) -> bool:
        """Whether these are patches of that set: its folder, a copy of it, or what its points were drawn from.

        Of strips, whether any sequence is.
        """
        if isinstance(self.data, Path):
            sequences = patches.card.get(SEQUENCES, ()) if patches.folder else ()
            own = find_strips(self.data, self.split or EVERY).names
            return bool(_strip_hashes(self.data, own) & _strip_hashes(patches.folder or Path(), sequences))
        place = patches.folder.resolve() if patches.folder else None
        same_place = self.data.folder is not None and self.data.folder.resolve() == place
        return same_place or identity_of(patches) in (identity_of(self.data), self.data.card.get(DRAWN_FROM))


def _strip_hashes(folder: Path, sequences: Sequence[str]) -> set[str]:
    return {hash_file(folder / name / "ref.png") for name in sequences}


def open_training(data: Data | Sequence[Data], split: str | None = None) -> PatchSet | JoinedSets:
    """The training data; of HPatches strips the training part of the split, where it has one."""
    places = [data] if isinstance(data, str | Path | PatchSet) else list(data)
    return open_source([_part_to_train(place, split) for place in places])


def _part_to_train(place: Data, split: str | None) -> Data:
    if isinstance(place, PatchSet) or str(place) in EMBEDDED or split not in TRAINABLE or not Path(place).is_dir():
        return place
    return open_patches(place, split) if find_layout(Path(place)) == "hpatches" else place


def open_tests(
    tests: Sequence[str | Path],
    hpatches: str | Path | None,
    trained_on: Sequence[PatchSet],
    split: str | None = None,
) -> tuple[TestData, ...]:
    """The test sets, looked into far enough to know that they can be scored and that none of them is trained on.

    If none is named, the embedded one for a training on the embedded data.
    """
    if split is not None and not hpatches:
        raise KeypatchError(f"--split {split} has no effect without strips to score on. Name them with --hpatches.")
    if not tests and not hpatches:
        if [patches.name for patches in trained_on] != ["embedded"]:
            raise KeypatchError(
                "Name the test data with --test or --hpatches; only a study on --data embedded has a test set of "
                "its own."
            )
        tests = [EMBEDDED_TEST]
    opened = []
    for place in tests:
        patches = open_patches(place)
        if not find_pair_lists(patches):
            raise DataError(f"{place} has no pair list to score. For HPatches strips, use --hpatches.")
        opened.append(TestData(patches.name, patches))
    if hpatches:
        find_strips(Path(hpatches), split or EVERY)
        name = Path(hpatches).resolve().name
        opened.append(TestData(name if split is None else f"{name}-{split}", Path(hpatches), split))
    for test in opened:
        if any(test.is_of(patches) for patches in trained_on):
            raise KeypatchError(
                f'"{test.name}" would be both trained and scored on. Score on other data, with --test or --hpatches.'
            )
    return tuple(opened)


def check_names(tests: Sequence[str]) -> None:
    """Of test sets, the one held out among them: scores stand in columns by these names."""
    if twice := repeated(tests):
        raise KeypatchError(f'Two test sets are called "{twice}", so their scores would share a column. Rename one.')


def check_same_tests(tests: Sequence[TestData], rows: Sequence[Trial]) -> None:
    """Scores stand in one column by the name of their test set, so a name must mean the same data in all rows."""
    for test in tests:
        for row in rows:
            if test.name in row.tests and row.tests[test.name] != test.data_hash:
                raise KeypatchError(
                    f'The test set "{test.name}" is not the one that {row.name} was scored on: its patches or pairs '
                    "differ. Give its folder another name, or choose another folder for the study with --out."
                )


def repeated(names: Sequence[str]) -> str | None:
    """The first name that is there twice, also where only its case differs: some file systems know no case."""
    folded = [name.casefold() for name in names]
    return next((name for name, same in zip(names, folded, strict=True) if folded.count(same) > 1), None)
