"""The linear probe: multinomial logistic regression on standardised features, its regularization chosen inside train.

Alain & Bengio, "Understanding intermediate layers using linear classifier probes" (2016). The problem is convex, so the
figure depends on the features alone, not on a schedule: ``softmax`` finds its optimum. The regularization is the one of
GRID with most right answers on a held-out fifth of the training rows (the lower loss of equals); the probe is then
fitted to all of them.

Legend: N training rows, M other rows, D dimensions, K classes that the training rows have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.neighbours import Codes, Floats
from pipeline.parallel import Each, workers
from pipeline.probes.softmax import COARSE, ITERATIONS, Numbers, Solution, solve
from pipeline.probes.standard import Standard, standardise
from pipeline.probes.strata import held_out
from pipeline.probes.whitening import Whitening, in_their_span, whitening

GRID = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
"""Weights of half the squared coefficients against the mean cross-entropy, from the strongest: each starts the next."""
UNCHOSEN = 1e-2
"""Where no class has a second row, so that none can be held out."""
PATIENCE = 2
"""So many weaker regularizations in turn that read less end the search."""


@dataclass(frozen=True)
class LinearProbe:
    """A fitted probe: coefficients (D, K) of standardised features, offsets (K,), and the codes (K,) of its classes."""

    standard: Standard
    weights: Floats
    offsets: Numbers
    classes: Codes
    regularization: float
    chosen: bool
    """Whether the regularization was chosen (or given), and not UNCHOSEN."""
    converged: bool

    def predict(self, features: Floats) -> Codes:
        """Return class codes (M,) for features (M, D)."""
        codes: Codes = self.classes[self.standard.scores(features, self.weights, self.offsets).argmax(axis=1)]
        return codes


def fit_linear(
    features: Floats, labels: Codes, regularization: float | None = None, iterations: int = ITERATIONS
) -> LinearProbe:
    """Fit the probe on features (N, D) and class codes (N,), at least two classes among them.

    Args:
        regularization: > 0, against the *mean* loss (scikit-learn's C is 1 / (N · regularization)); None: chosen.
        iterations: steps after which the fit is given up as not converged.
    """
    with workers() as each:
        standard = standardise(features, each)
        return fit(standard, labels, whitening(standard.rows), each, None, regularization, iterations)


def fit(
    standard: Standard,
    labels: Codes,
    white: Whitening,
    each: Each,
    drawn: Codes | None = None,
    regularization: float | None = None,
    iterations: int = ITERATIONS,
) -> LinearProbe:
    """``fit_linear`` where the rows are standardised and their whitening is known.

    Args:
        labels: class codes (N,) of all rows of ``standard``.
        drawn: the rows that have a label; None: all.
    """
    rows = standard.rows if drawn is None else standard.rows[drawn]
    classes, codes = np.unique(labels if drawn is None else labels[drawn], return_inverse=True)
    few = in_their_span(rows)
    if few is not None:
        rows, basis, white = few
    start, chosen = None, True
    if regularization is None:
        fitted, tried = held_out(codes)
        chosen = len(tried) > 0
        regularization, start = _choose(rows, codes, fitted, tried, white, each) if chosen else (UNCHOSEN, None)
    best = solve(rows, codes, len(classes), regularization, white, each, start, iterations=iterations)
    weights = best.weights if few is None else basis @ best.weights
    return LinearProbe(standard, weights, best.offsets, classes, regularization, chosen, best.converged)


def _choose(
    rows: Floats, codes: Codes, fitted: Codes, tried: Codes, white: Whitening, each: Each
) -> tuple[float, Solution]:
    """The regularization that reads most of the rows ``tried`` when fitted to the rows ``fitted``, and its solution."""
    inside, outside, truth = rows[fitted], rows[tried], codes[tried]
    classes = int(codes.max()) + 1
    solution: Solution | None = None
    found: list[tuple[int, float, float, Solution]] = []
    for regularization in GRID:
        solution = solve(inside, codes[fitted], classes, regularization, white, each, solution, COARSE)
        scores = outside @ solution.weights + solution.offsets  # (M, K)
        right = int((scores.argmax(axis=1) == truth).sum())
        scores -= scores.max(axis=1, keepdims=True)
        loss = float((np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(truth)), truth]).sum())
        found.append((right, -loss, regularization, solution))
        best = max(range(len(found)), key=lambda at: found[at][:2])
        if len(found) - 1 - best >= PATIENCE:
            break
    return found[best][2], found[best][3]
