"""Verification of matches whose geometry is known."""

from dataclasses import replace
from typing import Any, get_args

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints
from keypatch.matching import verification
from keypatch.matching.matches import Evidence, Matches
from keypatch.matching.matching import Estimator, Matching, Model
from keypatch.matching.verification import FEWEST, verify

K0 = np.array([[800.0, 0, 320], [0, 800, 240], [0, 0, 1]])
K1 = np.array([[1600.0, 0, 640], [0, 1500, 480], [0, 0, 1]])
ROTATION = cv2.Rodrigues(np.array([0.05, 0.2, -0.1]))[0]
RIGHT, WRONG = 150, 50

both = pytest.mark.parametrize("estimator", ["magsac", "poselib"])  # of every model; degensac has its own tests


def keypoints(xy: NDArray[np.float64]) -> Keypoints:
    return Keypoints(xy[:, 0], xy[:, 1], np.ones(len(xy)), np.zeros(len(xy)))  # type: ignore[arg-type]


def project(camera: NDArray[np.float64], scene: NDArray[np.float64]) -> NDArray[np.float64]:
    rays = scene @ camera.T
    return np.asarray(rays[:, :2] / rays[:, 2:])


def two_views(flat: bool = False) -> tuple[Keypoints, Keypoints, Matches]:
    """150 points of a scene seen by two cameras, a fifth of a pixel off, and 50 matches at random; in mixed order."""
    rng = np.random.default_rng(0)
    scene = rng.uniform([-2, -2, 4], [2, 2, 9], (RIGHT, 3))
    if flat:
        scene[:, 2] = 6 + 0.3 * scene[:, 0]
    first = project(K0, scene)
    second = project(K1, scene @ ROTATION.T + [1, 0.1, 0.2])
    first = np.concatenate([first, rng.uniform(0, 600, (WRONG, 2))]) + rng.normal(0, 0.2, (RIGHT + WRONG, 2))
    second = np.concatenate([second, rng.uniform(0, 1200, (WRONG, 2))]) + rng.normal(0, 0.2, (RIGHT + WRONG, 2))
    order = rng.permutation(RIGHT + WRONG)
    matches = Matches(np.column_stack([np.arange(RIGHT + WRONG), order]), np.linspace(0, 1, RIGHT + WRONG))  # type: ignore[arg-type]
    shuffled = np.empty_like(second)
    shuffled[order] = second
    return keypoints(first), keypoints(shuffled), matches


def require_most_right(left: Matches, model: Model) -> None:
    assert left.verified and left.model == model
    right = left.indices[:, 0] < RIGHT
    assert right.sum() > 0.9 * RIGHT
    assert (~right).sum() <= 0.1 * WRONG  # a point at random lies near an epipolar line now and then


@both
def test_a_fundamental_matrix_keeps_the_right_matches(estimator: Estimator) -> None:
    first, second, matches = two_views()
    left = verify(matches, first, second, Matching(estimator=estimator))
    require_most_right(left, "F")
    assert left.matrix is not None
    x0, x1 = (np.column_stack([p.xy, np.ones(len(p))]) for p in (first, second))
    lines = x0[left.indices[:, 0]] @ left.matrix.T
    offsets = np.abs(np.sum(lines * x1[left.indices[:, 1]], axis=1)) / np.hypot(lines[:, 0], lines[:, 1])
    assert offsets.max() < 3  # pixels from the line in the second photo: x1.F.x0 = 0, not the other way round


@both
def test_an_essential_matrix_has_the_pose_of_two_different_cameras(estimator: Estimator) -> None:
    first, second, matches = two_views()
    left = verify(matches, first, second, Matching(model="E", estimator=estimator), [K0, K1])
    require_most_right(left, "E")
    assert left.matrix is not None
    rotations = cv2.decomposeEssentialMat(left.matrix)[:2]
    angles = [np.degrees(np.arccos((np.trace(r.T @ ROTATION) - 1) / 2)) for r in rotations]
    assert min(angles) < 0.5


