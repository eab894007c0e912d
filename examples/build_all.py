"""Build a patch set from every scene of a folder of scenes, and write a table of what came out.

python examples/build_all.py $DATA/photos --out sets

A scene is a folder with photos, or with a folder `images` of photos, and what else it says about itself: `terms.txt`
with the terms of use, `masks` with masks in COLMAP's convention. A scene that cannot be built is a row that says why;
the others go on. Run it again to resume: what is finished is not built again.
"""

import argparse
import csv
import sys
import time
from pathlib import Path

import keypatch as kp
from keypatch.cli.main import answer
from keypatch.errors import Interrupted
from keypatch.images import SUFFIXES
from keypatch.progress import ProgressBar

COLUMNS = (
    "scene",
    "photos",
    "patches",
    "classes",
    "label noise",
    "interval",
    "by angles",
    "angle",
    "minutes",
    "remark",
)


def find_scenes(folder: Path, names: list[str]) -> list[tuple[str, Path]]:
    """(name, folder of photos) of each scene, in the order of names."""
    found = []
    for scene in sorted(each for each in folder.iterdir() if each.is_dir()):
        photos = scene / "images" if (scene / "images").is_dir() else scene
        if any(file.suffix.lower() in SUFFIXES for file in photos.iterdir()) and (not names or scene.name in names):
            found.append((scene.name, photos))
    return found


def build_scene(name: str, photos: Path, out: Path, arguments: argparse.Namespace) -> dict[str, str]:
    """A row of the table."""
    scene, start = photos.parent if photos.name == "images" else photos, time.monotonic()
    terms, masks = scene / "terms.txt", scene / "masks"
    building = kp.Building(
        held_out=arguments.held_out,
        terms=terms.read_text(encoding="utf-8").strip() if terms.is_file() else "",
        masks=masks if masks.is_dir() else None,
    )
    with ProgressBar() as progress:
        try:
            made = kp.build(
                photos,
                out / name,
                "tracks",
                building,
                describer=arguments.descriptor,
                extraction=kp.Extraction(keypoints=arguments.keypoints),
                mapping=kp.Mapping(share_camera=name in arguments.share_camera),
                progress=progress,
            )
        except Interrupted:
            raise
        except kp.KeypatchError as error:
            return {"scene": name, "minutes": minutes(start), "remark": str(error).replace("\n", " ")}
    cards = list(made.cards.values())
    counts = {key: sum(card["counts"][key] for card in cards) for key in ("patches", "classes")}
    noise, angle = cards[0]["label_noise"], cards[0]["viewing_angle_degrees"]
    return {
        "scene": name,
        "photos": str(max(card["counts"]["photos"] for card in cards)),
        **{key: str(value) for key, value in counts.items()},
        "label noise": f"{noise['patches']:.2%}",
        "interval": f"{noise['interval'][0]:.2%} to {noise['interval'][1]:.2%}",
        "by angles": f"{noise['by_angles']['patches']:.2%}" if noise["by_angles"] else "",
        "angle": f"{angle['50%']:.1f}" if angle else "",
        "minutes": minutes(start),
        "remark": f"{len(made.skipped)} photos skipped" if made.skipped else "",
    }


def minutes(start: float) -> str:
    return f"{(time.monotonic() - start) / 60:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", type=Path, help="folder of scenes")
    parser.add_argument("--out", type=Path, required=True, help="folder of the sets and of the table, scenes.csv")
    parser.add_argument("--scene", action="append", default=[], help="build only this scene; may be repeated")
    parser.add_argument("--share-camera", action="append", default=[], help="one camera took this scene; repeatable")
    parser.add_argument("--descriptor", default="hynet-notredame")
    parser.add_argument("--keypoints", type=int, default=4096)
    parser.add_argument("--held-out", type=float, default=0.0)
    arguments = parser.parse_args()
    rows, table = [], arguments.out / "scenes.csv"
    times = {row["scene"]: row["minutes"] for row in csv.DictReader(table.open())} if table.exists() else {}
    for name, photos in find_scenes(arguments.scenes, arguments.scene):
        print(f"== {name}", file=sys.stderr)
        finished = (arguments.out / name / "build.html").exists()
        row = build_scene(name, photos, arguments.out, arguments)
        rows.append(row | ({"minutes": times[name]} if finished and name in times else {}))
        arguments.out.mkdir(parents=True, exist_ok=True)
        with table.open("w", newline="", encoding="utf-8") as file:  # after each: a stop loses nothing
            writer = csv.DictWriter(file, COLUMNS, restval="")
            writer.writeheader()
            writer.writerows(rows)
    print(" | ".join(COLUMNS))
    for row in rows:
        print(" | ".join(row.get(column, "") for column in COLUMNS))


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))
