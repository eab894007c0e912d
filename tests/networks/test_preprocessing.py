from dataclasses import asdict

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from keypatch.errors import KeypatchError, RecipeError
from keypatch.networks import Preprocessing, prepare


def patches(side: int, count: int = 5) -> torch.Tensor:
    return torch.randint(0, 256, (count, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(side))


def test_64_to_32_is_the_mean_of_two_by_two_pixels() -> None:
    x = patches(64)
    expected = x.float().reshape(5, 32, 2, 32, 2).mean((2, 4))
    assert torch.equal(prepare(x, Preprocessing(value_range=255.0))[:, 0], expected)


@pytest.mark.parametrize("side", [16, 48, 65])
def test_bilinear_is_opencv_s_on_float_pixels(side: int) -> None:
    x = patches(side)
    expected = np.stack([cv2.resize(patch.numpy().astype(np.float32), (32, 32)) for patch in x])
    # OpenCV rounds its weights to float32 at another place
    np.testing.assert_allclose(prepare(x, Preprocessing(value_range=255.0))[:, 0].numpy(), expected, atol=2e-3)


def test_antialiased_resizing_weighs_1_3_3_1() -> None:
    x = patches(64, 1)
    kernel = torch.tensor([1.0, 3.0, 3.0, 1.0]) / 8
    inner = F.conv2d(x[None, :, 1:, 1:].float(), torch.outer(kernel, kernel)[None, None], stride=2)[0, 0]
    y = prepare(x, Preprocessing(value_range=255.0, resize="antialias"))[0, 0]
    torch.testing.assert_close(y[1:-1, 1:-1], inner)


def test_hardnet_normalization_is_the_written_formula() -> None:
    x = patches(32)
    y = prepare(x, Preprocessing(normalization="patch"))
    z = x.double() / 255
    expected = (z - z.mean((1, 2), keepdim=True)) / (z.std((1, 2), keepdim=True) + 1e-7)
    torch.testing.assert_close(y[:, 0].double(), expected, atol=1e-6, rtol=0)


def test_instance_normalization_is_torch_s() -> None:
    x = patches(32)
    y = prepare(x, Preprocessing(normalization="instance", value_range=255.0))
    torch.testing.assert_close(y, torch.nn.InstanceNorm2d(1)(x.float().unsqueeze(1)), atol=1e-5, rtol=0)


def test_fixed_normalization() -> None:
    y = prepare(patches(32), Preprocessing(normalization="fixed", mean=0.4, std=0.2))
    torch.testing.assert_close(y[:, 0], (patches(32) / 255.0 - 0.4) / 0.2)


@pytest.mark.parametrize("normalization", ["patch", "instance"])
@pytest.mark.parametrize("white", [1.0, 255.0])
@pytest.mark.parametrize("grey", [0, 90, 255])
def test_a_flat_patch_becomes_zeros_and_not_rounding_noise(normalization: str, white: float, grey: int) -> None:
    flat = torch.full((1, 64, 64), grey, dtype=torch.uint8)
    y = prepare(flat, Preprocessing(normalization=normalization, value_range=white))  # type: ignore[arg-type]
    assert torch.equal(y, torch.zeros(1, 1, 32, 32))


def test_faint_texture_is_not_taken_for_flat() -> None:
    faint = torch.full((1, 32, 32), 100, dtype=torch.uint8)
    faint[:, ::2] += 1
    assert prepare(faint, Preprocessing(normalization="patch")).std() == pytest.approx(1, abs=1e-3)


def test_each_patch_by_itself() -> None:
    for normalization in ("none", "patch", "instance", "fixed"):
        preprocessing = Preprocessing(normalization=normalization)  # type: ignore[arg-type]
        together = prepare(patches(64), preprocessing)
        alone = torch.cat([prepare(patch[None], preprocessing) for patch in patches(64)])
        torch.testing.assert_close(together, alone, atol=1e-6, rtol=0)


def test_no_patches() -> None:
    assert prepare(patches(65, 0), Preprocessing(normalization="patch")).shape == (0, 1, 32, 32)


def test_floats_keep_their_precision() -> None:
    assert prepare(patches(64).double(), Preprocessing()).dtype == torch.float64
    assert prepare(patches(64).half(), Preprocessing()).dtype == torch.float32


def test_round_trip_through_a_dictionary() -> None:
    preprocessing = Preprocessing(size=64, normalization="fixed", mean=0.4, std=0.2, patch_sigmas=12.0)
    assert Preprocessing(**asdict(preprocessing)) == preprocessing


@pytest.mark.parametrize(
    "wrong",
    [{"size": 0}, {"value_range": 0.0}, {"std": 0.0}, {"resize": "cubic"}, {"normalization": "batch"}],
)
def test_wrong_values_are_named(wrong: dict[str, object]) -> None:
    with pytest.raises(RecipeError, match=next(iter(wrong))):
        Preprocessing(**wrong)  # type: ignore[arg-type]


def test_patches_of_another_shape_are_refused() -> None:
    with pytest.raises(KeypatchError, match="height, width"):
        prepare(torch.zeros(2, 1, 32, 32), Preprocessing())


COLOUR = Preprocessing(size=20, channels=3, crop_from=24, normalization="fixed", mean=(0.1, 0.2, 0.3), std=(1, 2, 4))


def colours(side: int, count: int = 3) -> torch.Tensor:
    return patches(side, 3 * count).view(count, 3, side, side)


def test_images_in_colour_are_cropped_and_normalized_channel_by_channel() -> None:
    x = colours(24)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in ((0.1, 0.2, 0.3), (1.0, 2.0, 4.0)))
    expected = (x[:, :, 2:22, 2:22] / 255.0 - mean) / std
    torch.testing.assert_close(prepare(x, COLOUR), expected)
    corners = np.array([[0, 0], [4, 1], [2, 2]])
    cropped = prepare(x, COLOUR, corners)
    torch.testing.assert_close(cropped[1], (x[1, :, 4:24, 1:21] / 255.0 - mean) / std)
    torch.testing.assert_close(cropped[2], expected[2])


