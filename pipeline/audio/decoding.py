"""Encoded sound to values: WAV, FLAC and Ogg (Vorbis, Opus), by libsndfile. What a file holds its bytes decide.

libsndfile reads what is there and says nothing of what is not; so every file is asked first how much it should be: the
chunks of a WAV, the count and MD5 of a FLAC's samples, the pages of an Ogg. What is cut, damaged or not finite is no
sound, and is told as a reason.

Source: RFC 9639 (FLAC), section 8.2; RFC 3533 (Ogg), section 6. Legend: C channels, T samples.
"""

from __future__ import annotations

import hashlib
import io
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.audio.riff import mended, plain_values, read_wave
from pipeline.forms import unheard
from pipeline.samples import Unreadable
from pipeline.spec import Refusal

Sound = npt.NDArray[np.float32]
VALUES = 2**27
"""most values (samples times channels) of one file: 2.3 hours of one channel at 16 kHz"""
BLOCK = 2**16
"""frames that are decoded at a time"""
LOUDEST = 4.0
"""floats beyond this are no sound in [-1, 1] that overshoots, but sound of another scale"""
NARROW = frozenset({"PCM_16", "PCM_U8", "PCM_S8", "ULAW", "ALAW"})
"""libsndfile's names of what 16 bits hold"""
NEEDED = "reading sound needs soundfile and soxr; pip install soundfile soxr, or install the project with [audio]"


class Decoded(NamedTuple):
    """One sound as its file has it."""

    values: Sound
    """(C, T) float32; integers of any depth are scaled to [-1, 1)"""
    rate: int
    """hertz"""
    extension: str
    """of the format that the bytes are in"""
    wide: bool
    """whether it has more than 16 bits"""
    plain: bool
    """whether any reader of the format hears this"""


def decode(content: bytes) -> Decoded:
    """Decode one file.

    Raises:
        Unreadable: no WAV, FLAC or Ogg, nothing in it, cut or damaged, too long, or values that are no sound.
    """
    if not content:
        raise Unreadable("empty file", "0 bytes")
    wave = read_wave(content)
    if wave is not None:
        quick = plain_values(content, wave) if wave.size <= 4 * VALUES else None
        if quick is not None:
            found = Decoded(quick, wave.rate, "wav", wave.bits > 16, wave.whole)
        else:
            found = _decoded(mended(content, wave), "wav")
            found = found._replace(plain=found.plain and wave.whole)
    elif content[:4] == b"fLaC":
        found = _decoded(content, "flac")
        _judge_flac(content, found)
    elif content[:4] == b"OggS":
        _judge_ogg(content)
        found = _decoded(content, "ogg")
    else:
        raise Unreadable("not a sound", unheard(content))
    if not found.values.shape[1]:
        raise Unreadable("no sound", "0 samples")
    return found._replace(values=judged(found.values))


def judged(values: Sound) -> Sound:
    """Values that are sound: finite, and clipped to [-1, 1] where they overshoot a little. Raises Unreadable."""
    peak = float(np.abs(values).max())
    if not np.isfinite(peak):
        place = int(np.flatnonzero(~np.isfinite(values).all(axis=0))[0])
        raise Unreadable("not finite", f"at sample {place}")
    if peak > LOUDEST:
        raise Unreadable("beyond full scale", f"values up to {peak:.4g}; scale them to [-1, 1]")
    return np.clip(values, -1.0, 1.0) if peak > 1.0 else values


