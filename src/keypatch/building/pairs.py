"""The method `pairs`: two overlapping photos each, whose verified matches become classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from keypatch.building.observations import Found, Observations, Work, unknown_views
from keypatch.building.options import SIDE
from keypatch.errors import KeypatchError
from keypatch.features import FeatureReader
from keypatch.files import write_text
from keypatch.geometry import Keypoints, apply_homography, transform_keypoints
from keypatch.images import Photo, listed, read_header, read_photo
from keypatch.matching.match_files import MatchReader
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Matching
from keypatch.progress import track
from keypatch.settings import CheckedFields, brief, option

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Pair = tuple[str, str]

FEATURES, MATCHES, LIST = "features.h5", "matches.h5", "pairs.txt"
ECC_SIDE = 512  # pixels of the photos that are laid over each other
ECC_BLUR = 2.0  # sigma; edges, softened, agree also between bands in which light and dark are swapped
FINE = 6.0  # sigma: edges less their mean over this are fine ones, which unrelated photos do not share
# Correlation of fine edges once one photo lies over the other. Measured on photos whose corners moved by a tenth at
# most: 12 places in red and near infrared 0.30 to 0.62; 13 pairs of different places of that flight, and 5 of unrelated
# photos, at most 0.024. The coefficient that ECC itself reaches does not tell them apart: 0.54 to 0.77 and up to 0.56.
LEAST_AGREEMENT = 0.1


@dataclass(frozen=True)
class PhotoPairs(CheckedFields):
    """Classes of two patches, one from each photo of a pair.

    >>> kp.PhotoPairs(aligned=True).fewest
    20
    """

    aligned: bool = option(
        False, "The camera did not move (another season, hour or band): cut at the same places, matched or not."
    )
    fewest: int = option(20, "Leave out pairs of photos with fewer verified matches, which may be chance.", least=8)
    motion: float = option(
        0.1, "For aligned photos: largest motion of a corner, as a share of the longer side.", above=0, below=1
    )

    __repr__ = brief

    least_photos: ClassVar[int] = 2
    side: ClassVar[float] = SIDE
    unused: ClassVar[frozenset[str]] = frozenset({"mapping"})

    def find(self, work: Work) -> Found:
        """The verified matches, or with `aligned` the keypoints of either photo and where the other shows them."""
        from keypatch.features.description import describe
        from keypatch.features.extraction import FileOptions
        from keypatch.matching.pairs import match_pairs

        building = work.building
        pairs = named_pairs(work.photos, building.pairs)
        names = {name for pair in pairs for name in pair}
        photos = [photo for photo in work.photos if photo.name in names]
        numbers = {photo.name: number for number, photo in enumerate(photos)}
        features, matches = work.folder / FEATURES, work.folder / MATCHES
        files = FileOptions(root=work.root, masks=building.masks, pixel_limit=building.pixel_limit)
        how: dict[str, Any] = {"parallel": work.parallel, "device": work.device, "progress": work.progress}
        paths = [photo.path for photo in photos]
        describe(paths, features, work.describer, work.extraction, files=files, precision=work.precision, **how)
        rule = work.folder / LIST
        write_text(rule, "".join(f"{one} {other}\n" for one, other in pairs))
        matching = work.matching or Matching()
        if matching.model is None:
            raise KeypatchError('Only verified matches become classes: Matching needs a model, such as "F".')
        if self.aligned:
            matching = replace(matching, model="H", estimator="poselib", threshold=3.0)
        match_pairs(features, rule, matches, matching, names=names, **how)
        sizes = np.array([read_header(photo.path).size for photo in photos], np.int64)
        counts = {"photos in no pair": len(work.photos) - len(photos)}
        with FeatureReader(features) as reader, MatchReader(matches) as matched:
            keypoints = {name: reader.keypoints(name) for name in numbers}
            if self.aligned:
                read = lambda name: read_photo(photos[numbers[name]].path, pixel_limit=building.pixel_limit)  # noqa: E731
                rows, used = _aligned(pairs, keypoints, matched, numbers, self, read, work, counts)
            else:
                rows, used = _matched(pairs, keypoints, matched, numbers, self, work, counts)
        facts = {"pairs": len(pairs), "pairs used": used, "aligned": self.aligned}
        return Found(
            photos,
            sizes,
            rows,
            lambda number: read_photo(photos[number].path, pixel_limit=building.pixel_limit),
            counts,
            facts,
        )


def named_pairs(photos: Sequence[Photo], rule: str | Path | None) -> list[Pair]:
    """The pairs by a rule of `match_pairs`; without one N_a and N_b, whatever their endings."""
    from keypatch.matching.pairs import find_pairs

    names = sorted(photo.name for photo in photos)
    if rule is not None:
        pairs = find_pairs(rule, names)
    else:
        sides = dict[str, dict[str, str]]()
        for name in names:
            path = PurePosixPath(name)
            if side := re.fullmatch("(.+)_([ab])", path.stem):
                sides.setdefault((path.parent / side[1]).as_posix(), {})[side[2]] = name
        pairs = [(both["a"], both["b"]) for both in sides.values() if len(both) == 2]
    if not pairs:
        raise KeypatchError(
            f"No pairs among {listed(names)}: name the photos of a pair N_a and N_b (1_a.jpg, 1_b.jpg), or list pairs "
            "in a file with two names per line, --pairs FILE."
        )
    return pairs


def _scenes(pairs: Sequence[Pair], numbers: dict[str, int]) -> Int64:
    """(photos,) photos that pairs join are of one scene."""
    links = np.array([[numbers[one], numbers[other]] for one, other in pairs], np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(pairs)), (links[0], links[1])), shape=(len(numbers), len(numbers)))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def _nothing(work: Work, pairs: Sequence[Pair], why: str) -> KeypatchError:
    return KeypatchError(
        f"The matching step found nothing: none of the {len(pairs)} photo pairs {why}. Do the photos of a pair "
        "overlap? More keypoints (--keypoints 8192) may help."
    )


def _matched(
    pairs: Sequence[Pair],
    keypoints: dict[str, Keypoints],
    matched: MatchReader,
    numbers: dict[str, int],
    options: PhotoPairs,
    work: Work,
    counts: dict[str, int],
) -> tuple[Observations, int]:
    """Matches joined over the pairs that share a photo; what then is two places of one photo is left out."""
    starts = np.cumsum([0, *(len(keypoints[name]) for name in numbers)])
    links, used, few = list[Int64](), list[Pair](), list[str]()
    for one, other in pairs:
        found = matched.read(one, other)
        if len(found.once(keypoints[one], keypoints[other])) < options.fewest:
            few.append(f"{one} and {other} ({len(found)})")
            continue
        used.append((one, other))
        links.append(found.indices + starts[[numbers[one], numbers[other]]])
    if few:
        work.progress.say(
            f"Left out: {listed(few, '; ')}: fewer than {options.fewest} verified matches, which may be chance."
        )
    counts["pairs of photos with too few matches"] = len(few)
    if not used:
        raise _nothing(work, pairs, f"has {options.fewest} verified matches")
    edges = np.concatenate(links).T
    total = int(starts[-1])
    graph = coo_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(total, total))
    point = np.asarray(connected_components(graph, directed=False)[1], np.int64)
    nodes = np.unique(edges)
    image = np.searchsorted(starts, nodes, side="right") - 1
    chosen = Keypoints.join([keypoints[name] for name in numbers]).take(nodes)
    contradicted = _contradicted(point[nodes], image, chosen.xy)
    counts["observations of points at two places of a photo"] = int(contradicted.sum())
    scene = _scenes(used, numbers)[image]
    rows = Observations(
        point_id=point[nodes],
        image_id=image,
        keypoints=chosen,
        error=np.zeros(len(nodes)),
        place=_first_place(point[nodes], image, chosen.xy),
        scene=scene,
        **unknown_views(len(nodes)),
    )
    return rows.take(~contradicted), len(used)


def _contradicted(point: Int64, image: Int64, xy: Float64) -> NDArray[np.bool_]:
    """(n,) rows of points that have two places, more than a pixel apart, in one photo."""
    order = np.lexsort((image, point))
    same = (point[order][1:] == point[order][:-1]) & (image[order][1:] == image[order][:-1])
    apart = np.linalg.norm(xy[order][1:] - xy[order][:-1], axis=1) > 1
    return np.isin(point, point[order][1:][same & apart])


def _first_place(point: Int64, image: Int64, xy: Float64) -> Float64:
    """(n, 3) where the point is in the first photo that shows it."""
    order = np.lexsort((image, point))
    _, first, inverse = np.unique(point[order], return_index=True, return_inverse=True)
    place = np.zeros((len(point), 3))
    place[order, :2] = xy[order][first][inverse]
    return place


def _aligned(
    pairs: Sequence[Pair],
    keypoints: dict[str, Keypoints],
    matched: MatchReader,
    numbers: dict[str, int],
    options: PhotoPairs,
    read: Callable[[str], NDArray[np.uint8]],
    work: Work,
    counts: dict[str, int],
) -> tuple[Observations, int]:
    """Each keypoint of either photo, and where the other photo shows its place."""
    points, images, frames, errors = list[Int64](), list[Int64](), list[Keypoints](), list[Float64]()
    used, lost, first = list[Pair](), list[str](), 0
    for one, other in track(pairs, "pairs aligned", work.progress):
        both = read(one), read(other)
        homography, why = find_motion(*both, matched.read(one, other), options)
        if homography is None:
            lost.append(f"{one} and {other} ({why})")
            continue
        used.append((one, other))
        for near, far, matrix, error in ((one, other, homography, 0.0), (other, one, np.linalg.inv(homography), 1.0)):
            here = keypoints[near].without_shape()
            there = transform_keypoints(matrix, here).without_shape()
            for name, each in ((near, here), (far, there)):
                points.append(first + np.arange(len(here)))
                images.append(np.full(len(here), numbers[name]))
                frames.append(each)
                errors.append(np.full(len(here), error))  # of two at one place the first photo's stays
            first += len(here)
    if lost:
        work.progress.say(f"Left out: {listed(lost, '; ')}.")
    counts["pairs of photos that could not be aligned"] = len(lost)
    if not used:
        raise _nothing(work, pairs, "could be aligned")
    point, image, chosen = np.concatenate(points), np.concatenate(images), Keypoints.join(frames)
    rows = Observations(
        point_id=point,
        image_id=image,
        keypoints=chosen,
        error=np.concatenate(errors),
        place=_first_place(point, image, chosen.xy),
        scene=_scenes(used, numbers)[image],
        **unknown_views(len(point)),
    )
    return rows, len(used)


def find_motion(
    first: NDArray[np.uint8], second: NDArray[np.uint8], matches: Matches, options: PhotoPairs
) -> tuple[Float64 | None, str]:
    """The homography from the first photo to the second, of nearly the same view; None and why there is none.

    By verified matches where there are enough, else by laying the edges of both over each other (ECC).
    """
    tried = list[str]()
    for homography, why in _motions(first, second, matches, options):
        if homography is not None:
            moved = _motion(homography, first, second)
            if moved <= options.motion:
                return homography, ""
            why = f"corners would move by {moved:.0%}"
        tried.append(why)
    return None, ", ".join(tried)


def _motions(
    first: NDArray[np.uint8], second: NDArray[np.uint8], matches: Matches, options: PhotoPairs
) -> Iterator[tuple[Float64 | None, str]]:
    count, matrix = len(matches), matches.matrix
    yield (matrix if count >= options.fewest else None), f"{count} matches"
    yield _by_ecc(first, second)


def _motion(homography: Float64, first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    """How far a corner moves, beyond what the sizes of the photos ask for, as a share of the longer side."""
    (height, width), (other_height, other_width) = first.shape, second.shape
    corners = np.array([[0, 0], [width - 1, 0], [0, height - 1], [width - 1, height - 1]], np.float64)
    scale = np.array([other_width / width, other_height / height])
    with np.errstate(all="ignore"):
        moved = np.linalg.norm(apply_homography(homography, corners) - ((corners + 0.5) * scale - 0.5), axis=1)
    largest = float(moved.max()) / max(second.shape)
    return largest if np.isfinite(largest) else np.inf


def _by_ecc(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> tuple[Float64 | None, str]:
    """By the enhanced correlation coefficient (Evangelidis and Psarakis 2008) of edges in small copies."""
    small, scales = [], []
    for photo in (first, second):
        shrink = min(1.0, ECC_SIDE / max(photo.shape))
        size = (max(8, round(photo.shape[1] * shrink)), max(8, round(photo.shape[0] * shrink)))
        scale = np.array([size[0] / photo.shape[1], size[1] / photo.shape[0]])
        small.append(np.asarray(cv2.resize(photo, size, interpolation=cv2.INTER_AREA), np.uint8))
        # pixel centres: x_small + 0.5 = (x + 0.5) * scale
        scales.append(np.array([[scale[0], 0, scale[0] / 2 - 0.5], [0, scale[1], scale[1] / 2 - 0.5], [0, 0, 1]]))
    between = scales[1] @ np.diag([second.shape[1] / first.shape[1], second.shape[0] / first.shape[0], 1.0])
    start = (between @ np.linalg.inv(scales[0])).astype(np.float32)
    edges = [_edges(each) for each in small]
    ends = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 200, 1e-5)
    try:
        _, warp = cv2.findTransformECC(edges[0], edges[1], start, cv2.MOTION_HOMOGRAPHY, ends)
    except cv2.error:  # it did not converge
        return None, "their edges do not agree"
    found = np.asarray(warp, np.float64)
    agree = _agreement(small[0], small[1], found)
    if agree < LEAST_AGREEMENT:
        return None, f"their edges agree by only {agree:.2f}"
    return np.asarray(np.linalg.inv(scales[1]) @ found @ scales[0]), ""


def _agreement(first: NDArray[np.uint8], second: NDArray[np.uint8], homography: Float64) -> float:
    """Correlation of the fine edges of both where the second, laid over the first, covers it; 0 if it hardly does."""
    size = (first.shape[1], first.shape[0])
    back = cv2.WARP_INVERSE_MAP | cv2.INTER_LINEAR
    laid = np.asarray(cv2.warpPerspective(second, homography, size, flags=back), np.uint8)
    covered = cv2.warpPerspective(np.ones_like(second), homography, size, flags=back)
    reach = 2 * round(2 * FINE) + 1  # beyond it the edge of the photo does not count as one
    inside = np.asarray(cv2.erode(covered, np.ones((reach, reach), np.uint8), borderValue=0), np.uint8) > 0
    one, other = (_fine(_edges(each, 0))[inside] for each in (first, laid))
    if inside.mean() < 0.25 or min(one.std(), other.std()) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _fine(edges: NDArray[np.float32]) -> NDArray[np.float32]:
    return edges - np.asarray(cv2.GaussianBlur(edges, (0, 0), FINE), np.float32)


def _edges(image: NDArray[np.uint8], blur: float = ECC_BLUR) -> NDArray[np.float32]:
    """Where a small photo changes, whichever way; softened."""
    soft = cv2.GaussianBlur(image.astype(np.float32), (0, 0), 1.0)
    strength = np.sqrt(cv2.magnitude(cv2.Sobel(soft, cv2.CV_32F, 1, 0), cv2.Sobel(soft, cv2.CV_32F, 0, 1)))
    return np.asarray(cv2.GaussianBlur(strength, (0, 0), blur) if blur else strength, np.float32)
