"""Anything that turns patches into vectors."""

from keypatch.describers.protocol import Describer
from keypatch.describers.sift import SiftDescriber

__all__ = ["Describer", "SiftDescriber"]
