"""Known cameras: ground truth of benchmarks, and models that were made before."""

from pathlib import Path
from typing import NamedTuple

from keypatch.errors import DataError
from keypatch.files import require_folder
from keypatch.geometry.poses import Pose
from keypatch.reconstruction.camera_models import Camera
from keypatch.reconstruction.strecha import SUFFIX, read_strecha
from keypatch.reconstruction.text_models import read_text_cameras


class PosedCamera(NamedTuple):
    """A camera and where it stood; `camera.matrix` is in our pixels, the pose goes from world to camera."""

    camera: Camera
    pose: Pose


def read_cameras(path: str | Path) -> dict[str, PosedCamera]:
    """The known cameras by image name: a folder of Strecha's `.camera` files or a COLMAP model, text or binary.

    Raises:
        DataError: the folder is neither, or a file in it is damaged.
    """
    folder = Path(path)
    require_folder(folder)
    strecha = sorted(folder.glob(f"*{SUFFIX}"))
    if (folder / "images.txt").is_file():
        found = read_text_cameras(folder)
    elif (folder / "images.bin").is_file():
        from keypatch.reconstruction.colmap import read_binary_cameras

        found = read_binary_cameras(folder)
    elif strecha:
        found = {file.name.removesuffix(SUFFIX): read_strecha(file) for file in strecha}
    else:
        raise DataError(
            f"{folder} holds no cameras. Give a COLMAP model (cameras.txt and images.txt, or .bin) or a folder of "
            "Strecha's files IMAGE.camera."
        )
    return {name: PosedCamera(*posed) for name, posed in found.items()}
