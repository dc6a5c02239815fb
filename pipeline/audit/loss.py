"""Distance of the loss from log K: what an objective has learnt beyond guessing.

A space that gives every candidate the same similarity has the loss log K, K candidates an anchor. Below it, what is
left, log K - loss, is a lower bound in nats of what one view tells of the other (van den Oord et al., "Representation
Learning with Contrastive Predictive Coding", 2018, equation 5); it cannot exceed log K and says nothing of geometry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pipeline.audit.estimate import Estimate, not_computable


def loss_below_log_k(summary: Mapping[str, Any]) -> Estimate:
    """log K - loss (nats) from pretrain's summary, which has the keys loss, candidates (K) and starts_at."""
    for key in ("loss", "candidates"):
        number = summary.get(key)
        if not isinstance(number, (int, float)) or not math.isfinite(number):
            return not_computable(f"the training's summary has no finite {key}")
    start, log_k = summary.get("starts_at"), math.log(max(1, summary["candidates"]))
    if not isinstance(start, (int, float)) or not math.isclose(start, log_k, abs_tol=1e-4):
        return not_computable("the loss of this objective is not log K where nothing is told apart")
    value = log_k - float(summary["loss"])
    return Estimate(value, None, None, int(summary["candidates"]), "no interval: one number of one run")
