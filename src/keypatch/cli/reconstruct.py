"""`keypatch reconstruct`: photos become a 3D model through COLMAP."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from keypatch.cli import options
from keypatch.cli.options import DESCRIBING, chosen, chosen_describing, examples, refuse_beside
from keypatch.cli.printing import open_console, print_facts

if TYPE_CHECKING:
    from keypatch.features.progress import Reporter
    from keypatch.reconstruction.report import Reconstruction

EXAMPLES = examples(
    "keypatch reconstruct photos --out scene --share-camera",
    "keypatch reconstruct photos --features f.h5 --matches m.h5 --out scene",
)

Out = Annotated[Path, typer.Option(help="The folder for all files; features and matches in it are taken up.")]
Features = Annotated[Path | None, typer.Option(help="A feature file, ours or hloc's, instead of describing.")]
Matches = Annotated[Path | None, typer.Option(help="A match file, ours or hloc's, instead of matching.")]
Pairs = Annotated[
    str, typer.Option(help="Who is matched: exhaustive, sequence:N, or a file of two names on each line.")
]
Ratio = Annotated[float, typer.Option(help="Ratio test, in both directions; 1 is none.")]
Cameras = Annotated[
    Path | None,
    typer.Option(help="Known cameras, kept and compared with: a COLMAP model or Strecha's .camera files."),
]
CameraModel = Annotated[str, typer.Option(help="COLMAP's model of the other cameras.")]
Focal = Annotated[float | None, typer.Option(help="Focal length in pixels, instead of the EXIF data's.")]
ShareCamera = Annotated[bool, typer.Option("--share-camera", help="One camera took all photos.")]
MaxError = Annotated[float, typer.Option(help="Pixels that geometric verification allows.")]
Seed = Annotated[int, typer.Option(help="Of COLMAP: the same seed and threads give the same model.")]
Threads = Annotated[int, typer.Option(help="Of COLMAP.")]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds for verification and mapping.")]

MAPPING = ("camera_model", "focal", "share_camera", "max_error", "seed", "threads", "time_limit")


def reconstruct(
    context: typer.Context,
    images: options.Images,
    out: Out,
    descriptor: options.Descriptor = options.DESCRIPTOR,
    features: Features = None,
    matches: Matches = None,
    detector: options.Detector = options.DETECTOR,
    settings: options.Settings = None,
    keypoints: options.Keypoints = 4096,
    rule: options.Rule = options.RULE,
    max_size: options.MaxSize = None,
    upright: options.Upright = False,
    pairs: Pairs = "exhaustive",
    ratio: Ratio = 0.85,
    cameras: Cameras = None,
    camera_model: CameraModel = "SIMPLE_RADIAL",
    focal: Focal = None,
    share_camera: ShareCamera = False,
    max_error: MaxError = 4.0,
    seed: Seed = 0,
    threads: Threads = 1,
    time_limit: TimeLimit = None,
    root: options.Root = None,
    pixel_limit: options.PixelLimit = options.PIXEL_LIMIT,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
) -> None:
    """Reconstruct photos in 3D (extra `colmap`). After Ctrl-C the same command goes on with what is described."""
    from keypatch.reconstruction.reconstructing import reconstruct as run

    if features is not None:
        refuse_beside(context, "--features", *DESCRIBING)
    if matches is not None:
        refuse_beside(context, "--matches", "pairs", "ratio")
    made = run(
        images,
        out,
        **chosen_describing(context),
        **chosen(context, "pairs", *MAPPING, "device"),
        features=features,
        matches=matches,
        cameras=cameras,
        ratio=None if ratio == 1 else ratio,
        root=root,
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
