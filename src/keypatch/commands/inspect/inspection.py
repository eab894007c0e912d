"""What a file, a folder or a descriptor's name is, what is in it and what is wrong with it.

Looking at runs and features needs torch, which takes seconds to come: they are imported where they are found.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from keypatch.building.options import STATE
from keypatch.commands.adapt.options import STATE as ADAPTATION
from keypatch.commands.inspect.patches import Findings, look_at_build, look_at_hpatches, look_at_phototour
from keypatch.commands.inspect.photos import (
    has_photos,
    is_photo_list,
    look_at_class_folders,
    look_at_database,
    look_at_model,
    look_at_photos,
    look_at_reconstruction,
    usable_classes,
)
from keypatch.errors import DataError, KeypatchError
from keypatch.features.feature_files import group_names, open_h5, read_attribute
from keypatch.features.store import has_store
from keypatch.files import read_head, read_json, reading
from keypatch.images import LIST_SUFFIX, SUFFIXES
from keypatch.patches.image_folders import has_class_folders
from keypatch.patches.layouts import EMBEDDED, find_layout
from keypatch.reconstruction.result import REPORT
from keypatch.settings import did_you_mean
from keypatch.storage import Place, is_address
from keypatch.zoo import names

Look = Callable[[Path], Findings]


@dataclass(frozen=True)
class Inspection:
    """What a file or folder is; `problems` is empty if it can be used as it is.

    >>> kp.inspect("rootsift").problems
    ()
    """

    path: str
    kind: str
    facts: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def inspect(path: str | Path) -> Inspection:
    """Inspect a file, a folder or a descriptor's name; problems inside it are reported, not raised.

    >>> kp.inspect("a.jpg").kind
    'photo'

    Raises:
        DataError: there is nothing at this path.
    """
    card = next((card for card in names() if card.name == path), None)  # before a file of that name, as for `load`
    if card is not None:
        from keypatch.commands.inspect.runs import look_at_zoo

        kind = "shipped descriptor" if card.network else "hand-crafted descriptor"
        return _collect(card.name, kind, partial(look_at_zoo, card), Path(card.name))
    if str(path) in EMBEDDED:
        from keypatch.patches.embedded import embedded_folder

        folder = embedded_folder(EMBEDDED[str(path)])
        return _collect(str(path), "patch set made from embedded photographs", look_at_phototour, folder)
    if is_address(path):
        kind, look = _kind_of_h5(str(path))
        return _collect(str(path), kind, lambda _: look(str(path)), Path(str(path)))
    place = Path(path).expanduser()
    if not place.exists():
        descriptors = [card.name for card in names()]
        raise DataError(
            f"{path}: there is no such file or folder.{did_you_mean(str(path), [*descriptors, *EMBEDDED])} Descriptors "
            f"known by name: {', '.join(descriptors)}; patch sets: {', '.join(EMBEDDED)}."
        )
    try:
        kind, look = _kind_of_folder(place) if place.is_dir() else _kind_of_file(place)
    except DataError as error:
        return Inspection(str(path), "unreadable file", problems=(str(error),))
    return _collect(str(path), kind, look, place)


def _collect(name: str, kind: str, look: Look, place: Path) -> Inspection:
    """What was found before a fault is kept: it tells the user how far the file is right."""
    facts: dict[str, str] = {}
    problems: list[str] = []
    try:
        with reading(place, kind):
            for finding in look(place):
                if isinstance(finding, KeypatchError):
                    problems.append(str(finding))
                else:
                    facts[finding[0]] = finding[1]
    except KeypatchError as fault:
        problems.append(str(fault))
    return Inspection(name, kind, facts, tuple(problems))


def _kind_of_folder(folder: Path) -> tuple[str, Look]:
    if (folder / ADAPTATION.name).exists():
        from keypatch.commands.inspect.runs import look_at_adaptation

        return "descriptor adapted to photos", look_at_adaptation
    if has_store(folder):
        return _kind_of_h5(folder)
    if (folder / "recipe.toml").exists():
        from keypatch.commands.inspect.runs import look_at_run

        return "training run", look_at_run
    if (folder / REPORT).exists():
        return "reconstruction", look_at_reconstruction
    if (folder / STATE).exists():
        return "patch set built from photos", look_at_build
    if any((folder / f"cameras{end}").exists() and (folder / f"images{end}").exists() for end in (".txt", ".bin")):
        return "COLMAP model", look_at_model
    try:
        layout = find_layout(folder)
    except DataError as error:
        parts = has_class_folders(folder)  # the error then names the one to give
        if has_photos(folder, below=not parts):
            return "folder of photos", look_at_photos
        neither = " It is not a training run either (there is no recipe.toml), and there are no photos in it."
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
        from keypatch.commands.inspect.runs import look_at_published, look_at_recipe

        return ("recipe", look_at_recipe) if suffix == ".toml" else ("published weights", look_at_published)
    if suffix == ".onnx":
        from keypatch.commands.inspect.runs import look_at_onnx

        return "descriptor in ONNX", look_at_onnx
    if suffix == ".json":
        return _kind_of_json(file)
    if suffix == ".safetensors":
        return _kind_of_safetensors(file)
    if suffix in SUFFIXES:
        return "photo", look_at_photos
    if suffix == LIST_SUFFIX and is_photo_list(file):
        return "list of photos", look_at_photos
    head = read_head(file)
    if head.startswith(b"\x89HDF") or suffix in (".h5", ".hdf5"):
        return _kind_of_h5(file)
    if head.startswith(b"SQLite format 3"):
        return "COLMAP database", look_at_database
    return "file of an unknown kind", _unknown_file


def _kind_of_h5(file: Place) -> tuple[str, Callable[[Any], Findings]]:
    with open_h5(file) as content:
        stated = read_attribute(file, content, "format")
        kind = None if stated is None else str(stated)
        found = [key for key in ("keypoints", "matches0") if group_names(content, key)]
    from keypatch.commands.inspect.features import look_at_features, look_at_matches

    if is_address(file) or Path(file).is_dir():
        features = kind == "keypatch-features"
        return (f"store of {'features' if features else 'matches'}", look_at_features if features else look_at_matches)
    if kind == "keypatch-features" or (kind is None and "keypoints" in found):
        return "feature file" if kind else "feature file (hloc's layout)", look_at_features
    if kind == "keypatch-matches" or (kind is None and "matches0" in found):
        return "match file" if kind else "match file (hloc's layout)", look_at_matches
    return "HDF5 file of an unknown kind", _fault(f"{file} holds neither keypoints nor matches of photos.")


def _kind_of_json(file: Path) -> tuple[str, Look]:
    value = read_json(file)
    from keypatch.commands.inspect.runs import look_at_card, look_at_result

    kind = value.get("format") if isinstance(value, dict) else None
    if kind == "keypatch-result":
        return "result", look_at_result
    if kind == "keypatch-card":
        return "card of shipped weights", look_at_card
    return "JSON file of an unknown kind", _unknown_file


def _kind_of_safetensors(file: Path) -> tuple[str, Look]:
    from keypatch.commands.inspect.runs import look_at_checkpoint, look_at_published, look_at_weights
    from keypatch.networks.weights import open_safetensors

    with open_safetensors(file) as content:
        kind = (content.metadata() or {}).get("format")
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
        f"{file} is not a file that keypatch can read: weights and checkpoints end in .safetensors, .pth, .pt or "
        ".params, exported descriptors in .onnx, recipes in .toml, results in .json, features and matches in .h5, "
        f"photos in {', '.join(sorted(SUFFIXES))}."
    )
