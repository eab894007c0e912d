"""Descriptors become matches: mutual, one way, with the ratio test on one and on both sides."""

import sys
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from keypatch.errors import KeypatchError, MissingExtra
from keypatch.features import Features
from keypatch.geometry import Keypoints
from keypatch.matching.adalam import AdaLAM
from keypatch.matching.matching import Matching, Mode, Sides
from keypatch.matching.neighbours import find_matches, match_descriptors

Vectors = NDArray[np.float32]
MODES, SIDES = get_args(Mode), get_args(Sides)


def by_loops(a: Vectors, b: Vectors, ratio: float | None, mode: Mode) -> list[tuple[int, int]]:
    """The definition, one row after the other, in float64; without a ratio the nearest is nearer than the second."""
    table = np.sqrt(np.sum((a[:, None].astype(np.float64) - b[None]) ** 2, axis=2))

    def passes(distances: NDArray[np.float64]) -> bool:
        ordered = [*np.sort(distances), np.inf]
        return ordered[0] < (ratio or 1) * ordered[1]

    found = []
    for i, row in enumerate(table if len(b) else []):
        j = int(row.argmin())
        if mode == "one-way" and passes(row):
            found.append((i, j))
        if mode == "mutual" and table[:, j].argmin() == i and passes(row) and passes(table[:, j]):
            found.append((i, j))
    return found


def pairs(
    a: Vectors, b: Vectors, ratio: float | None = None, mode: Mode = "mutual", **how: Any
) -> list[tuple[int, int]]:
    matching = Matching(mode, ratio, **how)
    return [(int(i), int(j)) for i, j in match_descriptors(a, b, matching, device="cpu").indices]


@st.composite
def two_sets(draw: st.DrawFn) -> tuple[Vectors, Vectors]:
    """Rows of few whole numbers: exact in float32, with many equal rows and equal distances."""
    dim, values = draw(st.integers(1, 3)), st.integers(-3, 3).map(float)
    first, second = (draw(arrays(np.float32, (draw(st.integers(0, 9)), dim), elements=values)) for _ in range(2))
    return first, second


# no ratio that is a fraction of small square roots: equality of d1 and ratio * d2 would be decided by rounding
@given(sets=two_sets(), ratio=st.sampled_from([None, 0.631, 0.8713, 1.0]), mode=st.sampled_from(MODES))
def test_matches_are_those_of_the_definition(sets: tuple[Vectors, Vectors], ratio: float | None, mode: Mode) -> None:
    assert pairs(*sets, ratio, mode) == by_loops(*sets, ratio, mode)


@given(sets=two_sets(), mode=st.sampled_from(MODES), sides=st.sampled_from(SIDES), seed=st.integers(0, 99))
@pytest.mark.parametrize("ratio", [None, 0.8713])
@pytest.mark.parametrize("neighbours", ["tiles", "faiss"])
def test_ties_are_never_broken_by_the_order_of_the_rows(
    neighbours: str, ratio: float | None, sets: tuple[Vectors, Vectors], mode: Mode, sides: str, seed: int
) -> None:
    if neighbours == "faiss":
        pytest.importorskip("faiss")
    how = {"neighbours": neighbours, "ratio_sides": sides}
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(rows)) for rows in sets]
    shuffled = pairs(sets[0][orders[0]], sets[1][orders[1]], ratio, mode, **how)
    assert sorted((orders[0][i], orders[1][j]) for i, j in shuffled) == pairs(*sets, ratio, mode, **how)


