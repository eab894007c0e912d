"""The cutter: golden images of known place, angle and scale, and cuts made by others."""

import tracemalloc
from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from skimage import color, data

from keypatch.detection import detect_dog
from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints, PatchCutter, cut_patches, to_laf

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


@given(
    st.floats(60, 250, width=32),
    st.floats(60, 180, width=32),
    st.floats(0.5, 3.5, width=32),
    st.floats(-3, 3, width=32),
    st.sampled_from([np.eye(2), [[1.5, 0.3], [0, 1 / 1.5]]]),
    st.sampled_from([31, 32, 64]),
)
def test_every_pixel_of_a_patch_comes_from_its_place(x, y, sigma, angle, shape, side):
    """Slopes of light give each sample's place away: grey level 0.5 per pixel in x, and the same in y."""
    keypoint = Keypoints([x], [y], [sigma], [angle], shape=[shape])
    right, down = (cut_patches((0.5 * slope).astype(np.float32), keypoint, 12, side)[0] for slope in (X, Y))
    offsets = (np.arange(side) - (side - 1) / 2) * 12 / side  # sigmas from the keypoint
    column, row = np.meshgrid(offsets, offsets)
    places = np.array([[x], [y]]) + keypoint.frames()[0] @ [column.ravel(), row.ravel()]
    np.testing.assert_allclose(right.ravel(), 0.5 * places[0], atol=0.56)  # half a level of rounding; warps to 1/32 px
    np.testing.assert_allclose(down.ravel(), 0.5 * places[1], atol=0.56)


@pytest.mark.parametrize("x", [-3.0, 0.0, 2.4, 318.7])
def test_beyond_the_image_its_border_is_repeated(x):
    """A slope at and beyond the left and the right border: level with it from the outermost pixel's centre."""
    slope = (0.5 * X).astype(np.float32)
    patch = cut_patches(slope, Keypoints([x], [120], [1], [0]), patch_sigmas=16, side=32)[0]
    places = x + (np.arange(32) - 15.5) / 2
    expected = 0.5 * np.clip(places, 0, 319)
    np.testing.assert_allclose(patch, np.broadcast_to(expected, (32, 32)), atol=0.56)


@pytest.mark.parametrize("angle", np.radians([0, 40, 160, -100]))
@pytest.mark.parametrize("distance", [-3.7, 0.0, 0.25, 6.5])
@pytest.mark.parametrize("sigma", [2.0, 6.0])
def test_an_edge_is_where_it_should_be(angle, distance, sigma):
    """A soft edge at a distance from the keypoint, across its angle, is upright in the patch, in the column of that."""
    along = np.cos(angle) * (X - 160.3) + np.sin(angle) * (Y - 119.6) - distance
    edge = (200 / (1 + np.exp(-along / 1.5))).astype(np.float32)
    patch = cut_patches(edge, Keypoints([160.3], [119.6], [sigma], [angle]), patch_sigmas=12, side=48)[0]
    crossings = [np.interp(100, row, np.arange(48)) for row in patch[8:40].astype(float)]
    np.testing.assert_allclose(crossings, 23.5 + distance / (12 * sigma / 48), atol=0.1)  # patch pixels


def kornia_patches(image: NDArray[np.uint8], keypoints: Keypoints, side: int) -> NDArray[np.float32]:
    torch = pytest.importorskip("torch")
    feature = pytest.importorskip("kornia.feature")
    pixels, frames = torch.from_numpy(image.astype(np.float32)), torch.from_numpy(to_laf(keypoints, 24))
    patches = feature.extract_patches_from_pyramid(pixels[None, None], frames[None], side)
    return np.asarray(patches[0, :, 0])


PHOTOS = {
    "astronaut": lambda: np.rint(255 * color.rgb2gray(data.astronaut())).astype(np.uint8),
    "camera": data.camera,
    "brick": data.brick,
    "coffee": lambda: np.rint(255 * color.rgb2gray(data.coffee())).astype(np.uint8),
}


@pytest.mark.parametrize("photo", PHOTOS)
def test_agrees_with_kornia_on_photos(photo):
    """Exactly where nothing is reduced by more than 1.41, in the mean to 2.5 grey levels where ours softens more."""
    image = PHOTOS[photo]()
    keypoints = detect_dog(image, limit=600)
    difference = np.abs(cut_patches(image, keypoints, side=32) - kornia_patches(image, keypoints, 32)).mean(axis=(1, 2))
    reduced = keypoints.sigma * 24 / 32 > 2**0.5
    assert 20 < reduced.sum() < 580
    assert difference[~reduced].max() < 0.4  # rounding to 8 bits is 0.25 in the mean
    assert difference[reduced].mean() < 2.5


@pytest.mark.parametrize(
    "mistake",
    [
        lambda k: replace(k, angle=-k.angle),
        lambda k: replace(k, x=k.x + np.float32(0.5)),
        lambda k: replace(k, sigma=k.sigma * np.float32(1.1)),
    ],
    ids=["sign of the angle", "half a pixel", "a tenth in scale"],
)
def test_kornia_would_notice_mistakes(mistake):
    """The bounds above are narrow: small mistakes make several times the difference."""
    image = data.camera()
    keypoints = detect_dog(image, limit=600)
    difference = np.abs(cut_patches(image, mistake(keypoints), side=32) - kornia_patches(image, keypoints, 32))
    assert difference.mean() > 3


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


def test_the_larger_stretch_of_a_sheared_frame_decides():
    """Steps of 2.9 pixels to the right and 1 down: stripes too fine for the former become grey."""
    stripes = (128 + 100 * np.sin(2 * np.pi * X / (1.35 * 2.9))).astype(np.float32)
    sheared = Keypoints.from_frames([[160, 120]], [np.diag([2.9, 1.0]) * 64 / 24])
    assert cut_patches(stripes, sheared)[0, 24:40, 24:40].std() < 0.4 * 100 / np.sqrt(2)


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


def test_many_keypoints_are_cut_in_portions_from_one_pyramid(monkeypatch):
    """In portions the same patches, the pyramid made once, and never more memory than a portion and the pyramid."""
    image = np.random.default_rng(0).integers(0, 256, (240, 320), dtype=np.uint8)
    rng, n = np.random.default_rng(1), 4000
    keypoints = Keypoints(rng.uniform(0, 320, n), rng.uniform(0, 240, n), rng.uniform(1, 12, n), rng.uniform(-3, 3, n))
    whole, halved, pyramid_down = cut_patches(image, keypoints), [], cv2.pyrDown
    monkeypatch.setattr(cv2, "pyrDown", lambda *given, **named: halved.append(1) or pyramid_down(*given, **named))
    tracemalloc.start()
    cutter = PatchCutter(image)
    for start in range(0, n, 250):
        portion = cutter.cut(keypoints.take(slice(start, start + 250)))
        assert np.array_equal(portion, whole[start : start + 250])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(halved) == 2  # steps of up to 4.5 pixels
    # two portions at a change of hands, the comparison's own mask, and the pyramid
    assert peak < 3.5 * 250 * 64 * 64 + 2.7 * image.size + 300_000


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
