"""The matches of two images: what `keypatch match a.jpg b.jpg` gives, as a value, a table and a picture."""

from __future__ import annotations  # help() shows types as they are written

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from keypatch.colmap.cameras import GUESS, Camera, header_camera
from keypatch.describers.protocol import Describer
from keypatch.errors import KeypatchError
from keypatch.features import Extraction, Features, extract, read_photo
from keypatch.features.extraction import DESCRIPTOR
from keypatch.files import Format, csv_text, require_place, write_atomically, write_json
from keypatch.geometry.poses import rotation_angle
from keypatch.images import PIXEL_LIMIT, Header, ImageLike, as_png, read_header, turned_sentence
from keypatch.matching.drawing import LINES, Photo, Style, draw_epipolar_lines, draw_matches, draw_overlay
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Matching, Model
from keypatch.matching.neighbours import find_matches
from keypatch.matching.relative_pose import RelativePose, refine_focal, relative_pose_of
from keypatch.matching.verification import (
    FEWEST,
    Intrinsics,
    fit_plane,
    matched_places,
    poselib_options,
    require_intrinsics,
    verify,
)
from keypatch.metrics import transfer_errors
from keypatch.progress import Callback, Progress, counted
from keypatch.provenance import provenance
from keypatch.settings import CheckedFields, option
from keypatch.zoo.loading import load

# Of 15 pairs of unrelated photos (six of scikit-image at twice their size, at most 4,096 keypoints of RootSIFT each) 10
# to 13 matches agreed with one fundamental matrix by default, 15 to 26 without ratio test and filter.
BY_CHANCE = 20

FORMAT = Format("keypatch-photo-matches", 1, "table of matches")
TABLES, PICTURES = (".csv", ".json"), (".png", ".jpg", ".jpeg")
GIVEN, EXIF, GUESSED, REFINED = "given", "EXIF", f"a guess, {GUESS} times the longer side", "told by the matches"
ON_PLANE = 0.9  # of the matches that agree with a fundamental matrix: more say that it is not determined
MISFIT = 0.6  # of them: if fewer agree with a pose, the intrinsics are wrong
AS_STORED, TURNED, AS_GIVEN = "as stored", "turned by EXIF", "as given"
_COLUMNS = ("index0", "index1", "x0", "y0", "x1", "y1", "score")
_MODEL_NAMES = {"F": "fundamental matrix", "E": "essential matrix", "H": "homography"}


