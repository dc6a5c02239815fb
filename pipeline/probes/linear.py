"""The linear probe: multinomial logistic regression on standardised features, solved to its optimum.

Alain & Bengio, "Understanding intermediate layers using linear classifier probes" (2016). The problem is convex, so
the figure depends on the features and on one declared number, not on a schedule: it is the minimum over coefficients V
(classes, D) and offsets of mean cross-entropy + regularization / 2 · |V|², found by L-BFGS (scikit-learn).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.neighbours import Codes

ITERATIONS = 1000
TOLERANCE = 1e-5
"""Largest gradient entry of the mean loss at which L-BFGS stops; ten times closer changes no accuracy by 0.1 points."""


@dataclass(frozen=True)
class LinearProbe:
    """A fitted probe: standardisation of the training rows, the classifier, and whether its optimum was reached."""

    centre: npt.NDArray[np.float32]
    scale: npt.NDArray[np.float32]
    classifier: Any
    converged: bool

    def predict(self, features: npt.NDArray[np.float32]) -> Codes:
        """Return class codes (N,) for features (N, D)."""
        predicted: Codes = self.classifier.predict(_standardised(features, self.centre, self.scale))
        return predicted


def fit_linear(
    features: npt.NDArray[np.float32], labels: Codes, regularization: float, iterations: int = ITERATIONS
) -> LinearProbe:
    """Fit the probe on features (N, D) and class codes (N,), at least two classes among them.

    Args:
        regularization: > 0, against the *mean* loss, so that its meaning does not depend on N (scikit-learn's C is
            1 / (N · regularization)).
        iterations: L-BFGS steps after which the fit is given up as not converged.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    centre = features.mean(axis=0, dtype=np.float64).astype(np.float32)
    spread = features.std(axis=0, dtype=np.float64).astype(np.float32)
    scale = np.where(spread > 1e-6 * np.abs(centre), spread, 1).astype(np.float32)  # a constant dimension says nothing
    classifier = LogisticRegression(C=1 / (len(features) * regularization), tol=TOLERANCE, max_iter=iterations)
    # one thread: the same path to the optimum on every machine, and small problems are not lost to waiting threads
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        classifier.fit(_standardised(features, centre, scale), labels)
    gave_up = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return LinearProbe(centre, scale, classifier, not gave_up)


def _standardised(
    features: npt.NDArray[np.float32], centre: npt.NDArray[np.float32], scale: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    moved: npt.NDArray[np.float32] = features - centre
    moved /= scale
    return moved
