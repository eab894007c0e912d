"""Patch sets and test pairs, and how they are read and written."""

from keypatch.patches.layouts import open_patches
from keypatch.patches.patch_set import Classes, Pairs, PatchSet, PatchSource, join_sets

__all__ = ["Classes", "Pairs", "PatchSet", "PatchSource", "join_sets", "open_patches"]
