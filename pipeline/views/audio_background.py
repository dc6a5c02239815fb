"""Invariance to a sound underneath, made from the key alone: mains hum, babble of voices, or wind.

It is never another sample of the batch: a view would then depend on the batch, and the sound underneath would be of the
data's own classes. Hum is a tone of 50 or 60 Hz and its harmonics. Babble is noise with the spectrum that speech has in
the long run (flat up to about 500 Hz, 9 dB an octave down from there: Byrne et al., JASA 96, 1994), swelling at the
pace of syllables; wind is noise that falls by 12 dB an octave from 60 Hz, swelling slowly. The ratio to the clip is
exact.

N clips (N,C,T); ratios in dB, frequencies in Hz; rate in samples a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.audio_noise import PAIR, add_at
from pipeline.views.audio_rows import NEAR, field_word, normal_spectrum, on_rows, tones
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.parameter import Range, Span, draw, towards, within

Sound = Literal["hum", "babble", "wind"]
TONES = 8  # of a hum: the mains' frequency and its harmonics
SWELLS = 4  # voices of a babble, gusts of a wind
SPEECH = (500.0, 1.5)  # Hz from which the spectrum falls, and by which power of the frequency: 9 dB an octave
GALE = (60.0, 2.0)
LEAST = 20.0  # Hz below which there is nothing to hear
PACE = {"babble": (2.0, 6.0), "wind": (0.1, 0.5)}  # swells a second


class Background(Spec):
    """Put a made sound under the clip, the same in each channel, a random number of dB below it."""

    kind: Literal["background"] = "background"
    sounds: tuple[Sound, ...] = Field(default=("hum", "babble", "wind"), min_length=1)
    """what is chosen from, all equally likely"""
    snr: Range = (5.0, 30.0)
    """smallest and largest ratio of the clip to the sound, in dB, drawn uniformly; or its distribution"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of a sound being there"""

    removes: ClassVar[frozenset[str]] = frozenset({"noise"})
    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        yield from within("snr", self.snr, Span(-NEAR, NEAR), PAIR)
        if len(set(self.sounds)) < len(self.sounds):
            yield "sounds", "names a sound twice"

    def draw(self, keys: Keys) -> Parameters:
        """``sound`` (N,) int64: its number in ``sounds``; ``snr`` (N,) in dB; ``acts`` (N,) bool; ``word`` (N,) int64:
        the key of the noise; ``hertz`` (N,): of the mains; ``loud`` (N,TONES): amplitudes of the hum's tones;
        ``pace`` (N,SWELLS): where between slow and fast each swell is, 0 to 1; ``turn`` (N,TONES): where each tone or
        swell begins, in turns."""
        mains = 50.0 + 10.0 * keys.integers("mains", 0, 2)
        return {
            "sound": keys.integers("sound", 0, len(self.sounds)),
            "snr": draw(keys, "snr", self.snr),
            "acts": applied(keys, self.probability),
            "word": field_word(keys),
            "hertz": mains + keys.uniform("wander", -0.2, 0.2),
            "loud": keys.uniform("loud", shape=(TONES,)) / torch.arange(1, TONES + 1),
            "pace": keys.uniform("pace", shape=(SWELLS,)),
            "turn": keys.uniform("turn", shape=(TONES,)),
        }

    def apply(self, clips: Tensor, parameters: Parameters, rate: int) -> Tensor:
        def change(part: Tensor, rows: Tensor) -> Tensor:
            made = part.new_empty(len(part), part.shape[-1])
            for number, sound in enumerate(self.sounds):
                some = (parameters["sound"][rows] == number).nonzero().flatten()
                drawn = {name: values[rows[some]] for name, values in parameters.items()}
                if len(some):
                    made.index_copy_(0, some.to(made.device), _sounding(sound, part, drawn, rate))
            return add_at(part, made[:, None].expand_as(part), parameters["snr"][rows])

        return on_rows(clips, parameters["acts"], change)

    def at(self, strength: float) -> Background:
        """The same with its ratios drawn up to 60 dB by ``strength`` in [0, 1]; 0 is the identity."""
        probability = self.probability if strength else 0.0
        return self.model_copy(update={"snr": towards(self.snr, NEAR, strength), "probability": probability})

    def channels_fault(self, channels: int) -> str | None:
        return None

    def size_fault(self, samples: int, rate: int) -> str | None:
        return None


def _sounding(sound: Sound, like: Tensor, drawn: Parameters, rate: int) -> Tensor:
    """The sound as it was drawn, as long as the clips ``like``: (M,T)."""
    if sound == "hum":
        return hum(like, drawn["hertz"], drawn["loud"], drawn["turn"], rate)
    slow, fast = PACE[sound]
    corner, power = SPEECH if sound == "babble" else GALE
    level = swell(like, slow + (fast - slow) * drawn["pace"], drawn["turn"][:, :SWELLS], rate)
    return shaped(like, drawn["word"], corner, power, rate).mul_(level)


def hum(like: Tensor, hertz: Tensor, loud: Tensor, turn: Tensor, rate: int) -> Tensor:
    """Tones at multiples of ``hertz`` (M,) below half the rate, of amplitudes ``loud`` (M,TONES): (M,T).

    Args:
        turn: where each begins (M,TONES), in turns.
    """
    multiples = hertz[:, None] * torch.arange(1, loud.shape[1] + 1)
    return tones(like, multiples, loud * (multiples < rate / 2), turn, rate)


def shaped(like: Tensor, word: Tensor, corner: float, power: float, rate: int) -> Tensor:
    """Noise keyed by ``word`` (M,), flat from 20 Hz to ``corner`` Hz, then falling as frequency**-power: (M,T)."""
    count = like.shape[-1]
    bins = torch.arange(count // 2 + 1, device=like.device, dtype=like.dtype) * (rate / count)
    response = (1.0 + (bins / corner).square()).pow_(-0.5 * power) * (bins >= LEAST)
    response[-1] += float(bins[-1] < LEAST)  # of a clip too short for any such frequency, its highest is left
    made: Tensor = torch.fft.irfft(normal_spectrum(word, (count,), like).mul_(response), count)
    return made


def swell(like: Tensor, pace: Tensor, turn: Tensor, rate: int) -> Tensor:
    """The mean of SWELLS raised sines of ``pace`` (M,SWELLS) Hz, each in [0, 1]: (M,T)."""
    share = torch.full_like(pace, 0.5 / pace.shape[1])
    return tones(like, pace, share, turn, rate).add_(0.5)
