"""COLMAP databases, mapping in a child process, known cameras, pictures of models."""

from keypatch.reconstruction.camera_models import Camera
from keypatch.reconstruction.cameras import PosedCamera, read_cameras
from keypatch.reconstruction.checked_database import write_database

__all__ = ["Camera", "PosedCamera", "read_cameras", "write_database"]
