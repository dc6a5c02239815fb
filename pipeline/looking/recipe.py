"""A spec and a data spec for what was seen at a path: the general recipe, fitted to the canvas and the labels.

The texts are for reading and editing: every choice that was guessed stands with its reason.
"""

from __future__ import annotations

import re
from typing import Any

from pipeline.audio import Audio
from pipeline.images import Input
from pipeline.looking.sample import Seen
from pipeline.series import Series
from pipeline.sources import Archive, Arrays, Episodes, Folder, TorchvisionSet, WebDataset

GREY = """    - {kind: brightness, amount: 0.4, probability: 0.8}
    - {kind: contrast, amount: 0.4, probability: 0.8}
"""
"""instead of what is about colour, for other channels than red, green and blue"""

LEAST_BATCH, BATCH = 16, 128

STEPS, EPOCHS = 800, (10, 400)
"""optimizer steps that are aimed at: minutes on two cores; epochs at least and at most"""

READ = 0.2
"""of the way from chance to certainty, that the label must be read for the encoder to be exported"""

LABELLED = 100
"""pictures with a label, below which nothing is demanded of it"""


def flow(value: Any) -> str:
    """Plain content as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    plain = re.fullmatch(r"[A-Za-z_][\w./-]*", value) and value.lower() not in ("null", "true", "false")
    return str(value) if plain else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def data_text(seen: Seen) -> str:
    """specs/data/NAME.yaml."""
    assert seen.canvas is not None
    kept = [*kept_columns(seen), *number_columns(seen)]
    table = seen.table
    splits_itself = seen.source.splits_itself or (table is not None and table.manifest.split is not None)
    group = group_of(seen)
    split: dict[str, Any] | None = {"test": 0.2, "seed": 0, "group": group}
    if splits_itself:
        split = None if group is None else {"test": None, "seed": None, "group": group}
    lines = [f"# Found at {seen.raw}: {seen.words}; {counted(seen)}."]
    lines += [f"# {remark}." for remark in [*seen.remarks, *left_out(seen)]]
    lines.append(f"source: {flow(seen.source.model_dump(mode='json'))}{_about_source(seen)}")
    lines.append(f"manifest: {flow(None if table is None else table.manifest.model_dump(mode='json'))}")
    ranged = isinstance(seen.canvas, Input) and seen.canvas.range is not None
    wide = "; range: of the pictures looked at, check it" if ranged else ""
    lines.append(f"input: {flow(seen.canvas.model_dump(mode='json'))}  # larger shows more and takes longer{wide}")
    lines.append(f"split: {flow(split)}{_about_split(group, splits_itself)}")
    lines.append(f"labels: {flow(kept)}{'' if kept else '  # no label was found; training needs none'}")
    lines.append("ledger: {strict: false, budget: null, repeated: keep}  # strict: true refuses any damaged file")
    return "\n".join(lines) + "\n"


def kept_columns(seen: Seen) -> list[str]:
    """The label columns of classes that the data spec keeps: all but the group."""
    return _columns(seen, "class")


def number_columns(seen: Seen) -> list[str]:
    """The label columns of numbers: probed by regression, and preserved only by who enters them there.

    One with gaps is none of them, since a sample that lacks a kept label is refused.
    """
    return [name for name in _columns(seen, "number") if not gaps(seen, name)]


def group_of(seen: Seen) -> str | None:
    """The column whose equal values are kept on one side."""
    return seen.group if seen.table is None else seen.table.group


def gaps(seen: Seen, column: str) -> int:
    """Rows of the table that lack a column's value."""
    return 0 if seen.table is None or column in seen.source.columns() else seen.table.gaps(column)


def _columns(seen: Seen, kind: str) -> list[str]:
    kinds = {**seen.source.columns(), **({} if seen.table is None else seen.table.manifest.columns())}
    group = group_of(seen)
    return [name for name, of in kinds.items() if of == kind and name != group]


def left_out(seen: Seen) -> list[str]:
    """What is told of columns of numbers that are not kept."""
    found = [(name, gaps(seen, name)) for name in _columns(seen, "number")]
    return [
        f"{name} is not among the labels: {missing} of {len(seen.table.rows)} rows lack it, and a sample that lacks a "
        "label is refused"
        for name, missing in found
        if missing and seen.table is not None
    ]


def counted(seen: Seen) -> str:
    """How many pictures and classes were listed."""
    least = "" if seen.whole else "at least "
    classes = f" in {len(seen.classes)} classes" if "label" in seen.source.columns() and seen.classes else ""
    return f"{least}{seen.count} {'episodes' if isinstance(seen.source, Episodes) else 'files'}{classes}"


