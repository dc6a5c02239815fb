"""The chunks of a WAV file: what sound it says that it has, what is there, and the plain cases read by NumPy alone.

A file that was streamed (by ffmpeg, sox, arecord) has a size that was not known when its header was written: 0, or the
largest that fits. What follows the header is then the sound. A file that is shorter than any other size says is cut,
which decoders pass over in silence.

Source: Microsoft, "Multiple channel audio data and WAVE files", 2007 (WAVE_FORMAT_EXTENSIBLE); EBU Tech 3306 (RF64).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.samples import Unreadable

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
STREAMED = 2**31 - 2**17
"""bytes: sizes from here up stand for "unknown"; writers of streams leave 2^31 or 2^32, less a header"""


@dataclass(frozen=True)
class Wave:
    """A WAV file's header, and where its sound lies."""

    tag: int
    """1 integers, 3 floats; of an extensible file that of its subformat"""
    channels: int
    rate: int
    """hertz"""
    bits: int
    """of a sample as it is stored"""
    offset: int
    size: int
    """bytes of whole frames that are there"""
    whole: bool
    """whether the header tells the size that is there, as any reader would expect"""
    size_at: int
    """where the header's size of the sound stands"""


def read_wave(content: bytes) -> Wave | None:
    """The header of a WAV file (RIFF or RF64); None if it is none.

    Raises:
        Unreadable: no format, no sound, or less sound than the header says.
    """
    if content[:4] not in (b"RIFF", b"RF64") or content[8:12] != b"WAVE":
        return None
    place, form, long_size = 12, None, None
    while place + 8 <= len(content):
        name, size = content[place : place + 4], int.from_bytes(content[place + 4 : place + 8], "little")
        if name == b"ds64":
            long_size = int.from_bytes(content[place + 16 : place + 24], "little")
        elif name == b"fmt ":
            form = content[place + 8 : place + 8 + size]
        elif name == b"data":
            if form is None:
                raise Unreadable("damaged sound", "WAV without a format before its sound")
            declared = long_size if long_size is not None and size == 0xFFFFFFFF else size
            return _described(content, form, place + 4, declared)
        place += 8 + size + size % 2
    raise Unreadable("cut or damaged sound", "WAV without any sound behind its header")


def _described(content: bytes, form: bytes, size_at: int, declared: int) -> Wave:
    if len(form) < 16:
        raise Unreadable("damaged sound", f"WAV format of {len(form)} bytes")
    tag, channels, rate, _, align, bits = struct.unpack("<HHIIHH", form[:16])
    if tag == EXTENSIBLE and len(form) >= 26:
        tag = int.from_bytes(form[24:26], "little")
    if not channels or not rate or not align:
        raise Unreadable("damaged sound", f"WAV of {channels} channels at {rate} Hz")
    offset, there = size_at + 4, len(content) - size_at - 4
    riff = int.from_bytes(content[4:8], "little")
    streamed = declared >= STREAMED or (declared == 0 and there > 0 and riff + 8 != len(content))
    if not streamed and declared > there:
        raise Unreadable("cut sound", f"{there} of {declared} bytes of sound are there")
    size = there if streamed else declared
    return Wave(tag, channels, rate, bits, offset, size - size % align, not streamed, size_at)


def plain_values(content: bytes, wave: Wave) -> npt.NDArray[np.float32] | None:
    """Values (C, T) float32 of 16-bit integers and 32-bit floats; None of anything else."""
    kinds = {(PCM, 16): "<i2", (FLOAT, 32): "<f4"}
    kind = kinds.get((wave.tag, wave.bits))
    if kind is None:
        return None
    frames = np.frombuffer(content, kind, wave.size // (wave.bits // 8), wave.offset).reshape(-1, wave.channels)
    values = np.ascontiguousarray(frames.T).astype(np.float32)
    return values / np.float32(32768) if wave.tag == PCM else values


def whole_numbers(content: bytes) -> npt.NDArray[np.int16] | None:
    """The values (C, T) of a WAV of 16-bit integers as they are; None of anything else."""
    wave = read_wave(content)
    if wave is None or (wave.tag, wave.bits) != (PCM, 16):
        return None
    frames = np.frombuffer(content, "<i2", wave.size // 2, wave.offset).reshape(-1, wave.channels)
    return frames.T.copy()


def mended(content: bytes, wave: Wave) -> bytes:
    """A streamed file with its sizes written in, for decoders that would believe its header."""
    if wave.whole:
        return content
    size = wave.size.to_bytes(4, "little")
    riff = (wave.offset + wave.size - 8).to_bytes(4, "little")
    return b"RIFF" + riff + content[8 : wave.size_at] + size + content[wave.offset : wave.offset + wave.size]


def encode_wave(values: npt.NDArray[np.float32], rate: int, wide: bool) -> bytes:
    """Values (C, T) in [-1, 1] as WAV: 16-bit integers, or 32-bit floats where ``wide``; equal values, equal bytes."""
    frames = np.ascontiguousarray(values.T)
    if wide:
        tag, bits, sound = FLOAT, 32, frames.astype("<f4").tobytes()
    else:
        tag, bits, sound = PCM, 16, np.clip(np.rint(frames * 32768), -32768, 32767).astype("<i2").tobytes()
    align = len(values) * bits // 8
    form = struct.pack("<HHIIHH", tag, len(values), rate, rate * align, align, bits)
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(sound)) + sound
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks
