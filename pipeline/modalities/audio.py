"""Sound: what check and audit ask of it. N clips (N, C, T) in [-1, 1]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from pipeline.audio import Audio
from pipeline.modalities import audio_features
from pipeline.views import Invariance
from pipeline.views.audio import (
    BandFilter,
    FrequencyMask,
    Gain,
    NoiseAtSnr,
    Pitch,
    Polarity,
    Reverberation,
    Tempo,
    TimeMask,
    TimeReversal,
    TimeShift,
)


@dataclass(frozen=True)
class AudioProof:
    """The questions, of clips of one length and rate."""

    contract: Audio

    def features(self, batch: Tensor) -> dict[str, Tensor]:
        """Envelope, spectrum, pooled log-mel, random filters."""
        return audio_features.features(batch, self.contract.rate)

    def statistics(self, batch: Tensor) -> dict[str, Tensor]:
        """Level, offset, silence, length, and the spectra that a room leaves."""
        return audio_features.statistics(batch, self.contract.rate)

    def breakers(self, statistic: str) -> Iterator[tuple[str, Invariance]]:
        """Gain for levels, shifts and tempo for places, filters and noise for spectra."""
        if "level" in statistic:
            for decibels in (6.0, 12.0, 24.0):
                yield f"gain of {decibels:g} dB", Gain(db=decibels)
        elif "offset" in statistic:
            yield "polarity", Polarity(probability=0.5)
            yield "band_filter", self._band()
        elif "silence" in statistic:
            for part in (16, 8, 4):
                yield f"time_shift of {self._ms(1 / part):.0f} ms", TimeShift(ms=self._ms(1 / part))
        elif "length" in statistic:
            yield "tempo of 0.8 to 1.25", Tempo(speed=(0.8, 1.25))
            yield "tempo of 0.6 to 1.6", Tempo(speed=(0.6, 1.6))
        elif "edges" in statistic:
            for snr in ((20.0, 40.0), (10.0, 30.0)):
                yield f"noise_at_snr of {snr[0]:g} to {snr[1]:g} dB", NoiseAtSnr(snr=snr)
            yield "reverberation", Reverberation(seconds=(0.1, 0.4))
        else:
            yield "band_filter", self._band()
            yield "frequency_mask of 0.3", FrequencyMask(share=(0.0, 0.3), count=2)

    def drafts(self) -> Sequence[Invariance]:
        """The usual invariances of recordings."""
        return [
            TimeShift(ms=self._ms(1 / 20)),
            TimeShift(ms=self._ms(1 / 5)),
            Tempo(speed=(0.9, 1.1)),
            Pitch(semitones=2.0),
            Pitch(semitones=4.0),
            Gain(db=6.0),
            Polarity(probability=0.5),
            NoiseAtSnr(snr=(10.0, 40.0)),
            Reverberation(seconds=(0.1, 0.4)),
            self._band(),
            FrequencyMask(share=(0.0, 0.15)),
            TimeMask(ms=(0.0, self._ms(1 / 10))),
            TimeReversal(probability=0.5),
        ]

    def controls(self, fill: float) -> Sequence[Invariance]:
        """Moves in time, pitch and level, parts, noise and rooms; edges are silent."""
        return (
            TimeShift(ms=self._ms(1 / 8)),
            TimeReversal(probability=1.0),
            TimeMask(ms=(self._ms(1 / 20), self._ms(1 / 5))),
            Gain(db=12.0),
            Polarity(probability=1.0),
            NoiseAtSnr(snr=(0.0, 20.0)),
            Tempo(speed=(0.7, 1.4)),
            Pitch(semitones=4.0),
            self._band(),
            Reverberation(seconds=(0.2, 0.6)),
        )

    def mover(self, factor: str, fill: float) -> tuple[Invariance, str] | None:
        """One transformation a factor."""
        movers: dict[str, tuple[Invariance, str]] = {
            "onset": (TimeShift(ms=self._ms(1 / 8)), "ms"),
            "loudness": (Gain(db=12.0), "db"),
            "tempo": (Tempo(speed=(0.7, 1.4)), "speed"),
            "pitch": (Pitch(semitones=6.0), "semitones"),
            "noise": (NoiseAtSnr(snr=(0.0, 40.0)), "snr"),
            "timbre": (self._band(), "high"),
            "room": (Reverberation(seconds=(0.05, 0.8), direct=(0.0, 5.0)), "seconds"),
            "polarity": (Polarity(probability=0.5), "inverted"),
            "direction": (TimeReversal(probability=0.5), "reversed"),
            "occlusion": (TimeMask(ms=(self._ms(1 / 20), self._ms(1 / 4))), "place"),
        }
        return movers.get(factor)

    def raw(self, batch: Tensor, side: int) -> Tensor:
        """Log-mel statistics: mean and spread over time of each bin."""
        return audio_features.raw(batch, self.contract.rate)

    def raw_again(self, rows: Tensor, side: int, smaller: int) -> Tensor:
        """Statistics have no sides, so they stay."""
        return rows

    def _ms(self, share: float) -> float:
        """Milliseconds of a part of the clip."""
        return 1000 * share * self.contract.size.samples / self.contract.rate

    def _band(self) -> BandFilter:
        return BandFilter(low=(20.0, self.contract.rate / 25), high=(self.contract.rate / 6, self.contract.rate / 2.2))
