"""Images with classes (Song et al. 2016): is the nearest image of the same class, do clusters find the classes?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.caching import describe_cached
from keypatch.benchmarks.contamination import seen_patches
from keypatch.benchmarks.result import Replicates, Result, provenance_of
from keypatch.benchmarks.ubc import card_of, hash_patches, spread_over_points
from keypatch.describers.protocol import Describer, channels_of
from keypatch.metrics import agreement, bootstrap, bootstrap_mean, drawn_agreement, kmeans, nearest_ranks
from keypatch.patches import PatchSet, open_patches
from keypatch.patches.image_folders import SIDE
from keypatch.patches.online_products import choose_list
from keypatch.progress import Progress
from keypatch.settings import CheckedFields, option

KS = (1, 10, 100, 1000)

Labels = NDArray[np.int64]  # (n,)


@dataclass(frozen=True)
class Embedding(CheckedFields):
    """How the clusters are found that are compared with the classes."""

    starts: int = option(3, "Runs of k-means, each from a different random start.", least=1)
    seed: int = option(0, "Random seed of the first run.", least=0)


def evaluate_embedding(
    describer: Describer,
    data: str | Path | PatchSet,
    settings: Embedding = Embedding(),  # noqa: B008  a frozen value
    progress: Progress | None = None,
) -> Result:
    """Retrieval and clustering of all images of a set, whose points are the classes. Embeddings are compared as given.

    "recall@K" is the share of images with one of their class among the K nearest others, for K below the number of
    images. "nmi" and "f1" (over pairs) score k-means with as many clusters as classes, the mean over the random starts;
    "nmi.sd" and "f1.sd" are their standard deviations. "spread.m1" and "spread.dm2" as in ubc.
    Replicates draw the images that are scored; those they are looked for among, and the clusters, stay as they are.
    """
    images = data if isinstance(data, PatchSet) else _open(data, describer)
    images.classes()  # raises where too few classes have two images
    pixels = data_hash = hash_patches(images)
    if not isinstance(data, PatchSet) and (images.side, images.channels) != (SIDE, 1):
        # the same whatever input a describer takes, so that results on the same images can be compared
        data_hash = hash_patches(open_patches(choose_list(data, "test")))
    embeddings = describe_cached(describer, images, pixels, progress)
    labels, sizes = np.unique(images.point_id, return_counts=True)
    ranks = nearest_ranks(embeddings, images.point_id)
    found = {f"recall@{k}": ranks <= k for k in KS if k < len(images)}
    seeds = range(settings.seed, settings.seed + settings.starts)
    clusterings = [kmeans(embeddings, len(labels), seed) for seed in seeds]
    drawn = {name: bootstrap_mean(hits) for name, hits in found.items()}
    drawn |= _draw_agreements(images.point_id, clusterings)
    m1, m2 = spread_over_points(embeddings, images)
    return Result(
        benchmark="embedding",
        descriptor=describer.name,
        settings={
            "data": images.name,
            "input": f"{images.side}x{images.side} {'grey' if images.channels == 1 else 'colour'}",
            "images": len(images),
            "classes": len(labels),
            "alone": int(np.sum(sizes == 1)),  # images without another of their class: never found
            "clustering": f"k-means, {settings.starts} random starts from seed {settings.seed}",
            **card_of(images),
        },
        scores={name: float(hits.mean()) for name, hits in found.items()}
        | _agreements(images.point_id, clusterings)
        | {"spread.m1": m1, "spread.dm2": describer.dim * m2},
        curves={},
        provenance=provenance_of(describer, data_hash),
        replicates={name: Replicates(values, "images", len(images)) for name, values in drawn.items()},
        contamination=seen_patches(describer, images),
    )


def _open(data: str | Path, describer: Describer) -> PatchSet:
    """The set, whole images in the size and the colours that the describer takes."""
    side, channels = max(SIDE, describer.patch_size), channels_of(describer)
    return open_patches(choose_list(data, "test"), side=side, channels=channels)


def _agreements(labels: Labels, clusterings: Sequence[Labels]) -> dict[str, float]:
    """Mean and standard deviation over the clusterings."""
    agreements = [agreement(labels, clusters) for clusters in clusterings]
    scores: dict[str, float] = {}
    for name in ("nmi", "f1"):
        values = [float(getattr(each, name)) for each in agreements]
        scores |= {name: float(np.mean(values)), f"{name}.sd": float(np.std(values))}
    return scores


def _draw_agreements(labels: Labels, clusterings: Sequence[Labels]) -> dict[str, NDArray[np.float64]]:
    """The replicates of the means over the clusterings."""
    drawn = [bootstrap(drawn_agreement(labels, clusters), len(labels)) for clusters in clusterings]
    nmi, f1 = np.mean(drawn, axis=0).T
    return {"nmi": nmi, "f1": f1}