def test_each_channel_is_resized_as_a_grey_patch_is() -> None:
    grey = Preprocessing(size=24, value_range=255.0)
    x = colours(48)
    y = prepare(x, Preprocessing(size=24, channels=3, value_range=255.0))
    torch.testing.assert_close(y[:, 1], prepare(x[:, 1], grey)[:, 0])


def test_a_grey_patch_is_repeated_for_a_network_of_colours_and_none_are_none() -> None:
    x = patches(24)
    torch.testing.assert_close(prepare(x, COLOUR), prepare(x[:, None].expand(-1, 3, -1, -1), COLOUR))
    assert prepare(x[:0], COLOUR).shape == prepare(colours(24)[:0], COLOUR).shape == (0, 3, 20, 20)
    assert prepare(colours(30)[:0], COLOUR, np.empty((0, 2), np.int64)).shape == (0, 3, 20, 20)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"crop_from": 31}, "cannot be cropped from less"),
        ({"channels": 2}, "channels must be one of 1, 3"),
        ({"mean": (0.1, 0.2)}, "mean has 2 numbers, but the input has 1 channels"),
        ({"channels": 3, "std": (1.0, 1.0)}, "std has 2 numbers"),
        ({"channels": 3, "std": (1.0, 0.0, 1.0)}, "std is .* above 0"),
    ],
)
def test_inputs_that_no_image_has_are_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(RecipeError, match=says):
        Preprocessing(**wrong)  # type: ignore[arg-type]


def test_colours_are_no_input_of_a_grey_network() -> None:
    with pytest.raises(KeypatchError, match="in colour, but the network takes grey"):
        prepare(colours(32), Preprocessing())
