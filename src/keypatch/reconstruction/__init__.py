"""Photos to a 3D model: its numbers, its picture and its page."""

from keypatch.reconstruction.mapping import Inputs, Mapping

__all__ = ["Inputs", "Mapping"]
