"""Windows of whole recordings: what views begin from where the first invariance is a window.

The clip that stands for a recording has a view's length already, so a window of it is itself, and says nothing of what
windows of the recording lose. Here they are cut from the files, as training cuts them.

Legend: n samples of a part, V views, C channels, T steps of a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from pipeline.check.sample import Part
from pipeline.views import Invariance, Parameters, Window
from pipeline.views.window import windows


def cut_from_files(part: Part, invariances: Sequence[Invariance]) -> bool:
    """Whether views begin with a window, and a sample of the part is longer than that."""
    return bool(invariances) and isinstance(invariances[0], Window) and bool(part.longer.any())


def begun(part: Part, rows: slice, window: Any, drawn: Sequence[Parameters]) -> list[Tensor]:
    """Windows of some samples of a part, under each of V drawings: V times (n, C, T)."""
    return windows(part.whole, range(*rows.indices(len(part))), window, drawn, part.contract.size[0])
