"""Files of measurements: the values as they are, or a reason; never a filled hole."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.data import DataSpec
from pipeline.modalities.series import SeriesProof
from pipeline.samples import Unreadable
from pipeline.series import Series
from pipeline.sources import Record
from pipeline.spec import Refusal, parse

ROBOT = Path(__file__).parents[2] / "../shared/data/trajectories/g1_pick_bottle"
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


def robot(**columns: Any) -> bytes:
    """A Parquet file whose columns may be lists, as robots' logs have them."""
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet as written

    buffer = io.BytesIO()
    written.write_table(arrow.table(columns), buffer)
    return buffer.getvalue()


ARM = np.arange(36, dtype=np.float32).reshape(12, 3)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(
    ("names", "places"),
    [
        (("observation.state", "grip"), [0, 1, 2, 3]),
        (("grip", "observation.state[1]"), [3, 1]),
        (("observation.state[1:3]",), [1, 2]),
        (None, [0, 1, 2, 3]),
    ],
)
def test_a_column_of_lists_is_one_channel_a_value(names: Any, places: list[int], fixed: bool) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    kind = arrow.list_(arrow.float32(), 3) if fixed else arrow.large_list(arrow.float64())
    raw = robot(**{"observation.state": arrow.array(ARM.tolist(), kind), "grip": list(range(12))})
    found = back(raw, contract(names=names, channels=len(places)))
    np.testing.assert_array_equal(found, np.column_stack([ARM, np.arange(12)]).T[places])


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("arm",), r"lists of several lengths \(column arm: 2 to 3 values a row"),
        (("hand",), r"not finite \(nan in channel 0 at step 1\)"),
        (("note",), r"no numbers \(column note holds string; name the channels in input.names\)"),
        (("grip[1]",), r"no such column \(grip\[1\]; grip has 1 element\(s\) a row\)"),
        (("grip[2:1]",), "no such column"),
        (("leg[0]",), r"no such column \(leg\[0\]; it has arm, hand, note, grip\)"),
    ],
)
def test_a_column_that_is_no_channel_says_why(names: Any, reason: str) -> None:
    arm = [[1.0, 2.0, 3.0], [1.0, 2.0]]
    with pytest.raises(Unreadable, match=reason):
        contract(names=names).take(robot(arm=arm, hand=[[1.0], None], note=["a", "b"], grip=[1, 2]), False)


