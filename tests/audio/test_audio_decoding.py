"""Sound files of every kind: the right waveform, or a reason for the ledger; never noise."""

from __future__ import annotations

import csv
import io
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.audio import Audio, decode
from pipeline.data import DataSpec
from pipeline.keys import Keys
from pipeline.samples import Unreadable
from pipeline.sharding import shard
from pipeline.spec import Refusal, parse
from pipeline.views import Window, draw_view

soundfile = pytest.importorskip("soundfile", reason="needs soundfile")
wavfile = pytest.importorskip("scipy.io.wavfile")

HOSTILE = Path(__file__).parents[2] / "../shared/data/hostile"
RATE = 8000
CASES = [
    *(("WAV", kind) for kind in ("PCM_16", "PCM_24", "PCM_32", "PCM_U8", "FLOAT", "DOUBLE", "ULAW", "ALAW")),
    *(("WAVEX", kind) for kind in ("PCM_16", "PCM_24", "FLOAT")),
    *(("RF64", kind) for kind in ("PCM_16", "PCM_24")),
    *(("FLAC", kind) for kind in ("PCM_S8", "PCM_16", "PCM_24")),
    ("OGG", "VORBIS"),
]
ERROR = {"PCM_U8": 1 / 127, "PCM_S8": 1 / 127, "ULAW": 0.03, "ALAW": 0.03, "VORBIS": 0.2}
"""How far a lossy kind may be from what was written; others 2 steps of 16 bits."""


def tone(seconds: float = 0.5, hertz: float = 440.0, rate: int = RATE, peak: float = 0.4) -> np.ndarray:
    return peak * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


def written(values: np.ndarray, form: str = "WAV", kind: str = "PCM_16", rate: int = RATE) -> bytes:
    """Values (T,) or (T, C) as a file."""
    buffer = io.BytesIO()
    soundfile.write(buffer, values, rate, kind, format=form)
    return buffer.getvalue()


def contract(**changes: Any) -> Audio:
    usual = {
        "kind": "audio",
        "rate": RATE,
        "seconds": 0.5,
        "channels": 1,
        "mix": "mean",
        "longer": "centre",
        "shorter": "centre",
    }
    return Audio.model_validate({**usual, **changes})


def clip(raw: bytes, of: Audio | None = None) -> np.ndarray:
    """What comes back of a raw file after sharding: (C, T)."""
    of = of or contract()
    taken = of.take(raw, False)
    return of.read(raw if taken.stored is None else taken.stored)


@pytest.mark.parametrize(("form", "kind"), CASES)
def test_every_depth_and_container_gives_the_waveform(form: str, kind: str) -> None:
    values = tone()
    found = decode(written(values, form, kind))
    assert (found.rate, found.values.dtype, found.values.shape) == (RATE, np.float32, (1, 4000))
    assert np.abs(found.values[0] - values).max() < ERROR.get(kind, 2 / 32768)
    assert np.abs(clip(written(values, form, kind))[0] - values).max() < ERROR.get(kind, 2 / 32768)


