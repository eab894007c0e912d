"""Two models that COLMAP left apart, laid over each other by the points they share.

A link says that a point of one model and a point of the other may be the same. It may be wrong: three links fix a
similarity, and a link counts only if both its points then lie, within some pixels, where every photo that sees the one
or the other has its keypoint. Models of different scenes hardly ever have a handful of such links in common.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.colmap.package import load_pycolmap
from keypatch.errors import KeypatchError
from keypatch.geometry.poses import Pose, Similarity, align

AGREE = 8.0  # pixels: COLMAP's own bound when it aligns models
TRIALS = 200  # samples of three links from two photos
MOST_PHOTOS = 100  # pairs of photos that are sampled from, those with the most links
MOST_LINKS = 200  # of two photos that a sample is judged by at first

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Matcher = Callable[[str, Int64, str, Int64], Int64]


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs of points, a pair as often as photos suggest it."""

    photos: Int64  # (n, 2) the photo in either model that the link comes from
    points: Int64  # (n, 2) the numbers of the points in either model

    def __getitem__(self, chosen: NDArray[Any]) -> "Links":
        return Links(self.photos[chosen], self.points[chosen])

    @property
    def shared(self) -> int:
        """How many points of either model are linked, at least."""
        return min(len(np.unique(column)) for column in self.points.T) if len(self.points) else 0


def find_links(first: Any, second: Any, pairs: list[tuple[str, str]], match: Matcher) -> Links:
    """What may be the same point: the same keypoint of a photo in both models, and keypoints matched across them.

    `match` is asked for each of `pairs`, with the photos' names and the numbers of those of their keypoints that have a
    point; it returns positions (m, 2) among those.
    """
    ours, theirs = _seen_points(first), _seen_points(second)
    photos, points = [np.empty((0, 2), np.int64)], [np.empty((0, 2), np.int64)]
    for name in sorted(ours.keys() & theirs.keys()):
        number, keypoints, here = ours[name]
        _, others, there = theirs[name]
        _, i, j = np.intersect1d(keypoints, others, assume_unique=True, return_indices=True)
        photos.append(np.full((len(i), 2), number))
        points.append(np.stack([here[i], there[j]], axis=1))
    for one, other in pairs:
        if one not in ours or other not in theirs:
            continue
        (number0, keypoints0, points0), (number1, keypoints1, points1) = ours[one], theirs[other]
        i, j = match(one, keypoints0, other, keypoints1).T
        photos.append(np.broadcast_to([number0, number1], (len(i), 2)))
        points.append(np.stack([points0[i], points1[j]], axis=1))
    return Links(np.concatenate(photos), np.concatenate(points))


def _seen_points(model: Any) -> dict[str, tuple[int, Int64, Int64]]:
    """By name: a photo's number, its keypoints that have a point, and the points."""
    found = {}
    for image in model.images.values():
        numbers = [(i, each.point3D_id) for i, each in enumerate(image.points2D) if each.has_point3D()]
        if image.has_pose and numbers:
            keypoints, points = np.array(numbers, np.int64).T
            found[str(image.name)] = int(image.image_id), keypoints, points
    return found


@dataclass(frozen=True, eq=False)
class _Sights:
    """How points of a model are seen: a row for each observation, the rows of a link together."""

    starts: Int64  # (links,) the first row of each
    link: Int64  # (rows,)
    rotation: Float64  # (rows, 3, 3) and (rows, 3): the pose of the photo
    translation: Float64
    place: Float64  # (rows, 2) on the image plane at depth 1
    focal: Float64  # (rows,) pixels

    def of(self, links: Int64) -> "_Sights":
        """Of some of the links."""
        lengths = np.diff(np.append(self.starts, len(self.link)))[links]
        starts = np.cumsum(lengths) - lengths
        rows = np.arange(lengths.sum()) + np.repeat(self.starts[links] - starts, lengths)
        link = np.repeat(np.arange(len(links)), lengths)
        return _Sights(starts, link, self.rotation[rows], self.translation[rows], self.place[rows], self.focal[rows])

    def errors(self, xyz: Float64) -> Float64:
        """(links,) the largest distance in pixels between a point (links, 3) and where it was seen."""
        local = np.einsum("nij,nj->ni", self.rotation, xyz[self.link]) + self.translation
        ahead = local[:, 2] > 1e-9
        plane = local[:, :2] / np.where(ahead, local[:, 2], 1)[:, None]
        apart = np.where(ahead, np.linalg.norm(plane - self.place, axis=1) * self.focal, np.inf)
        return np.asarray(np.maximum.reduceat(apart, self.starts))


def _sights(model: Any, points: Int64) -> _Sights:
    rows, starts = list[tuple[int, Any, Any, float]](), list[int]()
    for link, number in enumerate(points):
        starts.append(len(rows))
        for element in model.points3D[int(number)].track.elements:
            image = model.images[element.image_id]
            camera, motion = model.cameras[image.camera_id], image.cam_from_world().matrix()
            place = camera.cam_from_img(image.points2D[element.point2D_idx].xy)
            rows.append((link, motion, np.full(2, np.inf) if place is None else place, camera.mean_focal_length()))
    links, motions, places, focals = zip(*rows, strict=True)
    matrices = np.array(motions)
    return _Sights(
        np.array(starts), np.array(links), matrices[:, :, :3], matrices[:, :, 3], np.array(places), np.array(focals)
    )


