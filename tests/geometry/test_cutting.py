"""The cutter: golden images of known place, angle and scale, and cuts made by others."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints, cut_patches

Y, X = np.mgrid[0:240, 0:320].astype(np.float64)


def blob(x: float, y: float, sigma: float) -> NDArray[np.float32]:
    return (200 * np.exp(-((X - x) ** 2 + (Y - y) ** 2) / (2 * sigma**2))).astype(np.float32)


def centre_and_spread(patch: NDArray[np.uint8]) -> tuple[float, float, float]:
    weights = patch.astype(float)
    row, column = np.mgrid[0 : len(patch), 0 : len(patch)]
    x, y = np.average(column, weights=weights), np.average(row, weights=weights)
    return x, y, np.sqrt(np.average((column - x) ** 2 + (row - y) ** 2, weights=weights) / 2)


@pytest.mark.parametrize("side", [32, 33, 64])
@pytest.mark.parametrize("sigma", [1.2, 3.0, 4.4, 9.0])
@pytest.mark.parametrize("angle", [0.0, 1.0, -2.5])
def test_keypoint_lies_at_the_centre_of_its_patch_at_its_scale(side, sigma, angle):
    """Blobs at a sub-pixel place: found at (side - 1) / 2, and side / 24 patch pixels wide per sigma."""
    image = blob(151.3, 122.8, 2 * sigma)
    patch = cut_patches(image, Keypoints([151.3], [122.8], [sigma], [angle]), side=side)[0]
    x, y, spread = centre_and_spread(patch)
    assert abs(x - (side - 1) / 2) < 0.05
    assert abs(y - (side - 1) / 2) < 0.05
    assert spread == pytest.approx(2 * side / 24, rel=0.05)  # antialiasing widens the blob a little


@pytest.mark.parametrize("angle", np.radians([0, 30, 90, 135, 250]))
def test_patch_is_turned_by_the_angle(angle):
    """Two blobs: the second lies in the direction of the angle, so in the patch it lies to the right of the centre."""
    x, y = 160 + 20 * np.cos(angle), 120 + 20 * np.sin(angle)
    patch = cut_patches(blob(x, y, 4), Keypoints([160], [120], [4], [angle]))[0]
    found_x, found_y, _ = centre_and_spread(patch)
    assert found_x == pytest.approx(31.5 + 20 / (24 * 4 / 64), abs=0.1)
    assert found_y == pytest.approx(31.5, abs=0.1)


def test_shape_shears_after_the_turn():
    """A frame twice as long in y: as many pixels are half as many patch pixels down as to the right."""
    shape = np.diag([2**-0.5, 2**0.5])[None]
    keypoint = Keypoints([160], [120], [4], [0], shape=shape)
    right = centre_and_spread(cut_patches(blob(180, 120, 3), keypoint)[0])[0] - 31.5
    down = centre_and_spread(cut_patches(blob(160, 140, 3), keypoint)[0])[1] - 31.5
    assert right / down == pytest.approx(2, rel=0.01)


def test_agrees_with_kornia_where_nothing_is_reduced():
    """kornia's angle goes the other way round and its scale is half the patch's side."""
    torch = pytest.importorskip("torch")
    feature = pytest.importorskip("kornia.feature")
    rng = np.random.default_rng(0)
    image = cv2.GaussianBlur(rng.uniform(0, 255, (240, 320)).astype(np.float32), (0, 0), 2)
    x, y, angle = rng.uniform(90, 200, 6), rng.uniform(90, 150, 6), rng.uniform(-3, 3, 6)
    sigma = rng.uniform(1, 2.6, 6)  # steps of less than a pixel
    frames = feature.laf_from_center_scale_ori(
        torch.tensor(np.stack([x, y], 1))[None].float(),
        torch.tensor(12 * sigma).view(1, -1, 1, 1).float(),
        torch.tensor(-np.degrees(angle)).view(1, -1, 1).float(),
    )
    theirs = feature.extract_patches_simple(torch.tensor(image)[None, None], frames, 64)[0, :, 0].numpy()
    ours = cut_patches(image, Keypoints(x, y, sigma, angle))
    np.testing.assert_allclose(ours, theirs, atol=0.6)  # ours are rounded to 8 bits


def test_agrees_with_patches_cut_by_others(shared, castle):
    """castle-test was cut by other code; half a pixel would cost 3 grey levels, a wrong sign of the angle 20."""
    rows = np.loadtxt(castle / "interest.txt")
    chosen = np.flatnonzero(rows[:256, 0] == 9)
    sheet = cv2.imread(str(castle / "patches0000.bmp"), cv2.IMREAD_GRAYSCALE)
    theirs = sheet.reshape(16, 64, 16, 64).swapaxes(1, 2).reshape(-1, 64, 64)[chosen].astype(float)
    photo = cv2.imread(str(shared / "data/strecha/castle-P19/images/0008.jpg"), cv2.IMREAD_GRAYSCALE)
    _, x, y, angle, log_sigma = rows[chosen].T
    ours = cut_patches(photo, Keypoints(x, y, 2**log_sigma, angle))
    assert len(ours) > 10
    assert np.abs(ours - theirs).mean() < 1


@pytest.mark.parametrize("step", [1.5, 1.9, 2.9, 3.8, 7.5])
def test_stripes_finer_than_the_patch_can_show_become_grey(step):
    """Without a blur they would come back as stripes of another width, as strong as they were."""
    period = 1.35 * step  # pixels; two patch pixels per period is the finest that can be shown
    stripes = (128 + 100 * np.sin(2 * np.pi * X / period)).astype(np.float32)
    plain = Keypoints([160], [120], [step * 64 / 24], [0.2])
    middle = cut_patches(stripes, plain)[0, 24:40, 24:40].astype(float)
    assert middle.std() < 0.4 * 100 / np.sqrt(2)


def test_stripes_that_the_patch_can_show_stay():
    for step in (0.7, 1.0, 1.9, 3.9):
        stripes = (128 + 100 * np.sin(2 * np.pi * X / (6 * step))).astype(np.float32)
        patch = cut_patches(stripes, Keypoints([160], [120], [step * 64 / 24], [0.2]))[0, 24:40, 24:40]
        assert patch.std() > 0.7 * 100 / np.sqrt(2)


def test_uint8_and_float_images_give_the_same_patches():
    image = np.random.default_rng(0).integers(0, 256, (240, 320), dtype=np.uint8)
    keypoints = Keypoints([100, 200, 50], [100, 20, 200], [2, 5, 9], [0, 1, 2])
    difference = cut_patches(image, keypoints).astype(int) - cut_patches(image.astype(np.float32), keypoints)
    assert np.abs(difference).max() <= 2  # levels of the pyramid are rounded to 8 bits


def test_each_patch_is_the_same_whatever_is_cut_with_it():
    image = np.random.default_rng(0).integers(0, 256, (240, 320), dtype=np.uint8)
    keypoints = Keypoints([100, 200, 50, 60], [100, 20, 200, 80], [2, 5, 9, 30], [0, 1, 2, 3])
    together = cut_patches(image, keypoints, side=32)
    for i in range(4):
        np.testing.assert_array_equal(cut_patches(image, keypoints.take([i]), side=32)[0], together[i])


def test_no_keypoints_and_keypoints_outside():
    image = np.full((20, 30), 7, np.uint8)
    image[:, -3:] = 200
    assert cut_patches(image, Keypoints([], [], [], []), side=16).shape == (0, 16, 16)
    far = Keypoints([1e6, -1e6, 40, 10], [10, 1e20, 10, 10], [1, 1, 0.5, 1e12], [0, 1, 0, 0])
    patches = cut_patches(image, far, side=16)
    assert [np.unique(patch).tolist() for patch in patches[:3]] == [[200], [7], [200]]  # the border, repeated


@pytest.mark.parametrize(
    "image", [np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4)), np.zeros((0, 4), np.uint8), np.zeros((4, 4), np.uint16)]
)
def test_only_grey_images_are_cut(image):
    with pytest.raises(KeypatchError, match="grey image"):
        cut_patches(image, Keypoints([1], [1], [1], [0]))


def test_an_image_with_holes_is_refused():
    with pytest.raises(KeypatchError, match="not finite"):
        cut_patches(np.full((9, 9), np.nan, np.float32), Keypoints([1], [1], [1], [0]))


@pytest.mark.parametrize(("patch_sigmas", "side"), [(0, 64), (float("nan"), 64), (24, 0)])
def test_patches_must_have_a_size(patch_sigmas, side):
    with pytest.raises(KeypatchError, match="must be above 0"):
        cut_patches(np.zeros((9, 9), np.uint8), Keypoints([1], [1], [1], [0]), patch_sigmas, side)
