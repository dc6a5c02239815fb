"""Spoken digits: what the check says that single invariances do to the digit and to the speaker.

    python -m tests.benchmarks.spoken_digits --data FOLDER    (a minute of CPU time)

Beside it: ``spoken_digits_runs`` trains spaces and reads them, ``spoken_digits_speaker`` asks what tells the speakers
apart.

FOLDER holds train.tar.gz and test.tar.gz of the Free Spoken Digit Dataset (see specs/examples/data/spoken_digits.yaml).
Figures of the check are a cheap probe's accuracy above chance, relative to what it has without the invariance: erased
(trained and tested on the views), merged (reads what clips and views share once they must be one point), transported
(trained on the clips, tested on the views). Writes results/spoken_digits.json and .md beside this file.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.check.findings import Finding
from pipeline.check.ground import prepare
from pipeline.check.judged import judge
from pipeline.check.losses import loss_findings
from pipeline.data import DataSpec
from pipeline.sharding import shard
from pipeline.shards import Shards
from pipeline.spec import read_spec
from pipeline.specification import Specification
from pipeline.views.audio import (
    BandFilter,
    Gain,
    NoiseAtSnr,
    Pitch,
    Polarity,
    Reverberation,
    Tempo,
    TimeReversal,
    TimeShift,
)

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "specs" / "examples"
TRIED: dict[str, Any] = {
    "time_shift, 60 ms": TimeShift(ms=60),
    "gain, 6 dB": Gain(db=6),
    "polarity": Polarity(),
    "tempo, 0.85 to 1.2": Tempo(speed=(0.85, 1.2)),
    "pitch, 3 semitones": Pitch(semitones=3),
    "pitch, 6 semitones": Pitch(semitones=6),
    "pitch, 12 semitones": Pitch(semitones=12),
    "noise_at_snr, 10 to 40 dB": NoiseAtSnr(snr=(10, 40)),
    "reverberation, 0.1 to 0.4 s": Reverberation(seconds=(0.1, 0.4)),
    "band_filter, to 1 to 2 kHz": BandFilter(low=(60, 200), high=(1000, 2000)),
    "time_reversal, half": TimeReversal(probability=0.5),
    "time_reversal, always": TimeReversal(probability=1.0),
}
LABELS = ("digit", "speaker")
KINDS = ("erased", "merged", "transported")


def checked(data: Path, folder: Path) -> list[dict[str, Any]]:
    """A row an invariance and label: figure and interval of each finding."""
    shard(read_spec(EXAMPLES / "data" / "spoken_digits.yaml", DataSpec), "spoken_digits", data, folder)
    whole: Specification = read_spec(EXAMPLES / "spoken_digits.yaml", Specification)
    ground = prepare(Shards(folder), whole.check)
    rows = []
    for name, invariance in TRIED.items():
        found = list(loss_findings(ground, judge(ground, [invariance], together=False), invariance.kind, None, LABELS))
        for label in LABELS:
            row = {"invariance": name, "label": label, **figures(found, label)}
            rows.append(row)
            print(row, flush=True)
    return rows


def figures(found: Sequence[Finding], label: str) -> dict[str, Any]:
    """What findings say of a label: by kind the figure with its interval, and the verdict."""
    row: dict[str, Any] = {}
    for each in found:
        if each.preserved == label and each.figure is not None:
            row[each.finding] = [round(value, 3) for value in (each.figure, each.low or 0, each.high or 0)]
            row[f"{each.finding} verdict"] = each.verdict
    return row


def cells(row: dict[str, Any]) -> str:
    """The figures of a row as cells of a table, in the order of ``KINDS``."""
    written = []
    for kind in KINDS:
        value = row.get(kind)
        shown = "" if value is None else f"{value[0]:.2f} ({value[1]:.2f} to {value[2]:.2f}): "
        written.append(shown + str(row.get(f"{kind} verdict", "")))
    return " | ".join(written)


def table(found: dict[str, Any]) -> str:
    """All rows as markdown."""
    lines = ["Left of what a cheap probe reads (1: all, 0: chance), with 95 % intervals.", ""]
    lines += [f"| invariance | label | {' | '.join(KINDS)} |", "|---|---|---|---|---|"]
    for row in found["check"]:
        lines.append(f"| {row['invariance']} | {row['label']} | {cells(row)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder with train.tar.gz and test.tar.gz")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {"check": checked(given.data, Path(folder))}
    (given.out / "spoken_digits.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (given.out / "spoken_digits.md").write_text(table(found), encoding="utf-8")


if __name__ == "__main__":
    main()
