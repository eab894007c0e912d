"""Numbers of a model and their replicates, on a text model written by hand: three of four photos, four points."""

from pathlib import Path

import numpy as np
import pytest

from keypatch.benchmarks.eth.scores import model_replicates, model_scores, photo_shares, pose_replicates, pose_scores
from keypatch.benchmarks.scores import find_score
from keypatch.colmap.job import BuiltModel, MappingOutcome, Statistics, VerifiedPair
from keypatch.colmap.models import read_model
from keypatch.metrics import draw_counts
from keypatch.metrics.poses import PoseErrors

PHOTOS = ["a.png", "b.png", "c.png", "lost.png"]
TRACKS = {1: (0.5, [7, 8, 9]), 2: (1.5, [7, 8]), 5: (0.25, [8, 9]), 6: (2.0, [7, 8, 9])}  # error, images


@pytest.fixture
def model(tmp_path: Path) -> Path:
    pytest.importorskip("pycolmap")
    places = {image: [] for image in (7, 8, 9)}
    lines = []
    for point, (error, images) in TRACKS.items():
        track = []
        for image in images:
            track += [image, len(places[image])]
            places[image].append(point)
        lines.append(f"{point} 0.0 0.0 5.0 1 2 3 {error} {' '.join(map(str, track))}")
    (tmp_path / "points3D.txt").write_text("# points\n" + "\n".join(lines) + "\n")
    (tmp_path / "cameras.txt").write_text("1 PINHOLE 640 480 500 500 320 240\n")
    rows = []
    for image, name in ((9, "c.png"), (7, "a.png"), (8, "b.png")):
        seen = " ".join(f"{10 + k}.0 20.0 {point}" for k, point in enumerate(places[image]))
        rows += [f"{image} 1 0 0 0 {image} 0 0 1 {name}", seen]
    (tmp_path / "images.txt").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_observations_are_read_from_the_tracks(model: Path) -> None:
    made = read_model(model)
    names = list(made.cameras)
    assert names == ["a.png", "b.png", "c.png"]
    by_point = {point: [names[i] for i in made.seen_by[made.seen == point]] for point in range(4)}
    assert by_point == {
        0: ["a.png", "b.png", "c.png"],
        1: ["a.png", "b.png"],
        2: ["b.png", "c.png"],
        3: ["a.png", "b.png", "c.png"],
    }


def test_shares_of_photos_add_up_to_what_pycolmap_says_of_the_model(model: Path) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    theirs = pycolmap.Reconstruction()
    theirs.read_text(str(model))
    registered, observations, points, errors, photos = photo_shares(model, PHOTOS).sum(axis=0)
    assert registered == theirs.num_reg_images() == 3 and photos == 4
    assert observations == theirs.compute_num_observations() == 10
    assert points == pytest.approx(theirs.num_points3D())
    assert observations / points == pytest.approx(theirs.compute_mean_track_length())
    assert observations / registered == pytest.approx(theirs.compute_mean_observations_per_reg_image())
    assert errors / points == pytest.approx(theirs.compute_mean_reprojection_error())


def test_a_replicate_is_the_score_with_photos_counted_as_often_as_drawn(model: Path) -> None:
    found = model_replicates(photo_shares(model, PHOTOS))
    names = dict(zip((7, 8, 9), PHOTOS, strict=False))
    for number, drawn in enumerate(draw_counts(4)):
        times = dict(zip(PHOTOS, drawn.tolist(), strict=True))
        parts = [(times[names[i]] / len(images), error) for error, images in TRACKS.values() for i in images]
        points, observed = sum(part for part, _ in parts), sum(times[names[i]] for _, t in TRACKS.values() for i in t)
        registered = 4 - times["lost.png"]
        assert found["registered"].values[number] == pytest.approx(registered / 4)
        assert found["count.points"].values[number] == pytest.approx(points)
        if registered:
            assert found["track_length"].values[number] == pytest.approx(observed / points)
            assert found["observations_per_image"].values[number] == pytest.approx(observed / registered)
            error = sum(part * error for part, error in parts) / points
            assert found["error.reprojection"].values[number] == pytest.approx(error)
        else:
            assert np.isnan(found["track_length"].values[number])
        if number == 200:
            break


def test_without_a_model_no_photo_has_a_share() -> None:
    found = model_replicates(photo_shares(None, PHOTOS))
    assert found["registered"].interval() == (0, 0) and found["count.points"].interval() == (0, 0)
    assert found["track_length"].interval() is None
    scores = model_scores(MappingOutcome([]), 4)
    assert scores["registered"] == 0 and np.isnan(scores["error.reprojection"])


def test_pairs_and_matches_are_those_with_a_geometry() -> None:
    pairs = [VerifiedPair(("a", "b"), 90, 40, "CALIBRATED"), VerifiedPair(("a", "c"), 30, 0, "DEGENERATE")]
    scores = model_scores(
        MappingOutcome(pairs, [BuiltModel(Statistics(3, 4, 10, 2.5, 10 / 3, 1.0), ["a", "b", "c"])]), 4
    )
    assert scores["count.inlier_pairs"] == 1 and scores["count.inlier_matches"] == 40
    assert scores["registered"] == 0.75


def test_scores_are_printed_in_their_units() -> None:
    assert find_score("registered").text(0.8) == "80.00 %"
    assert find_score("count.points").text(14722.0) == "14,722" and find_score("count.registered").text(11.0) == "11.0"
    assert find_score("track_length").text(4.798) == "4.80"
    assert find_score("observations_per_image").text(698.0) == "698.0"
    assert find_score("error.reprojection").text(0.393) == "0.393 px"
    assert find_score("error.rotation.largest").text(0.25599) == "0.256 °"
    assert find_score("error.position").text(0.0201305) == "0.02013"


def test_pose_errors_are_medians_of_registered_photos_drawn_again() -> None:
    errors = PoseErrors(["a.png", "b.png", "c.png"], [0.1, 0.2, 0.9], [1.0, 2.0, 3.0], span=10.0)
    scores = pose_scores(errors)
    assert scores["error.rotation"] == 0.2 and scores["error.rotation.largest"] == 0.9
    assert scores["error.position"] == 2.0 and scores["error.position.largest"] == 3.0
    found = pose_replicates(errors, PHOTOS)["error.rotation"]
    first = next(draw_counts(4))
    expected = np.median(np.repeat([0.1, 0.2, 0.9], first[:3]))
    assert found.values[0] == expected and (found.units, found.count) == ("photos", 4)
    assert {0.1, 0.2, 0.9} <= set(np.round(found.values, 6))
