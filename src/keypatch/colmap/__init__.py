"""Everything that knows COLMAP: databases, camera models, models on disk, pycolmap in a child process."""

from keypatch.colmap.cameras import Camera, PosedCamera
from keypatch.colmap.database import write_database
from keypatch.colmap.known_cameras import read_cameras
from keypatch.colmap.models import read_model

__all__ = ["Camera", "PosedCamera", "read_cameras", "read_model", "write_database"]
