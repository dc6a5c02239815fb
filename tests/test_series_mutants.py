"""Wrong versions of reading and looking at series, each killed by a law that the right version keeps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "series"), str(HERE / "sources")]

import test_episodes  # noqa: E402
import test_series  # noqa: E402
from mutants import Mutant, Wrong, applied, broken_in  # noqa: E402

from pipeline.sources import steps  # noqa: E402

EPISODE, EPISODES, COLUMNS = "pipeline.sources.episode", "pipeline.sources.episodes", "pipeline.series.columns"


def written(folder: Path) -> Any:
    """A writer of CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    return lambda rows: test_episodes.csv(folder / "t.csv", rows)


def mixed(folder: Path) -> None:
    usual, steps.BATCH = steps.BATCH, 7
    try:
        test_episodes.test_rows_that_are_mixed_and_out_of_order_give_the_same_series(written(folder))
    finally:
        steps.BATCH = usual


def bad(row: int, column: str, value: Any, told: str) -> Any:
    return lambda folder: test_episodes.test_a_bad_episode_is_told_and_the_others_are_kept(
        written(folder), row, column, value, told
    )


def lists(names: Any, places: list[int]) -> Any:
    return lambda _: test_series.test_a_column_of_lists_is_one_channel_a_value(names, places, True)


UNEVEN = "uneven steps: from t = 4 to 9, usually 1; resample it, or set source.uneven: null"
CHANGED = "label changes inside the episode: kind: a and b"
LEAK = 'input.names[1] = "kind": is no channel: it is a label (class) of the source'
WRONG = (
    Wrong("rows stay as they came", EPISODE, 'np.argsort(times, kind="stable")', "np.arange(len(times))", mixed),
    Wrong("an episode ends with its batch", EPISODES, "if ends[name] < row", "if True", mixed),
    Wrong("a first label is believed", EPISODES, "if len(found) > 1:", "if False:", bad(3, "kind", "b", CHANGED)),
    Wrong(
        "a time may come twice",
        EPISODE,
        "if (steps == 0).any():",
        "if False:",
        bad(3, "t", 2, "repeated time: two rows at t = 2"),
    ),
    Wrong("a gap is no matter", EPISODE, "if off[worst] > uneven * usual:", "if False:", bad(5, "t", 9, UNEVEN)),
    Wrong(
        "a hole is kept",
        EPISODES,
        "if not np.isfinite(values).all():",
        "if False:",
        bad(3, "x", None, "missing value: x at t = 3"),
    ),
    Wrong(
        "a label may be a channel",
        "pipeline.data",
        "if name in taken:",
        "if False:",
        lambda _: test_episodes.test_a_long_table_holds_series_and_no_label_is_a_channel(
            {"names": ["x", "kind"]}, LEAK
        ),
    ),
    Wrong(
        "lists are read one channel behind the other",
        COLUMNS,
        ".reshape(-1, width)",
        ".reshape(width, -1).T",
        lists(("observation.state", "grip"), [0, 1, 2, 3]),
    ),
    Wrong(
        "a part of a list has its end in it",
        COLUMNS,
        "return rows[:, first:end]",
        "return rows[:, first : end + 1]",
        lists(("grip", "observation.state[1]"), [3, 1]),
    ),
    Wrong(
        "what drives and what is driven change places",
        "pipeline.modalities.series",
        "driven * spread.transpose(1, 2) / spread",
        "driven * spread / spread.transpose(1, 2)",
        lambda _: test_series.test_check_sees_what_lies_between_the_channels(),
    ),
    Wrong(
        "lines fall apart into dots",
        "pipeline.series.picture",
        "max_pool1d(level, FINE + 1, FINE)",
        "max_pool1d(level, 1, FINE)",
        lambda _: test_series.test_lines_are_joined_and_stay_in_their_bands(5, 1),
    ),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_law_of_series_kills_what_the_right_version_passes(tmp_path: Path, wrong: Wrong) -> None:
    assert not broken_in(tmp_path / "right", wrong.law)
    with applied(Mutant(wrong.name, "series", wrong.module, wrong.old, wrong.new)):
        assert broken_in(tmp_path / "wrong", wrong.law), f"survived: {wrong.name}"
