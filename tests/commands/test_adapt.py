"""`adapt`: what it leaves, what it says of the gain, how it resumes and what it refuses; on small photographs."""

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from skimage import data

import keypatch as kp
from keypatch.benchmarks import Replicates, Result, load_result
from keypatch.commands.adapt import pipeline
from keypatch.commands.adapt.page import write_adapt_page
from keypatch.commands.adapt.pipeline import fine_tuning
from keypatch.commands.adapt.verdict import FEW_POINTS, judge
from keypatch.errors import Interrupted, KeypatchError
from keypatch.metrics import bootstrap_mean
from keypatch.networks import HyNet
from keypatch.patches.sources import identity_of, sources_of
from keypatch.progress import Progress
from keypatch.provenance import provenance
from keypatch.recipes.adapt import ADAPT
from keypatch.training.checkpoints import load_run_weights, newest_checkpoint, read_training

VIEWS = kp.Homographies(points=60, views=3, contrast=0.01)
LISTED = kp.Building(held_out=0.25, list_size=200)
SHORT = kp.Adapting(budget=400)
ONE = kp.Conditions(device="cpu", precision="float32", compile="off", threads=1)


class Notes(Progress):
    """Keeps what it is told; asks the process to stop, as Ctrl-C does, at the first count of a unit."""

    def __init__(self, stop: str = "", at: int = 0) -> None:
        self.notes, self.stop, self.at = list[str](), stop, at

    def note(self, message: str) -> None:
        self.notes.append(message)

    def count(self, done: int, total: int, unit: str, detail: str = "") -> None:
        if unit == self.stop and done >= self.at:
            self.stop = ""
            signal.raise_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four crops of photographs."""
    folder = tmp_path_factory.mktemp("photographs")
    for name in ("camera", "coins", "brick", "grass"):
        cv2.imwrite(str(folder / f"{name}.png"), getattr(data, name)()[:240, :320])
    return folder


@pytest.fixture(scope="module")
def adapt(photographs: Path, run_folder: Path, small_set: Path) -> Callable[..., kp.Adaptation]:
    """A short adaptation of a thin network."""

    def call(out: Path, **changes: object) -> kp.Adaptation:
        usual: dict[str, object] = {"method": VIEWS, "building": LISTED, "adapting": SHORT, "describer": run_folder}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pipeline, "OTHERS", str(small_set))
            patch.setattr("keypatch.training.loop._LOG_SECONDS", 0.0)  # so that every step is counted
            return kp.adapt(changes.pop("photos", photographs), out, **{**usual, "conditions": ONE, **changes})  # type: ignore[arg-type]

    return call


@pytest.fixture(scope="module")
def done(adapt: Callable[..., kp.Adaptation], tmp_path_factory: pytest.TempPathFactory) -> kp.Adaptation:
    return adapt(tmp_path_factory.mktemp("adapted") / "mine")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_run_weights(folder)[1].state_dict()


def test_the_folder_is_a_descriptor_that_differs_from_its_start(done: kp.Adaptation, run_folder: Path) -> None:
    before, after = kp.load(run_folder), kp.load(done.folder)
    patches = kp.open_patches(done.built.sets["test"]).take(np.arange(8))
    assert after.name == "mine" and after.describe(patches).shape == (8, 16)
    assert not np.allclose(after.describe(patches), before.describe(patches))
    assert kp.evaluate(done.folder, "ubc", done.built.sets["test"]).scores == done.after.scores


def test_what_is_held_out_is_not_trained_on(done: kp.Adaptation) -> None:
    train, test = (kp.open_patches(done.built.sets[part]) for part in ("train", "test"))
    trained = {each.identity for each in read_training(done.folder)}
    assert identity_of(train) in trained and identity_of(test) not in trained
    assert json.loads((done.folder / "card.json").read_text())["points"] == train.classes().count
    assert not {each.name for each in sources_of(train)} & {each.name for each in sources_of(test)}
    assert all(result.settings["data"] == "test" for result in done.results)


def test_before_after_and_rootsift_are_scored_on_the_same_pairs(done: kp.Adaptation, run_folder: Path) -> None:
    assert [result.descriptor for result in done.results] == ["rootsift", run_folder.name, "mine"]
    assert len({result.provenance.hashes["data"] for result in done.results}) == 1
    assert load_result(done.folder / "before.json").scores == done.before.scores
    assert [result.descriptor for result in done.others] == [run_folder.name, "mine"]


def test_the_page_says_what_was_built_gained_and_how_to_use_it(done: kp.Adaptation, run_folder: Path) -> None:
    page = done.page.read_text(encoding="utf-8")
    assert f"{done.verdict.headline()}." in page and all(text.split(":")[0] in page for text in done.verdict.reasons())
    assert f"{done.after.number('rank1')}</span>" in page and f"{done.rootsift.number('rank1')}</span>" in page
    assert done.built.facts()["patches (test)"] in page and done.warnings[0] in page
    for link in ("set/build.html", "report.html"):
        assert f'href="{link}"' in page and (done.folder / link).exists()
    assert f"keypatch match a.jpg b.jpg --draw matches.png --descriptor {run_folder}" in page  # not the default


def test_inspect_knows_the_folder_and_its_verdict(done: kp.Adaptation) -> None:
    seen = kp.inspect(done.folder)
    assert seen.kind == "descriptor adapted to photos" and not seen.problems
    assert seen.facts["verdict"] == done.verdict.headline() and seen.facts["recipe"] == "adapt"


def test_a_finished_one_is_not_done_again(done: kp.Adaptation, adapt: Callable[..., kp.Adaptation]) -> None:
    before = {path: path.stat().st_mtime_ns for path in done.folder.rglob("*") if path.is_file()}
    told = Notes()
    again = adapt(done.folder, progress=told)
    assert f"{done.folder} already has the finished adaptation." in told.notes
    assert {path: path.stat().st_mtime_ns for path in done.folder.rglob("*") if path.is_file()} == before
    assert (again.verdict, again.after.scores) == (done.verdict, done.after.scores)


@pytest.mark.parametrize(("unit", "at"), [("photos checked", 2), ("views cut", 4), ("pairs", 0), ("pairs", 100)])
def test_one_that_was_stopped_while_building_or_training_ends_as_if_it_had_not(
    done: kp.Adaptation, adapt: Callable[..., kp.Adaptation], tmp_path: Path, unit: str, at: int
) -> None:
    out = tmp_path / "mine"
    with pytest.raises(Interrupted, match="run the same command to resume"):
        adapt(out, progress=Notes(unit, at))
    assert (out / "adapt.json").exists() and not (out / "adapt.html").exists()
    assert "not finished" in kp.inspect(out).problems[0]
    again = adapt(out)
    assert again.after.scores == done.after.scores
    assert all(torch.equal(value, weights(done.folder)[name]) for name, value in weights(out).items())


@pytest.mark.parametrize("stage", ["evaluate", "write_adapt_page"])
def test_one_that_was_stopped_while_scoring_or_writing_its_page_keeps_the_training(
    adapt: Callable[..., kp.Adaptation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "mine"
    with (
        monkeypatch.context() as patch,
        pytest.raises(Interrupted, match="has what was saved so far; run the same command"),
    ):
        patch.setattr(pipeline, stage, stop)
        adapt(out)
    kept = newest_checkpoint(out)
    assert kept is not None
    written = kept.stat().st_mtime_ns
    assert adapt(out).page.exists() and kept.stat().st_mtime_ns == written


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"describer": "rootsift"}, r'"rootsift" is hand-crafted and has no network'),
    ({"describer": "hynt"}, 'no descriptor, run folder or weight file "hynt"'),
    ({"building": kp.Building()}, "set --held-out above 0"),
    ({"method": "sequences"}, "--method sequences does not make a training set.* tracks, pairs, homographies"),
    ({"method": kp.Homographies(points=12, views=2)}, r"has \d+ points, too few to train on: 64 or more"),
    ({"building": kp.Building(held_out=0.25, masks="masks-that-are-not-there")}, "masks-that-are-not-there"),
]


@pytest.mark.parametrize(("changes", "sentence"), REFUSED, ids=[sentence[:24] for _, sentence in REFUSED])
def test_what_cannot_be_adapted_is_refused_in_a_sentence(
    adapt: Callable[..., kp.Adaptation], tmp_path: Path, changes: dict[str, object], sentence: str
) -> None:
    with pytest.raises(KeypatchError, match=sentence):
        adapt(tmp_path / "mine", **changes)


def test_a_folder_without_photos_leaves_nothing_behind(adapt: Callable[..., kp.Adaptation], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(KeypatchError, match="No photos found"):
        adapt(tmp_path / "mine", photos=tmp_path / "empty")
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"adapting": kp.Adapting(budget=256)}, r"was adapted otherwise: adapting.budget = 400 \(now 256\)"),
        ({"building": replace(LISTED, held_out=0.4)}, r"was built otherwise: building.held_out = 0.25 \(now 0.4\)"),
        ({"describer": "hynet-notredame"}, r"was adapted otherwise: descriptor = thin \(now hynet-notredame\)"),
    ],
)
def test_a_folder_of_other_settings_is_refused_and_stays(
    done: kp.Adaptation, adapt: Callable[..., kp.Adaptation], changes: dict[str, object], named: str
) -> None:
    before = {path: path.read_bytes() for path in done.folder.rglob("*.json")}
    with pytest.raises(KeypatchError, match=named):
        adapt(done.folder, **changes)
    assert {path: path.read_bytes() for path in done.folder.rglob("*.json")} == before


def test_a_folder_of_something_else_is_refused_and_stays(
    adapt: Callable[..., kp.Adaptation], tmp_path: Path, photographs: Path
) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(KeypatchError, match="is not empty and is not a keypatch adaptation"):
        adapt(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_the_budget_grows_with_the_set_between_two_bounds() -> None:
    recipes = {points: fine_tuning(points, HyNet()) for points in (64, 700, 2_000, 100_000)}
    assert [recipe.sampler.pairs for recipe in recipes.values()] == [32, 128, 128, 128]
    budgets = [recipe.pairs for recipe in recipes.values()]
    assert budgets == sorted(budgets) and budgets[0] == pipeline.LEAST_PAIRS
    assert budgets[2] == pipeline.PER_POINT * 2_000 and budgets[3] == pipeline.MOST_PAIRS
    other = fine_tuning(2_000, HyNet(), kp.Adapting(budget=999, learning_rate=0.1))
    assert (other.pairs, other.optimizer.lr) == (999, 0.1) and recipes[64].optimizer == ADAPT.optimizer


# ---- the verdict, on made-up results


def result_of(name: str, right: NDArray[np.bool_]) -> Result:
    """A result whose scores come from whether each pair was told rightly, and each point found first."""
    errors = {"fpr95.hard_400_400_0": ~right + 0.0, "rank1": right + 0.0}
    return Result(
        benchmark="ubc",
        descriptor=name,
        settings={"data": "test"},
        scores={score: float(values.mean()) for score, values in errors.items()},
        curves={},
        provenance=provenance(data="12ab"),
        replicates={score: Replicates(bootstrap_mean(values), "pairs", len(right)) for score, values in errors.items()},
    )


def answers(right: float, flipped: int, count: int = 400) -> tuple[Result, Result]:
    """Before and after: of the wrong answers (of the right ones, if negative) so many are changed."""
    before = np.arange(count) % 100 < 100 * right
    after = before.copy()
    after[np.flatnonzero(before == (flipped < 0))[: abs(flipped)]] ^= True
    return result_of("old", before), result_of("new", after)


@pytest.mark.parametrize(
    ("flipped", "points", "outcome", "headline"),
    [
        (40, 400, "better", "Use new: it is better on these photos than old"),
        (-40, 400, "worse", "Keep old: new is worse on these photos"),
        (1, 400, "no difference", "Keep old: there is no clear gain on these photos"),
        (0, 400, "no difference", "Keep old: there is no clear gain on these photos"),
        (1, FEW_POINTS - 1, "too small", "too small to show a gain"),
        (40, FEW_POINTS - 1, "better", "Use new"),  # a difference that is shown is shown, with a warning
        (-40, FEW_POINTS - 1, "worse", "Keep old: new is worse"),
    ],
)
def test_the_verdict_follows_the_paired_interval(flipped: int, points: int, outcome: str, headline: str) -> None:
    verdict = judge(*answers(0.8, flipped), points)
    assert verdict.outcome == outcome and headline in verdict.headline()
    reasons = " ".join(verdict.reasons())
    assert ("more than chance" in reasons) == (outcome in ("better", "worse"))
    assert ("may be chance" in reasons) == (outcome not in ("better", "worse"))
    assert (f"Only {points:,} points are held out" in reasons) == (points < FEW_POINTS)


@pytest.mark.parametrize(
    ("hard", "first", "outcome"),
    [(40, 0, "better"), (0, 40, "better"), (40, -40, "worse"), (-40, 40, "worse"), (0, 0, "no difference")],
)
def test_one_of_two_scores_is_enough_unless_the_other_is_worse(hard: int, first: int, outcome: str) -> None:
    (before, after), (_, other) = answers(0.8, hard), answers(0.8, first)
    after = replace(after, replicates={**after.replicates, "rank1": other.replicates["rank1"]})
    assert judge(before, after, 400).outcome == outcome


def test_a_difference_is_told_by_its_way_and_its_interval() -> None:
    hard, first = judge(*answers(0.8, 40), 400).reasons()
    assert hard.startswith("FPR95 (hard pairs), lower is better, fell by 10.00 percentage points (95 % interval")
    assert first.startswith("rank-1, higher is better, rose by 10.00 percentage points")
    assert judge(*answers(0.8, 0), 400).reasons()[1].startswith("rank-1, higher is better, is the same (95 %")


def test_what_was_forgotten_is_told_and_does_not_decide() -> None:
    here, worse = answers(0.8, 40), answers(0.8, -40)
    forgetful, other = judge(*here, 400, worse), judge(*here, 400, here)
    assert forgetful.outcome == other.outcome == "better" and not other.forgotten
    assert forgetful.reasons() == [
        *other.reasons(),
        "On other photographs, FPR95 and rank-1 got worse: use new for photos like these only.",
    ]
    assert judge(*worse, 400, worse).reasons()[-1] == "On other photographs, FPR95 and rank-1 got worse."


def test_one_pair_is_too_few_for_a_verdict() -> None:
    verdict = judge(*answers(1.0, 0, count=1), 1)
    assert (verdict.outcome, verdict.differences) == ("too small", ())
    assert verdict.reasons()[0].startswith("Only 1 points are held out")


@pytest.mark.parametrize(("flipped", "recommended"), [(40, "mine"), (-40, "start"), (1, "start")])
def test_the_page_recommends_what_the_verdict_says(
    done: kp.Adaptation, tmp_path: Path, flipped: int, recommended: str
) -> None:
    before, after = answers(0.8, flipped)
    told = replace(done, before=before, after=after, rootsift=before, verdict=judge(before, after, 400))
    write_adapt_page(tmp_path / "page.html", told)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert told.recommended == {"mine": str(done.folder), "start": done.start}[recommended]
    assert f"--descriptor {told.recommended}</pre>" in page
    assert ("Go on with old" in page) == (recommended == "start")
    assert f'<p class="headline">{told.verdict.headline()}.</p>' in page


def test_the_default_descriptor_needs_no_option(done: kp.Adaptation, tmp_path: Path) -> None:
    before, after = answers(0.8, 0)
    verdict = judge(before, after, 400)
    told = replace(done, before=before, after=after, rootsift=before, verdict=verdict, start="hynet-notredame")
    write_adapt_page(tmp_path / "page.html", told)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "keypatch match a.jpg b.jpg --draw matches.png\n" in page and "--descriptor" not in page
