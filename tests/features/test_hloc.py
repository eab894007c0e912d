"""The extractor for hloc, driven as hloc drives it: its base class and its file writing, written here after it."""

from abc import ABCMeta, abstractmethod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from skimage.data import astronaut
from torch import Tensor, nn

from keypatch.errors import KeypatchError
from keypatch.features import Extraction, extract, read_features
from keypatch.features.hloc import Extractor
from keypatch.zoo import load

COLOUR = np.asarray(astronaut(), np.uint8)[:300, :400]
GREY = np.rint(COLOUR @ [0.299, 0.587, 0.114]).astype(np.uint8)


class BaseModel(nn.Module, metaclass=ABCMeta):
    """What hloc's class of this name does with an extractor."""

    default_conf: Any
    required_inputs: Any

    def __init__(self, conf: dict[str, Any]) -> None:
        super().__init__()
        self.conf = {**self.default_conf, **conf}
        self._init(self.conf)

    def forward(self, data: dict[str, Tensor]) -> dict[str, Tensor]:
        assert all(name in data for name in self.required_inputs)
        return self._forward(data)

    @abstractmethod
    def _init(self, conf: Any) -> None: ...

    @abstractmethod
    def _forward(self, data: Any) -> Any: ...


class Keypatch(Extractor, BaseModel):
    pass


def batch(image: NDArray[np.uint8]) -> dict[str, Tensor]:
    """As hloc's loader hands it over: (1, channels, h, w), 0..1."""
    channels = image[None] if image.ndim == 2 else image.transpose(2, 0, 1)
    return {"image": torch.from_numpy(channels.astype(np.float32) / 255)[None]}


def write_as_hloc(path: Path, name: str, model: Keypatch, image: NDArray[np.uint8], factor: float, half: bool) -> None:
    """One turn of hloc's extraction, for a photo that it made smaller by `factor`."""
    with torch.no_grad():
        found = {key: value[0].cpu().numpy() for key, value in model.eval()(batch(image)).items()}
    found["keypoints"] = (found["keypoints"] + 0.5) * factor - 0.5
    found["scales"] *= factor
    found["image_size"] = np.array([image.shape[1] * factor, image.shape[0] * factor], int)
    with h5py.File(path, "a", libver="latest") as file:
        group = file.create_group(name)
        for key, value in found.items():
            halved = half and value.dtype == np.float32
            group.create_dataset(key, data=value.astype(np.float16) if halved else value)
        group["keypoints"].attrs["uncertainty"] = model.detection_noise * factor


@pytest.fixture(scope="module")
def model() -> Keypatch:
    return Keypatch({"name": "keypatch", "descriptor": "rootsift", "max_keypoints": 200})


def test_it_gives_the_batch_layout_of_hloc(model: Keypatch) -> None:
    found = model(batch(GREY))
    assert {name: tuple(value.shape) for name, value in found.items()} == {
        "keypoints": (1, 200, 2),
        "scores": (1, 200),
        "descriptors": (1, 128, 200),
        "scales": (1, 200),
        "oris": (1, 200),
    }
    assert all(value.dtype == torch.float32 for value in found.values())


def test_the_numbers_are_those_of_extract(model: Keypatch) -> None:
    found = {name: value[0].numpy() for name, value in model(batch(GREY)).items()}
    expected = extract(GREY, load("rootsift"), Extraction(keypoints=200))
    np.testing.assert_array_equal(found["keypoints"], expected.keypoints.xy)
    np.testing.assert_array_equal(found["scales"], expected.keypoints.sigma)
    np.testing.assert_allclose(np.radians(found["oris"]), expected.keypoints.angle, atol=1e-6)
    np.testing.assert_array_equal(found["scores"], expected.keypoints.response)
    np.testing.assert_array_equal(found["descriptors"].T, expected.descriptors)


def test_a_colour_image_is_taken_as_grey_with_red_first(model: Keypatch) -> None:
    grey = model(batch(GREY))["keypoints"][0]

    def found_again(image: NDArray[np.uint8]) -> float:
        found = model(batch(image))["keypoints"][0]
        return float(((grey[:, None] - found).norm(dim=2).amin(1) < 0.1).float().mean())

    assert found_again(np.dstack([GREY] * 3)) == 1
    assert found_again(COLOUR) > 0.95  # a few greys round the other way
    assert found_again(COLOUR[:, :, ::-1]) < 0.6


def test_a_file_that_hloc_writes_is_read_back(model: Keypatch, tmp_path: Path) -> None:
    write_as_hloc(tmp_path / "f.h5", "db/a.jpg", model, GREY, factor=2.0, half=False)
    features, direct = read_features(tmp_path / "f.h5", "db/a.jpg"), extract(GREY, load("rootsift"), model.extraction)
    np.testing.assert_allclose(features.keypoints.xy, 2 * direct.keypoints.xy + 0.5, atol=1e-4)
    np.testing.assert_allclose(features.keypoints.sigma, 2 * direct.keypoints.sigma)
    np.testing.assert_array_equal(features.descriptors, direct.descriptors)
    assert features.image_size == (800, 600)


def test_hlocs_half_precision_moves_keypoints(model: Keypatch, tmp_path: Path) -> None:
    write_as_hloc(tmp_path / "f.h5", "a.jpg", model, GREY, factor=5.0, half=True)
    exact = 5 * model(batch(GREY))["keypoints"][0].numpy() + 2
    halved = read_features(tmp_path / "f.h5", "a.jpg").keypoints.xy
    wide = exact[:, 0] > 1024
    assert wide.any() and 0.2 < np.abs(halved - exact)[wide, 0].max() <= 0.51  # what docs/from-hloc.md warns of


def test_the_settings_are_hlocs(tmp_path: Path) -> None:
    everything = Keypatch({"descriptor": "sift", "max_keypoints": -1, "upright": True})
    assert everything.extraction == Extraction(keypoints=None, upright=True)
    assert everything.describer.name == "sift"
    assert Keypatch({}).describer.name == "hynet-notredame"
    with pytest.raises(KeypatchError, match="no setting max_keypoint, mr_size"):
        Keypatch({"max_keypoint": 5, "mr_size": 12})


def test_a_flat_image_gives_empty_arrays(model: Keypatch) -> None:
    found = model({"image": torch.full((1, 1, 50, 60), 0.4)})
    assert {name: tuple(value.shape) for name, value in found.items()} == {
        "keypoints": (1, 0, 2),
        "scores": (1, 0),
        "descriptors": (1, 128, 0),
        "scales": (1, 0),
        "oris": (1, 0),
    }


@pytest.mark.parametrize(
    ("image", "says"),
    [
        (torch.zeros(2, 1, 50, 60), "one image"),
        (torch.zeros(1, 2, 50, 60), "one image"),
        (torch.zeros(50, 60), "one image"),
        (torch.full((1, 1, 50, 60), 200.0), "0..1"),
        (torch.full((1, 1, 50, 60), torch.nan), "0..1"),
    ],
    ids=["two images", "two channels", "no batch", "0..255", "nan"],
)
def test_wrong_images_are_refused_with_a_sentence(model: Keypatch, image: Tensor, says: str) -> None:
    with pytest.raises(KeypatchError, match=says):
        model({"image": image})
