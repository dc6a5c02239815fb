"""The InfoNCE bound: how many nats one view is shown to tell of the other, by this space's own cosines.

With n candidates, I(view; view) >= log n - loss for whatever critic the loss was taken with (van den Oord et al.,
"Representation Learning with Contrastive Predictive Coding", 2018; Poole et al., "On Variational Bounds of Mutual
Information", ICML 2019, equation 10). The critic here is cosine / temperature; its temperature is chosen on every other
anchor and the bound measured on the rest, or it would be the best of several by chance.

It is no measure of quality. It cannot exceed log n, whatever the truth (McAllester & Stratos, "Formal Limitations on
the Measurement of Mutual Information", 2020), and a space with a higher bound is often no better (Tschannen et al., "On
Mutual Information Maximization for Representation Learning", ICLR 2020). The note says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pipeline.audit.estimate import Estimate, NotComputable, Numbers, of_mean


def info_nce_bound(losses: Numbers, temperatures: Sequence[float]) -> Estimate:
    """The bound in nats from losses (T, n) of n anchors among n candidates at T temperatures; n >= 4.

    The interval is over anchors. It may lie below 0, which bounds nothing.

    Raises:
        NotComputable: fewer than four rows.
    """
    n = losses.shape[1]
    if n < 4:
        raise NotComputable(f"{n} rows; at least 4 are needed")
    best = int(losses[:, ::2].mean(axis=1).argmin())
    cap = math.log(n)
    note = (
        f"at most log({n}) = {cap:.3g}, whatever the truth; no measure of quality; temperature {temperatures[best]:g}"
    )
    return replace(of_mean(cap - losses[best, 1::2]).within(-math.inf, cap), note=note)
