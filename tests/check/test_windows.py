"""Windows of recordings that are longer than a clip: check cuts them from the files, and says what they lose.

The recordings are made: three clips long, with a tone that tells the label in the middle third only, or everywhere.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from small import space, whole

sys.path.insert(0, str(Path(__file__).parent))

from known import check
from mutants import Mutant, Wrong, applied, broken

from pipeline.audio import Audio
from pipeline.check import Finding
from pipeline.check.examine import examine
from pipeline.check.moving import VIEWS, moved
from pipeline.check.partners import view_pair
from pipeline.check.sample import EPOCH, take
from pipeline.check.suggest import suggest
from pipeline.data import DataSpec
from pipeline.loading import ViewLoader
from pipeline.modalities import Modality
from pipeline.series import Series
from pipeline.shards import Column, Shards
from pipeline.spec import parse
from pipeline.specification import Specification, together
from pipeline.views import Window
from pipeline.views.audio import Gain
from pipeline.views.roles import Role
from stages.check import told

WINDOW, GAIN = {"kind": "window"}, {"kind": "gain", "db": 3}
pytestmark = pytest.mark.usefixtures("one_thread")
COUNT, CLIP, RATE = 120, 256, 1000
AUDIO: Audio = parse(
    {
        "kind": "audio",
        "rate": RATE,
        "seconds": CLIP / RATE,
        "channels": 1,
        "mix": "mean",
        "longer": "centre",
        "shorter": "centre",
    },
    Audio,
    "x.yaml",
)
SERIES: Series = parse(
    {
        "kind": "series",
        "channels": 1,
        "steps": CLIP,
        "rate": RATE,
        "names": None,
        "layout": "time_first",
        "longer": "centre",
        "shorter": "hold",
    },
    Series,
    "x.yaml",
)
both = pytest.mark.parametrize("contract", [AUDIO, SERIES], ids=["sounds", "series"])


class Recordings:
    """What check and loader read of a sharded data set, from arrays: waves (1, T_i), a third for testing."""

    def __init__(self, contract: Modality, waves: list[np.ndarray], labels: np.ndarray):
        self.waves, self.codes, self.contract, self.opened = waves, labels, contract, 0
        cut = len(waves) * 2 // 3
        self.rows = {"train": range(cut), "test": range(cut, len(waves))}
        columns = {"tone": Column(kind="class", classes=("low", "high"), counts={})}
        splits = {split: len(rows) for split, rows in self.rows.items()}
        self.card = SimpleNamespace(name="made", columns=columns, input=contract, splits=splits)

    def labels(self, split: str) -> dict[str, np.ndarray]:
        return {"tone": self.codes[list(self.rows[split])]}

    def shapes(self, split: str) -> np.ndarray:
        return np.array([(self.waves[row].shape[1], 1) for row in self.rows[split]], np.int32)

    def canvases(self, split: str, indices: np.ndarray) -> np.ndarray:
        return np.stack([self.contract.fitted(self.waves[self.rows[split][index]]) for index in indices])  # type: ignore[attr-defined]

    def batch(self, split: str, indices: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(self.canvases(split, indices))

    def original(self, split: str, index: int) -> np.ndarray:
        self.opened += 1
        return self.waves[self.rows[split][index]].copy()

    def canvas_bytes(self, split: str) -> int:
        return 2**40


def recordings(contract: Modality, clips: int, told: str) -> Recordings:
    """Recordings of ``clips`` clips, whose label is told everywhere or in the clip in the middle only."""
    random = np.random.default_rng(0)
    labels, waves = random.integers(0, 2, COUNT), []
    for label in labels:
        time = np.arange(clips * CLIP)
        tone = 0.5 * np.sin(2 * np.pi * (40 + 120 * label) * time / RATE + random.uniform(0, 6))
        if told == "middle":
            tone[: (clips - 1) * CLIP // 2] = tone[(clips + 1) * CLIP // 2 :] = 0
        waves.append((tone + 0.02 * random.normal(size=len(time)))[None].astype(np.float32))
    return Recordings(contract, waves, labels)


def examined(made: Recordings, *after: dict[str, Any], within: float = 1.0, **changes: Any) -> list[Finding]:
    declared = space(invariances=[{"kind": "window", "within": within}, *after], preserves=["tone"])
    shown = examine(declared, check(tolerance=0.2, **changes), cast(Shards, made))
    return [each.finding for each in shown]


def verdicts(found: list[Finding], invariance: str = "window") -> dict[str, str]:
    return {each.finding: each.verdict for each in found if each.invariance == invariance and each.preserved == "tone"}


@both
def test_windows_lose_a_label_that_one_part_of_the_recording_tells(contract: Modality) -> None:
    found = examined(recordings(contract, 5, "middle"))
    assert verdicts(found)["erased"] == "fail"
    assert verdicts(found, "together")["erased"] == "fail"
    (erased,) = [each for each in found if each.finding == "erased" and each.invariance == "window"]
    assert erased.figure is not None
    assert erased.figure < 0.6
    assert erased.sentence.startswith("window erases tone: a cheap probe reads it ")


@both
def test_windows_keep_a_label_that_every_part_of_the_recording_tells(contract: Modality) -> None:
    found = examined(recordings(contract, 5, "everywhere"))
    assert set(verdicts(found).values()) == set(verdicts(found, "together").values()) == {"pass"}
    assert not [each for each in found if each.finding == "identity"]


@pytest.mark.parametrize(("clips", "told", "lines"), [(5, "middle", 1), (5, "everywhere", 1), (1, "everywhere", 0)])
def test_a_draft_offers_windows_where_they_lose_nothing(clips: int, told: str, lines: int) -> None:
    made = cast(Shards, recordings(SERIES, clips, told))
    found = [line for line in suggest(made, check(tolerance=0.2), ["tone"]) if "kind: window," in line]
    assert len(found) == lines
    for line in found:
        assert line.startswith("  # - {kind: window" if told == "middle" else "  - {kind: window"), line


def test_windows_about_the_middle_keep_what_the_middle_tells() -> None:
    assert verdicts(examined(recordings(AUDIO, 5, "middle"), within=0.1))["erased"] == "pass"


@both
def test_where_no_file_is_longer_than_a_clip_there_is_nothing_to_judge(contract: Modality) -> None:
    made = recordings(contract, 1, "everywhere")
    found = examined(made)
    (alone,) = [each for each in found if each.invariance == "window"]
    word = {"audio": "clips", "series": "series"}[contract.size.modality]  # type: ignore[attr-defined]
    assert (alone.finding, alone.verdict, alone.position) == ("identity", "noted", 0)
    assert alone.sentence == (
        f"none of the {COUNT} {word} that were looked at is longer than a view: window leaves them alone, "
        "and there is nothing to judge"
    )
    assert f"check made: noted: {alone.sentence}" in told("made", found)
    assert verdicts(found, "together")
    assert made.opened == 0


def test_files_of_both_kinds_are_told() -> None:
    made = recordings(AUDIO, 3, "everywhere")
    made.waves[::4] = [wave[:, :CLIP] for wave in made.waves[::4]]
    found = examined(made)
    (told,) = [each for each in found if each.finding == "identity"]
    assert told.sentence == "25 % of the clips are no longer than a view: window leaves them alone"
    assert set(verdicts(found).values()) == {"pass"}


def test_windows_are_those_that_training_would_cut_and_a_file_is_read_once_for_all_of_them() -> None:
    made = recordings(AUDIO, 4, "everywhere")
    train, test = take(cast(Shards, made), check())
    through = (Window(), Gain(db=3))
    found = moved(train, through, seed=3)
    assert made.opened == len(train)
    assert bool(found.changed.all())
    pair = view_pair(train, [through, through], seed=3)
    loader = ViewLoader(cast(Shards, made), "train", [Role("view", (0, 1, VIEWS, VIEWS + 1), through)], seed=3)
    views = loader.views(EPOCH, train.numbers)[0].unflatten(0, (len(train), 4))
    for number, view in enumerate((found.first, found.second, *pair)):
        torch.testing.assert_close(view, views[:, number])
    for row in range(0, len(test), 7):
        assert np.array_equal(made.waves[test.numbers[row]], test.whole(row).numpy())


def test_windows_of_what_all_recordings_share_collide() -> None:
    """All but the middle is one noise for all, so most windows are the same sound, and no clip is."""
    made, shared = recordings(AUDIO, 9, "everywhere"), np.random.default_rng(1).normal(size=(1, 9 * CLIP))
    middle, own = 9 * CLIP // 2, CLIP // 8
    for wave in made.waves:
        wave[:, : middle - own] = shared[:, : middle - own]
        wave[:, middle + own :] = shared[:, middle + own :]
    collided = [each for each in examined(made) if "pairs of different inputs" in each.sentence]
    assert [each.invariance for each in collided] == ["window"]
    assert collided[0].details["count"] > 20


@pytest.mark.parametrize(
    ("invariances", "views", "paths"),
    [
        ([WINDOW, GAIN], {"kind": "pair"}, []),
        ([GAIN, WINDOW, GAIN], {"kind": "pair"}, ["space.invariances[1]"]),
        ([{"kind": "maybe", "of": WINDOW, "probability": 0.5}], {"kind": "pair"}, ["space.invariances[0]"]),
        ([], {"kind": "asymmetric", "first": [WINDOW], "second": [WINDOW, GAIN]}, []),
        ([GAIN], {"kind": "asymmetric", "first": [WINDOW], "second": [GAIN]}, ["space.views.first[0]"]),
    ],
)
def test_a_window_that_would_cut_nothing_is_told(
    invariances: list[dict[str, Any]], views: dict[str, Any], paths: list[str]
) -> None:
    content = whole(space__invariances=invariances, space__views=views, space__preserves=[])
    data = {
        "source": {"kind": "folder", "train": None, "test": None, "classes": None},
        "manifest": None,
        "input": AUDIO.model_dump(mode="json"),
        "split": {"test": 0.3, "seed": 0},
        "labels": [],
    }
    found = together(parse(content, Specification, "x.yaml"), parse(data, DataSpec, "x.yaml"))
    told = [path for path, remedy in found if remedy.startswith("a window cuts the sample itself, so it comes first")]
    assert told == paths


def test_other_invariances_open_no_file() -> None:
    made = recordings(AUDIO, 3, "everywhere")
    _, part = take(cast(Shards, made), check())
    moved(part, (Gain(db=3), Window()), seed=0)
    assert made.opened == 0


WRONG = (
    Wrong(
        "windows of the clip",
        "pipeline.check.windows",
        "return bool(invariances) and",
        "return False and",
        test_windows_of_what_all_recordings_share_collide,
    ),
    Wrong(
        "one place for all",
        "pipeline.views.window",
        "values[place : place + 1]",
        "values[:1]",
        test_windows_are_those_that_training_would_cut_and_a_file_is_read_once_for_all_of_them,
    ),
    Wrong(
        "a file for every view",
        "pipeline.views.window",
        "        for views, parameters in zip(found, drawn, strict=True):",
        "        for views, parameters in zip(found, drawn, strict=True):\n            whole = read(row)",
        test_windows_are_those_that_training_would_cut_and_a_file_is_read_once_for_all_of_them,
    ),
    Wrong(
        "files of the other split",
        "pipeline.check.sample",
        "(SPLITS[1], number - first)",
        "(SPLITS[0], number - first)",
        test_windows_are_those_that_training_would_cut_and_a_file_is_read_once_for_all_of_them,
    ),
    Wrong(
        "shortcuts of the clip",
        "pipeline.check.partners",
        "if cut_from_files(part, through):",
        "if not cut_from_files(part, through):",
        test_windows_are_those_that_training_would_cut_and_a_file_is_read_once_for_all_of_them,
    ),
    Wrong(
        "a window of a part of the recordings is of all",
        "pipeline.check.examine",
        "if longer == count:",
        "if longer:",
        test_files_of_both_kinds_are_told,
    ),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_version_is_killed(wrong: Wrong) -> None:
    with applied(Mutant(wrong.name, "windows", wrong.module, wrong.old, wrong.new)):
        assert broken(wrong.law)
