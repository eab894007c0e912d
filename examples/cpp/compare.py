"""What the C++ example wrote (`match ... --write FOLDER`) beside keypatch's own: `compare.py FOLDER D FIRST SECOND`.

D is the descriptor that was exported. The same keypoints are cut, described and matched in Python.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import keypatch as kp
from keypatch.geometry import Keypoints, cut_patches
from keypatch.images import read_photo
from keypatch.matching.neighbours import match_descriptors

BOUND = 0.02  # a patch pixel half-way between two grey values may be rounded either way; 0.005 at most was seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("descriptor")
    parser.add_argument("photos", nargs=2, type=Path)
    parser.add_argument("--ratio", type=float, default=0.9)
    arguments = parser.parse_args()
    describer = kp.load(arguments.descriptor, precision="float32")  # as the exported file
    largest, sets = 0.0, []
    for name, photo in zip(("first", "second"), arguments.photos, strict=True):
        rows = np.loadtxt(arguments.folder / f"{name}.csv", np.float32, delimiter=",", skiprows=1)
        patches = cut_patches(read_photo(photo), Keypoints(*rows.T), describer.patch_sigmas, describer.patch_size)
        ours = describer.describe(patches)
        theirs = np.fromfile(arguments.folder / f"{name}.f32", "<f4").reshape(ours.shape)
        differences = np.linalg.norm(ours - theirs, axis=1)
        print(f"{name}: {len(rows)} descriptors, distance to keypatch's at most {differences.max():.2g}")
        largest = max(largest, float(differences.max()))
        sets.append(ours)
    plain = kp.Matching(ratio=arguments.ratio, turn=180.0, filter=None, model=None)
    ours_matched = {tuple(pair) for pair in match_descriptors(*sets, plain).indices.tolist()}
    theirs_matched = np.loadtxt(arguments.folder / "matches.csv", np.int64, delimiter=",", skiprows=1, ndmin=2)
    shared = ours_matched & {tuple(pair) for pair in theirs_matched.tolist()}
    print(f"matches: {len(theirs_matched)} in C++, {len(ours_matched)} in keypatch, {len(shared)} the same")
    return int(largest > BOUND or len(shared) != max(len(ours_matched), len(theirs_matched)))


if __name__ == "__main__":
    sys.exit(main())
