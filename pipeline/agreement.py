"""Do two spaces hold the same picture of the same rows? Three answers, each blind to something else.

Linear CKA (Kornblith et al., "Similarity of Neural Network Representations Revisited", ICML 2019, section 3) compares
the directions of large variance, in the form that costs N·D² and never holds N x N; its unbiased form takes the
U-statistic of HSIC (Song et al., JMLR 2012, equation 5), since the plain one is large for any two spaces of more
dimensions than rows. The orthogonal Procrustes distance (Schönemann 1966; Ding, Denain & Steinhardt, NeurIPS 2021) is
what remains between the two after the best rotation, whole or small directions alike. The mutual k-nearest-neighbour
overlap (Huh et al., ICML 2024) asks who lies beside whom, and nothing of distances.

CKA and Procrustes do not change under rotations, mirrors, shifts and one common scale of either space; the overlap not
under rotations, mirrors and a scale of each row.

Legend: N rows (the same samples in both), D and E dimensions.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pipeline.audit.estimate import Estimate, NotComputable, Numbers, of_mean
from pipeline.neighbours import nearest_others, unit

Rows = npt.NDArray[np.floating]


def linear_cka(a: Rows, b: Rows, unbiased: bool = False) -> float:
    """Linear centred kernel alignment of a (N, D) and b (N, E): 1 the same up to rotation and scale, 0 unrelated.

    Args:
        unbiased: take the U-statistic, whose expectation is 0 for unrelated spaces of any dimension; it may lie a
            little below 0. N >= 4.

    Raises:
        NotComputable: too few rows, other numbers of rows, or a space without variance.
    """
    x, y = _centred(a, b, least=4 if unbiased else 2)
    if unbiased:
        cross, own, other = _hsic_unbiased(x, y), _hsic_unbiased(x, x), _hsic_unbiased(y, y)
        if own <= 0 or other <= 0:
            raise NotComputable("a space whose own unbiased HSIC is not above 0; more rows are needed")
    else:
        cross, own, other = (float(np.square(p.T @ q).sum()) for p, q in ((x, y), (x, x), (y, y)))
    return cross / math.sqrt(own * other)


def procrustes_distance(a: Rows, b: Rows) -> float:
    """Distance of a (N, D) and b (N, E) after centring, scaling to one and the best rotation: 0 the same, √2 unrelated.

    With s the sum of singular values of A'B it is √(2 - 2s); scipy's disparity, where B may be scaled too, is 1 - s².

    Raises:
        NotComputable: fewer than two rows, other numbers of rows, or a space without variance.
    """
    x, y = _centred(a, b, least=2)
    nuclear = float(np.linalg.svd(x.T @ y, compute_uv=False).sum())
    return math.sqrt(max(0.0, 2 - 2 * nuclear))


def neighbour_overlap(a: Rows, b: Rows, k: int) -> Estimate:
    """Mean over rows of the share of the k nearest others (by cosine) that a (N, D) and b (N, E) have in common.

    Two unrelated spaces share k / (N - 1) by chance; the note says so.

    Raises:
        NotComputable: no more than k rows, or other numbers of rows.
    """
    _same_rows(a, b)
    if len(a) <= k:
        raise NotComputable(f"{len(a)} rows have fewer than {k} others")
    everyone = np.arange(len(a))
    near = [np.sort(nearest_others(unit(rows), everyone, k), axis=1) for rows in (a, b)]  # (N, k) each
    both = np.sort(np.concatenate(near, axis=1), axis=1)  # (N, 2k): what is in both stands twice
    shared: Numbers = (both[:, 1:] == both[:, :-1]).sum(axis=1) / k
    return replace(of_mean(shared).within(0, 1), note=f"k = {k}; {k / (len(a) - 1):.3g} by chance")


def _hsic_unbiased(x: Numbers, y: Numbers) -> float:
    """Song et al.'s U-statistic of HSIC for linear kernels K = XX', L = YY', without K or L; times n(n - 3)."""
    n = len(x)
    norm_x, norm_y = np.square(x).sum(axis=1), np.square(y).sum(axis=1)  # diagonals of K and L (N,)
    row_x, row_y = x @ x.sum(axis=0) - norm_x, y @ y.sum(axis=0) - norm_y  # row sums without the diagonal (N,)
    trace = float(np.square(x.T @ y).sum()) - float(norm_x @ norm_y)
    whole = float(row_x.sum()) * float(row_y.sum()) / ((n - 1) * (n - 2))
    return trace + whole - 2 / (n - 2) * float(row_x @ row_y)


def _centred(a: Rows, b: Rows, least: int) -> tuple[Numbers, Numbers]:
    """Both spaces in float64, centred and scaled to a Frobenius norm of one."""
    _same_rows(a, b)
    if len(a) < least:
        raise NotComputable(f"{len(a)} rows; at least {least} are needed")
    found = []
    for rows in (a, b):
        whole = rows.astype(np.float64)
        largest = np.abs(whole).max()
        moved = whole - whole.mean(axis=0)
        size = float(np.linalg.norm(moved))
        if not np.isfinite(size):
            raise NotComputable("rows that hold NaN or infinity")
        if size <= 1e-6 * largest * math.sqrt(len(rows)):
            raise NotComputable("all rows are equal")
        found.append(moved / size)
    return found[0], found[1]


def _same_rows(a: Rows, b: Rows) -> None:
    if len(a) != len(b):
        raise NotComputable(f"{len(a)} rows against {len(b)}; row i must be the same sample in both")
