"""The digits source against scikit-learn's own arrays."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from pipeline.images import decode
from pipeline.sources import Digits


def test_every_digit_decodes_to_the_array_of_scikit_learn_exactly() -> None:
    bunch = load_digits()
    records = list(Digits(kind="digits").records(None))
    assert len(records) == 1797
    for record, counts, target in zip(records, bunch.images, bunch.target, strict=True):
        pixels, extension, *_ = decode(record.content)
        assert extension == "png"
        assert pixels.shape == (8, 8, 1)
        np.testing.assert_array_equal(np.rint(pixels[..., 0] / 255 * 16), counts)
        assert record.labels == {"label": str(target)}


def test_names_of_digits_are_all_different() -> None:
    names = [record.name for record in Digits(kind="digits").records(None)]
    assert len(set(names)) == len(names)
