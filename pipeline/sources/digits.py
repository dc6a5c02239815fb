"""scikit-learn's 1,797 scanned handwritten digits, from the installed wheel: real pictures without a network.

Source: E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998
(its test set), 8x8 counts from 0 to 16, here spread over 0 to 255.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from pipeline.images import encode_png
from pipeline.sources.record import ColumnKind, Record
from pipeline.spec import Spec


class Digits(Spec):
    """1,797 pictures of 8x8, one channel, ten classes in the column ``label``; no split of its own."""

    kind: Literal["digits"]
    embedded: ClassVar[bool] = True
    splits_itself: ClassVar[bool] = False

    def columns(self) -> dict[str, ColumnKind]:
        """Name and kind of every label column."""
        return {"label": "class"}

    def count(self) -> int | None:
        """How many pictures there are, where that is known before any data is read."""
        return 1797

    def records(self, raw: Path | None) -> Iterator[Record]:
        """Yield every digit as an 8x8 PNG, in the order of scikit-learn. ``raw`` is not read."""
        from sklearn.datasets import load_digits  # slow to import, and other sources do not need it

        bunch = load_digits()
        pictures = np.rint(bunch.images * (255 / 16)).astype(np.uint8)  # (N, 8, 8)
        for number, (picture, target) in enumerate(zip(pictures, bunch.target, strict=True)):
            yield Record(f"digit-{number:04d}", encode_png(picture[..., None]), {"label": str(target)})
