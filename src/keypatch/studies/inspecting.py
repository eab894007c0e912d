"""What a file, a folder or a descriptor's name is, what is in it and what is wrong with it.

Looking at runs and features needs torch, which takes seconds to come: they are imported where they are found.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from safetensors import SafetensorError, safe_open

from keypatch.errors import DataError, KeypatchError
from keypatch.features.feature_files import open_h5
from keypatch.features.photos import LIST_SUFFIX, SUFFIXES
from keypatch.files import reason
from keypatch.patches.image_folders import has_class_folders
from keypatch.patches.opening import EMBEDDED, find_layout
from keypatch.reconstruction.output_folder import REPORT
from keypatch.studies.inspecting_models import look_at_database, look_at_model, look_at_reconstruction
from keypatch.studies.inspecting_patches import Findings, look_at_hpatches, look_at_phototour
from keypatch.studies.inspecting_photos import (
    has_photos,
    is_photo_list,
    look_at_class_folders,
    look_at_photos,
    usable_classes,
)
from keypatch.zoo import names

Look = Callable[[Path], Findings]


@dataclass(frozen=True)
class Inspection:
    """`problems` is empty where the file or folder can be used as it is."""

    path: str
    kind: str
    facts: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def inspect(path: str | Path) -> Inspection:
    """Look at a file, a folder or a descriptor's name; faults inside it are reported, not raised.

    Raises:
        DataError: there is nothing at this path.
    """
    card = next((card for card in names() if card.name == path), None)  # before a file of that name, as for `find`
    if card is not None:
        from keypatch.studies.inspecting_runs import look_at_zoo

        kind = "shipped descriptor" if card.network else "descriptor made by hand"
        return _collect(card.name, kind, partial(look_at_zoo, card), Path(card.name))
    if str(path) in EMBEDDED:
        from keypatch.patches.embedded import embedded_folder

        folder = embedded_folder(EMBEDDED[str(path)])
        return _collect(str(path), "patch set made from embedded photographs", look_at_phototour, folder)
    place = Path(path).expanduser()
    if not place.exists():
        raise DataError(_nothing_called(str(path)))
    kind, look = _kind_of_folder(place) if place.is_dir() else _kind_of_file(place)
    return _collect(str(path), kind, look, place)


def _nothing_called(name: str) -> str:
    descriptors = [card.name for card in names()]
    close = get_close_matches(name, [*descriptors, *EMBEDDED], n=1)
    hint = f' Did you mean "{close[0]}"?' if close else ""
    return (
        f"{name}: there is no such file or folder.{hint} "
        f"Known by name are the descriptors {', '.join(descriptors)} and the sets {', '.join(EMBEDDED)}."
    )


def _collect(name: str, kind: str, look: Look, place: Path) -> Inspection:
    """What was found before a fault is kept: it tells the user how far the file is right."""
    facts: dict[str, str] = {}
    problems: list[str] = []
    try:
        for finding in look(place):
            if isinstance(finding, KeypatchError):
                problems.append(str(finding))
            else:
                facts[finding[0]] = finding[1]
    except KeypatchError as fault:
        problems.append(str(fault))
    return Inspection(name, kind, facts, tuple(problems))


def _kind_of_folder(folder: Path) -> tuple[str, Look]:
    if (folder / "recipe.toml").exists():
        from keypatch.studies.inspecting_runs import look_at_run

        return "training run", look_at_run
    if (folder / REPORT).exists():
        return "reconstruction", look_at_reconstruction
    if any((folder / f"cameras{end}").exists() and (folder / f"images{end}").exists() for end in (".txt", ".bin")):
        return "COLMAP model", look_at_model
    try:
        layout = find_layout(folder)
    except DataError as error:
        parts = has_class_folders(folder)  # the error then names the one to give
        if has_photos(folder, below=not parts):
            return "folder of photos", look_at_photos
        neither = " It is no training run either (there is no recipe.toml), and there are no photos in it."
        return "folder of an unknown kind", _fault(f"{error}{'' if parts else neither}")
    if layout == "hpatches":
        return "patch strips (HPatches layout)", look_at_hpatches
    if layout == "images" and (classes := usable_classes(folder)):
        return "images in class folders", partial(look_at_class_folders, classes)
    if layout == "phototour" and _is_phototour(folder):
        return "patch set (PhotoTour layout)", look_at_phototour
    return "folder of photos", look_at_photos


def _is_phototour(folder: Path) -> bool:
    """Whether sheets or info.txt, which may be missing, make it a patch set: photos too may be bmp files."""
    info, sheets = (folder / "info.txt").exists(), any(folder.glob("*.bmp"))
    return any(folder.glob("patches*.bmp")) or (info and (sheets or not has_photos(folder)))


def _kind_of_file(file: Path) -> tuple[str, Look]:
    suffix = file.suffix.lower()
    if suffix in (".toml", ".pth", ".pt", ".params"):
        from keypatch.studies.inspecting_runs import look_at_published, look_at_recipe

        return ("recipe", look_at_recipe) if suffix == ".toml" else ("published weights", look_at_published)
    if suffix == ".json":
        return _kind_of_json(file)
    if suffix == ".safetensors":
        return _kind_of_safetensors(file)
    if suffix in SUFFIXES:
        return "photo", look_at_photos
    if suffix == LIST_SUFFIX and is_photo_list(file):
        return "list of photos", look_at_photos
    head = _first_bytes(file)
    if head.startswith(b"\x89HDF") or suffix in (".h5", ".hdf5"):
        return _kind_of_h5(file)
    if head.startswith(b"SQLite format 3"):
        return "COLMAP database", look_at_database
    return "file of an unknown kind", _unknown_file


def _first_bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as content:
            return content.read(16)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {reason(error)}.") from error


def _kind_of_h5(file: Path) -> tuple[str, Look]:
    found = set[str]()
    try:
        with open_h5(file) as content:
            kind = content.attrs.get("format")
            content.visit(lambda name: found.add(name.rpartition("/")[2]))
    except DataError as error:
        return "unreadable HDF5 file", _fault(str(error))
    from keypatch.studies.inspecting_features import look_at_features, look_at_matches

    if kind == "keypatch-features" or (kind is None and "keypoints" in found):
        return "feature file" if kind else "feature file (hloc's layout)", look_at_features
    if kind == "keypatch-matches" or (kind is None and "matches0" in found):
        return "match file" if kind else "match file (hloc's layout)", look_at_matches
    return "HDF5 file of an unknown kind", _fault(f"{file} holds neither keypoints nor matches of photos.")


def _kind_of_json(file: Path) -> tuple[str, Look]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return "unreadable JSON file", _fault(f"{file} cannot be read as JSON ({error}). Write or copy it again.")
    from keypatch.studies.inspecting_runs import look_at_card, look_at_result

    kind = value.get("format") if isinstance(value, dict) else None
    if kind == "keypatch-result":
        return "result", look_at_result
    if kind == "keypatch-card":
        return "card of shipped weights", look_at_card
    return "JSON file of an unknown kind", _unknown_file


def _kind_of_safetensors(file: Path) -> tuple[str, Look]:
    try:
        with safe_open(file, framework="np") as content:
            kind = (content.metadata() or {}).get("format")
    except (SafetensorError, OSError) as error:
        fault = f"{file} cannot be read ({error}). It may be cut off: copy it again."
        return "unreadable safetensors file", _fault(fault)
    from keypatch.studies.inspecting_runs import look_at_checkpoint, look_at_published, look_at_weights

    if kind == "keypatch-checkpoint":
        return "checkpoint of a training run", look_at_checkpoint
    if kind == "keypatch-weights":
        return "weights", look_at_weights
    return "published weights", look_at_published


def _fault(sentence: str) -> Look:
    def look(place: Path) -> Findings:
        yield DataError(sentence)

    return look


def _unknown_file(file: Path) -> Findings:
    yield "size", f"{file.stat().st_size:,} bytes"
    yield DataError(
        f"{file} is no file that keypatch reads: weights and checkpoints end in .safetensors, .pth, .pt or .params, "
        f"recipes in .toml, results in .json, features and matches in .h5, photos in {', '.join(sorted(SUFFIXES))}."
    )
