"""Files of measurements: the values as they are, or a reason; never a filled hole."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.samples import Unreadable
from pipeline.series import Series
from pipeline.spec import Refusal

HOSTILE = Path(__file__).parents[2] / "../shared/data/hostile/arrays"
VALUES = np.arange(24, dtype=np.float64).reshape(12, 2) / 7  # 12 steps, 2 channels


def contract(**changes: Any) -> Series:
    usual = {
        "kind": "series",
        "channels": 2,
        "steps": 12,
        "rate": 50,
        "names": None,
        "layout": "time_first",
        "longer": "centre",
        "shorter": "hold",
    }
    return Series.model_validate({**usual, **changes})


def npy(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=True)
    return buffer.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def table(rows: np.ndarray, header: str = "x,y", mark: str = ",") -> bytes:
    lines = [mark.join(header.split(",")), *(mark.join(f"{value!r}" for value in row) for row in rows.tolist())]
    return "\n".join(lines).encode()


def parquet(rows: np.ndarray) -> bytes:
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet as written

    buffer = io.BytesIO()
    written.write_table(arrow.table({"x": rows[:, 0], "y": rows[:, 1], "note": ["a"] * len(rows)}), buffer)
    return buffer.getvalue()


def back(raw: bytes, of: Series) -> np.ndarray:
    """What comes back of a raw file after sharding: (C, T)."""
    taken = of.take(raw, False)
    assert taken.stored is not None
    found = of.read(taken.stored)
    np.testing.assert_array_equal(found, of.raw(raw, False))
    np.testing.assert_allclose(taken.moments, [found.astype(float).sum(1), (found.astype(float) ** 2).sum(1)])
    return found


@pytest.mark.parametrize(
    ("raw", "changes"),
    [
        (npy(VALUES), {}),
        (npy(VALUES.astype(np.float32)), {}),
        (npy(VALUES.T), {"layout": "channels_first"}),
        (npz(a=VALUES), {}),
        (npz(a=VALUES, b=VALUES + 1), {"names": ("a",)}),
        (table(VALUES), {}),
        (table(VALUES, mark=";"), {}),
        (table(np.hstack([VALUES, VALUES]), "x,y,u,v"), {"names": ("x", "y")}),
    ],
)
def test_every_form_gives_the_values(raw: bytes, changes: dict[str, Any]) -> None:
    np.testing.assert_allclose(back(raw, contract(**changes)), VALUES.T, rtol=1e-6)


def test_parquet_gives_the_columns_that_are_named() -> None:
    np.testing.assert_allclose(back(parquet(VALUES), contract(names=("x", "y"))), VALUES.T, rtol=1e-6)
    with pytest.raises(Unreadable):
        contract().take(parquet(VALUES)[:200], False)


def test_longer_is_cut_and_shorter_held_or_filled() -> None:
    np.testing.assert_allclose(back(npy(VALUES), contract(steps=4)), VALUES.T[:, 4:8], rtol=1e-6)
    np.testing.assert_allclose(back(npy(VALUES), contract(steps=4, longer="start")), VALUES.T[:, :4], rtol=1e-6)
    held = back(npy(VALUES), contract(steps=15))
    np.testing.assert_allclose(held[:, 12:], VALUES.T[:, -1:].repeat(3, 1), rtol=1e-6)
    assert not back(npy(VALUES), contract(steps=15, shorter="zero"))[:, 12:].any()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "empty file"),
        (npy(np.where(VALUES[10, 1] == VALUES, np.nan, VALUES)), r"not finite \(nan in channel 1 at step 10\)"),
        (npy(np.array([{"a": 1}], dtype=object)), "objects"),
        (npy(VALUES)[:-5], "damaged array"),
        (npz(a=VALUES)[:100], "damaged array"),
        (npz(a=VALUES, b=VALUES), r"no such array \(it holds a, b; name one in input.names\)"),
        (npy(np.zeros((2, 2, 2))), "no series"),
        (npy(np.zeros((0, 2))), "no values"),
        (b"x,y\n1,2\n3,\n", r"missing value \('' in column y, row 2\)"),
        (b"x,y\n1,2\n3\n", "damaged table"),
        (b"1,2\n3,4\n", "no table"),
        (b"\xff\xfe\x00", "no table"),
    ],
)
def test_what_is_no_series_says_why(raw: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        contract().take(raw, False)


def test_other_channels_are_refused_with_the_remedy() -> None:
    with pytest.raises(Refusal, match=r"series of 2 channels: input.channels is 3; name them in input.names"):
        contract(channels=3).take(npy(VALUES), False)


def test_a_series_has_a_picture() -> None:
    picture = contract().picture(VALUES.T.astype(np.float32))
    assert (picture.dtype, picture.shape[0]) == (np.uint8, 3)
    assert picture.std() > 10
    assert bool(torch.isfinite(contract().pictures(torch.zeros(2, 2, 12))).all())


@pytest.mark.skipif(not HOSTILE.is_dir(), reason="../shared/data/hostile is not there")
def test_hostile_arrays_are_read_or_told() -> None:
    of = contract(channels=8, steps=64, names=("state",))
    found = {}
    for name in ("ok", "nan", "constant_channel", "object_pickle", "not_a_zip"):
        try:
            assert np.isfinite(back((HOSTILE / f"{name}.npz").read_bytes(), of)).all()
            found[name] = "kept"
        except Unreadable as fault:
            found[name] = fault.reason
    assert (found["ok"], found["constant_channel"], found["nan"]) == ("kept", "kept", "not finite")
    assert found["object_pickle"] != "kept"
    assert found["not_a_zip"] != "kept"