@pytest.mark.skipif(not ROBOT.is_dir(), reason="../shared/data/trajectories is not there")
def test_a_real_robots_episodes_are_read_with_their_table(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    named = {"file": "split.csv", "path": "data/chunk-000/episode_{episode_index:06d}.parquet", "classes": []}
    usual = contract(channels=33, names=("observation.state", "action[7:14]"), steps=64).model_dump(mode="json")
    spec = parse(
        {
            "source": {"kind": "folder", "train": "data", "test": None, "classes": None, "names": None},
            "manifest": {**named, "numbers": ["length"], "split": "split"},
            "input": usual,
            "split": None,
            "labels": ["length"],
        },
        DataSpec,
        "x.yaml",
    )
    items = [item for item in spec.records(ROBOT) if isinstance(item, Record)]
    assert [sum(item.split == side for item in items) for side in ("train", "test")] == [80, 20]
    first = next(item for item in items if item.name.endswith("episode_000003.parquet"))
    assert isinstance(first.content, Path)
    of = spec.input.take(first.content.read_bytes(), False)
    assert list(of.shape) == [first.labels["length"], 33]
    assert of.stored is not None
    whole = arrow.read_table(first.content).to_pydict()
    rows = np.column_stack([np.array(whole["observation.state"]), np.array(whole["action"])[:, 7:14]])
    np.testing.assert_array_equal(spec.input.original(of.stored).T, rows.astype(np.float32))


def test_check_sees_what_lies_between_the_channels() -> None:
    random = np.random.default_rng(0)
    made = []
    for pull in (0.1, 0.1, -0.1, -0.1):  # the second channel moves as the first says, either way
        drive = random.normal(size=60)
        made.append(np.stack([drive, np.concatenate([[0], np.cumsum(pull * drive)[:-1]])]))
    found = SeriesProof(contract(steps=60)).features(torch.from_numpy(np.stack(made)).float())["dynamics"]
    assert found.shape == (4, 4)
    driven = found[:, 1].sign() * found[:, 1].abs().expm1()  # (from 0, to 1)
    np.testing.assert_allclose(driven, [0.1, 0.1, -0.1, -0.1], atol=0.01)
    backwards = SeriesProof(contract(steps=60)).features(torch.from_numpy(np.stack(made)).float().flip(2))["dynamics"]
    assert not torch.allclose(found[:, 1], backwards[:, 1], atol=0.02)
    assert "dynamics" not in SeriesProof(contract(channels=17)).features(torch.rand(2, 17, 12))
    assert bool(torch.isfinite(SeriesProof(contract()).features(torch.zeros(2, 2, 12))["all"]).all())


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
        (b"\xff\xfe\x00", "no table .*CSV in UTF-8, but text in UTF-16"),
        (b"RIFF\x80\0\0\0WAVEfmt ", r"no table \(neither npy, npz, Parquet nor CSV in UTF-8, but a WAV sound\)"),
        (b"x;y\n1,5;2,5\n", r"decimal comma \('1,5' in column x, row 1; write numbers with a point\)"),
        (npy(VALUES * 1j), r"no series \(an array of complex128 \(12, 2\); it must be real numbers"),
        (npy(VALUES * 1e300), r"beyond float32 \(2.85714e\+299 in channel 0 at step 1; scale it"),
    ],
)
def test_what_is_no_series_says_why(raw: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        contract().take(raw, False)


def test_a_series_of_a_few_steps_is_odd() -> None:
    def odd(steps: int, **changes: Any) -> tuple[str, ...]:
        return contract(steps=30, **changes).take(npy(np.ones((steps, 2))), False).odd

    assert odd(3) == ()
    assert odd(2) == ("shorter than a tenth of input.steps, the last values held",)
    assert odd(1, shorter="zero") == ("shorter than a tenth of input.steps, the rest is 0",)


def test_other_channels_are_refused_with_the_remedy() -> None:
    with pytest.raises(Refusal, match=r"series of 2 channels: input.channels is 3; name them in input.names"):
        contract(channels=3).take(npy(VALUES), False)


def test_a_series_has_a_picture() -> None:
    picture = contract().picture(VALUES.T.astype(np.float32))
    assert (picture.dtype, picture.shape[0]) == (np.uint8, 3)
    assert picture.std() > 10
    assert bool(torch.isfinite(contract().pictures(torch.zeros(2, 2, 12))).all())


@pytest.mark.parametrize("steps", [1, 2, 5, 96, 385, 3000])
@pytest.mark.parametrize("channels", [1, 4, 11])
def test_lines_are_joined_and_stay_in_their_bands(steps: int, channels: int) -> None:
    torch.manual_seed(0)
    shown = contract(channels=channels, steps=steps).pictures(torch.randn(2, channels, steps))
    edges = torch.linspace(0, shown.shape[2], min(channels, 6) + 1).round().long().tolist()
    for above, below in pairwise(edges):
        ink = 1 - shown[:, :, above:below].amin(1)  # (N, rows, columns)
        assert bool((ink.amax(1) > 0.5).all())  # no column is without its line
        rows = torch.arange(below - above, dtype=torch.float)[:, None]
        last = (ink > 0.3).float().mul(rows + 1).amax(1)
        first = len(rows) + 1 - (ink > 0.3).float().mul(len(rows) - rows).amax(1)
        gap = torch.maximum(first[:, 1:] - last[:, :-1], first[:, :-1] - last[:, 1:])
        assert float(gap.max()) <= 1  # neighbours touch


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
