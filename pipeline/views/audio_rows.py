"""What every operation on clips shares: it acts on some rows only, and it takes samples from other places of its row.

N clips (N,C,T), floating point, loudspeaker values in about [-1, 1]; M of them act. Nothing is cut to [-1, 1]: floating
point has room above, and a cut would be a distortion that nobody declared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from pipeline.keys import Keys

NEAR = 60.0  # dB: what lies this far below a clip cannot be heard; the end of every scale of levels


def on_rows(clips: Tensor, acts: Tensor, change: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """``clips`` (N,C,T) with the rows where ``acts`` (N,) is true changed; the others are exactly as they were.

    Args:
        change: (the rows that act (M,C,T), their numbers (M,) on the CPU) -> what they become (M,C,T). Half precision
            reaches it as float32: it has too few digits for sums over a clip.
    """
    rows = acts.nonzero().flatten()
    if not len(rows) or not clips.numel():
        return clips
    whole = len(rows) == len(clips)
    where = rows.to(clips.device)
    part = clips if whole else clips.index_select(0, where)
    wide = part.float() if part.dtype in (torch.float16, torch.bfloat16) else part
    changed = change(wide, rows).to(clips.dtype)
    return changed if whole else clips.index_copy(0, where, changed)


def by_clip(values: Tensor, like: Tensor) -> Tensor:
    """One value a clip (M,) on the CPU -> (M,1,1) of the type and on the device of ``like``."""
    return values.to(like)[:, None, None]


def taken(clips: Tensor, source: Tensor) -> Tensor:
    """``clips`` (M,C,L) read at whole places ``source`` (M,T) int64: (M,C,T); 0 where a place is outside."""
    length = clips.shape[-1]
    inside = (source >= 0) & (source < length)
    index = source.clamp(0, length - 1)[:, None].expand(-1, clips.shape[1], -1)
    return clips.gather(2, index).mul_(inside[:, None])


def places(count: int, like: Tensor) -> Tensor:
    """0 to count - 1: (count,) int64 on the device of ``like``."""
    return torch.arange(count, device=like.device)


def field_word(keys: Keys) -> Tensor:
    """The key of a field of noise that is made on the device: (N,) int64."""
    return torch.from_numpy(keys.bits("word").view(np.int64))
