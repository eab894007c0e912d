from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from keypatch.sampling import Augmentation, turn_patches
from keypatch.sampling.augmentation import Place, _warp, _warp_on_cpu

STILL = Augmentation(flips="none", detector_noise=0.0)
SIGMAS = 24.0


def patches(n: int = 64, side: int = 16, seed: int = 0) -> Tensor:
    return torch.randint(0, 256, (n, 2, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def smooth(n: int = 8) -> Tensor:
    noise = torch.rand((n * 2, 1, 8, 8), generator=torch.Generator().manual_seed(1)) * 255
    return torch.nn.functional.interpolate(noise, (64, 64), mode="bicubic").clamp(0, 255).byte().reshape(n, 2, 64, 64)


def symmetries(patch: Tensor) -> list[bytes]:
    turned = [torch.rot90(patch, k) for k in range(4)]
    return [view.contiguous().numpy().tobytes() for view in (*turned, *(t.flip(-1) for t in turned))]


def seen(augmentation: Augmentation, x: Tensor) -> list[tuple[int, int]]:
    """Which of the eight symmetries each patch got (0..3: turns, 4..7: turned and mirrored)."""
    changed = augmentation(x, SIGMAS, np.random.default_rng(3))
    return [
        tuple(symmetries(x[i, v]).index(changed[i, v].contiguous().numpy().tobytes()) for v in (0, 1))
        for i in range(len(x))
    ]


def test_nothing_asked_for_changes_nothing() -> None:
    x = patches()
    assert torch.equal(STILL(x, SIGMAS, np.random.default_rng(0)), x)


@pytest.mark.parametrize(("flips", "reached"), [("dihedral", set(range(8))), ("hynet", set(range(8)))])
def test_flips_reach_all_eight_symmetries_and_are_shared_by_a_pair(flips: str, reached: set[int]) -> None:
    drawn = seen(replace(STILL, flips=flips), patches(256))
    assert {a for a, _ in drawn} == reached
    assert all(a == b for a, b in drawn)


def test_hardnets_flips_are_transpose_and_mirror_only() -> None:
    x = patches(256)
    drawn = {a for a, _ in seen(replace(STILL, flips="hardnet"), x)}
    patch = x[0, 0]
    four = [patch, patch.T, patch.flip(-1), patch.T.flip(-1)]
    wanted = {symmetries(patch).index(view.contiguous().numpy().tobytes()) for view in four}
    assert drawn == wanted


def test_hynets_flips_have_its_frequencies() -> None:
    drawn = np.array([a for a, _ in seen(replace(STILL, flips="hynet"), patches(4000, side=4))])
    assert abs(np.mean(drawn >= 4) - 0.5) < 0.04  # half are mirrored
    # unturned and unmirrored: half are not turned, half of those not mirrored
    assert abs(np.mean(drawn == 0) - 0.25) < 0.04


def test_flips_can_be_independent() -> None:
    drawn = seen(replace(STILL, flips="dihedral", shared=()), patches(256))
    assert np.mean([a == b for a, b in drawn]) < 0.3


def test_detector_noise_is_independent_for_the_two_patches_of_a_pair() -> None:
    one = smooth()[:, :1]
    x = one.expand(-1, 2, -1, -1).contiguous()
    changed = replace(STILL, detector_noise=1.0)(x, SIGMAS, np.random.default_rng(0)).float()
    assert (changed[:, 0] - changed[:, 1]).abs().mean() > 2


def test_shared_crops_keep_the_two_patches_of_a_pair_alike() -> None:
    x = smooth()[:, :1].expand(-1, 2, -1, -1).contiguous()
    recipe = replace(STILL, rotation=5.0, crop=0.1)
    apart = recipe(x, SIGMAS, np.random.default_rng(0))
    together = replace(recipe, shared=("flips", "crop"))(x, SIGMAS, np.random.default_rng(0))
    assert not torch.equal(apart[:, 0], apart[:, 1])
    assert torch.equal(together[:, 0], together[:, 1])


def test_a_shift_is_in_sigmas_and_moves_the_content_the_other_way() -> None:
    x = torch.zeros((1, 2, 64, 64), dtype=torch.uint8)
    x[:, :, 30:34, 30:34] = 255
    still_but_shifted = replace(
        STILL, detector_noise=1.0, noise_angle=0.0, noise_log_scale=0.0, noise_anisotropy=0.0, noise_shift=2.0
    )
    rng = np.random.default_rng(5)
    shift = still_but_shifted._detector_noise((1, 2), np.random.default_rng(5))[0, :, :, 2]  # (view, xy), sigmas
    moved = still_but_shifted(x, SIGMAS, rng).double()
    weight = moved / moved.sum((-2, -1), keepdim=True)
    place = torch.arange(64.0, dtype=torch.float64)
    centre = torch.stack([(weight.sum(-2) * place).sum(-1), (weight.sum(-1) * place).sum(-1)], -1)[0]  # (view, xy)
    expected = 31.5 - shift * 64 / SIGMAS
    assert np.abs(centre.numpy() - expected).max() < 0.05  # OpenCV samples in steps of 1/32 px


def test_the_fast_warp_agrees_with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    x = smooth()
    frames = Augmentation()._frames((len(x), 2), SIGMAS, np.random.default_rng(2))
    assert frames is not None
    fast = _warp_on_cpu(x, frames).float()
    flat = x.reshape(-1, 1, 64, 64).float()
    grid = torch.nn.functional.affine_grid(
        torch.from_numpy(frames.reshape(-1, 2, 3)).float(), list(flat.shape), align_corners=False
    )
    slow = torch.nn.functional.grid_sample(flat, grid, "bilinear", "border", align_corners=False).reshape(x.shape)
    assert (fast - slow).abs().max() <= 3  # rounding to whole grey levels, and 1/32 px steps on a slope


def test_noise_has_the_spread_it_says() -> None:
    noise = Augmentation()._detector_noise((20000, 2), np.random.default_rng(0))
    linear = noise[..., :2]
    log_scale = 0.5 * np.log(np.linalg.det(linear))
    assert abs(log_scale.std() - 0.13) < 0.003
    assert abs(noise[..., 2].std() - 0.6) < 0.01
    singular = np.linalg.svd(linear, compute_uv=False)
    half_log_ratio = 0.5 * np.log(singular[..., 0] / singular[..., 1])
    assert abs(np.sqrt(np.mean(half_log_ratio**2)) - 0.08) < 0.003


def test_light_keeps_the_range() -> None:
    x = patches()
    lit = replace(STILL, brightness=60.0, contrast=0.5)(x, SIGMAS, np.random.default_rng(0))
    assert lit.min() >= 0 and lit.max() <= 255
    assert not torch.equal(lit[:, 0], x[:, 0].float())


def test_mirroring_is_left_and_right_half_of_the_time_and_of_each_image_by_itself() -> None:
    x = patches(256)
    drawn = seen(replace(STILL, flips="mirror", shared=()), x)
    mirrored = symmetries(x[0, 0]).index(x[0, 0].flip(-1).contiguous().numpy().tobytes())
    assert {a for pair in drawn for a in pair} == {0, mirrored}
    assert 0.4 < np.mean([a == 0 for a, _ in drawn]) < 0.6 and 0.4 < np.mean([a == b for a, b in drawn]) < 0.6


@pytest.mark.parametrize(
    "augmentation",
    [
        Augmentation(),
        Augmentation(flips="mirror", detector_noise=0, crop=0.3, rotation=5, shared=()),
        replace(STILL, brightness=20.0),
    ],
)
def test_the_channels_of_an_image_change_alike(augmentation: Augmentation) -> None:
    grey = smooth()
    colour = torch.stack([grey, 255 - grey, grey], 2)
    one, three = (augmentation(x, SIGMAS, np.random.default_rng(5)) for x in (grey, colour))
    assert three.shape == colour.shape
    torch.testing.assert_close(three[:, :, 0], one)
    torch.testing.assert_close(three[:, :, 2], one)
    if not augmentation.brightness:  # bilinear weights are rounded, so the negative image may differ by a grey level
        torch.testing.assert_close(three[:, :, 1].float(), 255 - one.float(), atol=1.0, rtol=0)


def test_channels_are_warped_alike_on_a_device_that_is_not_the_cpu() -> None:
    grey = smooth().float()
    frames = Augmentation(crop=0.4)._frames((8, 2), SIGMAS, np.random.default_rng(0))
    assert frames is not None
    colour = torch.stack([grey, grey, grey], 2)
    by_grid = _warp(colour.to("meta"), frames)
    assert by_grid.shape == colour.shape
    assert torch.equal(_warp(colour, frames)[:, :, 1], _warp(grey, frames))


def test_turned_images_keep_their_channels_together() -> None:
    x = smooth().numpy()
    degrees = np.linspace(0, 60, 16).reshape(8, 2)
    turned = turn_patches(np.stack([x, x], 2), degrees)
    assert np.array_equal(turned[:, :, 0], turn_patches(x, degrees)) and np.array_equal(
        turned[:, :, 0], turned[:, :, 1]
    )


def test_crops_begin_anywhere_within_the_margin_or_at_the_centre() -> None:
    corners = Augmentation().corners(Place((300, 2)), 3, np.random.default_rng(0))
    assert corners is not None and corners.shape == (600, 2)
    assert {*corners.ravel().tolist()} == {0, 1, 2, 3}
    assert not np.array_equal(corners[:300], corners[300:])  # each image has its own
    some = Augmentation().corners(Place((300, 2), range(100, 200), np.ones((100, 1), int)), 3, np.random.default_rng(0))
    assert np.array_equal(some, corners[400:500]), "the second views of these rows, whatever else is cropped"
    for none in (
        Augmentation(window="centre").corners(Place((3, 2)), 3, np.random.default_rng(0)),
        STILL.corners(Place((3, 2)), 0, np.random.default_rng(0)),
    ):
        assert none is None