@pytest.mark.parametrize("kind", ["unit", "bytes", "lengths"])
@pytest.mark.parametrize("neighbours", ["tiles", "faiss"])
@pytest.mark.parametrize(("n", "m"), [(1, 3), (3, 5), (5, 7), (17, 131), (29, 513), (515, 259)])
def test_equal_rows_are_tied_at_any_distance_and_in_any_order(n: int, m: int, neighbours: str, kind: str) -> None:
    if neighbours == "faiss":
        pytest.importorskip("faiss")
    rng = np.random.default_rng(n)
    base = rng.normal(size=(m, 128))
    a = base[rng.integers(0, m, n)] + rng.normal(0, 0.6, (n, 128))
    if kind == "unit":
        a, base = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (a, base))
    elif kind == "bytes":
        a, base = (np.rint(20 * np.abs(rows)) for rows in (a, base))
    else:
        a = a * 0.05  # rounding goes by the long ones
    first, alone = a.astype(np.float32), base.astype(np.float32)
    twice = np.concatenate([alone, alone])[rng.permutation(2 * m)]
    assert pairs(first, twice, mode="one-way", neighbours=neighbours) == []
    assert pairs(first, twice, neighbours=neighbours) == pairs(twice, first, neighbours=neighbours) == []
    assert pairs(first, twice, 0.95, ratio_sides="first", neighbours=neighbours) == []
    assert len(pairs(first, alone, mode="one-way", neighbours=neighbours)) == n


def test_zeros_are_tied_with_zeros_and_near_to_nothing_else() -> None:
    zeros, one = np.zeros((2, 3), np.float32), np.float32([[0, 0, 2]])
    assert pairs(zeros, zeros, mode="one-way") == pairs(zeros[:1], zeros, 0.9) == []
    assert pairs(zeros[:1], np.concatenate([one, zeros[:1]]), 0.9) == [(0, 1)]
    assert pairs(zeros[:1], one, 0.9) == [(0, 0)]  # there is no second


