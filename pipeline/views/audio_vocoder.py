"""The phase vocoder: a clip slower or faster at the same pitch, each at a rate of its own, in one batch.

Magnitudes are read between frames on a straight line, and the phase of each bin goes on by what it went from one frame
to the next (Flanagan and Golden, Bell System Technical Journal 45, 1966; Laroche and Dolson, IEEE Trans. Speech and
Audio Processing 7, 1999). It is librosa's ``phase_vocoder`` and ``time_stretch``, with one difference in how it is
computed: phases are complex numbers of length 1 that are multiplied, so there is no arctangent, sine or cosine, and no
angle that grows until float32 has no digits left for it.

M signals (M,T); frames of ``size`` samples, ``HOPS`` a size; F frames, J frames of the result, B bins.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

HOPS = 4  # hops in a frame
FAINT = 1e-6  # of the loudest bin of the signal: 120 dB below it
FRAME_MS = 64.0  # about two periods of the lowest voice, and short enough for a consonant


def frame_size(rate: int) -> int:
    """Samples of a frame: the power of two nearest to 64 ms, 4 at the least."""
    return int(2 ** max(2, round(math.log2(FRAME_MS * rate / 1000.0))))


def stretched(signals: Tensor, speed: Tensor, size: int, high: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """``signals`` (M,T) played at ``speed`` (M,) times their own, and how long each is then, round(T / speed) (M,).

    Both start at the same sample; beyond a row's length there is silence.

    Args:
        size: samples of a frame, a power of two.
        high: share of the spectrum, from 0 Hz up, that is kept of each signal (M,); None for all of it.
    """
    count, hop = signals.shape[-1], size // HOPS
    frames = 1 + count // hop
    made = (frames / speed.double()).ceil().long()  # (M,): frames of each row's result
    steps = torch.arange(int(made.max()), dtype=torch.float64) * speed.double()[:, None]  # (M,J), in frames
    window = torch.hann_window(size, dtype=signals.dtype, device=signals.device)
    padded = functional.pad(signals, (size // 2, size // 2))
    spectrum = torch.fft.rfft(padded.unfold(-1, size, hop) * window)  # (M,F,B)
    if high is not None:
        kept = torch.arange(size // 2 + 1) <= (high * (size // 2))[:, None]
        kept = kept[:, kept.any(0)]  # what no signal keeps is not worked on
        spectrum = spectrum[..., : kept.shape[1]].mul_(kept.to(signals)[:, None])
    total = overlapped(torch.fft.irfft(vocoded(spectrum, steps), size), (steps < frames).to(signals), window)
    lengths = (count / speed.double()).round().long()
    within = (lengths[:, None].int() - torch.arange(total.shape[1], dtype=torch.int32)).clamp_(0, 1)
    return total.mul_(within.to(total)), lengths


def vocoded(spectrum: Tensor, steps: Tensor) -> Tensor:
    """Read ``spectrum`` (M,F,B) at ``steps`` (M,J) float64, in frames, rising: (M,J,B), in memory frame by frame.

    The first frame's phase is that of the first frame; after the last frame there is silence. A bin that is ``FAINT``
    has the phase of silence, 0: its own is rounding, and would be carried into all that follows.
    """
    frames = spectrum.shape[1]
    spectrum = functional.pad(spectrum, (0, 0, 1, 2))  # silence before the first frame, and after the last one
    size = magnitude(spectrum)
    # 1 where a bin is heard, else 0: a product with it is many times as fast as a mask
    heard = torch.gt(size, FAINT * size.amax((1, 2), keepdim=True), out=torch.empty_like(size))
    phase = spectrum.mul_(heard / size.clamp(min=torch.finfo(size.dtype).tiny)).add_(1.0 - heard)
    turns = phase[:, 1:] * phase[:, :-1].conj()  # of each bin from a frame to the next, from silence to the first frame
    first = steps.T.floor().long().clamp_(max=frames)  # (J,M)
    turn = lines(turns, functional.pad(first[:-1] + 1, (0, 0, 1, 0)))
    for last, now in pairwise(turn.unbind()):  # a running product along frames, several times as fast as torch's
        now.mul_(last)
    loud = torch.lerp(lines(size, first + 1), lines(size, first + 2), (steps.T - first).to(size)[..., None])
    return turn.mul_(loud).transpose(0, 1)


def magnitude(spectrum: Tensor) -> Tensor:
    """``spectrum.abs()``: on a CPU by numpy, which is ten times as fast."""
    return spectrum.abs() if spectrum.device.type != "cpu" else torch.from_numpy(np.abs(spectrum.numpy()))


def lines(table: Tensor, place: Tensor) -> Tensor:
    """Of each of M tables (M,F,B) the lines at ``place`` (J,M) int64, on the CPU: (J,M,B)."""
    count, length, width = table.shape
    line = place + torch.arange(count) * length
    return table.flatten(0, 1).index_select(0, line.flatten().to(table.device)).view(-1, count, width)


def overlapped(frames: Tensor, used: Tensor, window: Tensor) -> Tensor:
    """The signal of ``frames`` (M,J,size) by overlap and add, weighed by the window, from the first's middle: (M,L).

    Args:
        used: (M,J), 1 for the frames that are there, else 0.
        window: (size,).
    """
    count, made, size = frames.shape
    hop = size // HOPS
    parts, shape = frames.view(count, made, HOPS, hop), window.view(HOPS, hop)
    total, weight = frames.new_zeros(2, count, made + HOPS - 1, hop).unbind()
    for number in range(HOPS):
        part = slice(number, number + made)
        total[:, part].addcmul_(parts[:, :, number], shape[number])
        weight[:, part].addcmul_(used[..., None], shape[number].square())
    nothing = torch.le(weight, torch.finfo(weight.dtype).tiny, out=torch.empty_like(weight))  # 1 where no frame is
    return (total / weight.add_(nothing)).flatten(1)[:, size // 2 :]
