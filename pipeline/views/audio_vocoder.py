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
    """``signals`` (M,T) played at ``speed`` (M,) times their own, and how many samples of each row count (M,).

    Both start at the same sample; what is beyond a row's count, round(T / speed), is not to be used.

    Args:
        size: samples of a frame, a power of two.
        high: share of the spectrum, from 0 Hz up, that is kept of each signal (M,); None for all of it.
    """
    count = signals.shape[-1]
    frames, hop = 1 + count // (size // HOPS), size // HOPS
    made = (frames / speed.double()).ceil().long()  # (M,): frames of each row's result
    steps = torch.arange(int(made.max()), dtype=torch.float64) * speed.double()[:, None]  # (M,J), in frames
    window = torch.hann_window(size, dtype=signals.dtype, device=signals.device)
    padded = functional.pad(signals, (size // 2, size // 2))
    spectrum = torch.fft.rfft(padded.unfold(-1, size, hop) * window)  # (M,F,B)
    spectrum = vocoded(spectrum, steps)
    used = (steps < frames).to(signals.device)  # (M,J)
    spectrum *= used[:, :, None]
    if high is not None:
        bins = torch.arange(size // 2 + 1, device=signals.device)
        spectrum *= (bins <= (high * (size // 2)).to(signals)[:, None])[:, None]
    lengths = (count / speed.double()).round().long()
    return overlapped(torch.fft.irfft(spectrum, size), used, window), lengths


def vocoded(spectrum: Tensor, steps: Tensor) -> Tensor:
    """Read ``spectrum`` (M,F,B) at ``steps`` (M,J) float64, in frames, rising: (M,J,B).

    The first frame's phase is that of the first frame; after the last frame there is silence. A bin that is ``FAINT``
    has the phase of silence, 0: its own is rounding, and would be carried into all that follows.
    """
    count, frames, bins = spectrum.shape
    spectrum = functional.pad(spectrum, (0, 0, 0, 1))  # one frame of silence
    size = spectrum.abs()
    phase = torch.where(size > FAINT * size.amax((1, 2), keepdim=True), spectrum / size, 1.0)
    first = steps.floor().long().clamp(max=frames)
    row = torch.arange(count)[:, None] * (frames + 1)
    here, after = ((row + place.clamp(max=frames)).flatten().to(spectrum.device) for place in (first, first + 1))
    size, phase = size.flatten(0, 1), phase.flatten(0, 1)
    share = (steps - first).to(size).flatten()[:, None]
    loud = torch.lerp(size.index_select(0, here), size.index_select(0, after), share).view(count, -1, bins)
    # how far each bin turns from its frame to the next
    turn = (phase.index_select(0, after) * phase.index_select(0, here).conj()).view(count, -1, bins)
    turn = torch.cat([phase.view(count, frames + 1, bins)[:, :1], turn[:, :-1]], dim=1)
    return turn.cumprod(1) * loud


def overlapped(frames: Tensor, used: Tensor, window: Tensor) -> Tensor:
    """The signal of ``frames`` (M,J,size) by overlap and add, weighed by the window, from the first's middle: (M,L).

    Args:
        used: (M,J) bool: the frames that are there.
        window: (size,).
    """
    count, made, size = frames.shape
    hop = size // HOPS
    parts = (frames * window).view(count, made, HOPS, hop)
    weights = window.square().view(HOPS, hop)
    total = frames.new_zeros(count, made + HOPS - 1, hop)
    weight = torch.zeros_like(total)
    for number in range(HOPS):
        total[:, number : number + made] += parts[:, :, number]
        weight[:, number : number + made] += used[:, :, None] * weights[number]
    total = torch.where(weight > torch.finfo(weight.dtype).tiny, total / weight, total)
    return total.flatten(1)[:, size // 2 :]
