"""Images with classes (Song et al. 2016): is the nearest image of the same class, do clusters find the classes?"""

import hashlib
from pathlib import Path

import numpy as np

from keypatch.benchmarks.result import Result, provenance_of
from keypatch.benchmarks.ubc import spread_over_points
from keypatch.describers.protocol import CHUNK, Describer, Progress, describe_all
from keypatch.metrics import agreement, kmeans, recall_at
from keypatch.patches.opening import open_patches
from keypatch.patches.patch_set import PatchSet

KS = (1, 10, 100, 1000)


def evaluate_embedding(
    describer: Describer,
    data: str | Path | PatchSet,
    starts: int = 3,
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Retrieval and clustering of all images of a set, whose points are the classes. Embeddings are compared as given.

    "recall@K" is the share of images with one of their class among the K nearest others, for K below the number of
    images. "nmi" and "f1" (over pairs) score k-means with as many clusters as classes, the mean over `starts` random
    starts from `seed` on; "nmi.sd" and "f1.sd" are their standard deviations. "spread.m1" and "spread.dm2" as in ubc.
    """
    images = data if isinstance(data, PatchSet) else open_patches(data)
    images.classes()  # raises where too few classes have two images
    embeddings = describe_all(describer, images, progress)
    labels, sizes = np.unique(images.point_id, return_counts=True)
    ks = [k for k in KS if k < len(images)]
    found = recall_at(embeddings, images.point_id, ks)
    scores = {f"recall@{k}": share for k, share in zip(ks, found, strict=True)}
    clusterings = [kmeans(embeddings, len(labels), seed + start) for start in range(starts)]
    agreements = [agreement(images.point_id, clusters) for clusters in clusterings]
    for name in ("nmi", "f1"):
        values = [float(getattr(each, name)) for each in agreements]
        scores |= {name: float(np.mean(values)), f"{name}.sd": float(np.std(values))}
    m1, m2 = spread_over_points(embeddings, images)
    scores |= {"spread.m1": m1, "spread.dm2": describer.dim * m2}
    return Result(
        benchmark="embedding",
        descriptor=describer.name,
        settings={
            "data": images.name,
            "images": len(images),
            "classes": len(labels),
            "alone": int(np.sum(sizes == 1)),  # images without another of their class: never found
            "clustering": f"k-means, {starts} random starts from seed {seed}",
        },
        scores=scores,
        curves={},
        provenance=provenance_of(describer, _hash(images)),
    )


def _hash(images: PatchSet) -> str:
    digest = hashlib.sha256()
    for start in range(0, len(images), CHUNK):
        digest.update(images.patches[start : start + CHUNK].tobytes())
    digest.update(images.point_id.tobytes())
    return digest.hexdigest()
