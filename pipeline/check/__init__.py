"""check: ask the data whether the declaration can be true, before a GPU hour is spent.

Nothing in a contrastive loss can tell that its views are wrong. The spec says what must not matter and what must
survive; the findings say what the data makes of that: *contradiction*, *erased*, *merged*, *transported*, *shortcut*,
*false positive*, *cost*, a file each.
"""

from pipeline.check.contradiction import contradictions, unused_acceptances
from pipeline.check.cost import cost, priors
from pipeline.check.findings import Finding, gate, gate_file
from pipeline.check.section import Accepted, Check

__all__ = [
    "Accepted",
    "Check",
    "Finding",
    "contradictions",
    "cost",
    "gate",
    "gate_file",
    "priors",
    "unused_acceptances",
]
