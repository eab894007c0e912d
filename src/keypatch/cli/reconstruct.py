"""`keypatch reconstruct`: photos become a 3D model through COLMAP."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self, cast

import typer

from keypatch.cli.options import DESCRIBING, Device, Precision, examples, refuse_beside
from keypatch.cli.printing import open_console, print_facts

if TYPE_CHECKING:
    from keypatch.detection import Rule
    from keypatch.features.progress import Reporter
    from keypatch.reconstruction.report import Reconstruction

EXAMPLES = examples(
    "keypatch reconstruct photos --out scene --share-camera",
    "keypatch reconstruct photos --features f.h5 --matches m.h5 --out scene",
)


def reconstruct(
    context: typer.Context,
    images: Annotated[list[Path], typer.Argument(help="Images, folders, or .txt lists with a name on each line.")],
    out: Annotated[Path, typer.Option(help="The folder for all files; features and matches in it are taken up.")],
    descriptor: Annotated[
        str, typer.Option(help="A name of `keypatch list`, a run folder or a weight file.")
    ] = "hynet-notredame",
    features: Annotated[
        Path | None, typer.Option(help="A feature file, ours or hloc's, instead of describing.")
    ] = None,
    matches: Annotated[Path | None, typer.Option(help="A match file, ours or hloc's, instead of matching.")] = None,
    detector: Annotated[str, typer.Option(help="dog, colmap, orb, keynet or grid.")] = "dog",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the detector.")
    ] = None,
    keypoints: Annotated[int, typer.Option(help="The most keypoints of a photo; 0 keeps all.")] = 4096,
    rule: Annotated[str, typer.Option(help="Which to keep: strongest, largest or spread.")] = "spread",
    max_size: Annotated[
        int | None, typer.Option(help="Detect in the photo made at most this many pixels long.")
    ] = None,
    upright: Annotated[bool, typer.Option("--upright", help="Every angle is 0.")] = False,
    pairs: Annotated[
        str, typer.Option(help="Who is matched: exhaustive, sequence:N, or a file of two names on each line.")
    ] = "exhaustive",
    ratio: Annotated[float, typer.Option(help="Ratio test, in both directions; 1 is none.")] = 0.9,
    cameras: Annotated[
        Path | None,
        typer.Option(help="Known cameras, kept and compared with: a COLMAP model or Strecha's .camera files."),
    ] = None,
    camera_model: Annotated[str, typer.Option(help="COLMAP's model of the other cameras.")] = "SIMPLE_RADIAL",
    focal: Annotated[float | None, typer.Option(help="Focal length in pixels, instead of the EXIF data's.")] = None,
    share_camera: Annotated[bool, typer.Option("--share-camera", help="One camera took all photos.")] = False,
    max_error: Annotated[float, typer.Option(help="Pixels that geometric verification allows.")] = 4.0,
    seed: Annotated[int, typer.Option(help="Of COLMAP: the same seed and threads give the same model.")] = 0,
    threads: Annotated[int, typer.Option(help="Of COLMAP.")] = 1,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for verification and mapping.")] = None,
    root: Annotated[Path | None, typer.Option(help="Names of photos are paths below this folder.")] = None,
    pixel_limit: Annotated[int, typer.Option(help="Refuse photos of more pixels.")] = 100_000_000,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Reconstruct photos in 3D (extra `colmap`). After Ctrl-C the same command goes on with what is described."""
    from keypatch.cli.detector_options import choose_detector
    from keypatch.reconstruction.reconstructing import reconstruct as run

    if features is not None:
        refuse_beside(context, "--features", *DESCRIBING)
    if matches is not None:
        refuse_beside(context, "--matches", "pairs", "ratio")
    made = run(
        images,
        out,
        descriptor,
        features=features,
        matches=matches,
        detector=choose_detector(detector, settings or ()),
        keypoints=keypoints or None,
        rule=cast("Rule", rule),  # the function checks it
        max_size=max_size,
        upright=upright,
        pairs=pairs,
        ratio=None if ratio == 1 else ratio,
        cameras=cameras,
        camera_model=camera_model,
        focal=focal,
        share_camera=share_camera,
        max_error=max_error,
        seed=seed,
        threads=threads,
        time_limit=time_limit,
        root=root,
        pixel_limit=pixel_limit,
        device=device,
        precision=precision,
        progress=_Stages(),
        reporter=_count,
    )
    _print(made)


class _Stages:
    """What is being done, on stderr: a line each, and on a terminal the count of photos behind it."""

    def __init__(self) -> None:
        self.stage = ""

    def __call__(self, text: str) -> None:
        stage = text.partition(":")[0]
        if stage != self.stage:
            print(stage, file=sys.stderr, flush=True)
        elif sys.stderr.isatty():
            print(f"\x1b[A{text}\x1b[K", file=sys.stderr, flush=True)
        self.stage = stage


def _count() -> "Reporter":
    """A line of progress without notes before the work begins: the stage is told already."""
    from keypatch.features.progress import ProgressLine

    class Counts(ProgressLine):
        at_work = False

        def __enter__(self) -> Self:
            self.at_work = True
            return super().__enter__()

        def note(self, message: str) -> None:
            if self.at_work:
                super().note(message)

    return Counts()


def _print(made: "Reconstruction") -> None:
    console = open_console()
    facts = made.facts()
    if made.two_view is not None:
        facts |= {
            "rotation": f"{made.two_view.rotation_degrees:.2f}°",
            "direction": "({:.3f}, {:.3f}, {:.3f})".format(*made.two_view.direction),
            "angle between rays": f"{made.two_view.triangulation_degrees:.2f}° median",
        }
    print_facts(console, facts)
    if made.unregistered:
        console.print(f"Not registered: {', '.join(made.unregistered)}")
    if made.model is None:
        console.print("Two photos make no model; this is their geometry. A model needs three.")
    for note in made.notes:
        console.print(note)
    console.print(f"Written: {', '.join(str(path) for path in made.files)}")