@pytest.mark.parametrize("kind", ["PCM_16", "PCM_24", "PCM_32", "PCM_U8", "FLOAT", "DOUBLE"])
@pytest.mark.parametrize("form", ["WAV", "WAVEX"])
def test_waveforms_are_those_that_scipy_reads(form: str, kind: str) -> None:
    raw = written(np.stack([tone(), tone(hertz=700)], axis=1), form, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of chunks that it skips
        _, theirs = wavfile.read(io.BytesIO(raw))
    scale = {"u": 128.0, "i": 2.0 ** (8 * theirs.itemsize - 1), "f": 1.0}[theirs.dtype.kind]
    expected = (theirs.astype(np.float64) - (128 if theirs.dtype.kind == "u" else 0)) / scale
    np.testing.assert_allclose(decode(raw).values.T, expected, atol=1e-7)


@pytest.mark.parametrize(("form", "kind"), CASES)
def test_a_file_that_is_cut_anywhere_is_refused(form: str, kind: str) -> None:
    raw = written(tone() + 0.01 * np.random.default_rng(0).normal(size=4000), form, kind)
    for length in (0, 3, 11, 20, 40, len(raw) // 4, len(raw) // 2, len(raw) - 700, len(raw) - 2):
        with pytest.raises(Unreadable):
            decode(raw[:length])


@pytest.mark.parametrize("kind", ["PCM_16", "PCM_24"])
def test_a_flac_with_a_changed_byte_is_refused(kind: str) -> None:
    raw = bytearray(written(tone() + 0.01 * np.random.default_rng(0).normal(size=4000), "FLAC", kind))
    for place in range(len(raw) - 1000, len(raw) - 20, 97):
        changed = raw.copy()
        changed[place] ^= 0x40
        with pytest.raises(Unreadable):
            decode(bytes(changed))


@pytest.mark.parametrize("kind", ["PCM_S8", "PCM_16", "PCM_24"])
def test_a_flac_whose_samples_are_not_those_of_its_header_is_refused(kind: str) -> None:
    raw = bytearray(written(tone(), "FLAC", kind))
    raw[30] ^= 1  # of the MD5, which no decoder here looks at
    with pytest.raises(Unreadable, match=r"damaged sound \(flac: its samples are not those of its MD5\)"):
        decode(bytes(raw))


def test_an_ogg_whose_page_is_missing_is_refused() -> None:
    raw = written(tone(seconds=20.0), "OGG", "VORBIS")
    pages = [place for place in range(len(raw)) if raw[place : place + 4] == b"OggS"]
    assert len(pages) > 4
    with pytest.raises(Unreadable, match=r"damaged sound \(ogg: page 3 is missing\)"):
        decode(raw[: pages[3]] + raw[pages[4] :])


def sized(raw: bytes, data: int, riff: int) -> bytes:
    """A WAV with other sizes in its header, as a writer leaves them that could not go back."""
    place = raw.index(b"data") + 4
    return raw[:4] + struct.pack("<I", riff) + raw[8:place] + struct.pack("<I", data) + raw[place + 4 :]


@pytest.mark.parametrize("kind", ["PCM_16", "PCM_24", "PCM_U8", "FLOAT"])
@pytest.mark.parametrize(
    ("data", "riff"),
    [(0xFFFFFFFF, 0xFFFFFFFF), (0, 0), (0x7FFFFFFF - 36, 0x7FFFFFFF), (0x80000000, 0x80000024), (0, 0xFFFFFFFF)],
)
def test_a_streamed_file_has_all_that_follows_its_header(kind: str, data: int, riff: int) -> None:
    raw = written(tone(), "WAV", kind)
    raw = raw[: raw.index(b"data") + 8 + int.from_bytes(raw[raw.index(b"data") + 4 :][:4], "little")]
    np.testing.assert_array_equal(decode(sized(raw, data, riff)).values, decode(raw).values)
    of = contract()
    taken = of.take(sized(raw, data, riff), False)
    assert taken.stored is not None  # written with the true size, for any reader
    values, _ = soundfile.read(io.BytesIO(taken.stored), dtype="float32")
    np.testing.assert_array_equal(values, decode(raw).values[0])


def test_chunks_before_and_behind_the_sound_are_no_sound() -> None:
    raw = written(tone())
    place = raw.index(b"data")
    extra = b"JUNK" + struct.pack("<I", 5) + b"abcde\0" + b"LIST" + struct.pack("<I", 4) + b"INFO"
    more = raw[:place] + extra + raw[place:] + b"LIST" + struct.pack("<I", 4) + b"INFO"
    np.testing.assert_array_equal(decode(more).values, decode(raw).values)
    empty = sized(raw[: place + 8] + b"LIST" + struct.pack("<I", 4) + b"INFO", 0, place + 12)
    with pytest.raises(Unreadable, match="no sound"):
        decode(empty)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: b"", r"empty file \(0 bytes\)"),
        (lambda: b"ID3\x04 something", r"not a sound \(none of wav, flac, ogg, but an MP3 sound; convert it to wav"),
        (lambda: b"\xff\xfb\x90d" + bytes(90), "but an MP3 sound; convert it to wav, flac or ogg"),
        (lambda: b"\0\0\0 ftypM4A " + bytes(90), "but an MP4 or M4A file; convert it to wav, flac or ogg"),
        (lambda: b"\x89PNG" + bytes(90), "but a PNG picture"),
        (lambda: b"<html>no such file</html>" * 9, "not a sound"),
        (lambda: b"RIFF" + struct.pack("<I", 100) + b"AVI " + bytes(100), "not a sound"),
        (lambda: written(np.zeros(0)), r"no sound \(0 samples\)"),
        (lambda: written(np.append(tone(), np.nan), "WAV", "FLOAT"), r"not finite \(at sample 4000\)"),
        (lambda: written(tone() * 32768, "WAV", "FLOAT"), r"beyond full scale \(values up to 1.311e\+04; scale them"),
        (lambda: written(tone())[:36], "cut or damaged sound"),
        (lambda: b"fLaC" + bytes(60), "damaged sound"),
        (lambda: b"OggS" + bytes(60), "damaged sound"),
    ],
)
def test_what_is_no_sound_says_why(make: Callable[[], bytes], reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        decode(make())


def test_a_header_cannot_ask_for_more_than_there_is() -> None:
    raw = bytearray(written(tone(), "FLAC"))
    raw[21:26] = bytes([raw[21] | 0x0F, 255, 255, 255, 255])  # 2**36 - 1 samples
    with pytest.raises(Unreadable, match=r"(cut|damaged) sound"):
        decode(bytes(raw))


def test_what_overshoots_a_little_is_clipped() -> None:
    loud = np.append(tone(), [1.3, -1.2])
    np.testing.assert_allclose(decode(written(loud, "WAV", "FLOAT")).values[0, -2:], [1, -1])


def test_channels_become_those_of_the_contract_by_its_rule() -> None:
    left, right = tone(), tone(hertz=700)
    both = written(np.stack([left, right], axis=1))
    np.testing.assert_allclose(clip(both)[0], (left + right) / 2, atol=1e-4)
    np.testing.assert_allclose(clip(both, contract(mix="first"))[0], left, atol=1e-4)
    kept = clip(both, contract(channels=2))
    np.testing.assert_allclose(kept, np.stack([left, right]), atol=1e-4)
    twice = clip(written(left), contract(channels=2))
    np.testing.assert_allclose(twice, np.stack([left, left]), atol=1e-4)


def test_what_was_made_up_of_a_file_is_odd() -> None:
    def odd(values: np.ndarray, **changes: Any) -> tuple[str, ...]:
        return contract(**changes).take(written(values), False).odd

    two, four = np.stack([tone()] * 2, axis=1), np.stack([tone()] * 4, axis=1)
    assert odd(tone()) == odd(two) == odd(two, channels=2) == odd(four, channels=3, mix="first") == ()
    assert odd(tone(), channels=3) == ("of 1 channel, repeated into 3 (input.channels)",)
    assert odd(two, channels=3) == ("of 2 channels, repeated into 3 (input.channels)",)
    assert odd(four, channels=3) == ("of 4 channels, their mean in each of 3 (input.mix)",)
    assert odd(tone()[:400]) == ()  # a tenth
    assert odd(tone()[:399]) == ("shorter than a tenth of input.seconds, the rest is silence",)
    assert odd(tone()[:1], shorter="repeat") == ("shorter than a tenth of input.seconds, repeated to fill it",)


def test_what_is_odd_is_noted_with_its_count(tmp_path: Path) -> None:
    for number in range(12):
        values = tone(hertz=200 + number) if number < 9 else np.array([0.1 * number - 0.5])
        (tmp_path / "raw").mkdir(exist_ok=True)
        (tmp_path / "raw" / f"{number:02}.wav").write_bytes(written(values))
    source = {"kind": "folder", "train": None, "test": None, "classes": None}
    plain = {"source": source, "input": contract(channels=3).model_dump(), "split": {"test": 0.3, "seed": 0}}
    notes = []
    for workers in (1, 2):
        folder = tmp_path / f"out{workers}"
        folder.mkdir()
        data = parse({**plain, "labels": []}, DataSpec, "data.yaml")
        notes.append(shard(data, "mine", tmp_path / "raw", folder, workers=workers)[1].notes)
    assert (
        notes[0]
        == notes[1]
        == [
            "12 clips of 1 channel, repeated into 3 (input.channels), as 00.wav",
            "3 clips shorter than a tenth of input.seconds, the rest is silence, as 09.wav",
        ]
    )


def test_a_sound_of_which_the_new_rate_keeps_nothing_is_none() -> None:
    pytest.importorskip("soxr", reason="needs soxr")
    with pytest.raises(Unreadable, match=r"no sound \(1 sample\(s\) at 44100 Hz are none at 8000 Hz"):
        clip(written(np.array([0.5]), rate=44_100))


@pytest.mark.parametrize("rate", [44_100, 16_000, 11_025, 48_000, 4_000])
def test_another_rate_is_resampled_and_keeps_its_pitch(rate: int) -> None:
    pytest.importorskip("soxr", reason="needs soxr")
    middle = slice(400, 3600)  # away from the edges, where both ring
    found = clip(written(tone(rate=rate, hertz=440), rate=rate))
    assert found.shape == (1, 4000)
    assert np.abs(found[0] - tone())[middle].max() < 2e-3


def test_what_the_new_rate_cannot_hold_is_gone_and_not_folded_down() -> None:
    pytest.importorskip("soxr", reason="needs soxr")
    from scipy.signal import resample_poly

    high = tone(hertz=5000, rate=44_100)  # above half of 8 kHz: would come back as 3 kHz
    found = clip(written(high, rate=44_100))[0, 400:3600]
    assert 20 * np.log10(np.sqrt(np.mean(found**2)) / 0.28) < -80
    assert np.abs(found).max() < np.abs(resample_poly(high, 80, 441)[400:3600]).max()
    naive = np.interp(np.arange(4000) / RATE, np.arange(len(high)) / 44_100, high)[400:3600]
    assert np.abs(naive).max() > 0.3  # what a naive reader would have heard


def test_a_shorter_file_is_filled_up_and_a_longer_one_cut_by_rule() -> None:
    short, long = written(np.full(1000, 0.5)), written(np.linspace(0, 0.9, 8000))
    for rule, start in (("centre", 1500), ("start", 0)):
        filled = clip(short, contract(shorter=rule))[0]
        assert filled[start : start + 1000] == pytest.approx(0.5)
        assert not np.delete(filled, np.arange(start, start + 1000)).any()
    assert clip(short, contract(shorter="repeat"))[0] == pytest.approx(0.5)
    for rule, first in (("centre", 2000), ("start", 0)):
        cut = clip(long, contract(longer=rule))[0]
        assert cut == pytest.approx(np.linspace(0, 0.9, 8000)[first : first + 4000], abs=1e-4)


def test_own_bytes_are_kept_where_any_reader_hears_the_same() -> None:
    of = contract()
    assert of.take(written(tone()), False).stored is None
    assert of.take(written(tone(), "FLAC"), False)[:2] == ("flac", None)
    for raw in (written(tone(), kind="PCM_U8"), written(tone(), rate=16_000), written(tone(), "OGG", "VORBIS")):
        assert of.take(raw, False).stored is not None
    fine = tone() + 2.0**-20  # between the steps of 16 bits
    stored = of.take(written(fine, "WAV", "DOUBLE"), False).stored
    assert stored is not None
    np.testing.assert_allclose(of.read(stored)[0], fine, atol=1e-7)
    again = of.take(written(fine, "WAV", "DOUBLE"), False).stored
    assert stored == again  # no date in it


@pytest.mark.parametrize(("form", "kind"), [("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("WAV", "FLOAT")])
def test_windows_of_a_long_recording_are_its_samples(form: str, kind: str) -> None:
    of, long = contract(longer="start"), np.linspace(-0.9, 0.9, 20_000)
    taken = of.take(raw := written(long, form, kind), False)
    assert taken.extension == "wav"
    assert of.own_size(np.array([taken.shape]))
    whole = torch.from_numpy(of.original(raw if taken.stored is None else taken.stored))
    places = {"place": torch.tensor([-1.0, 0.0, 1.0])}
    views = Window().cut([whole] * 3, places, 4000)
    for view, start in zip(views, (0, 8000, 16_000), strict=True):
        assert (view.shape, view.dtype) == ((1, 4000), torch.float32)
        assert view[0].numpy() == pytest.approx(long[start : start + 4000], abs=1e-4)
    batch = draw_view([whole], [Window().at(0.5)], Keys.of(0, 0, np.zeros(1, np.int64)), of.size)
    assert batch.shape == (1, 1, 4000)
    with pytest.raises(Refusal, match="nothing: comes first, where samples are brought to 4000"):
        draw_view([whole], [], Keys.of(0, 0, np.zeros(1, np.int64)), of.size)


def test_an_array_of_sound_is_taken_and_one_of_pixels_refused() -> None:
    of = contract()
    assert of.given(tone().astype(np.float32)).shape == (1, 4000)
    assert of.given(np.stack([tone(), tone()])).shape == (1, 4000)
    with pytest.raises(Refusal, match=r"sound of uint8 \(9, 9, 3\): must be floats in \[-1, 1\]"):
        of.given(np.zeros((9, 9, 3), np.uint8))


@pytest.mark.skipif(not (HOSTILE / "manifest.csv").is_file(), reason="../shared/data/hostile is not there")
def test_every_hostile_sound_is_the_right_waveform_or_a_reason() -> None:
    with (HOSTILE / "manifest.csv").open(encoding="utf-8") as file:
        names = [row["path"] for row in csv.DictReader(file) if row["path"].startswith("audio/")]
    assert len(names) >= 8
    reference = clip((HOSTILE / "audio/pcm16_mono_8k.wav").read_bytes())
    refused = {}
    for name in names:
        try:
            found = clip((HOSTILE / name).read_bytes())
        except Unreadable as fault:
            refused[name] = fault.reason
            continue
        assert np.isfinite(found).all()
        if "silence" in name:
            assert not found.any()
        elif "stereo" in name:
            assert np.corrcoef(found[0], reference[0])[0, 1] > 0.6  # one of the two tones is the reference's
        else:
            least = 2 / 128 if "pcm8" in name else 0.01  # two steps of 8 bits
            assert np.abs(found - reference)[0, 200:-200].max() < least, name
    assert refused == {"audio/zero_length.wav": "no sound", "audio/empty.wav": "empty file"}
