import torch

from keypatch.networks.frn import FilterResponse


def filled(channels: int) -> FilterResponse:
    layer = FilterResponse(channels)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)) * 0.3)
    return layer


def test_against_a_loop_over_patches_and_channels() -> None:
    layer = filled(3)
    x = torch.randn(2, 3, 4, 5)
    expected = torch.empty_like(x)
    for n in range(2):
        for c in range(3):
            rms = (x[n, c].square().mean() + 1e-6).sqrt()
            y = layer.weight[0, c] * x[n, c] / rms + layer.bias[0, c]
            expected[n, c] = torch.maximum(y, layer.tau[0, c])
    torch.testing.assert_close(layer(x), expected)


def test_starts_as_the_authors_have_it() -> None:
    layer = FilterResponse(4)
    assert [p.mean().item() for p in (layer.weight, layer.bias, layer.tau)] == [1.0, 0.0, -1.0]


def test_half_precision_does_not_overflow_and_keeps_its_type() -> None:
    x = torch.full((1, 2, 8, 8), 300.0, dtype=torch.float16)  # its square is beyond float16
    y = FilterResponse(2)(x)
    assert y.dtype == torch.float16
    torch.testing.assert_close(y, torch.ones_like(y))


def test_gradients() -> None:
    layer = filled(2).double()
    x = torch.randn(2, 2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layer, (x,))


def test_a_zero_map_has_finite_gradients() -> None:
    x = torch.zeros(1, 2, 4, 4, requires_grad=True)
    layer = FilterResponse(2)
    layer(x).sum().backward()
    assert x.grad is not None and torch.isfinite(x.grad).all()
