"""What describing a photograph gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints

Setting = str | int | float | bool | None


@dataclass(frozen=True, eq=False)
class Features:
    """The keypoints of one photograph and a descriptor for each, row by row."""

    keypoints: Keypoints  # in the pixels of the photograph as it is stored
    descriptors: NDArray[np.float32]  # (n, dim)
    image_size: tuple[int, int]  # (width, height); (0, 0) where a foreign file does not say
    descriptor: str
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.descriptors.ndim != 2 or len(self.descriptors) != len(self.keypoints):
            raise KeypatchError(
                f"{len(self.keypoints)} keypoints need descriptors of the shape ({len(self.keypoints)}, dim), "
                f"not {self.descriptors.shape}."
            )

    def __len__(self) -> int:
        return len(self.keypoints)
