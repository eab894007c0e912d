"""Patch sets and test pairs, and how they are read and written."""

from keypatch.patches.joined import PatchSource, join_sets
from keypatch.patches.opening import open_patches
from keypatch.patches.patch_set import Classes, Pairs, PatchSet

__all__ = ["Classes", "Pairs", "PatchSet", "PatchSource", "join_sets", "open_patches"]