def _decoded(content: bytes, extension: str) -> Decoded:
    """By libsndfile, block by block, so that no header makes it ask for more memory than there is sound."""
    try:
        import soundfile
    except ModuleNotFoundError:
        raise Refusal(NEEDED) from None
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            limit = VALUES // max(1, file.channels)
            blocks, frames = [], 0
            while len(block := file.read(BLOCK, dtype="float32", always_2d=True)):
                blocks.append(block)
                frames += len(block)
                if frames > limit:
                    raise Unreadable("too long", f"more than {limit} samples of {file.channels} channels")
            promised, subtype, rate, channels = file.frames, str(file.subtype), int(file.samplerate), file.channels
    except soundfile.SoundFileError as error:
        told = str(error).rpartition(": ")[2].strip().rstrip(".")
        raise Unreadable("damaged sound", f"{extension}: {told}") from None
    if 0 < frames < promised < 2**62:
        raise Unreadable("cut sound", f"{frames} of {promised} samples are there")
    values = np.concatenate(blocks) if blocks else np.zeros((0, channels), np.float32)
    lossless = subtype in ("PCM_16", "PCM_24") and extension in ("wav", "flac")
    return Decoded(np.ascontiguousarray(values.T), rate, extension, subtype not in NARROW, lossless)


def _judge_flac(content: bytes, found: Decoded) -> None:
    """Hold a FLAC to the count and the MD5 of its samples, where its header has them. Raises Unreadable."""
    if len(content) < 42 or content[4] & 0x7F:
        raise Unreadable("damaged sound", "flac without its first block")
    info = int.from_bytes(content[18:26], "big")
    total, bits = info & (2**36 - 1), (info >> 36 & 31) + 1
    if total and total != found.values.shape[1]:
        raise Unreadable("cut sound", f"{found.values.shape[1]} of {total} samples are there")
    digest = content[26:42]
    if any(digest) and bits in (8, 16, 24):
        whole = np.rint(found.values.T.astype(np.float64) * 2 ** (bits - 1)).astype("<i4")
        stored = whole.view(np.uint8).reshape(-1, 4)[:, : bits // 8].tobytes()
        if hashlib.md5(stored, usedforsecurity=False).digest() != digest:
            raise Unreadable("damaged sound", "flac: its samples are not those of its MD5")


def _judge_ogg(content: bytes) -> None:
    """Walk the pages: each is whole, none is missing, and the last of a stream says so. Raises Unreadable."""
    following: dict[bytes, int] = {}
    ended: dict[bytes, bool] = {}
    place = 0
    while place < len(content):
        header = content[place : place + 27]
        lacing = content[place + 27 : place + 27 + header[26]] if len(header) == 27 else b""
        if len(header) < 27 or header[:4] != b"OggS" or len(lacing) < header[26]:
            raise Unreadable("cut or damaged sound", f"ogg: no page at byte {place}")
        end = place + 27 + len(lacing) + sum(lacing)
        if end > len(content):
            raise Unreadable("cut sound", f"ogg: the page at byte {place} ends after the file")
        serial, number = header[14:18], int.from_bytes(header[18:22], "little")
        if following.get(serial, number) != number:
            raise Unreadable("damaged sound", f"ogg: page {following[serial]} is missing")
        following[serial], ended[serial] = number + 1, bool(header[5] & 4)
        place = end
    if not all(ended.values()):
        raise Unreadable("cut sound", "ogg: the stream has no last page")


def resampled(values: Sound, rate: int, wanted: int) -> Sound:
    """Values (C, T) at another rate, by soxr's high-quality resampler (linear phase, aliases below -120 dB).

    Source: R. Sibert, "The SoX Resampler library". Raises Unreadable where it would become too long, or nothing.
    """
    if rate == wanted:
        return values
    if values.size * (wanted / rate) > VALUES:
        raise Unreadable("too long", f"{values.shape[1]} samples at {rate} Hz, brought to {wanted} Hz")
    try:
        import soxr
    except ModuleNotFoundError:
        raise Refusal(NEEDED) from None
    made: Any = soxr.resample(np.ascontiguousarray(values.T), rate, wanted, quality="HQ")
    if not len(made):
        raise Unreadable("no sound", f"{values.shape[1]} sample(s) at {rate} Hz are none at {wanted} Hz")
    return np.ascontiguousarray(made.T.astype(np.float32))
