"""What float32 would lose of measurements is refused, with the channel and a remedy; what it keeps is kept."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.samples import Unreadable
from pipeline.series import Series
from pipeline.series.decoding import decode
from pipeline.series.narrowing import narrowed
from pipeline.sources import Episodes, Record, Refused
from pipeline.spec import Refusal, parse

SMALL = np.random.default_rng(0).integers(0, 1000, (3, 40))
SMALL[:, 0] = 0


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (2**53 + SMALL, "of 3. different values in channel 0 float32 keeps 1; subtract an offset"),
        (2**40 + SMALL.astype(float), "subtract an offset"),
        (-(2**62) - SMALL, "subtract an offset"),
        (2**63 + SMALL.astype(np.uint64), "subtract an offset"),
        (1.7e9 + SMALL * 0.02, "subtract an offset"),  # seconds since 1970
        (SMALL * 1e-50, "scale it up"),
        (np.concatenate([SMALL, 2**40 + SMALL]), "in channel 3 "),
        (SMALL * 1e300, r"beyond float32 \(.*e\+30\d in channel 0 at step 1; scale it"),
    ],
)
def test_values_that_float32_does_not_tell_apart_are_refused_with_channel_and_remedy(
    values: np.ndarray, line: str
) -> None:
    with pytest.raises(Unreadable, match=line):
        narrowed(values)


@pytest.mark.parametrize(
    "values",
    [
        2**24 + SMALL,  # every other number, of a thousand
        2**50 * SMALL,
        np.full((3, 40), 2**60 + 1),  # never varies
        9.81 + SMALL * 1e-16,  # float64's own noise
        SMALL / 3,
        SMALL % 2 == 0,
        SMALL.astype(np.int16),
        np.zeros((3, 40)),
    ],
)
def test_values_that_float32_keeps_are_kept(values: np.ndarray) -> None:
    np.testing.assert_allclose(narrowed(values), values, rtol=1e-7)


def csv(values: np.ndarray) -> bytes:
    return "\n".join(["x,y,z", *(",".join(map(repr, row)) for row in values.T.tolist())]).encode()


def npy(values: np.ndarray) -> bytes:
    np.save(buffer := io.BytesIO(), values.T)
    return buffer.getvalue()


def parquet(values: np.ndarray) -> bytes:
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet as written

    written.write_table(arrow.table(dict(zip("xyz", values, strict=True))), buffer := io.BytesIO())
    return buffer.getvalue()


@pytest.mark.parametrize("offset", [2**40, 2**53, 2**62])
@pytest.mark.parametrize("form", [csv, npy, parquet])
def test_a_file_of_any_form_is_refused_for_what_float32_loses(form: Any, offset: int) -> None:
    with pytest.raises(Unreadable, match=r"lost in float32.*subtract an offset"):
        decode(form(offset + SMALL), None, time_first=True)
    np.testing.assert_array_equal(decode(form(SMALL), None, time_first=True), SMALL)


def test_measurements_that_are_handed_over_are_refused_likewise() -> None:
    content = {"kind": "series", "channels": 3, "steps": 40, "rate": 1, "names": None, "layout": "time_first"}
    contract = Series.model_validate({**content, "longer": "centre", "shorter": "hold"})
    with pytest.raises(Refusal, match="series: lost in float32"):
        contract.given((2**40 + SMALL).T)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_episode_is_refused_for_what_float32_loses_and_the_others_are_kept(tmp_path: Path, kind: str) -> None:
    offsets = {"kept": 0.0, "lost": 2.0**40, "beyond": 0.0}
    rows = [
        (name, step, offset + SMALL[0, step], 1e300 if (name, step) == ("beyond", 3) else step / 2)
        for name, offset in offsets.items()
        for step in range(40)
    ]
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        path.write_text("\n".join(["episode,t,x,y", *(",".join(map(str, row)) for row in rows)]))
    else:
        arrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
        from pyarrow import parquet as written

        columns = zip(*rows, strict=True)
        written.write_table(arrow.table(dict(zip(("episode", "t", "x", "y"), map(list, columns), strict=True))), path)
    content = {"kind": "episodes", "file": None, "episode": "episode", "time": "t", "uneven": None, "split": None}
    items = list(parse({**content, "classes": [], "numbers": []}, Episodes, "x.yaml").records(path))
    kept, lost, beyond = sorted(
        (each for each in items if isinstance(each, (Record, Refused))),
        key=lambda each: list(offsets).index(each.name),
    )
    assert isinstance(kept, Record)
    assert isinstance(lost, Refused)
    assert isinstance(beyond, Refused)
    assert lost.reason == "lost in float32"
    assert re.match("of 3. different values in x float32 keeps 1; subtract an offset", lost.detail)
    assert beyond.reason == "beyond float32"
    assert beyond.detail.startswith("1e+300 in y at step 3")


def test_whole_numbers_beyond_float64_refuse_a_long_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["episode,t,x", *(f"a,{step},{2**62 + step}" for step in range(9))]))
    content = {"kind": "episodes", "file": None, "episode": "episode", "time": "t", "uneven": None, "split": None}
    with pytest.raises(Refusal, match="column x, beyond 2\\^53; subtract an offset"):
        list(parse({**content, "classes": [], "numbers": []}, Episodes, "x.yaml").records(path))