def agreeing_links(first: Any, second: Any, links: Links, seed: int) -> Links:
    """The most links that one similarity between the models explains."""
    pairs, back = np.unique(links.points, axis=0, return_inverse=True)
    agreeing = np.zeros(len(pairs), np.bool_)
    for found in _candidates(first, second, links, pairs, back.reshape(-1), seed):
        agreeing = found if found.sum() > agreeing.sum() else agreeing
    return links[agreeing[back.reshape(-1)]]


def _candidates(
    first: Any, second: Any, links: Links, pairs: Int64, back: Int64, seed: int
) -> Iterator[NDArray[np.bool_]]:
    """For each two photos the pairs of points (n,) that agree with the best similarity of their links."""
    if not len(pairs):
        return
    rng = np.random.default_rng(seed)
    places = _xyz(second, pairs[:, 1]), _xyz(first, pairs[:, 0])
    sights = _sights(first, pairs[:, 0]), _sights(second, pairs[:, 1])
    _, photos, counts = np.unique(links.photos, axis=0, return_inverse=True, return_counts=True)
    for number in np.argsort(-counts, kind="stable")[:MOST_PHOTOS]:
        own = np.unique(back[photos.reshape(-1) == number])
        if len(own) < 4:  # three agree with anything
            continue
        own = own if len(own) <= MOST_LINKS else rng.choice(own, MOST_LINKS, replace=False)
        some = sights[0].of(own), sights[1].of(own)
        there, here = places[0][own], places[1][own]
        best = np.zeros(len(own), np.bool_)
        for _ in range(TRIALS):
            sample = rng.choice(len(own), 3, replace=False)
            agree = _agree(some, there, here, sample)
            best = agree if agree.sum() > best.sum() else best
        chosen = own[best]
        while len(chosen) > 3:
            more = np.flatnonzero(_agree(sights, *places, chosen))
            if len(more) <= len(chosen):
                break
            chosen = more
        yield np.isin(np.arange(len(pairs)), chosen)


def _agree(sights: tuple[_Sights, _Sights], there: Float64, here: Float64, chosen: Int64) -> NDArray[np.bool_]:
    """(n,) whether each two points lie where they were seen, under the similarity of the chosen ones."""
    similarity = _similarity(there[chosen], here[chosen])
    if similarity is None:
        return np.zeros(len(here), np.bool_)
    forth = sights[0].errors(similarity.apply(there)) < AGREE
    return np.asarray(forth & (sights[1].errors(similarity.inverse().apply(here)) < AGREE))


def _similarity(source: Float64, target: Float64) -> Similarity | None:
    try:
        found = align(source, target)
    except KeypatchError:  # on one line
        return None
    return found if found.scale > 0 else None


def _xyz(model: Any, points: Int64) -> Float64:
    return np.array([model.points3D[int(number)].xyz for number in points]).reshape(-1, 3)


def lay_over(first: Any, second: Any, links: Links) -> Any:
    """The first model with the photos and points of the second added; linked points become one."""
    similarity = _similarity(_xyz(second, links.points[:, 1]), _xyz(first, links.points[:, 0]))
    if similarity is None:
        raise KeypatchError("The points that the models share lie on one line.")
    colmap = load_pycolmap()
    joined = colmap.Reconstruction(first)
    for image in second.images.values():
        if image.has_pose and not joined.exists_image(image.image_id):
            _add_image(joined, second, image, similarity)
    same = {int(theirs): int(ours) for ours, theirs in links.points}
    for number, point in second.points3D.items():
        free = [
            element
            for element in point.track.elements
            if not joined.images[element.image_id].points2D[element.point2D_idx].has_point3D()
        ]
        if number in same:
            for element in free:
                joined.add_observation(same[number], element)
        elif len(free) > 1:
            track = colmap.Track()
            for element in free:
                track.add_element(element)
            joined.add_point3D(similarity.apply([point.xyz])[0], track)
    return joined


def _add_image(joined: Any, model: Any, image: Any, similarity: Similarity) -> None:
    """A photo of a model, with its camera and frame, into another model."""
    colmap, old = load_pycolmap(), model.frames[image.frame_id]
    if not joined.exists_camera(image.camera_id):
        joined.add_camera(model.cameras[image.camera_id])
    if not joined.exists_rig(old.rig_id):
        joined.add_rig(model.rigs[old.rig_id])
    motion = np.asarray(image.cam_from_world().matrix())
    pose = similarity.carry(Pose(motion[:, :3], motion[:, 3]))
    frame = colmap.Frame()
    frame.frame_id, frame.rig_id = old.frame_id, old.rig_id
    frame.add_data_id(image.data_id)
    frame.rig_from_world = colmap.Rigid3d(colmap.Rotation3d(pose.rotation), pose.translation)
    joined.add_frame(frame)
    places = colmap.Point2DList([colmap.Point2D(each.xy) for each in image.points2D])
    added = colmap.Image(name=image.name, camera_id=image.camera_id, image_id=image.image_id, points2D=places)
    added.frame_id = old.frame_id
    joined.add_image(added)
    joined.register_frame(old.frame_id)
