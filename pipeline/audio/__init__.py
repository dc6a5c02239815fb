"""Sound: bytes to values (``decoding``, ``riff``), values to clips (``contract``); clips to spectrograms (``mel``) and
pictures (``picture``), which alone need torch."""

from pipeline.audio.contract import Audio
from pipeline.audio.decoding import Decoded, Sound, decode, resampled

__all__ = ["Audio", "Decoded", "Sound", "decode", "resampled"]
