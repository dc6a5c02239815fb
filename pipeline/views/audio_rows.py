"""What every operation on clips shares: it acts on some rows only, and it takes samples from other places of its row.

N clips (N,C,T), floating point, loudspeaker values in about [-1, 1]; M of them act. Nothing is cut to [-1, 1]: floating
point has room above, and a cut would be a distortion that nobody declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.fft import next_fast_len
from torch import Tensor
from torch.nn import functional

from pipeline.keys import Keys, random_words

NEAR = 60.0  # dB: what lies this far below a clip cannot be heard; the end of every scale of levels
POWER = 128  # of two: a length without as many twos takes up to four times as long to transform


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
    if whole:
        return changed
    views = list(clips.unbind())  # half the time of index_copy
    for row, view in zip(rows.tolist(), changed.unbind(), strict=True):
        views[row] = view
    return torch.stack(views)


def fast_length(least: int) -> int:
    """The length of a fast transform of ``least`` samples or more: few small factors, most of them 2."""
    return POWER * int(next_fast_len(-(-least // POWER), real=True))


def by_clip(values: Tensor, like: Tensor) -> Tensor:
    """One value a clip (M,) on the CPU -> (M,1,1) of the type and on the device of ``like``."""
    return values.to(like)[:, None, None]


def taken(clips: Tensor, source: Tensor) -> Tensor:
    """``clips`` (M,C,L) read at whole places ``source`` (M,T) int64: (M,C,T); 0 where a place is outside."""
    length = clips.shape[-1]
    inside = (source >= 0) & (source < length)
    index = source.clamp(0, length - 1)[:, None].expand(-1, clips.shape[1], -1)
    return clips.gather(2, index).mul_(inside[:, None])


def cut(clips: Tensor, start: Tensor, count: int) -> Tensor:
    """``count`` samples of ``clips`` (M,C,L) from ``start`` (M,) int64 on the CPU: (M,C,count); 0 outside."""
    if not len(clips):
        return clips.new_empty(0, clips.shape[1], count)
    channels, length = clips.shape[1:]
    start = start.clamp(-count, length)  # all that is read beyond is 0 as well
    before, after = max(0, -int(start.min())), max(0, int(start.max()) + count - length)
    padded = functional.pad(clips, (before, after)).contiguous()
    row = torch.arange(len(clips) * channels) * padded.shape[-1]
    first = row + (start + before).repeat_interleave(channels)
    windows = padded.view(-1).as_strided((padded.numel() - count + 1, count), (1, 1))
    return windows.index_select(0, first.to(clips.device)).view(-1, channels, count)


def places(count: int, like: Tensor) -> Tensor:
    """0 to count - 1: (count,) int64 on the device of ``like``."""
    return torch.arange(count, device=like.device)


def tones(like: Tensor, hertz: Tensor, loud: Tensor, turn: Tensor, rate: int) -> Tensor:
    """The sum of K sines of ``hertz``, ``loud`` and ``turn`` (where each begins, in turns), all (M,K): (M,T).

    A time is so many blocks and so many samples. By the sine of a sum, the sines of all blocks and those of all samples
    in one, which are few, make all others in one matrix product.
    """
    count = like.shape[-1]
    block = math.isqrt(count) + 1
    step = hertz.double()[..., None] / rate  # (M,K,1), turns a sample
    outer = torch.arange(-(-count // block), dtype=torch.float64) * block * step + turn.double()[..., None]
    inner = torch.arange(block, dtype=torch.float64) * step
    outer, inner = (each.frac().to(like).mul_(2.0 * math.pi) for each in (outer, inner))  # (M,K,blocks), (M,K,block)
    sines = torch.cat([outer.sin(), outer.cos()], dim=1) * loud.to(like).repeat(1, 2)[..., None]
    made = sines.transpose(1, 2) @ torch.cat([inner.cos(), inner.sin()], dim=1)
    return made.flatten(1)[:, :count]


def normal_noise(word: Tensor, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Standard normal numbers (M, *shape), keyed by ``word`` (M,) int64, of the type and on the device of ``like``."""
    count = math.prod(shape)
    made = torch.cat(_normal_pairs(word.to(like.device), -(-count // 2)), dim=1)
    return made[:, :count].to(like.dtype).reshape(len(word), *shape)


def normal_spectrum(word: Tensor, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """What ``rfft`` makes of standard normal numbers (M, *shape), T the last of shape: (M, ..., T // 2 + 1) complex.

    Its values are normal themselves, and independent, so they are made where they are needed, without the transform.
    """
    count = shape[-1]
    whole = (*shape[:-1], count // 2 + 1)
    parts = _normal_pairs(word.to(like.device), math.prod(whole), count / 2)
    made = torch.complex(*(part.to(like.dtype) for part in parts)).view(len(word), *whole)
    for end in (0, -1)[: 2 - count % 2]:  # of an even count the highest frequency is real too, as 0 Hz always is
        made[..., end] = math.sqrt(2.0) * made[..., end].real
    return made


def _normal_pairs(word: Tensor, count: int, variance: float = 1.0) -> tuple[Tensor, Tensor]:
    """Twice ``count`` normal numbers about 0 of each ``word`` (M,) int64: (M,count) float32 each.

    Two are made of each random word, the sine and the cosine of Box and Muller (1958), for half the cost of one each.
    """
    unit = random_words(word, count).view(torch.int32).float().mul_(2.0**-32)  # (M, 2 count) in [-0.5, 0.5]
    turn = unit[:, :count].mul_(2.0 * math.pi)
    size = unit[:, count:].add_(0.5).clamp_(min=2.0**-26).log_().mul_(-2.0 * variance).sqrt_()
    return turn.cos().mul_(size), turn.sin_().mul_(size)


def field_word(keys: Keys) -> Tensor:
    """The key of a field of noise that is made on the device: (N,) int64."""
    return torch.from_numpy(keys.bits("word").view(np.int64))
