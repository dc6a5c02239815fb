"""Mixing channels: beside a dense oracle in float64, on any number of bands, with the spread that it says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.keys import Keys
from pipeline.spec import SpecError, parse
from pipeline.views import ChannelMix, ColorMatrix, draw_view, fault
from pipeline.views.image_mixing import mix_channels


def keys(count: int) -> Keys:
    return Keys.of(3, 0, np.arange(count))


def dense(images: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Pixel by pixel, in float64."""
    pixels, mats = images.double().numpy(), matrix.double().numpy()
    result = np.zeros_like(pixels)
    for n, y, x in np.ndindex(len(pixels), *pixels.shape[2:]):
        result[n, :, y, x] = np.clip(mats[n] @ pixels[n, :, y, x], 0, 1)
    return torch.from_numpy(result)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 13])
def test_a_matrix_is_that_of_a_dense_oracle_on_any_number_of_bands(channels: int) -> None:
    images = torch.rand(6, channels, 5, 4)
    matrix = torch.eye(channels) + 0.4 * torch.randn(6, channels, channels)
    matrix[2] = torch.eye(channels)
    mixed = mix_channels(images, matrix)
    assert float((mixed.double() - dense(images, matrix)).abs().max()) < 1e-6
    assert torch.equal(mixed[2], images[2])
    assert draw_view(images, [ColorMatrix(spread=0.2)], keys(6)).shape == images.shape


def test_the_entries_of_a_random_matrix_are_normal_about_the_identity() -> None:
    count, spread = 4000, 0.05
    basis = torch.eye(3).reshape(3, 3, 1, 1) * 0.5 + 0.25  # three pictures, so that no entry is cut
    views = torch.stack(
        [
            draw_view(basis[channel].expand(count, -1, -1, -1), [ColorMatrix(spread=spread)], keys(count))[..., 0, 0]
            for channel in range(3)
        ],
        dim=2,
    )  # (count, 3, 3): matrix @ basis
    matrix = views @ (torch.eye(3) * 0.5 + 0.25).inverse()
    entries = (matrix - torch.eye(3)).flatten(1)
    assert float(entries.mean(0).abs().max()) < 5 * spread / count**0.5
    assert float((entries.std(0) - spread).abs().max()) < 5 * spread / (2 * count) ** 0.5
    assert float((torch.corrcoef(entries.T) - torch.eye(9)).abs().max()) < 5 / count**0.5


def test_a_given_matrix_is_reached_by_a_uniform_part_of_the_way() -> None:
    rows = ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))  # red and green change places
    images = torch.tensor([1.0, 0.0, 0.5]).reshape(1, 3, 1, 1).expand(4000, -1, -1, -1)
    red, green, blue = draw_view(images, [ChannelMix(rows=rows, amount=0.8)], keys(4000))[..., 0, 0].T
    assert torch.allclose(red + green, torch.ones(4000))
    assert bool((blue == 0.5).all())
    assert float(green.min()) >= 0
    assert float(green.max()) <= 0.8
    assert abs(float(green.mean()) - 0.4) < 5 * 0.8 / 48000**0.5


def test_a_matrix_of_another_number_of_channels_is_told() -> None:
    mix = ChannelMix(rows=((1.0, 0.0), (0.0, 1.0)))
    assert fault(mix, 3, 8, 8) == "rows = 2 x 2, but the data has 3 channels; give a row for each"
    assert fault(mix, 2, 8, 8) is None
    with pytest.raises(SpecError) as caught:
        parse({"kind": "channel_mix", "rows": [[1, 0], [0, 1, 0]]}, ChannelMix, "a.yaml", "space")
    assert str(caught.value) == ("a.yaml: space.rows[1] = [0, 1, 0]: must have as many numbers as there are rows: 2")