@both
def test_a_homography_carries_the_first_photo_into_the_second(estimator: Estimator) -> None:
    first, second, matches = two_views(flat=True)
    left = verify(matches, first, second, Matching(model="H", estimator=estimator))
    require_most_right(left, "H")
    assert left.matrix is not None
    carried = project(left.matrix, np.column_stack([first.xy, np.ones(len(first))]))[left.indices[:, 0]]
    assert np.abs(carried - second.xy[left.indices[:, 1]]).max() < 2


@both
@pytest.mark.parametrize("model", get_args(Model))
def test_the_same_seed_gives_the_same_matches(model: Model, estimator: Estimator) -> None:
    first, second, matches = two_views()
    matching = Matching(model=model, estimator=estimator, seed=5)
    one, two = (verify(matches, first, second, matching, [K0, K1]) for _ in range(2))
    assert np.array_equal(one.indices, two.indices)
    assert one.matrix is not None and two.matrix is not None and np.array_equal(one.matrix, two.matrix)


def test_seeds_of_magsac_differ() -> None:
    first, second, matches = two_views()
    tries = [Matching(seed=seed, estimator="magsac") for seed in range(8)]
    found = {verify(matches, first, second, each).matrix.tobytes() for each in tries}  # type: ignore[union-attr]
    assert len(found) > 1


def test_seed_0_is_what_opencv_gives_by_itself() -> None:
    first, second, matches = two_views()
    places = first.xy[matches.indices[:, 0]], second.xy[matches.indices[:, 1]]
    matrix, mask = cv2.findFundamentalMat(*places, cv2.USAC_MAGSAC, 1.0, 0.99999, 10_000)
    left = verify(matches, first, second, Matching(estimator="magsac"))
    assert np.array_equal(left.indices, matches.indices[mask[:, 0] > 0])
    assert np.array_equal(left.matrix, matrix)  # type: ignore[arg-type]


@both
@pytest.mark.parametrize("model", get_args(Model))
@pytest.mark.parametrize("missing", [1, 2, 3, 4, 5])
def test_of_too_few_matches_none_is_left(missing: int, model: Model, estimator: Estimator) -> None:
    first, second, matches = two_views()
    few = matches.take(np.arange(max(0, FEWEST[model] - missing)))
    left = verify(few, first, second, Matching(model=model, estimator=estimator), [K0])
    assert len(left) == 0 and left.verified and left.matrix is None


@both
@pytest.mark.parametrize("model", ["F", "H"])
def test_points_all_in_one_place_prove_nothing(model: Model, estimator: Estimator) -> None:
    _, _, matches = two_views()
    heap = keypoints(np.zeros((RIGHT + WRONG, 2)))
    left = verify(matches, heap, heap, Matching(model=model, estimator=estimator))
    assert len(left) == 0 and left.matrix is None


@both
def test_many_matches_of_one_place_prove_nothing(estimator: Estimator) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.uniform(0, 600, (2, 60, 2))
    second[:50] = 300  # all of them agree with any F whose epipole is there
    matches = Matches(np.column_stack([np.arange(60)] * 2), np.ones(60))  # type: ignore[arg-type]
    assert len(verify(matches, keypoints(first), keypoints(second), Matching(estimator=estimator))) == 0


@pytest.mark.parametrize(
    ("how", "part"),
    [
        ({"model": "P"}, "'P'"),
        ({"estimator": "lmeds"}, "poselib, magsac"),
        ({"threshold": 0.0}, "threshold is 0.0"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"model": "E"}, "needs intrinsics"),
        ({"model": "E", "intrinsics": [np.eye(4)]}, "fx 0 cx"),
        ({"model": "E", "intrinsics": [np.zeros((3, 3))]}, "fx 0 cx"),
        ({"model": "E", "intrinsics": [np.array([[500, 2, 300], [0, 500, 200], [0, 0, 1.0]])]}, "no skew"),
        ({"model": "E", "intrinsics": [np.eye(3)] * 3}, "needs intrinsics"),
    ],
)
def test_wrong_choices_are_told_in_a_sentence(how: dict[str, Any], part: str) -> None:
    first, second, matches = two_views()
    intrinsics = how.pop("intrinsics", None)
    with pytest.raises(KeypatchError, match=part):
        verify(matches, first, second, Matching(**how), intrinsics)  # type: ignore[arg-type]


