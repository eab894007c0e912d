"""The module for kornia's LAFDescriptor: our describer's numbers inside kornia's own pipeline."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from skimage.data import camera

from keypatch.detection import detect_dog
from keypatch.errors import KeypatchError
from keypatch.features.extraction import describe_keypoints
from keypatch.features.kornia import PatchDescriptor
from keypatch.geometry import Keypoints, cut_patches, to_laf
from keypatch.networks import prepare
from keypatch.zoo import load

kornia = pytest.importorskip("kornia")

DESCRIPTOR = "hynet-notredame"


@pytest.fixture(scope="module")
def module() -> PatchDescriptor:
    return PatchDescriptor(DESCRIPTOR)


@pytest.fixture(scope="module")
def photo() -> NDArray[np.uint8]:
    return np.asarray(camera(), np.uint8)


@pytest.fixture(scope="module")
def keypoints(photo: NDArray[np.uint8]) -> Keypoints:
    return detect_dog(photo, limit=150)


@torch.no_grad()
def test_patches_of_0_to_1_get_the_descriptors_of_the_describer(
    module: PatchDescriptor, photo: NDArray[np.uint8], keypoints: Keypoints
) -> None:
    for side in (32, 64):
        patches = cut_patches(photo, keypoints, 24, side)
        ours = load(DESCRIPTOR, "cpu", "float32").describe(patches)
        theirs = module(torch.from_numpy(patches)[:, None] / 255)
        np.testing.assert_allclose(theirs.numpy(), ours, atol=1e-5)


def test_it_says_which_patches_it_wants(module: PatchDescriptor) -> None:
    describer = load(DESCRIPTOR)
    assert (module.patch_size, module.patch_sigmas, module.dim) == (32, describer.patch_sigmas, describer.dim)


@torch.no_grad()
def test_laf_descriptor_gives_what_keypatch_gives_at_the_same_keypoints(
    module: PatchDescriptor, photo: NDArray[np.uint8], keypoints: Keypoints
) -> None:
    image = torch.from_numpy(photo)[None, None] / 255
    lafs = torch.from_numpy(to_laf(keypoints, module.patch_sigmas))[None]
    described = kornia.feature.LAFDescriptor(module, patch_size=module.patch_size)(image, lafs)[0].numpy()
    ours = describe_keypoints(photo, keypoints, load(DESCRIPTOR, "cpu", "float32"))
    similar = (described * ours).sum(axis=1)
    # the two cutters blur differently; a wrong angle or width leaves a cosine near 0
    assert np.median(similar) > 0.97
    np.testing.assert_array_equal((described @ ours.T).argmax(axis=1), np.arange(len(ours)))


@torch.no_grad()
def test_it_works_inside_local_feature_and_on_colour_images(module: PatchDescriptor) -> None:
    descriptor = kornia.feature.LAFDescriptor(module, patch_size=module.patch_size, grayscale_descriptor=True)
    detector = kornia.feature.SIFTFeatureScaleSpace(20).detector
    feature = kornia.feature.LocalFeature(detector, descriptor, scaling_coef=module.patch_sigmas / 12)
    grey = torch.from_numpy(np.asarray(camera(), np.float32) / 255)[None, None, 150:350, 150:350]
    lafs, _, described = feature(grey)
    assert described.shape == (1, 20, 128)
    np.testing.assert_allclose(described.norm(dim=2).numpy(), 1, atol=1e-5)
    np.testing.assert_allclose(descriptor(grey.expand(1, 3, -1, -1), lafs).numpy(), described.numpy(), atol=1e-4)


def test_no_patches_give_no_rows_and_no_frames_none(module: PatchDescriptor) -> None:
    assert module(torch.zeros(0, 1, 32, 32)).shape == (0, 128)
    with pytest.warns(UserWarning, match="no keypoints"):
        empty = kornia.feature.LAFDescriptor(module)(torch.zeros(1, 1, 50, 50), torch.zeros(1, 0, 2, 3))
    assert empty.shape == (1, 0, 128)


def test_a_descriptor_does_not_depend_on_the_other_patches(module: PatchDescriptor) -> None:
    patches = torch.rand(130, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(module(patches)[100:101], module(patches[100:101]), atol=1e-5, rtol=0)


def test_double_images_are_described_in_double(module: PatchDescriptor) -> None:
    patches = torch.rand(2, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        double = PatchDescriptor(DESCRIPTOR).double()(patches.double())
        assert double.dtype == torch.float64
        torch.testing.assert_close(double.float(), module(patches), atol=1e-5, rtol=0)


def test_gradients_reach_the_patches_and_the_weights() -> None:
    module = PatchDescriptor(DESCRIPTOR)
    patches = torch.rand(3, 1, 32, 32, generator=torch.Generator().manual_seed(0)).requires_grad_()
    module(patches)[:, 0].sum().backward()
    assert patches.grad is not None and patches.grad.abs().sum() > 0
    assert all(weight.grad is not None for weight in module.parameters())


def test_training_normalizes_over_the_whole_batch() -> None:
    module = PatchDescriptor(DESCRIPTOR).train()
    patches = torch.rand(130, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    module.network.layers.eval()  # dropout would differ from call to call
    raw = module.network(prepare(255 * patches[:, 0], module.network.preprocessing))
    torch.testing.assert_close(module(patches), torch.nn.functional.normalize(raw), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "patches",
    [torch.zeros(2, 3, 32, 32), torch.zeros(2, 32, 32), torch.zeros(2, 1, 32, 32, dtype=torch.float16)],
    ids=["colour", "without a channel", "half precision"],
)
def test_other_patches_are_refused_with_a_sentence(module: PatchDescriptor, patches: torch.Tensor) -> None:
    with pytest.raises(KeypatchError, match="Patches must be"):
        module(patches)


@pytest.mark.parametrize("name", ["sift", "rootsift"])
def test_what_is_hand_crafted_is_told_what_kornia_has_instead(name: str) -> None:
    with pytest.raises(KeypatchError, match=r"SIFTDescriptor\(patch_size, rootsift=(True|False)\) instead") as told:
        PatchDescriptor(name)
    assert f"rootsift={name == 'rootsift'}" in str(told.value)
    assert kornia.feature.SIFTDescriptor(32, rootsift=name == "rootsift")(torch.rand(2, 1, 32, 32)).shape == (2, 128)


def at_any_size(graph: Callable[[torch.Tensor], torch.Tensor], module: PatchDescriptor) -> None:
    patches = torch.rand((130, 1, 32, 32), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for count in (1, 7, 130):  # beyond the 64 that are described at once
            torch.testing.assert_close(graph(patches[:count]), module(patches[:count]), atol=1e-6, rtol=0)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning", "ignore:.*torch.jit.*:FutureWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_it_is_traced_for_any_number_of_patches(module: PatchDescriptor) -> None:
    at_any_size(torch.jit.trace(module, torch.rand(70, 1, 32, 32)), module)


def test_it_is_exported_for_any_number_of_patches(module: PatchDescriptor) -> None:
    shapes = ({0: torch.export.Dim("n")},)
    at_any_size(torch.export.export(module, (torch.rand(70, 1, 32, 32),), dynamic_shapes=shapes).module(), module)


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")  # torch.onnx's own
def test_others_export_it_to_onnx_for_any_number_of_patches(module: PatchDescriptor, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    import onnxruntime

    path = tmp_path / "module.onnx"
    example = (torch.rand(70, 1, 32, 32),)
    torch.onnx.export(module, example, path, dynamic_shapes=({0: "n"},), input_names=["patches"], verbose=False)
    session = onnxruntime.InferenceSession(path)
    at_any_size(lambda patches: torch.from_numpy(session.run(None, {"patches": patches.numpy()})[0]), module)
