"""Long tables: an episode is a sample, whole and in order, or is told why it is none; a batch of rows is held."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.bundle.input import items
from pipeline.data import DataSpec
from pipeline.series import Series
from pipeline.sources import Episodes, Note, Record, Refused, steps
from pipeline.spec import Refusal, SpecError, parse

PENDULUM = Path(__file__).parents[2] / "../shared/data/trajectories/sim_pendulum/episodes.parquet"
COLUMNS = ("episode", "t", "x", "y", "kind", "mass", "side")
Row = tuple[Any, ...]


def source(**changes: Any) -> Episodes:
    plain = {"kind": "episodes", "file": None, "episode": "episode", "time": "t", "uneven": 0.01}
    return parse({**plain, "classes": ["kind"], "numbers": ["mass"], "split": "side", **changes}, Episodes, "x.yaml")


def walk(name: str, count: int = 6, **changes: Any) -> list[Row]:
    """Rows of an episode; ``changes`` give a column's value at every row."""
    usual = {"kind": "a", "mass": 1.5, "side": "train"}
    seed = sum(map(ord, name))
    rows = []
    for step in range(count):
        values = {"episode": name, "t": step, "x": seed + step, "y": -step / 2, **usual, **changes}
        rows.append(tuple(values[column] for column in COLUMNS))
    return rows


def replaced(rows: list[Row], row: int, column: str, value: Any) -> list[Row]:
    changed = list(rows[row])
    changed[COLUMNS.index(column)] = value
    return [*rows[:row], tuple(changed), *rows[row + 1 :]]


def csv(path: Path, rows: list[Row]) -> Path:
    cells = [",".join("" if value is None else str(value) for value in row) for row in rows]
    path.write_text("\n".join([",".join(COLUMNS), *cells]) + "\n")
    return path


def parquet(path: Path, rows: list[Row], **more: Any) -> Path:
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet as written

    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    written.write_table(arrow.table({**columns, **more}), path, row_group_size=5)
    return path


WRITERS = {"csv": csv, "parquet": parquet}