def test_matches_of_other_features_are_refused() -> None:
    first, second, matches = two_views()
    with pytest.raises(KeypatchError, match="image 2 has only 10"):
        verify(matches, first, second.take(np.arange(10)))


@both
@pytest.mark.parametrize("model", ["F", "H"])
def test_points_on_a_line_prove_nothing(model: Model, estimator: Estimator) -> None:
    along = np.linspace(0, 500, 60)
    line = keypoints(np.column_stack([along, 0.5 * along]) + np.random.default_rng(0).normal(0, 0.2, (60, 2)))
    matches = Matches(np.column_stack([np.arange(60)] * 2), np.ones(60))  # type: ignore[arg-type]
    left = verify(matches, line, line, Matching(model=model, estimator=estimator))
    assert len(left) == 0 and left.matrix is None


@both
def test_few_iterations_find_less_among_many_wrong_matches(estimator: Estimator) -> None:
    first, second, matches = two_views()
    rng = np.random.default_rng(1)
    wrong = keypoints(np.concatenate([second.xy, rng.uniform(0, 1200, (800, 2))]))
    more = Matches(np.concatenate([matches.indices, [[i % 200, 200 + i] for i in range(800)]]), np.ones(1000))  # type: ignore[arg-type]
    tries = [Matching(estimator=estimator, confidence=0.999999, iterations=n) for n in (1, 10**5)]
    few, many = (len(verify(more, first, wrong, matching)) for matching in tries)
    assert few < many


def evidence_of(matches: Matches) -> Evidence:
    return Evidence(matches.indices, matches.indices, matches.indices[:0])


def deceived(model: Model) -> tuple[Keypoints, Keypoints, Matches]:
    """60 distinct matches of a scene, 90 that agree with those around them and with another scene, and the neighbours.

    Of the neighbours that pass no test, 200 are right and 300 at random.
    """
    rng = np.random.default_rng(1)
    counts = {"right": 60, "deceiving": 90, "failing": 200, "random": 300}
    scene = rng.uniform([-2, -2, 4], [2, 2, 9], (350, 3))
    if model == "H":
        scene[:, 2] = 6 + 0.3 * scene[:, 0]
    first, second = project(K0, scene), project(K1, scene @ ROTATION.T + [1, 0.1, 0.2])
    second[60:150] = project(K1, scene[60:150] @ ROTATION + [-0.3, 0.8, -0.5])
    first = np.concatenate([first, rng.uniform(0, 600, (300, 2))])
    second = np.concatenate([second, rng.uniform(0, 1200, (300, 2))])
    second += rng.normal(0, 0.2, second.shape)
    every = np.arange(sum(counts.values())).repeat(2).reshape(-1, 2).astype(np.int32)
    kept = every[:150]
    scores = np.ones(len(kept), np.float32)
    distinct = kept[:, 0] < 60
    matches = Matches(kept, scores, distinct=distinct, agreeing=~distinct, evidence=Evidence(every, kept, every[:0]))
    return keypoints(first), keypoints(second), matches


@pytest.mark.parametrize("model", get_args(Model))
def test_neighbours_that_pass_no_test_tell_the_right_model_from_one_that_more_matches_agree_with(model: Model) -> None:
    first, second, matches = deceived(model)
    judged = verify(matches, first, second, Matching(model=model), [K0, K1])
    alone = verify(replace(matches, evidence=None), first, second, Matching(model=model), [K0, K1])
    assert (judged.indices[:, 0] < 60).mean() > 0.9 and len(judged) >= 57
    assert (alone.indices[:, 0] >= 60).mean() > 0.9, "else nothing is shown"


def test_without_neighbours_or_with_one_try_of_one_kind_the_estimators_answer_is_kept() -> None:
    first, second, matches = two_views()
    known = replace(matches, evidence=evidence_of(matches))
    plain, once = (verify(each, first, second, Matching(seed=3, tries=1)) for each in (matches, known))
    assert np.array_equal(plain.indices, once.indices) and np.array_equal(plain.matrix, once.matrix)  # type: ignore[arg-type]
    several = verify(known, first, second, Matching(tries=3))
    require_most_right(several, "F")