def spec_text(template: str, name: str, seen: Seen) -> str:
    """specs/NAME.yaml, from the text of the general example."""
    assert seen.canvas is not None
    canvas, kept = seen.canvas, kept_columns(seen)
    text = template.replace("../schema.json", "schema.json")
    text = re.sub(
        r"(?m)^# A general recipe.*\n#.*\n",
        f"# {name}: a first recipe for {seen.words}; {counted(seen)}.\n",
        text,
        count=1,
    )
    text = text.replace("stages.check NAME", f"stages.check {name}")
    text = _line(text, "data", name)
    text = _line(text, "  preserves", flow(kept))
    text = _line(text, "  labels", flow([*kept, *number_columns(seen)]))
    match canvas:
        case Input():
            text = _pictured(text, canvas)
        case Audio():
            text = _heard(text, canvas)
        case Series():
            text = _measured(text, canvas)
    train = seen.train if seen.source.splits_itself else int(seen.count * 0.8)
    batch = BATCH
    while batch > LEAST_BATCH and 2 * batch > train:
        batch //= 2
    text = _line(text, "  global_batch", str(batch))
    text = _thresholds(text, seen, kept)
    epochs = max(EPOCHS[0], min(EPOCHS[1], round(STEPS * batch / max(train, 1))))
    told = f"{epochs}  # about {epochs * max(1, train // batch)} steps: minutes on a CPU; four times as many are better"
    return _line(text, "  epochs", told)


def _pictured(text: str, canvas: Input) -> str:
    """The text with invariances and strides that suit a canvas."""
    if canvas.channels != 3:
        text = re.sub(r"(?m)^    - \{kind: color_jitter.*\n    - \{kind: grayscale.*\n", GREY, text, count=1)
    small, large = min(canvas.height, canvas.width), max(canvas.height, canvas.width)
    if small < 16:
        text = _part(
            text, "widths: [32, 64, 128, 256], strides: [1, 2, 2, 2]", "widths: [32, 64, 128], strides: [1, 2, 2]"
        )
    elif large >= 48:
        text = _part(text, "strides: [1, 2, 2, 2]", "strides: [2, 2, 2, 2]")
    return text


def _heard(text: str, clip: Audio) -> str:
    """The text with a log-mel picture that suits a clip."""
    text = _line(text, "    rate", str(clip.rate))
    text = _line(text, "    high", str(clip.rate // 2))
    return _line(text, "    bins", "40" if clip.rate <= 8000 else "64")


def _measured(text: str, series: Series) -> str:
    """The text with strides and claims that suit a series."""
    if series.steps >= 256:
        text = _part(text, "strides: [1, 2, 2]", "strides: [2, 2, 2]")
    if series.steps < 8:
        text = re.sub(r"(?m)^    - \{kind: step_shift.*\n", "", text, count=1)
    return text


def _thresholds(text: str, seen: Seen, kept: list[str]) -> str:
    """The text with a threshold on the label that the source has, by the chance of guessing it."""
    total = seen.classes.total()
    if "label" not in kept or "label" not in seen.source.columns() or len(seen.classes) < 2 or total < LABELLED:
        return text
    chance = max(seen.classes.values()) / total
    threshold = {"measure": "probe.label.knn.h.view0", "at_least": round(chance + READ * (1 - chance), 2)}
    told = f"    - {flow(threshold)}  # of moved samples; {chance:.2f} is chance\n"
    return re.sub(r"(?m)^  thresholds:.*\n(    - .*\n)+", lambda found: found[0] + told, text, count=1)


def _line(text: str, key: str, value: str) -> str:
    """The text with another value of a key; a comment behind it stays."""
    changed, count = re.subn(
        rf"(?m)^{key}: [^#\n]*?(\s+#.*)?$", lambda found: f"{key}: {value}{found[1] or ''}", text, count=1
    )
    assert count == 1, key
    return changed


def _part(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


def _about_source(seen: Seen) -> str:
    match seen.source:
        case Folder() | Archive():
            return "  # label: the first folder level" if seen.source.classes else "  # no class folders"
        case WebDataset():
            return "  # cls and keys of the json"
        case Arrays():
            return "  # guessed from names and shapes"
        case Episodes():
            return "  # guessed from the names of its columns; uneven: the largest departure from the usual step"
        case TorchvisionSet():
            return ""
    return ""


def _about_split(group: str | None, given: bool) -> str:
    if given:
        return "  # the source has its own" + ("" if group is None else f"; it is told which {group} is on both sides")
    if group is not None:
        return f"  # no {group} is on both sides"
    return "  # by the hash of each name; group: a column whose values stay on one side, as a patient"
