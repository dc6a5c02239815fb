"""Multinomial logistic regression, solved to its optimum: L-BFGS in white coordinates.

Over coefficients W (D, K) and offsets b (K,), the minimum of

    mean over rows of  logsumexp(x W + b) - (x W + b)[class]   +   regularization / 2 · |W|²

The problem is convex, so the optimum depends on the rows and the regularization alone. Its Hessian is nearly the
features' covariance (Böhning, "Multinomial logistic regression algorithm", 1992), whose condition is what makes plain
gradient steps slow; so the search (L-BFGS-B: Byrd, Lu, Nocedal & Zhu, 1995, in scipy) runs over V with
W = (curvature · covariance + regularization)^(-1/2) V, where a dozen steps suffice whatever the features' spectrum.

Legend: N rows, D dimensions, K classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.neighbours import Codes, Floats
from pipeline.parallel import Each, spans
from pipeline.probes.standard import LANES, blocks
from pipeline.probes.whitening import CURVATURE, Whitening

Numbers = npt.NDArray[np.float64]
ITERATIONS = 500
FINE, COARSE = (1e-5, 1e-9), (1e-3, 1e-5)
"""Largest entry of the gradient (in white coordinates) and relative decrease of the loss at which a search ends."""
ENOUGH = 1e-4
"""... and at this share of the loss: what is left is then far below what the rows' own number leaves unknown."""
LOST = 1e-3
"""Where float32 ends the search, a gradient below this is the optimum's."""


@dataclass(frozen=True)
class Solution:
    """Coefficients (D, K), offsets (K,), and whether the optimum was reached."""

    weights: Floats
    offsets: Numbers
    converged: bool


def solve(
    rows: Floats,
    codes: Codes,
    classes: int,
    regularization: float,
    white: Whitening,
    each: Each,
    start: Solution | None = None,
    ends: tuple[float, float] = FINE,
    iterations: int = ITERATIONS,
) -> Solution:
    """Find the optimum for rows (N, D) with class codes (N,), each of ``classes`` classes among them.

    Args:
        regularization: > 0, against the *mean* loss, so that its meaning does not depend on N.
        start: where to begin; zero without it.
        ends: see FINE.
        iterations: steps after which it is given up as not converged.
    """
    from scipy.optimize import minimize

    shape, step = (rows.shape[1], classes), CURVATURE**-0.5

    def split(flat: Numbers) -> tuple[Floats, Numbers]:
        inner = flat[:-classes].reshape(shape).astype(np.float32)
        return white.scaled(inner, regularization, -0.5), flat[-classes:] * step

    def objective(flat: Numbers) -> tuple[float, Numbers]:
        weights, offsets = split(flat)
        value, slope, lean = cross_entropy(rows, codes, weights, offsets, each)
        value += regularization / 2 * float(np.square(weights, dtype=np.float64).sum())
        whole = slope.astype(np.float32) + np.float32(regularization) * weights  # (D, K)
        turned = white.scaled(whole, regularization, -0.5)
        return value, np.concatenate([turned.ravel().astype(np.float64), lean * step])

    first = np.zeros(shape[0] * classes + classes)
    if start is not None:
        first[:-classes] = white.scaled(start.weights, regularization, 0.5).ravel()
        first[-classes:] = start.offsets / step
    at_first = objective(first)
    unit = float(np.linalg.norm(at_first[1])) or 1.0  # L-BFGS-B's first step has length one: here, the gradient's
    known = [at_first]
    last = [np.inf]

    def in_units(flat: Numbers) -> tuple[float, Numbers]:
        value, slope = known.pop() if known else objective(flat * unit)  # the first that is asked is the start
        last[0] = float(np.abs(slope).max()) / max(value, 1e-12)
        return value, slope * unit

    def enough(_: Numbers) -> None:
        if last[0] < ENOUGH:
            raise StopIteration

    options = {"gtol": ends[0] * unit, "ftol": ends[1], "maxiter": iterations, "maxfun": 2 * iterations}
    found = minimize(in_units, first / unit, jac=True, method="L-BFGS-B", callback=enough, options=options)
    lost = found.status == 2 and float(np.abs(found.jac).max()) < LOST * unit
    reached = found.success or last[0] < ENOUGH or lost
    return Solution(*split(found.x * unit), bool(reached))


def cross_entropy(
    rows: Floats, codes: Codes, weights: Floats, offsets: Numbers, each: Each
) -> tuple[float, Numbers, Numbers]:
    """Mean cross-entropy of rows (N, D) with class codes (N,), and its gradients: (D, K) and (K,)."""
    parts = blocks(*rows.shape)
    lanes = [parts[span] for span in spans(len(parts), -(-len(parts) // LANES))]
    shift = offsets.astype(np.float32)[:, None]

    def lane(mine: list[slice]) -> tuple[float, Floats, Numbers]:
        value, slope, lean = 0.0, np.zeros(weights.shape[::-1], np.float32), np.zeros(len(offsets))
        for part in mine:
            scores = np.ascontiguousarray((rows[part] @ weights).T)  # (K, n): sums over classes are then quick
            scores += shift
            scores -= scores.max(axis=0)
            own = (codes[part], np.arange(scores.shape[1]))
            value -= float(scores[own].sum(dtype=np.float64))
            np.exp(scores, out=scores)
            total = scores.sum(axis=0)
            value += float(np.log(total).sum(dtype=np.float64))
            scores /= total
            scores[own] -= 1
            slope += scores @ rows[part]
            lean += scores.sum(axis=1, dtype=np.float64)
        return value, slope.T, lean

    value, slope, lean = 0.0, np.zeros(weights.shape), np.zeros(len(offsets))
    for some in each(lane, lanes):
        value, slope, lean = value + some[0], slope + some[1], lean + some[2]
    return value / len(rows), slope / len(rows), lean / len(rows)