def related(n: int, m: int, lengths: bool = False) -> tuple[Vectors, Vectors]:
    """Unit vectors, the first 60 of both sets near each other; or of all lengths from 1 to 12, as TFeat's."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(n, 128)), rng.normal(size=(m, 128))
    b[:60] = a[:60] + rng.normal(0, 0.6, (60, 128))
    if not lengths:
        a, b = a / np.linalg.norm(a, axis=1, keepdims=True), b / np.linalg.norm(b, axis=1, keepdims=True)
    else:
        a, b = a * rng.uniform(0.1, 1, (n, 1)), b * rng.uniform(0.1, 1, (m, 1))
    return a.astype(np.float32), b.astype(np.float32)


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ratio", [None, 0.8, 0.95])
@pytest.mark.parametrize("neighbours", ["tiles", "faiss"])
def test_descriptors_of_unit_length_and_of_others(
    neighbours: str, ratio: float | None, mode: Mode, lengths: bool
) -> None:
    if neighbours == "faiss":
        pytest.importorskip("faiss")
    a, b = related(700, 600, lengths)
    found = pairs(a, b, ratio, mode, neighbours=neighbours)
    assert found == by_loops(a, b, ratio, mode)
    assert found


def test_the_ratio_of_mutual_neighbours_may_be_seen_from_the_first_side_only() -> None:
    a, b = np.float32([[0.0], [1.0]]), np.float32([[0.1], [50.0]])  # 0.1 is near both of a, 0 has one near
    assert pairs(a, b, 0.1) == []
    assert pairs(a, b, 0.1, ratio_sides="first") == [(0, 0)]


def test_mutual_matches_are_the_same_both_ways() -> None:
    a, b = related(300, 200)
    assert sorted(pairs(b, a)) == sorted((j, i) for i, j in pairs(a, b))


def test_the_score_of_unit_vectors_is_half_of_one_plus_their_cosine() -> None:
    a, b = related(80, 90)
    found = match_descriptors(a, b, Matching(ratio=None))
    cosines = np.sum(a[found.indices[:, 0]] * b[found.indices[:, 1]], axis=1)
    assert found.scores == pytest.approx((1 + cosines) / 2, abs=1e-6)


def test_duplicates_never_pass_the_ratio_test_whatever_rounding_makes_of_their_distance() -> None:
    a, _ = related(200, 60)
    for noise in (0, 1e-7, 1e-6):  # of distances that float32 products cannot tell from 0
        twice = np.concatenate([a, a]) + np.random.default_rng(0).normal(0, noise, (400, 128)).astype(np.float32)
        for mode in MODES:
            assert pairs(a, twice, 0.99, mode) == []
    assert pairs(a, a, 0.99) == [(i, i) for i in range(200)]


def test_bytes_are_descriptors_too() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 256, (50, 128)).astype(np.uint8) for _ in range(2))
    assert pairs(a, b) == by_loops(a.astype(np.float32), b.astype(np.float32), None, "mutual")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ratio", [None, 0.8])
@pytest.mark.parametrize("neighbours", ["tiles", "faiss"])
@pytest.mark.parametrize(("n", "m", "expected"), [(0, 0, 0), (0, 3, 0), (3, 0, 0), (1, 1, 1), (1, 3, 1)])
def test_none_and_one(n: int, m: int, expected: int, neighbours: str, ratio: float | None, mode: Mode) -> None:
    if neighbours == "faiss":
        pytest.importorskip("faiss")
    a, b = np.eye(4, dtype=np.float32)[:n], np.eye(4, dtype=np.float32)[:m]
    assert len(pairs(a, b, ratio, mode, neighbours=neighbours)) == expected


GOOD = np.eye(3, dtype=np.float32)


@pytest.mark.parametrize(
    ("a", "b", "how", "parts"),
    [
        (GOOD, np.eye(4), {}, ["3 and 4 dimensions"]),
        (np.array([[1.0, 0, 0], [np.nan, 0, 0]]), GOOD, {}, ["Descriptor 1 of the first image", "not finite"]),
        (GOOD, np.full((2, 3), np.inf), {}, ["second image", "one of 2 such"]),
        (GOOD, np.full((2, 3), 1e30), {}, ["second image", "too large"]),
        (np.ones(3), GOOD, {}, ["first", "(3,)"]),
        (GOOD, GOOD, {"mode": "both"}, ["'both'", "mutual, one-way"]),
        (GOOD, GOOD, {"ratio": 0.0}, ["ratio is 0.0"]),
        (GOOD, GOOD, {"ratio": 1.5}, ["ratio is 1.5"]),
        (GOOD, GOOD, {"ratio": float("nan")}, ["ratio is nan"]),
        (GOOD, GOOD, {"neighbours": "annoy"}, ["'annoy'", "tiles, faiss"]),
        (GOOD, GOOD, {"device": "tpu"}, ['"tpu"']),
    ],
)
def test_bad_input_is_told_in_a_sentence(a: Vectors, b: Vectors, how: dict[str, Any], parts: list[str]) -> None:
    device = how.pop("device", "auto")
    with pytest.raises(KeypatchError) as error:
        match_descriptors(a, b, Matching(**{"ratio": None} | how), device=device)
    assert all(part in str(error.value) for part in parts)


def test_a_missing_faiss_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"keypatch\[faiss\]"):
        match_descriptors(GOOD, GOOD, Matching(neighbours="faiss"))


def features_at(places: list[tuple[float, float]], rows: np.ndarray) -> Features:
    x, y = np.array(places, np.float32).T
    ones = np.ones(len(places), np.float32)
    return Features(Keypoints(x, y, ones, 0 * ones), rows.astype(np.float32), (1000, 1000), "planted")


def test_a_rival_at_the_same_place_is_none() -> None:
    unit = np.eye(6)
    query, near, far = unit[:1], unit[:1] + 0.10 * unit[1:2], unit[:1] + 0.12 * unit[2:3]
    first = features_at([(10, 10)], query)
    for place, apart, expected in [((13, 10), 10, 1), ((30, 10), 10, 0), ((13, 10), 0, 0), ((13, 10), 3, 0)]:
        second = features_at([(10, 10), place, (500, 500)], np.concatenate([near, far, unit[5:]]))
        found = find_matches(first, second, Matching(ratio=0.8, apart=apart, filter=None))
        assert len(found) == expected, (place, apart)


@pytest.mark.parametrize("mode", ["mutual", "one-way"])
def test_the_second_neighbour_elsewhere_is_that_of_a_loop(mode: str) -> None:
    rng = np.random.default_rng(1)
    views = [features_at(rng.uniform(0, 60, (150, 2)).tolist(), rng.normal(size=(150, 4))) for _ in range(2)]
    distances = np.linalg.norm(views[0].descriptors[:, None] - views[1].descriptors, axis=2)
    apart = [np.linalg.norm(view.keypoints.xy[:, None] - view.keypoints.xy, axis=2) >= 10 for view in views]

    def passes(table: np.ndarray, others: np.ndarray, i: int) -> bool:
        nearest = int(table[i].argmin())
        return bool(table[i, nearest] < 0.8 * table[i][others[nearest]].min(initial=np.inf))

    expected = []
    for i in range(150):
        j = int(distances[i].argmin())
        if mode == "mutual" and (distances[:, j].argmin() != i or not passes(distances.T, apart[0], j)):
            continue
        if passes(distances, apart[1], i):
            expected.append([i, j])
    found = find_matches(*views, Matching(mode=mode, ratio=0.8, apart=10, filter=None))  # type: ignore[arg-type]
    assert found.indices.tolist() == expected and len(expected) > 10


def test_lookalikes_are_the_next_best_of_other_places() -> None:
    rng = np.random.default_rng(1)
    views = [features_at(rng.uniform(0, 60, (150, 2)).tolist(), rng.normal(size=(150, 4))) for _ in range(2)]
    distances = np.linalg.norm(views[0].descriptors[:, None] - views[1].descriptors, axis=2)
    apart = [np.linalg.norm(view.keypoints.xy[:, None] - view.keypoints.xy, axis=2) >= 10 for view in views]
    found = find_matches(*views, Matching(turn=180))
    assert found.evidence is not None
    pairs = found.evidence.neighbours.tolist()
    expected = [[i, int(np.where(apart[1][j], distances[i], np.inf).argmin())] for i, j in pairs]
    expected += [[int(np.where(apart[0][i], distances[:, j], np.inf).argmin()), j] for i, j in pairs]
    assert found.evidence.lookalikes.tolist() == expected and len(expected) > 40
    assert found.evidence.swapped().lookalikes.tolist() == [pair[::-1] for pair in expected]


def test_one_place_has_no_lookalikes() -> None:
    rows = np.eye(4)
    views = [features_at([(5.0, 5.0 + i) for i in range(4)], rows) for _ in range(2)]
    found = find_matches(*views, Matching(turn=180))
    assert len(found) == 4 and found.evidence is not None and found.evidence.lookalikes.shape == (0, 2)


def test_the_filter_keeps_what_agrees_and_needs_no_image_size() -> None:
    rng = np.random.default_rng(0)
    places, rows = rng.uniform(0, 900, (300, 2)), rng.normal(size=(300, 32))
    moved = 0.9 * places + 40
    wrong = rng.random(300) < 0.3
    moved[wrong] = rng.uniform(0, 900, (wrong.sum(), 2))
    first, second = features_at(places.tolist(), rows), features_at(moved.tolist(), rows)
    for size in ((1000, 1000), (0, 0)):  # a foreign file may not say
        views = [replace(each, image_size=size) for each in (first, second)]
        kept = find_matches(*views, Matching(ratio=None)).indices[:, 0]
        assert wrong[kept].mean() < 0.02 and len(kept) > 0.95 * (~wrong).sum()
    assert len(find_matches(first, second, Matching(filter=None))) == 300


def test_a_match_passes_the_ratio_test_or_agrees_with_those_around_it() -> None:
    rng = np.random.default_rng(0)
    places, rows = rng.uniform(0, 900, (400, 2)), rng.normal(size=(400, 32))
    moved, seen = 0.9 * places + 40, rows + rng.normal(scale=0.8, size=rows.shape)  # the ratio test fails for many
    moved[:100] = rng.uniform(0, 900, (100, 2))  # not where they should be
    views = features_at(places.tolist(), rows), features_at(moved.tolist(), seen)
    by_ratio, by_filter, either, neighbours = (
        set(map(tuple, find_matches(*views, Matching(**how)).indices.tolist()))
        for how in ({"filter": None}, {"ratio": None}, {}, {"ratio": None, "filter": None})
    )
    assert either == by_ratio | by_filter and by_ratio - by_filter and by_filter - by_ratio
    found = find_matches(*views)
    assert found.distinct is not None and found.agreeing is not None and found.evidence is not None
    assert set(map(tuple, found.indices[found.distinct].tolist())) == by_ratio
    assert set(map(tuple, found.indices[found.agreeing].tolist())) == by_filter
    assert set(map(tuple, found.evidence.neighbours.tolist())) == neighbours > either
    loose = set(map(tuple, find_matches(*views, Matching(ratio=0.95, filter=None)).indices.tolist()))
    assert set(map(tuple, found.evidence.likely.tolist())) == loose > by_ratio


@pytest.mark.parametrize("camera", [0, 90, 179, -3])
def test_matches_turned_otherwise_than_most_distinct_ones_are_left_out(camera: float) -> None:
    rng = np.random.default_rng(0)
    rows, angles = rng.normal(size=(100, 32)), rng.uniform(0, 2 * np.pi, 100)
    off = np.concatenate([rng.uniform(-35, 35, 70), rng.uniform(80, 280, 30)])  # degrees; the last ones are wrong
    views = [features_at(rng.uniform(0, 900, (100, 2)).tolist(), rows) for _ in range(2)]
    turned = angles + np.radians(camera + off)
    first, second = (
        replace(view, keypoints=replace(view.keypoints, angle=each.astype(np.float32)))
        for view, each in zip(views, (angles, turned % (2 * np.pi)), strict=True)
    )
    found = find_matches(first, second, Matching(filter=None, tries=2))
    assert found.indices[:, 0].tolist() == list(range(70))
    assert found.evidence is not None and len(found.evidence.neighbours) == 70, "nor do they judge a model"
    assert len(find_matches(first, second, Matching(filter=None, turn=180))) == 100
    chosen = np.r_[:6, 70:73]
    few = [
        replace(each, keypoints=each.keypoints.take(chosen), descriptors=each.descriptors[chosen])
        for each in (first, second)
    ]
    assert len(find_matches(*few, Matching(filter=None))) == 9, "too few to know the angle"


def test_matches_that_agree_on_no_angle_are_all_kept() -> None:
    rng = np.random.default_rng(0)
    rows, places = rng.normal(size=(200, 32)), rng.uniform(0, 900, (200, 2)).tolist()
    upright = features_at(places, rows)
    spun = replace(upright.keypoints, angle=rng.uniform(0, 2 * np.pi, 200).astype(np.float32))
    assert len(find_matches(upright, upright, Matching(filter=None))) == 200
    assert len(find_matches(upright, replace(upright, keypoints=spun), Matching(filter=None))) == 200


def test_filters_are_named() -> None:
    assert Matching(filter="adalam") == Matching() and Matching(filter="none").filter is None  # type: ignore[arg-type]
    with pytest.raises(KeypatchError, match="adalam"):
        Matching(filter="adalan")  # type: ignore[arg-type]
    settings = Matching(filter=AdaLAM(fewest=4)).settings()
    assert settings["filter"] == "adalam" and settings["filter.fewest"] == 4 and "filter.maps" not in settings
