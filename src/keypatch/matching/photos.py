"""Two photographs become matches, a picture and a table: what `keypatch match a.jpg b.jpg` does."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from keypatch.detection import Detector, Rule, make_detector
from keypatch.errors import KeypatchError
from keypatch.features import Extraction, extract, read_photo
from keypatch.features.photos import PIXEL_LIMIT
from keypatch.files import write_atomically
from keypatch.matching.drawing import LINES, Photo, draw_matches
from keypatch.matching.match_tables import require_table, write_table
from keypatch.matching.matched import MatchedPhotos, Truth
from keypatch.matching.matches import Model
from keypatch.matching.matching import Matching, match_features
from keypatch.matching.neighbours import Mode, Sides
from keypatch.matching.verifying import Estimator
from keypatch.zoo.finding import find

PICTURES = (".png", ".jpg", ".jpeg")


def match(
    first: str | Path,
    second: str | Path,
    descriptor: str | Path = "hynet-notredame",
    *,
    out: str | Path | None = None,
    draw: str | Path | None = None,
    lines: int = LINES,
    homography: ArrayLike | None = None,
    within: float = Truth.within,
    mode: Mode = Matching.mode,
    ratio: float | None = Matching.ratio,
    ratio_sides: Sides = Matching.ratio_sides,
    model: Model | None = Matching.model,
    estimator: Estimator = Matching.estimator,
    threshold: float = Matching.threshold,
    intrinsics: Sequence[ArrayLike] | None = None,
    seed: int = Matching.seed,
    neighbours: str = Matching.neighbours,
    detector: str | Detector = "dog",
    keypoints: int | None = Extraction.keypoints,
    rule: Rule = Extraction.rule,
    max_size: int | None = Extraction.max_size,
    upright: bool = Extraction.upright,
    turn_by_exif: bool = False,
    pixel_limit: int = PIXEL_LIMIT,
    device: str = "auto",
    precision: str = "auto",
    progress: Callable[[str], None] = lambda _: None,
) -> MatchedPhotos:
    """Describe two photos and match them.

    out: a table of the matches, .csv or .json.
    draw: a picture of at most `lines` of them, .png or .jpg.
    homography: the true one, x1 ~ H x0; matches within `within` pixels of it are counted and drawn as right.
    mode, ratio, ratio_sides, neighbours: which neighbours match (`match_descriptors`).
    model, estimator, threshold, intrinsics, seed: the geometry they must agree with (`verify`); None for no model.
    progress: told what is being done.
    The others choose the features as in `describe`.
    """
    matching = Matching(mode, ratio, ratio_sides, model, estimator, threshold, seed, neighbours, device)
    matching.check_intrinsics(intrinsics)
    truth = None if homography is None else Truth(np.asarray(homography, np.float64), within)
    _check_outputs(out, draw, lines)
    chosen = make_detector(detector) if isinstance(detector, str) else detector
    extraction = Extraction(chosen, keypoints, rule, max_size, upright)
    photo0, photo1 = (read_photo(Path(p), turn_by_exif=turn_by_exif, pixel_limit=pixel_limit) for p in (first, second))
    if Path(first).samefile(second):
        progress("both photos are the same file")
    progress(f"describing 2 photos with {descriptor}")  # torch takes seconds to come
    describer = find(descriptor, device, precision)
    features = extract(photo0, describer, extraction), extract(photo1, describer, extraction)
    progress("matching")
    candidates, left = match_features(*features, matching, intrinsics)
    names = Path(first).name, Path(second).name
    result = MatchedPhotos(names, features, candidates, left, matching, truth)
    if out is not None:
        write_table(Path(out), result)
    if draw is not None:
        _draw(Path(draw), (photo0, photo1), result, lines)
    return result


def _draw(path: Path, photos: tuple[Photo, Photo], result: MatchedPhotos, lines: int) -> None:
    """Matches before verification in green and red where the truth is known, else those left by it."""
    keypoints = result.features[0].keypoints, result.features[1].keypoints
    shown = result.matches if result.truth is None else result.candidates
    right = None if result.truth is None else result.right(shown)
    before = [] if result.truth is None else ["drawn are matches before verification"]
    caption = "\n".join([*result.sentences(), *before])
    picture = draw_matches(photos, keypoints, shown, caption, right, lines)
    with write_atomically(path) as file:
        picture.save(file, "PNG" if path.suffix.lower() == ".png" else "JPEG", quality=92)


def _check_outputs(out: str | Path | None, draw: str | Path | None, lines: int) -> None:
    """Before the work, not after it."""
    if out is not None:
        require_table(Path(out))
    if draw is not None and Path(draw).suffix.lower() not in PICTURES:
        raise KeypatchError(f"A picture is written as {', '.join(PICTURES)}, not as {Path(draw).name}.")
    for path in (out, draw):
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise KeypatchError(f"{path} cannot be written: there is no folder {Path(path).parent}. Create it first.")
    if lines < 1:
        raise KeypatchError(f"{lines} lines were asked for; draw at least one.")
