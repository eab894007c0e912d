"""Photos become a patch set: what `keypatch build` does."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keypatch.building.methods import METHODS, method_name
from keypatch.building.observations import Finder, Found, Method, Observations, Work, Writer, settle
from keypatch.building.options import FORMAT, STATE, TEST, TRAIN, UNFINISHED, Building
from keypatch.building.state import StateFile
from keypatch.building.summary import tell_card
from keypatch.building.tracks import Tracks
from keypatch.engines import Parallel
from keypatch.errors import DataError, KeypatchError
from keypatch.features.extraction import DESCRIPTOR, Extraction
from keypatch.files import hash_file, make_folder, read_json
from keypatch.images import Photo, check_photo, find_photos
from keypatch.matching.matching import PHOTO_TYPES, Matching
from keypatch.patches.patch_set import Pairs, read_set_card, write_set_card
from keypatch.progress import Callback, Progress, StopWish, counted, interruptible, track
from keypatch.reconstruction.mapping import Mapping as MapperOptions
from keypatch.settings import choose_from, field_names, to_plain

if TYPE_CHECKING:
    from keypatch.describers.protocol import Describer

PAGE, SETS = "build.html", "sets"
_STATE = StateFile(
    STATE,
    FORMAT,
    "a keypatch build",
    "was built otherwise",
    "Choose another folder; --model {folder}/reconstruction uses the same model again, if it has one.",
)
_OF_A_SET = ("*.bmp", "info.txt", "interest.txt", "m50_*.txt", "hard_*.txt", "card.json", "keypatch-*.npy")


@dataclass(frozen=True)
class BuiltSet:
    """What `build` wrote: one patch set, or a training and a test set.

    >>> made = kp.build("photos", "mine", kp.Tracks(), kp.Building(held_out=0.2))  # doctest: +SKIP
    >>> kp.train("hynet", [made.sets["train"]], "runs/mine")  # doctest: +SKIP
    """

    folder: Path
    sets: Mapping[str, Path]  # by the name of the part; "" where there is one
    cards: Mapping[str, Mapping[str, Any]]
    skipped: Sequence[str]  # photos that could not be read, a sentence each

    @property
    def page(self) -> Path:
        return self.folder / PAGE

    @property
    def warnings(self) -> list[str]:
        """The warnings on the cards, each once."""
        return list(dict.fromkeys(text for card in self.cards.values() for text in card["warnings"]))

    def facts(self) -> dict[str, str]:
        """The numbers as text, by name."""
        facts = dict[str, str]()
        for part, card in self.cards.items():
            counts, after = card["counts"], f" ({part})" if part else ""
            facts[f"patches{after}"] = f"{counts['patches']:,} in {counts['classes']:,} classes"
            facts[f"photos{after}"] = f"{counts['photos']:,}"
            facts |= {f"{name}{after}": text for name, text in tell_card(card)}
        return facts


def build(
    photos: str | Path | Sequence[str | Path],
    out: str | Path,
    method: Finder | Writer | str = Tracks(),  # noqa: B008  a frozen value
    building: Building = Building(),  # noqa: B008
    *,
    describer: Describer | str | Path = DESCRIPTOR,
    extraction: Extraction = Extraction(),  # noqa: B008
    matching: Matching | None = None,
    mapping: MapperOptions = MapperOptions(),  # noqa: B008
    parallel: Parallel = Parallel(),  # noqa: B008
    device: str = "auto",
    precision: str = "auto",
    progress: Progress | Callback | None = None,
) -> BuiltSet:
    """Build a patch set from photos, in PhotoTour layout with a card and a page, in the folder `out`.

    photos: images, folders, or .txt lists of names; for `Sequences`, folders of sequences.
    method: `Tracks` (3D points of a model), `PhotoPairs` (two views each), `Homographies` (random views of single
        photos), `Sequences` (HPatches strips of photos with known homographies), or the name of one with its default
        options.
    matching: as for `match_pairs`; None uses the method's own.
    parallel: processes or a Ray cluster to describe and match on.

    >>> kp.build("photos", "mine", kp.Tracks(track_length=4), kp.Building(held_out=0.2))  # doctest: +SKIP

    Unreadable photos are reported and skipped.

    Raises:
        KeypatchError: too few photos can be read, an option has no effect with the method, or a step found nothing
            (the message names it).
        Interrupted: Ctrl-C; the same call resumes and gives the same patches.
    """
    progress = Progress.of(progress)
    if isinstance(method, str):
        if method not in METHODS:
            raise KeypatchError(f'There is no method "{method}".{choose_from(method, METHODS)}')
        method = METHODS[method]()
    given = [Path(each) for each in ([photos] if isinstance(photos, str | Path) else photos)]
    groups = {"descriptor": describer, "extraction": extraction, "matching": matching, "mapping": mapping}
    _refuse_unused(method, building, groups)
    if "descriptor" in method.unused and parallel != Parallel():
        raise KeypatchError(
            f"--method {method_name(method)} does not describe photos: leave out --workers and --engine."
        )
    if isinstance(method, Writer):
        (named, files), root = method.inputs(given), given[0]
    else:
        (named, root), files = _named(given, building.root), []
    folder = Path(out)
    _require_enough(method, named, [], given)
    if building.patch_sigmas is None:
        building = replace(building, patch_sigmas=method.side)
    settings = _settings(method, building, groups, named, files)
    with interruptible(f"{folder} has what was saved so far"), _STATE.hold(folder, settings) as is_finished:
        if is_finished:
            progress.note(f"{folder} is already built.")
            return _read(folder)
        usable, skipped = _check_photos(named, building, progress)
        _require_enough(method, usable, skipped, given)
        work = Work(
            given,
            usable,
            root,
            folder,
            building,
            extraction,
            matching,
            mapping,
            describer,
            device,
            precision,
            progress,
            parallel,
        )
        if isinstance(method, Writer):
            parts = _write_own(method, work, settings, skipped)
        else:
            parts = _write(work, settle(method.find(work), building), settings, skipped)
        _finish(folder, parts, settings, skipped)
        return _read(folder)


def _refuse_unused(method: Method, building: Building, groups: Mapping[str, Any]) -> None:
    """KeypatchError if something was chosen that would do nothing."""
    usual = {"descriptor": DESCRIPTOR, "extraction": Extraction(), "matching": None, "mapping": MapperOptions()}
    for name in sorted(method.unused):
        before, now, named = (usual, groups, name) if name in usual else (vars(Building()), vars(building), name)
        if now[name] == before[name]:
            continue
        if name in ("extraction", "mapping"):
            fields = field_names(now[name])
            named = next(each for each in fields if getattr(now[name], each) != getattr(before[name], each))
        raise KeypatchError(
            f"--{named.replace('_', '-')} has no effect with --method {method_name(method)}. Leave it out."
        )


def _named(given: Sequence[Path], root: str | Path | None) -> tuple[list[Photo], Path]:
    """The photos, and the folder that their names are below: the given one, or the nearest above all."""
    photos = find_photos(given, root)
    if root is None:
        place = Path(os.path.commonpath([photo.path.absolute().parent for photo in photos]))
        root = given[0] if len(given) == 1 and given[0].is_dir() else place
        photos = find_photos(given, root)
    return photos, Path(root)


def _require_enough(method: Method, photos: Sequence[Photo], skipped: Sequence[str], given: Sequence[Path]) -> None:
    if len(photos) < method.least_photos:
        where = ", ".join(map(str, given))
        lost = f" ({counted(len(skipped), 'photo')} could not be read)" if skipped else ""
        only = f"only {photos[0].name}" if photos else "none"
        need = "two photos" if method.least_photos == 2 else "one photo"
        raise KeypatchError(f"Patches of one point come from {need} or more, but {where} has {only}{lost}.")


def _check_photos(photos: Sequence[Photo], building: Building, progress: Progress) -> tuple[list[Photo], list[str]]:
    """The photos that are whole, and what is wrong with the others."""
    usable, skipped = list[Photo](), list[str]()
    for photo in track(photos, "photos checked", progress):
        try:
            check_photo(photo.path, building.pixel_limit)
            usable.append(photo)
        except DataError as error:
            skipped.append(str(error))
            progress.say(f"Skipped: {error}")
    return usable, skipped


def _settings(
    method: Method,
    building: Building,
    groups: Mapping[str, Any],
    photos: Sequence[Photo],
    files: Sequence[Path],
) -> dict[str, Any]:
    """What the set depends on, as plain values by name; `files` are such beside the photos."""
    used = {name: whole for name, whole in groups.items() if name not in method.unused and whole is not None}
    describer = used.pop("descriptor", None)
    values = {
        f"{group}.{field}": str(value) if isinstance(value, Path) else value
        for group, whole in {method_name(method): method, "building": building, **used}.items()
        for field, value in to_plain(whole, PHOTO_TYPES).items()
        if group != "building" or field not in method.unused
    }
    sizes = repr([(photo.name, photo.path.stat().st_size) for photo in photos if photo.path.is_file()])
    digest = hashlib.sha256(sizes.encode(errors="replace"))
    for path in files:
        digest.update(hash_file(path).encode())
    head: dict[str, Any] = {"method": method_name(method)}
    if describer is not None:
        head["descriptor"] = str(describer if isinstance(describer, str | Path) else describer.name)
    return head | {"photos": len(photos), "photos.hash": digest.hexdigest()[:16]} | values


def _write(work: Work, found: Found, settings: Mapping[str, Any], skipped: Sequence[str]) -> list[str]:
    """Cuts, splits, judges and writes what was found into the folder of unfinished work; the names of the parts."""
    from keypatch.building.cutting import cut_into
    from keypatch.building.page import show_part, write_build_page

    building, progress = work.building, work.progress
    parts, left_out = _split(found, building)
    joined = replace(found, rows=Observations.join([rows for _, rows in parts]))
    unfinished = make_folder(work.folder / UNFINISHED)
    patches = cut_into(unfinished, joined, building.side, progress)
    used = np.unique(joined.rows.image_id // found.views).tolist()
    progress.note(f"checking the quality of {len(patches):,} patches")
    hashed = _sources([found.photos[number] for number in used], work)
    sources, shown, first = dict(zip(used, hashed, strict=True)), list[Any](), 0
    for number, (part, rows) in enumerate(parts):
        mine = patches[first : first + len(rows)]
        first += len(rows)
        rng = np.random.default_rng([building.seed, number])
        card = _write_part(unfinished / SETS / part, found, rows, mine, sources, settings, left_out, part, rng)
        shown.append(show_part(card, mine, rows, building.seed))
    write_build_page(unfinished / PAGE, work.folder.resolve().name, shown, skipped)
    return [part for part, _ in parts]


def _write_own(method: Writer, work: Work, settings: Mapping[str, Any], skipped: Sequence[str]) -> list[str]:
    """The same for a method with a layout of its own."""
    from keypatch.building.card import make_strips_card
    from keypatch.building.page import show_strips, write_build_page

    unfinished = work.folder / UNFINISHED
    written = method.write(work, unfinished / "kept", unfinished / SETS)
    card = make_strips_card(written, _sources(written.photos, work), settings)
    write_set_card(unfinished / SETS, card)
    lost = [*skipped, *card.get("sequences_left_out", {}).values()]
    write_build_page(unfinished / PAGE, work.folder.resolve().name, [show_strips(card, written.shown)], lost)
    return [""]


def _sources(photos: Sequence[Photo], work: Work) -> list[dict[str, str]]:
    """The photos as a card names its sources."""
    from keypatch.patches.sources import find_sources

    building = work.building
    return [
        find_sources([photo], building.terms, building.pixel_limit)[0].to_json()
        for photo in track(photos, "photos hashed", work.progress)
    ]


def _finish(folder: Path, parts: Sequence[str], settings: Mapping[str, Any], skipped: Sequence[str]) -> None:
    """Everything appears in the folder at once."""
    _swap_in(folder, parts)
    _STATE.finish(folder, settings, skipped=list(skipped))
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)


def _split(found: Found, building: Building) -> tuple[list[tuple[str, Observations]], dict[str, int]]:
    """The rows of each part by its name, points numbered from 0; "" is the whole."""
    from keypatch.building.splitting import BORDER, split_points

    rows, left_out = found.rows, dict(found.counts)
    if rows.points < 2:
        told = ", ".join(f"{count:,} {name}" for name, count in left_out.items() if count)
        raise KeypatchError(
            f"The photos gave {counted(rows.points, 'point')} with two patches, too few for a patch set. Left out: "
            f"{told}."
        )
    if not building.held_out:
        return [("", rows)], left_out
    rng = np.random.default_rng(building.seed)
    part = split_points(rows, building.held_out, building.side, rng)
    left_out["points at the border of the held-out part"] = len(np.unique(rows.point_id[part == BORDER]))
    return [(name, rows.take(part == side).numbered()) for side, name in enumerate((TRAIN, TEST))], left_out


def _write_part(
    folder: Path,
    found: Found,
    rows: Observations,
    patches: NDArray[np.uint8],
    sources: Mapping[int, Mapping[str, str]],
    settings: Mapping[str, Any],
    left_out: Mapping[str, int],
    part: str,
    rng: np.random.Generator,
) -> Mapping[str, Any]:
    """Writes the set of one part; its card."""
    from keypatch.building.card import QUARTER, make_card, measure
    from keypatch.building.observations import coinciding_points
    from keypatch.patches.pair_lists import draw_pair_lists
    from keypatch.patches.phototour import write_phototour

    shutil.rmtree(folder, ignore_errors=True)  # of a build that was stopped here
    coinciding = coinciding_points(rows, QUARTER)
    size = int(settings["building.list_size"]) // 2
    lists: Sequence[Pairs] = draw_pair_lists(patches, rows.point_id, size, rng, coinciding)
    quality = measure(patches, rows, lists, rng, found)
    card = make_card(found, rows, quality, sources, settings, left_out, part or None)
    write_phototour(
        folder, patches, rows.point_id, image_id=rows.image_id, keypoints=rows.keypoints, pairs=lists, card=card
    )
    return card


def _swap_in(folder: Path, parts: Sequence[str]) -> None:
    """Moves the finished files to their places; what a build that was stopped in between had moved is replaced."""
    unfinished = folder / UNFINISHED
    with StopWish():
        for part in parts:
            place = make_folder(folder / part)
            for old in (path for pattern in _OF_A_SET for path in place.glob(pattern)):
                old.unlink()
            for path in sorted((unfinished / SETS / part).iterdir()):
                if (place / path.name).is_dir():
                    shutil.rmtree(place / path.name)
                path.replace(place / path.name)
        (unfinished / PAGE).replace(folder / PAGE)


def _read(folder: Path) -> BuiltSet:
    """What a finished folder holds."""
    parts = [part for part in (TRAIN, TEST) if (folder / part / "info.txt").exists()] or [""]
    skipped = read_json(folder / STATE).get("skipped", [])
    return BuiltSet(
        folder, {part: folder / part for part in parts}, {part: read_set_card(folder / part) for part in parts}, skipped
    )