def test_tries_of_other_seeds_are_others() -> None:
    first, second, matches = two_views()
    known, seen = replace(matches, evidence=evidence_of(matches)), []
    with pytest.MonkeyPatch.context() as patch:
        told = verification._ESTIMATORS["poselib"]
        patch.setitem(verification._ESTIMATORS, "poselib", lambda *all: (seen.append(all[2].seed), told(*all))[1])
        for seed in range(3):
            verify(known, first, second, Matching(seed=seed, tries=2))
    assert seen == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("by_chance", "chosen"), [(0, 0), (10, 0), (40, 1)])
def test_what_lookalikes_agree_with_is_worth_less(by_chance: int, chosen: int) -> None:
    """Model k puts a place on its x if the place's y is k: 100 neighbours of model 0, 80 of model 1."""
    models = [np.full((3, 3), float(number)) for number in range(2)]
    neighbours, lookalikes = np.zeros((180, 4)), np.full((200, 4), 2.0)
    neighbours[100:, 1], lookalikes[:by_chance, 1] = 1, 0

    def errors_of(model: NDArray[np.float64], here: NDArray[np.float64], _: Any) -> NDArray[np.float64]:
        return np.asarray(9.0 * (here[:, 1] != model[0, 0]))

    found = verification._choose(
        models, errors_of, (neighbours[:, :2], neighbours[:, 2:]), (lookalikes[:, :2], lookalikes[:, 2:]), 1.0
    )
    assert found[0, 0] == chosen


def test_a_model_that_likely_neighbours_find_and_too_few_matches_agree_with_is_none() -> None:
    first, second, matches = two_views()
    kept = matches.take(np.arange(len(matches)) < 5)
    some = replace(kept, distinct=np.arange(5) < 3, evidence=evidence_of(matches))
    for found in (verify(kept, first, second), verify(some, first, second)):
        assert found.verified and not len(found) and found.matrix is None


def test_rows_of_equal_windows_do_not_outvote_the_scene() -> None:
    """A facade whose rows are horizontal, seen from further right: wrong neighbours are windows of the same row.

    They agree with a camera that moved straight to the right, which 120 right matches elsewhere contradict.
    """
    rng = np.random.default_rng(2)
    rows = np.linspace(-1.5, 1.5, 12)
    windows = np.array([[x, y, 8.0] for y in rows for x in np.linspace(-2, 2, 12)])
    trees = rng.uniform([-2, -2, 4], [2, 2, 7], (120, 3))
    move = np.array([0.5, 0.0, 0.6])
    seen = [project(K0, np.concatenate([windows, trees])), project(K0, np.concatenate([windows, trees]) + move)]
    other = rng.permuted(np.arange(144).reshape(12, 12), axis=1).ravel()  # another window of the row
    next_one = rng.permuted(np.arange(144).reshape(12, 12), axis=1).ravel()
    level = [project(K0, windows), project(K0, windows[other] + [0.5, 0, 0])]
    first = np.concatenate([seen[0], level[0]])
    second = np.concatenate([seen[1], level[1]]) + rng.normal(0, 0.2, (408, 2))
    neighbours = np.concatenate([[[i, i] for i in range(144, 408)]]).astype(np.int32)
    lookalikes = np.stack([np.arange(264, 408), 264 + next_one], axis=1).astype(np.int32)
    evidence = Evidence(neighbours, neighbours[:0], lookalikes)
    matches = Matches(neighbours, np.ones(264, np.float32), evidence=evidence)
    right = matches.indices[:, 0] < 264
    known = replace(matches, distinct=right, agreeing=~right)
    judged, misled = (
        verify(each, keypoints(first), keypoints(second), Matching(model="E"), [K0])
        for each in (known, replace(known, evidence=replace(evidence, lookalikes=lookalikes[:0])))
    )
    assert (judged.indices[:, 0] < 264).sum() > 110
    assert (misled.indices[:, 0] < 264).sum() < 60, "else nothing is shown"