@dataclass(frozen=True, eq=False)
class Truth(CheckedFields):
    """The true homography, x1 ~ H x0, and how many pixels off a match still counts as right."""

    homography: NDArray[np.float64]
    within: float = option(3.0, above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.homography.shape != (3, 3) or not np.isfinite(self.homography).all():
            raise KeypatchError(f"A homography must be a finite 3x3 matrix; found shape {self.homography.shape}.")


@dataclass(frozen=True, eq=False)
class ImageMatches:
    """The features of two images, all their matches, and those that agree with one geometry.

    A match joins two places and counts once, however many orientations the keypoints there have. `len` and the
    arrays cover the verified matches, or all matches if verification was off.

    >>> matches = kp.match("a.jpg", "b.jpg", describer="rootsift")
    >>> len(matches) == len(matches.points0) == len(matches.points1)
    True
    >>> sorted(matches.counts())
    ['keypoints0', 'keypoints1', 'matches', 'repeats', 'verified']
    """

    names: tuple[str, str]
    features: tuple[Features, Features]
    candidates: Matches
    matches: Matches  # the candidates that are left by the verification
    matching: Matching
    truth: Truth | None = None
    repeats: int = 0  # matches left out: they join places that others among the candidates join already
    pixels: str = AS_GIVEN  # in which places are counted: "as stored" in the files, "turned by EXIF" or "as given"
    pose: RelativePose | None = None  # of the cameras, by the model "E"
    fundamental: int = 0  # places of the candidates that agree with one fundamental matrix, by the model "E"
    on_plane: int = 0  # of the matches: those that one homography explains as well

    def __len__(self) -> int:
        return len(self.matches)

    def __repr__(self) -> str:
        counts = self.counts()
        verified = f", {counts['verified']:,} verified" if "verified" in counts else ""
        return f"ImageMatches({self.names[0]}, {self.names[1]}: {counts['matches']:,} matches{verified})"

    @property
    def points0(self) -> NDArray[np.float64]:
        """(m, 2) points matched in the first image, in pixels."""
        return self._points(0, self.matches)

    @property
    def points1(self) -> NDArray[np.float64]:
        """(m, 2) points matched in the second image, in pixels."""
        return self._points(1, self.matches)

    @property
    def scores(self) -> NDArray[np.float32]:
        """(m,) similarity of the matched descriptors: 1 - d**2 / 4 for the Euclidean distance d."""
        return self.matches.scores

    @property
    def matrix(self) -> NDArray[np.float64] | None:
        """(3, 3) fundamental or essential matrix or homography; None if the matches were not verified, or none fits."""
        return self.matches.matrix

    def judged(self, homography: ArrayLike, within: float = Truth.within) -> ImageMatches:
        """The same with the true homography, x1 ~ H x0; matches within this many pixels of it count as right."""
        return replace(self, truth=Truth(np.asarray(homography, np.float64), within))

    def right(self, matches: Matches) -> NDArray[np.bool_]:
        """Which of the matches are right, by the true homography."""
        if self.truth is None:
            raise ValueError("correct matches are unknown without the true homography")
        errors = transfer_errors(self.truth.homography, self._points(0, matches), self._points(1, matches))
        return errors <= self.truth.within

    def counts(self) -> dict[str, int]:
        """The number of keypoints, matches and verified matches; also of right ones, if the truth is known."""
        counts = {"keypoints0": len(self.features[0]), "keypoints1": len(self.features[1])}
        counts |= {"matches": len(self.candidates), "repeats": self.repeats}
        if self.matches.verified:
            counts["verified"] = len(self.matches)
        if self.truth is not None:
            counts["right"] = int(self.right(self.candidates).sum())
            if self.matches.verified:
                counts["right_verified"] = int(self.right(self.matches).sum())
        return counts

    def sentences(self) -> list[str]:
        """The counts as readable lines of text."""
        counts, matching = self.counts(), self.matching
        photos = [f"{name}: {len(one):,} keypoints" for name, one in zip(self.names, self.features, strict=True)]
        neighbours = "mutual nearest neighbours" if matching.mode == "mutual" else "nearest neighbours one way"
        ratio = "" if matching.ratio in (None, 1) else f", ratio {matching.ratio:g}"
        if ratio and matching.mode == "mutual" and matching.ratio_sides == "first":
            ratio += " seen from the first photo"
        if matching.filter is not None:
            ratio += " or AdaLAM" if ratio else ", filtered by AdaLAM"
        lines = [f"{photos[0]}, {photos[1]}, described by {self.features[0].descriptor}"]
        repeats = f"; {self.repeats:,} more at other orientations of the same places" if self.repeats else ""
        share = self._share_right("right", "matches")
        lines.append(f"{counts['matches']:,} matches: {neighbours}{ratio}{share}{repeats}")
        if matching.model is not None:
            lines.append(self._verified(matching.model, counts) + self._share_right("right_verified", "verified"))
        if self.pose is not None:
            lines += self.pose.sentences()
        return lines + self.warnings()

    def warnings(self) -> list[str]:
        """What makes the geometry doubtful, one sentence each."""
        found, warnings = len(self.matches), list[str]()
        if self.matching.model == "F" and self.on_plane >= ON_PLANE * found > 0:
            warnings.append(
                f"{self.on_plane:,} of these also fit a single homography: the photos show a plane or distant things, "
                "or the camera only rotated. The fundamental matrix is not determined; use the model H."
            )
        if self.matching.model == "E" and found < MISFIT * self.fundamental:
            warnings.append(
                f"{self.fundamental:,} matches fit one fundamental matrix, but only {found:,} fit a pose: the "
                "intrinsics are probably wrong."
            )
        if self.pose is not None and self.pose.other is not None:
            apart = rotation_angle(self.pose.rotation, self.pose.other.rotation)
            warnings.append(
                f"The matches lie on a plane, and another pose, rotated by {apart:.1f} degrees from this one, fits "
                "them as well: two photos of a plane cannot tell which is right."
            )
        if self.pose is not None and GUESSED in self.pose.sources:
            warnings.append("With a guessed focal length, the pose may be degrees off; give the intrinsics if you can.")
        return warnings

    def draw(self, lines: int = LINES, style: Style = "lines") -> Image.Image:
        """A picture of at most `lines` verified matches, each coloured by its position.

        If the truth is known, it shows the matches before verification, right ones in green and wrong ones in red. The
        style "epipolar" shows some matches with their epipolar lines, "overlay" the first photo warped onto the second
        by the homography.
        """
        if lines < 1:
            raise KeypatchError(f"lines must be 1 or more, not {lines}.")
        first, second = self.features
        if style != "lines":
            return self._draw_model(style, lines)
        if self.truth is None:
            shown, right, caption = self.matches, None, self.sentences()
        else:
            shown, right = self.candidates, self.right(self.candidates)
            caption = [*self.sentences(), "showing matches before verification"]
        photos, keypoints = (_photo(first), _photo(second)), (first.keypoints, second.keypoints)
        return draw_matches(photos, keypoints, shown, "\n".join(caption), right, lines)

    def _draw_model(self, style: Style, lines: int) -> Image.Image:
        photos, caption = (_photo(self.features[0]), _photo(self.features[1])), "\n".join(self.sentences())
        wanted = "H" if style == "overlay" else "F"
        if self.matrix is None or (self.matching.model == "H") != (style == "overlay"):
            found = "no geometry was found" if self.matrix is None else f'these have the model "{self.matching.model}"'
            raise KeypatchError(f'The picture "{style}" needs matches verified by the model {wanted}; {found}.')
        if style == "overlay":
            return draw_overlay(photos, self.matrix, caption)
        return draw_epipolar_lines(photos, (self.points0, self.points1), self._fundamental(self.matrix), caption, lines)

    def _fundamental(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """F in pixels, of a fundamental or an essential matrix."""
        if self.pose is None:
            return matrix
        here, there = (np.linalg.inv(camera.matrix) for camera in self.pose.cameras)
        return np.asarray(there.T @ matrix @ here)

    def save(self, path: str | Path, lines: int = LINES, style: Style = "lines") -> Path:
        """Write the matches as a table (.csv, .json), or at most `lines` of them as a picture (.png, .jpg)."""
        out = check_output(Path(path), TABLES + PICTURES)
        if out.suffix.lower() in TABLES:
            _write_table(out, self)
        else:
            _write_picture(out, self.draw(lines, style))
        return out

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        return as_png(self.draw())

    def _points(self, side: int, matches: Matches) -> NDArray[np.float64]:
        return self.features[side].keypoints.xy[matches.indices[:, side]]

    def _verified(self, model: Model, counts: dict[str, int]) -> str:
        if counts["matches"] < FEWEST[model]:
            return f"too few to verify: a {_MODEL_NAMES[model]} needs {FEWEST[model]} matches"
        agree = f"{counts['verified']:,} agree with one {_MODEL_NAMES[model]} within {self.matching.threshold:g} px"
        doubtful = model == "F" and counts["verified"] < BY_CHANCE
        return agree + "; unrelated photos can have as many" * doubtful

    def _share_right(self, right: str, all_: str) -> str:
        counts = self.counts()
        if self.truth is None or not counts[all_]:
            return ""
        return f"; {counts[right]:,} right ({counts[right] / counts[all_]:.1%}), within {self.truth.within:g} px"


def match(
    first: ImageLike | Features,
    second: ImageLike | Features,
    matching: Matching = Matching(),  # noqa: B008  a frozen value
    *,
    describer: Describer | str | Path = DESCRIPTOR,
    extraction: Extraction = Extraction(),  # noqa: B008  a frozen value
    intrinsics: Sequence[Intrinsics] | None = None,
    turn_by_exif: bool = False,
    pixel_limit: int = PIXEL_LIMIT,
    device: str = "auto",
    precision: str = "auto",
    progress: Progress | Callback | None = None,
) -> ImageMatches:
    """Match two images; a notebook shows the matches as a picture.

    first, second: paths, PIL images, arrays (h, w) or (h, w, 3) in RGB order, or their Features.
    describer, extraction: how images are described (see `extract`); Features are used as they are.
    intrinsics: one camera or matrix K for both images, or one for each, for the model "E", which gives the relative
        pose. Without them, the focal length comes from EXIF data, or else from the matches or a guess.
    turn_by_exif, pixel_limit: rotate files by their EXIF tag; refuse files with more pixels than this.
    device, precision: for a describer loaded by name, and for the nearest-neighbour search.

    >>> matches = kp.match("a.jpg", "b.jpg", kp.Matching(ratio=0.85), describer="rootsift")
    >>> matches
    ImageMatches(a.jpg, b.jpg: 4... matches, 4... verified)
    >>> matches.points0.shape, matches.matrix.shape
    ((4..., 2), (3, 3))
    >>> matches.save("matches.png")
    PosixPath('matches.png')
    """
    if intrinsics is not None:
        require_intrinsics(matching, intrinsics)
    progress, paths = Progress.of(progress), [Path(each) for each in (first, second) if isinstance(each, str | Path)]
    if images := sum(not isinstance(each, Features) for each in (first, second)):
        name = describer if isinstance(describer, str | Path) else describer.name
        progress.note(f"describing {counted(images, 'photo')} with {name}")  # loading it takes seconds
    if not turn_by_exif and (turned := turned_sentence({str(path): path for path in paths})):
        progress.say(turned)
    described = list[Features]()
    for image in (first, second):
        if isinstance(image, Features):
            described.append(image)
            continue
        if isinstance(image, str | Path):
            image = read_photo(Path(image), turn_by_exif=turn_by_exif, pixel_limit=pixel_limit)
        if isinstance(describer, str | Path):
            describer = load(describer, device, precision)
        described.append(extract(image, describer, extraction))
    views, keypoints = (described[0], described[1]), (described[0].keypoints, described[1].keypoints)
    found = find_matches(*views, matching, device=device)
    candidates = found.once(*keypoints)
    cameras, sources = None, (GIVEN, GIVEN)
    if matching.model == "E":
        seen = matched_places(candidates, *keypoints)
        cameras, sources = _choose_cameras((first, second), views, intrinsics, seen, matching)
    left = verify(candidates, *keypoints, matching, cameras)
    places, pose, fundamental = matched_places(left, *keypoints), None, 0
    plane, on_plane = fit_plane(*places, matching) if left.model in ("F", "E") else (None, 0)
    if cameras is not None:
        fundamental = len(verify(candidates, *keypoints, replace(matching, model="F"), cameras))
        if left.matrix is not None:
            flat = plane if on_plane >= ON_PLANE * len(left) else None
            pose = relative_pose_of(left.matrix, places, cameras, sources, matching.threshold, flat)
    return ImageMatches(
        (_name(first, "first image"), _name(second, "second image")),
        views,
        candidates,
        left,
        matching,
        repeats=len(found) - len(candidates),
        pixels=(TURNED if turn_by_exif else AS_STORED) if paths else AS_GIVEN,
        pose=pose,
        fundamental=fundamental,
        on_plane=on_plane,
    )


def _choose_cameras(
    images: tuple[ImageLike | Features, ImageLike | Features],
    views: tuple[Features, Features],
    given: Sequence[Intrinsics] | None,
    places: tuple[NDArray[np.float64], NDArray[np.float64]],
    matching: Matching,
) -> tuple[tuple[Camera, Camera], tuple[str, str]]:
    """The cameras of two images, and where their focal lengths come from."""
    if given is not None:
        first, second = (_camera_of_size(each, view) for each, view in zip((given[0], given[-1]), views, strict=True))
        return (first, second), (GIVEN, GIVEN)
    films = [read_header(Path(each)).film_focal if isinstance(each, str | Path) else 0.0 for each in images]
    first, second = (
        header_camera(Header(view.image_size, 1, film), "PINHOLE") for view, film in zip(views, films, strict=True)
    )
    if not any(films) and views[0].image_size == views[1].image_size:
        refined = refine_focal(places, (first, second), poselib_options(matching))
        if refined is not None:
            return refined, (REFINED, REFINED)
    sources = [EXIF if film else GUESSED for film in films]
    return (first, second), (sources[0], sources[1])


def _camera_of_size(given: Intrinsics, view: Features) -> Camera:
    """The camera of an image; KeypatchError if it is the camera of images of another size."""
    if not isinstance(given, Camera):
        return Camera.from_matrix(given, view.image_size)
    if (given.width, given.height) != view.image_size:
        width, height = view.image_size
        raise KeypatchError(
            f"The camera is for photos of {given.width} x {given.height} pixels, but the photo has {width} x {height}. "
            "Scale its parameters, or give the camera of this photo."
        )
    return given


def draw(what: ImageMatches | Features, out: str | Path | None = None) -> Image.Image:
    """The picture of matches or features that a notebook shows, also written to `out` if given.

    >>> kp.draw(kp.extract("a.jpg", "rootsift")).size
    (1800, 789)
    """
    picture = what.draw()
    if out is not None:
        _write_picture(check_output(Path(out), PICTURES), picture)
    return picture


def match_features(
    first: Features,
    second: Features,
    matching: Matching = Matching(),  # noqa: B008  a frozen value
    intrinsics: Sequence[Intrinsics] | None = None,
    device: str = "auto",
) -> tuple[Matches, Matches]:
    """All matches, and those left by the verification; without one they are the same.

    The geometry is estimated from every two places once. All matches of those that agree with it are left, for each
    orientation of a place is a keypoint of its own in match files, from which COLMAP makes its tracks.
    """
    found = find_matches(first, second, matching, device=device)
    keypoints = first.keypoints, second.keypoints
    left, place = verify(found.once(*keypoints), *keypoints, matching, intrinsics), found.places(*keypoints)
    agree = np.isin(place, place[np.isin(found.indices[:, 0], left.indices[:, 0])])
    return found, replace(found.take(agree), verified=left.verified, model=left.model, matrix=left.matrix)


def check_output(path: Path, suffixes: Sequence[str]) -> Path:
    """The path; KeypatchError if its name is none for such a file or its folder is missing. Call it before the work."""
    if path.suffix.lower() not in suffixes:
        raise KeypatchError(f"Matches are written as {' or '.join(suffixes)}, not as {path.name}. Choose another name.")
    require_place(path)
    return path


def _name(image: ImageLike | Features, otherwise: str) -> str:
    return Path(image).name if isinstance(image, str | Path) else otherwise


def _photo(features: Features) -> Photo:
    """The photograph, or a grey sheet of its size where it is not at hand."""
    width, height = features.image_size
    return np.full((max(height, 1), max(width, 1)), 96, np.uint8) if features.image is None else features.image


def _write_picture(path: Path, picture: Image.Image) -> None:
    with write_atomically(path) as file:
        picture.save(file, "PNG" if path.suffix.lower() == ".png" else "JPEG", quality=92)


def _write_table(path: Path, matched: ImageMatches) -> None:
    """One row per match that is left; JSON also has the counts, the settings and the matrix."""
    rows = _rows(matched)
    if path.suffix.lower() == ".csv":
        with write_atomically(path, "w") as file:
            columns = ["image0", "image1", *(rows[0] if rows else _COLUMNS), "pixels"]
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            first, second = map(csv_text, matched.names)
            writer.writerows({"image0": first, "image1": second, **row, "pixels": matched.pixels} for row in rows)
        return
    value = {
        **FORMAT.head(),
        "images": matched.names,
        "pixels": matched.pixels,
        "convention": "x, y in pixels, the centre of the top-left pixel is (0, 0); a match of two places counts once",
        "descriptor": matched.features[0].descriptor,
        "counts": matched.counts(),
        "settings": matched.matching.settings(),
        "matrix": None if matched.matrix is None else matched.matrix.tolist(),
        "pose": matched.pose and matched.pose.to_json(),
        "warnings": matched.warnings(),
        "matches": rows,
        "provenance": provenance().to_json(),
    }
    write_json(path, value)


def _rows(matched: ImageMatches) -> list[dict[str, Any]]:
    table = np.column_stack([matched.points0, matched.points1, matched.scores]).tolist()
    rows = [
        dict(zip(_COLUMNS, (*pair, *row), strict=True))
        for pair, row in zip(matched.matches.indices.tolist(), table, strict=True)
    ]
    if matched.pose is not None:
        for row, point in zip(rows, matched.pose.points.tolist(), strict=True):
            row |= zip("XYZ", point if np.isfinite(point[0]) else (None, None, None), strict=True)
    if matched.truth is not None:
        for row, right in zip(rows, matched.right(matched.matches).tolist(), strict=True):
            row["right"] = int(right)
    return rows