@pytest.fixture(params=sorted(WRITERS))
def table(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A writer of tables in one of the forms, read seven rows at a time."""
    monkeypatch.setattr(steps, "BATCH", 7)
    return lambda rows: WRITERS[request.param](tmp_path / f"t.{request.param}", rows)


def read(path: Path, names: Any = ("x", "y"), **changes: Any) -> tuple[dict[str, Record], dict[str, str], list[str]]:
    """Records by name, refusals by name with reason and detail, notes."""
    every = list(source(**changes).records(path, names))
    return (
        {item.name: item for item in every if isinstance(item, Record)},
        {item.name: f"{item.reason}: {item.detail}" for item in every if isinstance(item, Refused)},
        [item.text for item in every if isinstance(item, Note)],
    )


def values(record: Record) -> np.ndarray:
    assert isinstance(record.content, bytes)
    found: np.ndarray = np.load(io.BytesIO(record.content), allow_pickle=False)
    return found


def expected(name: str, count: int = 6) -> np.ndarray:
    return np.array([row[2:4] for row in walk(name, count)], np.float32)


def test_an_episode_is_a_sample_with_its_labels_and_its_side(table: Any) -> None:
    rows = [*walk("one", 9), *walk("two", kind="b", mass=2, side="test"), *walk("three", 20)]
    kept, refused, notes = read(table(rows))
    assert list(kept) == ["one", "two", "three"]
    for name, count in (("one", 9), ("two", 6), ("three", 20)):
        np.testing.assert_array_equal(values(kept[name]), expected(name, count))
    assert (dict(kept["two"].labels), kept["two"].split) == ({"kind": "b", "mass": 2.0}, "test")
    assert (kept["one"].labels["kind"], kept["one"].split) == ("a", "train")
    assert (refused, notes) == ({}, [])


def test_rows_that_are_mixed_and_out_of_order_give_the_same_series(table: Any) -> None:
    rows = [*walk("one", 9), *walk("two", 9), *walk("three", 20)]
    order = np.random.default_rng(0).permutation(len(rows))
    kept, refused, notes = read(table([rows[place] for place in order]))
    for name, count in (("one", 9), ("two", 9), ("three", 20)):
        np.testing.assert_array_equal(values(kept[name]), expected(name, count))
    assert refused == {}
    assert notes == [f"3 episode(s) were out of the order of t and were sorted by it: {', '.join(kept)}"]


def test_without_a_time_rows_stay_as_they_are(table: Any) -> None:
    kept, _, notes = read(table(walk("one")[::-1]), time=None, uneven=None)
    np.testing.assert_array_equal(values(kept["one"]), expected("one")[::-1])
    assert notes == []


@pytest.mark.parametrize(
    ("row", "column", "value", "told"),
    [
        (3, "x", None, "missing value: x at t = 3"),
        (3, "y", float("inf"), "not finite: y at t = 3"),
        (3, "t", 2, "repeated time: two rows at t = 2"),
        (5, "t", 9, "uneven steps: from t = 4 to 9, usually 1; resample it, or set source.uneven: null"),
        (3, "t", None, "missing time: nothing usable in t, row 3 of the episode"),
        (3, "kind", "b", "label changes inside the episode: kind: a and b"),
        (3, "mass", None, "label changes inside the episode: mass: 1.5 and nothing"),
        (3, "side", "test", "split changes inside the episode: side: test and train"),
    ],
)
def test_a_bad_episode_is_told_and_the_others_are_kept(
    table: Any, row: int, column: str, value: Any, told: str
) -> None:
    kept, refused, notes = read(table([*walk("good"), *replaced(walk("bad"), row, column, value), *walk("last")]))
    assert (list(kept), refused, notes) == (["good", "last"], {"bad": told}, [])


def test_other_words_than_train_and_test_and_rows_of_no_episode_are_told(table: Any) -> None:
    rows = [*walk("one", side="val"), *replaced(walk("two"), 5, "episode", None)]
    kept, refused, notes = read(table(rows))
    assert refused == {"one": "neither train nor test in the table: side: val"}
    assert len(values(kept["two"])) == 5
    assert notes == ["1 row(s) have nothing in column 'episode' and belong to no episode"]


def test_uneven_steps_may_be_kept_and_other_rates_are_told(table: Any) -> None:
    slow = [(name, 2 * t, *rest) for name, t, *rest in walk("slow")]
    kept, _, notes = read(table([*replaced(walk("one"), 5, "t", 9), *slow]), uneven=None)
    assert (list(kept), notes) == (["one", "slow"], [])
    _, _, notes = read(table([*walk("one"), *slow]))
    assert notes == ["episodes differ in their step of t: 1 in one, 2 in slow; input.rate is one for all"]


def test_a_time_may_be_a_date(table: Any) -> None:
    stamps = [f"2026-01-01T00:00:0{step}" for step in (0, 2, 1, 3, 4, 5)]
    rows = [(name, stamp, *rest) for stamp, (name, _, *rest) in zip(stamps, walk("one"), strict=True)]
    kept, refused, _ = read(table(rows))
    assert refused == {}
    np.testing.assert_array_equal(values(kept["one"]), expected("one")[[0, 2, 1, 3, 4, 5]])


@pytest.mark.parametrize(
    "kind",
    ["int8", "uint8", "uint64", "float32", "timestamp[ns]", "timestamp[us, tz=UTC]", "date32", "decimal128(25, 3)"],
)
def test_a_time_may_be_of_any_type(tmp_path: Path, kind: str) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet as written

    named = {"date32": arrow.date32(), "timestamp[us, tz=UTC]": arrow.timestamp("us", "UTC")}
    named |= {"timestamp[ns]": arrow.timestamp("ns"), "decimal128(25, 3)": arrow.decimal128(25, 3)}
    times = [0, 60, 120, 30, 90, 15]
    whole = arrow.array(times, arrow.int32())
    column = whole.cast(named[kind] if kind == "date32" else arrow.int64()).cast(named.get(kind, kind))
    table = {"episode": ["one"] * 6, "t": column, "x": list(range(6)), "kind": ["a"] * 6, "mass": [1] * 6}
    written.write_table(arrow.table({**table, "side": ["test"] * 6}), tmp_path / "t.parquet")
    kept, refused, _ = read(tmp_path / "t.parquet", ("x",), uneven=None)
    assert refused == {}
    np.testing.assert_array_equal(values(kept["one"])[:, 0], np.argsort(times))


def test_several_files_are_one_table_and_an_episode_may_span_them(tmp_path: Path) -> None:
    rows = [*walk("one"), *walk("two")]
    parquet(tmp_path / "part-0.parquet", rows[:4])
    parquet(tmp_path / "part-1.parquet", rows[4:])
    kept, _, _ = read(tmp_path, file="*.parquet")
    np.testing.assert_array_equal(values(kept["one"]), expected("one"))
    with pytest.raises(Refusal, match=r"part-2.parquet: no such file; did you mean 'part-"):
        read(tmp_path, file="part-2.parquet")


def test_channels_are_named_or_all_that_is_nothing_else(tmp_path: Path) -> None:
    rows = walk("one")
    path = parquet(tmp_path / "t.parquet", rows, arm=[[step, 2.0, 3.0] for step in range(6)])
    assert values(read(path, None)[0]["one"]).shape == (6, 5)
    np.testing.assert_array_equal(values(read(path, ("arm[0]", "y"))[0]["one"])[:, 0], np.arange(6))
    ragged = parquet(tmp_path / "r.parquet", rows, arm=[[1.0, 2.0]] * 4 + [[1.0], None])
    assert read(ragged, ("arm",))[1] == {"one": "missing value: arm[0] at t = 4"}
    for names, told in ((("side[0]",), "side"), (("arm[3]",), "arm has 3 element"), (("z",), "no such column")):
        with pytest.raises(Refusal, match=told):
            read(path, names)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"episode": "run"}, "no column 'run'; known: episode"),
        ({"classes": ["kin"]}, "no column 'kin'; did you mean 'kind'?"),
        ({"file": "t.csv"}, "is a file; set source.file to null"),
    ],
)
def test_what_cannot_be_read_at_all_is_refused_in_one_line(tmp_path: Path, changes: Any, told: str) -> None:
    with pytest.raises(Refusal) as raised:
        read(csv(tmp_path / "t.csv", walk("one")), **changes)
    assert told in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_a_cut_table_is_refused_in_one_line(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", walk("one", 400))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(Refusal, match="no Parquet file"):
        read(path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"file": "../t.csv"}, "file = "),
        ({"time": None}, "uneven = 0.01: must be null, since time is"),
        ({"classes": ["t"]}, 'classes[0] = "t": is the column of time already'),
        ({"numbers": ["kind"]}, 'numbers[0] = "kind": is the column of classes already'),
        ({"split": "episode"}, 'split = "episode": is the column of episode already'),
    ],
)
def test_faults_of_the_spec_are_one_line_each(changes: Any, told: str) -> None:
    with pytest.raises(SpecError) as raised:
        source(**changes)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"names": ["x", "kind"]}, 'input.names[1] = "kind": is no channel: it is a label (class) of the source'),
        ({"layout": "channels_first"}, 'input.layout = "channels_first": must be time_first'),
        (None, "input.kind: must be series"),
    ],
)
def test_a_long_table_holds_series_and_no_label_is_a_channel(changes: Any, told: str) -> None:
    series = {"kind": "series", "channels": 2, "steps": 4, "rate": 1, "names": ["x", "y"], "layout": "time_first"}
    pictures = {"height": 8, "width": 8, "channels": 1, "fit": "pad", "background": 0}
    canvas = pictures if changes is None else {**series, "longer": "centre", "shorter": "hold", **changes}
    content = {"source": source().model_dump(mode="json"), "input": canvas, "split": None, "labels": ["kind"]}
    with pytest.raises(SpecError) as raised:
        parse(content, DataSpec, "x.yaml")
    assert told in str(raised.value)


def test_memory_follows_the_episodes_that_are_open_and_not_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "BATCH", 200)
    rows = [row for number in range(100) for row in walk(f"e{number}", 100)]
    peaks = []
    for count in (len(rows) // 4, len(rows)):
        path = csv(tmp_path / f"{count}.csv", rows[:count])
        tracemalloc.start()
        assert sum(isinstance(item, Record) for item in source().records(path, ("x", "y"))) == count // 100
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


@pytest.mark.skipif(not PENDULUM.is_file(), reason="../shared/data/trajectories is not there")
def test_the_real_table_is_read_as_pandas_would(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    names = ("cos_theta", "sin_theta", "theta_dot", "torque")
    changes = {"episode": "episode_id", "classes": ["label_gravity", "label_policy"], "numbers": [], "split": "split"}
    kept, refused, notes = read(PENDULUM, names, **changes)
    assert (len(kept), refused, notes) == (240, {}, [])
    whole = arrow.read_table(PENDULUM).to_pydict()
    for name in ("ep000", "ep100", "ep239"):
        rows = [row for row, value in enumerate(whole["episode_id"]) if value == name]
        np.testing.assert_array_equal(
            values(kept[name]), np.array([[whole[each][row] for each in names] for row in rows], np.float32)
        )
        assert kept[name].labels["label_policy"] == whole["label_policy"][rows[0]]
        assert kept[name].labels["label_gravity"] == f"{whole['label_gravity'][rows[0]]:g}"
        assert kept[name].split == whole["split"][rows[0]]


def test_a_bundle_of_series_is_given_the_episodes_of_a_table(tmp_path: Path) -> None:
    plain = {"kind": "series", "channels": 2, "steps": 4, "rate": 1, "names": ["y", "x"], "layout": "time_first"}
    contract = parse({**plain, "longer": "centre", "shorter": "hold"}, Series, "x.yaml")
    path = csv(tmp_path / "t.csv", [*walk("one", 9), *walk("two", side="test", kind="b")])
    found = [item for item in items(path, contract) if isinstance(item, Record)]
    assert [item.name for item in found] == ["one", "two"]
    np.testing.assert_array_equal(values(found[0]), expected("one", 9)[:, ::-1])
    (tmp_path / "alone.csv").write_text("y,x\n1,2\n3,4\n")
    assert list(items(tmp_path / "alone.csv", contract)) == [Record("alone.csv", tmp_path / "alone.csv")]
