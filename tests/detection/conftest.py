"""One of each detector, with their smallest needs."""

from pathlib import Path

import pytest

from keypatch.detection import DETECTORS, Detector, make_detector


@pytest.fixture(scope="session")
def random_keynet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A weight file of the published form, made by kornia's own module; nothing was learned."""
    feature = pytest.importorskip("kornia.feature")
    import torch
    from safetensors.torch import save_file

    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = feature.KeyNet(pretrained=False).requires_grad_(False)
    network.last_conv[0].weight.abs_()  # so that there are responses above 0,
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()  # but none where the photograph is plain,
    network.last_conv[0].bias.fill_(-1e-6)  # also with rounding
    path = tmp_path_factory.mktemp("keynet") / "keynet.safetensors"
    save_file(network.state_dict(), path)
    return path


@pytest.fixture(params=list(DETECTORS))
def detector(request: pytest.FixtureRequest) -> Detector:
    """Every detector of the table in turn."""
    if request.param == "colmap":
        pytest.importorskip("pycolmap")
    if request.param == "keynet":
        return make_detector("keynet", weights=request.getfixturevalue("random_keynet"))
    return make_detector(request.param)
