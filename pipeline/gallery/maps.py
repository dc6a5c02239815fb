"""Two maps of the same vectors, each a pure function of them: directions, and neighbourhoods.

``principal``: the plane of largest variance. Distances are true as far as its share of the variance goes, so it is
honest and often crowded. ``nearby``: t-SNE (van der Maaten & Hinton 2008), started from the plane as Kobak & Berens
(2019, Nature Communications 10:5416) advise: who is near whom is true, distances between groups are not.

Both follow the last bit of their sums, so they are called with one thread (``build``).

Legend: N vectors of D dimensions, of length one, since the space is read by cosine; n of them are drawn.
"""

from __future__ import annotations

from inspect import signature

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Points = npt.NDArray[np.float64]
PERPLEXITY, STEPS = 30.0, 500
DECIMALS = 3
"""Of places in [-1, 1]: a thousandth of a map is less than a pixel."""


def principal(rows: Floats, drawn: npt.NDArray[np.int64]) -> tuple[Points, tuple[float, float]]:
    """The plane of largest variance of all rows (N, D): places (n, 2) of those drawn, and the two shares of variance.

    The sign of an axis is free: its largest entry is made positive, so that equal vectors give equal maps.
    """
    from scipy.linalg import eigh

    whole = np.asarray(rows, dtype=np.float64)
    centred = whole - whole.mean(axis=0)
    scatter = centred.T @ centred  # (D, D)
    values, vectors = eigh(scatter, subset_by_index=[len(scatter) - 2, len(scatter) - 1])
    axes = vectors[:, ::-1]  # (D, 2), largest first
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    shares = values[::-1] / np.trace(scatter)
    return centred[drawn] @ axes, (float(shares[0]), float(shares[1]))


def nearby(rows: Floats, start: Points) -> tuple[Points, float]:
    """t-SNE of rows (n, D): places (n, 2), and the perplexity, which few rows make smaller.

    Args:
        start: (n, 2) where the points begin.
    """
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, (len(rows) - 1) / 3)
    spread = start[:, 0].std()
    begin = (start / spread if spread > 0 else start) * 1e-4
    steps = "max_iter" if "max_iter" in signature(TSNE).parameters else "n_iter"  # its name before scikit-learn 1.5
    begin = begin.astype(np.float32)
    model = TSNE(perplexity=perplexity, init=begin, random_state=0, n_jobs=1, **{steps: STEPS})
    placed = model.fit_transform(np.asarray(rows, dtype=np.float32))
    return placed.astype(np.float64), perplexity


def fitted(points: Points) -> Points:
    """Places (n, 2) moved and scaled, both axes alike, into [-1, 1], and rounded."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) / 2
    placed: Points = np.round((points - (low + high) / 2) / (size or 1.0), DECIMALS)
    return placed + 0.0  # no negative zero
