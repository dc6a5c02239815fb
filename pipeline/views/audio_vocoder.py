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
        above = torch.arange(size // 2 + 1) > (high * (size // 2))[:, None]
        spectrum.masked_fill_(above.to(signals.device)[:, None], 0.0)
    total = overlapped(torch.fft.irfft(vocoded(spectrum, steps), size), (steps < frames).to(signals), window)
    lengths = (count / speed.double()).round().long()
    beyond = torch.arange(total.shape[1]) >= lengths[:, None]
    return total.masked_fill_(beyond.to(total.device), 0.0), lengths


def vocoded(spectrum: Tensor, steps: Tensor) -> Tensor:
    """Read ``spectrum`` (M,F,B) at ``steps`` (M,J) float64, in frames, rising: (M,J,B).

    The first frame's phase is that of the first frame; after the last frame there is silence. A bin that is ``FAINT``
    has the phase of silence, 0: its own is rounding, and would be carried into all that follows.
    """
    count, frames, bins = spectrum.shape
    spectrum = functional.pad(spectrum, (0, 0, 0, 1))  # one frame of silence
    size = torch.addcmul(spectrum.real.square(), spectrum.imag, spectrum.imag).sqrt_()  # several times as fast as abs
    faint = size <= FAINT * size.amax((1, 2), keepdim=True)
    phase = spectrum.mul_(size.reciprocal()).masked_fill_(faint, 1.0).flatten(0, 1)
    size = size.flatten(0, 1)
    first = steps.floor().long()
    row = torch.arange(count)[:, None] * (frames + 1)
    here, after = (row + place.clamp(max=frames) for place in (first, first + 1))  # (M,J): lines of size and phase
    share = (steps - first).to(size).flatten()[:, None]
    before, behind = (size.index_select(0, place.flatten().to(size.device)) for place in (here, after))
    loud = torch.lerp(before, behind, share)
    # each bin turns from its frame to the next; before the first, from silence, whose phase is 0, to the first frame
    here, after = torch.cat([row + frames, here[:, :-1]], dim=1), torch.cat([row, after[:, :-1]], dim=1)
    turn, back = (phase.index_select(0, place.flatten().to(size.device)) for place in (after, here))
    turn = turn.mul_(back.conj()).view(count, -1, bins)
    for last, now in pairwise(turn.unbind(1)):  # a running product along frames, twice as fast as torch's
        now.mul_(last)
    return turn.mul_(loud.view(count, -1, bins))


def overlapped(frames: Tensor, used: Tensor, window: Tensor) -> Tensor:
    """The signal of ``frames`` (M,J,size) by overlap and add, weighed by the window, from the first's middle: (M,L).

    Args:
        frames: are written to.
        used: (M,J), 1 for the frames that are there, else 0.
        window: (size,).
    """
    count, made, size = frames.shape
    hop = size // HOPS
    parts = frames.mul_(window).view(count, made, HOPS, hop)
    total = frames.new_zeros(count, made + HOPS - 1, hop)
    for number in range(HOPS):
        total[:, number : number + made] += parts[:, :, number]
    covering = functional.pad(used, (HOPS - 1, HOPS - 1)).unfold(1, HOPS, 1)  # the frames on each hop, last one first
    weight = covering @ window.square().view(HOPS, hop).flip(0)
    total = torch.where(weight > torch.finfo(weight.dtype).tiny, total / weight, total)
    return total.flatten(1)[:, size // 2 :]
