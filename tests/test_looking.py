"""What a new user's files are taken for, told with its reasons: of mixed folders, of what is not read, of time."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import wavfile

from pipeline.audio import Audio
from pipeline.images import Input, encode_png
from pipeline.looking import look
from pipeline.looking.clocks import rate_of
from pipeline.series import Series
from pipeline.spec import Refusal

RANDOM = np.random.default_rng(0)


def npy(values: np.ndarray) -> bytes:
    np.save(buffer := io.BytesIO(), values, allow_pickle=True)
    return buffer.getvalue()


def wav() -> bytes:
    wavfile.write(buffer := io.BytesIO(), 8000, RANDOM.integers(-9000, 9000, 800).astype(np.int16))
    return buffer.getvalue()


def png() -> bytes:
    return encode_png(RANDOM.integers(0, 256, (20, 20, 3), dtype=np.uint8))


def table(clock: str = "t", step: float = 0.02) -> bytes:
    rows = [f"{number * step:.6f},{RANDOM.normal():.3f},{RANDOM.normal():.3f}" for number in range(30)]
    return "\n".join([f"{clock},x,y", *rows]).encode()


def filled(root: Path, **files: Callable[[], bytes]) -> Path:
    """Six files of each ending, in two folders."""
    for ending, make in files.items():
        for number in range(6):
            file = root / "ab"[number % 2] / f"{number}.{ending}"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(make())
    return root


@pytest.mark.parametrize(
    ("ending", "content", "line"),
    [
        ("wav", b"no sound, but words", "not a sound (none of wav, flac, ogg, but text)"),
        ("wav", b"\xff\xfb\x90d" + bytes(99), "but an MP3 sound; convert it to wav, flac or ogg"),
        ("mp3", b"ID3\x03" + bytes(99), "but an MP3 sound; convert it to wav, flac or ogg"),
        ("bin", b"ID3\x03" + bytes(99), "but an MP3 sound; convert it to wav, flac or ogg"),
        ("m4a", b"\0\0\0 ftypM4A " + bytes(99), "but an MP4 or M4A file; convert it to wav, flac or ogg"),
        ("npy", npy(np.array([{"a": 1}], object)), "objects (an array of Python objects"),
        ("npy", npy(np.ones((9, 2)) * 1j), "an array of complex128 (9, 2); it must be real numbers (steps, channels)"),
        ("npy", b"words", "no series (by its ending, but by its bytes text; copy it again)"),
        ("npy", npy(np.ones((9, 2)))[:-4], "damaged array"),
        ("txt", b"a note", "nothing that is read (text; read are pictures, sounds (wav, flac, ogg) and series (npy"),
        ("pdf", b"%PDF-1.4", "nothing that is read (a PDF; read are pictures"),
        ("csv", b"x;y\n0,5;1,5\n0,25;1\n", "decimal comma ('0,5' in column x, row 1; write numbers with a point)"),
        ("csv", b"1,2\n3,4\n", "a CSV must begin with the names of its columns"),
        ("csv", b"x,y\n1,2\n3\n", "damaged table (row 2 has 1 cells, the header 2)"),
        ("csv", b"x,y\n\x80,2\n", "nor CSV in UTF-8, but of no known form"),
        ("csv", b"t,frame\n1,2\n2,3\n", "no series (no column of numbers in it but such as count time)"),
        ("png", b"words", "not a picture (none of"),
        ("wav", b"", "empty file (0 bytes)"),
    ],
)
def test_a_folder_without_a_sample_is_told_by_what_its_endings_name(
    tmp_path: Path, ending: str, content: bytes, line: str
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.{ending}").write_bytes(content)
    with pytest.raises(Refusal) as raised:
        look(tmp_path)
    assert str(raised.value).startswith(f"--data {tmp_path}: no sample among 2 files looked at: ")
    assert line in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("files", "canvas", "line"),
    [
        ({"png": png, "wav": wav}, Input, "6 of 12 files looked at are no pictures (6 are sounds)"),
        ({"png": png, "csv": table}, Input, "6 of 12 files looked at are no pictures (6 are series)"),
        ({"wav": wav, "csv": table}, Audio, None),
        ({"png": png, "bad": lambda: b""}, Input, "6 of 12 files looked at are no pictures (6: empty file (0 bytes))"),
        ({"wav": wav, "WAV": wav, "csv": table}, Audio, "6 of 18 files looked at are no sounds (6 are series)"),
        ({"csv": table, "tsv": table, "png": png}, Series, "are no series (6 are pictures"),
    ],
)
def test_of_a_mixed_folder_it_is_told_what_is_left_out(
    tmp_path: Path, files: dict[str, Callable[[], bytes]], canvas: type, line: str | None
) -> None:
    seen = look(filled(tmp_path, **files))
    if line is None:  # as many of each: whatever is taken, the others are told
        assert any("6 of 12 files looked at are no " in remark for remark in seen.remarks)
        return
    assert isinstance(seen.canvas, canvas)
    assert any(line in remark for remark in seen.remarks), seen.remarks


@pytest.mark.parametrize(
    ("shapes", "layout", "lines"),
    [
        (
            [(40, 2)] * 11 + [(40, 5)],
            "time_first",
            ["were taken for (steps, channels), the longer side", "1 of 12 arrays have another number of channels"],
        ),
        ([(2, 40)] * 11 + [(5, 40)], "channels_first", ["(channels, steps), the longer side", "1 of 12 arrays"]),
        ([(40, 2)] * 11 + [(35, 2)], "time_first", ["were taken for (steps, channels)"]),
        ([(30 + n, 2) for n in range(11)] + [(40, 5)], "time_first", ["the side that differs being time", "1 of 12"]),
        ([(6, 4 + n) for n in range(12)], "channels_first", []),
        ([(4 + n, 9) for n in range(12)], "time_first", []),
    ],
)
def test_a_stray_array_does_not_turn_the_others_round(
    tmp_path: Path, shapes: list[tuple[int, int]], layout: str, lines: list[str]
) -> None:
    for number, shape in enumerate(shapes):
        np.save(tmp_path / f"{number:02}.npy", RANDOM.normal(size=shape))
    seen = look(tmp_path)
    assert isinstance(seen.canvas, Series)
    assert seen.canvas.layout == layout
    told = "; ".join(seen.remarks)
    assert all(line in told for line in lines), told
    assert ("were taken for" in told) == bool(lines)


@pytest.mark.parametrize(
    "make", [lambda: npy(2**53 + RANDOM.integers(0, 999, (40, 3))), lambda: npy(np.full(9, 1e300))]
)
def test_what_the_guess_would_refuse_is_told(tmp_path: Path, make: Callable[[], bytes]) -> None:
    told = "; ".join(look(filled(tmp_path, npy=make)).remarks)
    assert "of 6 files that were tried 6 would be refused: " in told
    assert "float32" in told


@pytest.mark.parametrize(
    ("clock", "step", "rate"), [("t", 0.02, 50), ("Time", 0.008, 125), ("t", 1, 1), ("frame", 0.02, 1)]
)
def test_the_rate_is_that_of_a_clock_in_seconds(tmp_path: Path, clock: str, step: float, rate: int) -> None:
    seen = look(filled(tmp_path, csv=lambda: table(clock, step)))
    assert isinstance(seen.canvas, Series)
    assert seen.canvas.rate == rate
    told = f"rate: {rate} steps a second, as {clock} rises by {step} a step and was taken for seconds"
    assert (told in seen.remarks) == (rate > 1)


def test_the_rate_of_a_long_table_is_that_of_its_time(tmp_path: Path) -> None:
    rows = [f"{episode},{step * 0.05:.2f},{RANDOM.normal()}" for episode in range(6) for step in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["episode,t,x", *rows]))
    seen = look(tmp_path)
    assert isinstance(seen.canvas, Series)
    assert seen.canvas.rate == 20
    assert "rate: 20 steps a second, as t rises by 0.05 a step and was taken for seconds" in seen.remarks


@pytest.mark.parametrize(
    ("step", "rate"), [(1 / 30, 30), (0.03, 1), (0.4, 1), (0.5, 2), (10.0, 1), (0.0, 1), (-0.1, 1)]
)
def test_a_rate_is_a_whole_number_or_not_guessed(step: float, rate: int) -> None:
    assert rate_of([("t", step)])[0] == rate


@pytest.mark.parametrize("offset", [2**40, 2**62])
def test_what_float32_would_lose_of_a_long_table_is_told(tmp_path: Path, offset: int) -> None:
    rows = [f"{episode},{step},{offset + step},{RANDOM.normal()}" for episode in range(6) for step in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["episode,t,x,y", *rows]))
    told = "; ".join(look(tmp_path).remarks)
    assert "of 6 episodes that were tried 6 would be refused: lost in float32 (" in told
    assert "x" in told.partition("lost in float32")[2].partition("subtract an offset")[0]


def test_decimal_commas_of_a_long_table_are_told(tmp_path: Path) -> None:
    rows = [f"{episode};{step};{step},5" for episode in range(6) for step in range(9)]
    (tmp_path / "t.csv").write_text("\n".join(["episode;t;x", *rows]))
    with pytest.raises(Refusal, match="'0,5' has a decimal comma, write numbers with a point"):
        look(tmp_path)
