"""A whole spec file, one section a stage, with the rules between sections and between a spec and its data.

Only validation, ``new`` and the schema read the whole; every other stage reads its own sections, so that an edit of
one section reruns no other.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from ruamel.yaml import YAML
from ruamel.yaml.representer import RoundTripRepresenter

from pipeline.achieved.controls import controls
from pipeline.achieved.names import named as transformations
from pipeline.audit import Audit
from pipeline.audit.probed import Probed
from pipeline.check import Check, unused_acceptances
from pipeline.data import DataSpec
from pipeline.encoders import encoder_sides
from pipeline.encoders.structure import on_meta
from pipeline.export import Export
from pipeline.index import NONE, read_index, unhashable
from pipeline.modalities import Modality
from pipeline.probes import Probe
from pipeline.samplers import Hardest, Queue
from pipeline.samples import Size, modality, several
from pipeline.space import LatentSpace
from pipeline.spec import Fault, Rule, Spec, SpecError, nearest, read_spec, read_yaml, shown
from pipeline.training_section import Training, ungrouped
from pipeline.views import FACTORS, Window, codes, factor, holds_window, misfit
from pipeline.views.code_laws import broken_law
from pipeline.views.factors import OF_MODALITY
from pipeline.views.roles import MultiCrop


class Specification(Spec):
    """One latent space from data to bundle."""

    data: str
    """A data set: the name of a file in specs/data."""
    space: LatentSpace
    """What is declared; it travels with the encoder."""
    check: Check
    """What the declaration may lose."""
    training: Training
    """How it is trained."""
    probe: Probe
    """How it is read."""
    audit: Audit
    """What it must reach."""
    export: Export
    """What goes with it."""

    def rules(self) -> Iterator[Rule]:
        for path, remedy in unused_acceptances(self.space, self.check):
            yield f"check.{path}", remedy
        reason = ungrouped(self.space, self.training)
        if reason is not None:
            yield "training.norm_group", reason
        if isinstance(self.space.sampler, Queue) and self.space.sampler.length < self.training.global_batch:
            remedy = f"must be at least global_batch ({self.training.global_batch}), or it forgets part of a batch"
            yield "space.sampler.length", remedy
        negatives = (1 if self.space.crossed else 2) * (self.training.global_batch - 1)
        if isinstance(self.space.sampler, Hardest) and self.space.sampler.nearest >= negatives:
            remedy = f"must be below the {negatives} negatives of a batch, or it leaves none out"
            yield "space.sampler.nearest", remedy


def faults_of(file: Path, data_folder: Path | None = None) -> list[Fault]:
    """Every fault of one spec file, its data file included; empty if there is none."""
    faults: list[Fault] = []
    try:
        specification: Specification | None = read_spec(file, Specification)
    except SpecError as error:
        specification, faults = None, list(error.faults)
    try:
        name = specification.data if specification else read_yaml(file).get("data")
    except SpecError:
        return faults
    if not isinstance(name, str):
        return faults
    data_file = data_file_of(file, name) if data_folder is None else data_folder / f"{name}.yaml"
    if not data_file.is_file():
        known = [path.stem for path in data_file.parent.glob("*.yaml")]
        return [*faults, Fault(str(file), "data", shown(name), f"no such data set; {nearest(name, known)}")]
    try:
        data: DataSpec = read_spec(data_file, DataSpec)
    except SpecError as error:
        return [*faults, *error.faults]
    if specification is not None:
        faults += [
            Fault(str(file), path, shown(_value(specification, path)), remedy)
            for path, remedy in together(specification, data)
        ]
    return faults


def data_file_of(file: Path, name: str) -> Path:
    """The data set's file in the folder data beside the spec; an example may also stand on one of the folders above."""
    beside, *above = (folder / "data" / f"{name}.yaml" for folder in (file.parent, *list(file.parents)[1:3]))
    return next((each for each in (beside, *above) if each.is_file()), beside)


def together(specification: Specification, data: DataSpec) -> Iterator[Rule]:
    """Yield every broken rule between a spec and its data."""
    space = specification.space
    columns, canvas = data.columns(), data.input
    classes = [name for name, kind in columns.items() if kind == "class"]
    for number, name in enumerate(space.preserves):
        if factor(name) is None and name not in columns:
            known = nearest(name, [*OF_MODALITY.get(modality(canvas.size), FACTORS), *columns])
            yield f"space.preserves[{number}]", f"neither a factor nor a label column; {known}"
    for path, invariance in space.placed():
        local = isinstance(space.views, MultiCrop) and path != "views.global_crop"
        sizes = {role.of(canvas.size) for role in space.roles()[: 2 if local else 1]}
        reasons = [misfit(invariance, canvas.channels, size) for size in sorted(sizes)]
        if any(reasons):
            yield f"space.{path}", next(reason for reason in reasons if reason)
    yield from _misplaced_windows(space)
    for section, names in (("sampler", space.sampler.reads), ("views", space.views.reads)):
        for name in names:
            if columns.get(name) != "class":
                field = "columns" if hasattr(getattr(space, section), "columns") else "column"
                yield f"space.{section}.{field}", f"no such label column of classes; {nearest(name, classes)}"
    prior = space.prior_column()
    if prior is not None and columns.get(prior) != "class":
        yield "space.objective.prior.column", f"no such label column of classes; {nearest(prior, classes)}"
    of_views = sorted({role.of(canvas.size) for role in space.roles()}, reverse=True)
    for path, code in codes(space, "space"):
        broken = next(filter(None, (broken_law(code, canvas, size) for size in of_views)), None)
        if broken is not None:
            yield f"{path}.{broken[0]}", broken[1]
    count = data.source.count()
    if count is not None and specification.training.global_batch > count:
        yield "training.global_batch", f"larger than the data set; at most {count}, less its test split"
    if count is not None and isinstance(space.sampler, Queue) and space.sampler.length >= count:
        yield "space.sampler.length", f"must be below the data set; at most {count - 1}, less its test split"
    for role in space.roles():
        reason = unreadable(specification.training, canvas, role.of(canvas.size))
        if reason is not None:
            yield "training.encoder", reason
            break
    for number, name in enumerate(specification.probe.labels):
        if name not in columns:
            yield f"probe.labels[{number}]", f"no such label column; {nearest(name, columns)}"
    for path, name in specification.audit.columns():
        if name not in columns:
            yield f"audit.{path}", f"no such label column: {name}; {nearest(name, columns)}"
    for path, read in specification.audit.probed():
        reason = unread(specification.probe, read, columns)
        if reason is not None:
            yield f"audit.{path}", reason
    for path, name in specification.audit.preserved():
        if name not in space.preserves:
            yield f"audit.{path}", f"{name} is not preserved; {nearest(name, space.preserves)}"
    used, _ = controls(space.declared(), canvas)
    moves = [*transformations(space.declared()), *used]
    for path, name in specification.audit.transformations():
        if name not in moves:
            yield f"audit.{path}", f"{name} is neither declared nor a control; {nearest(name, moves)}"


def _misplaced_windows(space: LatentSpace) -> Iterator[Rule]:
    """Yield the path of every window that cuts nothing, since what comes before it has a view's length already."""
    first = ("invariances[0]",) if space.invariances else ("views.first[0]", "views.second[0]")
    for path, invariance in space.placed():
        if holds_window(invariance) and not (isinstance(invariance, Window) and path in first):
            yield f"space.{path}", "a window cuts the sample itself, so it comes first and stands alone; move it there"


def unread(probe: Probe, read: Probed, columns: Mapping[str, str]) -> str | None:
    """Why no probe gives the figure that a threshold names, or None. An unknown column is told elsewhere."""
    if read.column not in columns:
        return None
    if read.column not in probe.labels:
        return f"{read.column} is not probed; enter it in probe.labels"
    if columns[read.column] != read.kind:
        other = "r2 or mae" if read.kind == "class" else "knn, linear or few_N"
        return f"{read.column} is a column of {'numbers' if read.kind == 'class' else 'classes'}; name {other}"
    given = () if probe.few_labels is None else probe.few_labels.percent
    if read.percent is not None and read.percent not in given:
        return f"no probe has {read.percent} % of the labels; enter it in probe.few_labels.percent"
    return None


def unreadable(training: Training, contract: Modality, size: Size) -> str | None:
    """Why the encoder cannot read views of this size; None if it can. No weight is drawn or allocated."""
    encoder, what = training.encoder, modality(size)
    if encoder.sides != len(contract.shape) - 1:
        known = ", ".join(kind for kind, sides in encoder_sides().items() if sides == len(contract.shape) - 1)
        return f"{encoder.kind} reads {'pictures' if encoder.sides == 2 else 'waves'}, the data is {what}; use {known}"
    rate = getattr(encoder, "rate", None)
    if rate is not None and rate != size[1]:
        return f"its rate is {rate}, the data's {size[1]}; make them equal"
    module = on_meta(encoder.build, contract.channels).eval()
    sides = size[: encoder.sides]
    try:
        module(torch.zeros(2, contract.channels, *sides, device="meta"))
    except (AssertionError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        told = (
            f"pictures of {size[0]} x {size[1]}" if what == "image" else f"{several(contract.word)} of {size[0]} steps"
        )
        return f"cannot read {told} ({reason}); change the encoder or the canvas"
    return None


def all_faults(folder: Path) -> list[Fault]:
    """Every fault of the index, of the specs and data sets that it names, and between them."""
    try:
        index = read_index(folder)
    except SpecError as error:
        return list(error.faults)
    faults: list[Fault] = []
    file = str(folder / "index.yaml")
    for name, entry in index.specs.items():
        path = folder / f"{name}.yaml"
        if not path.is_file():
            known = [found.stem for found in folder.glob("*.yaml") if found.stem != "index"]
            faults.append(Fault(file, f"specs.{name}", "", f"no such spec file; {nearest(name, known)}"))
            continue
        faults += faults_of(path)
        if entry.data not in index.data:
            known = list(index.data)
            faults.append(
                Fault(file, f"specs.{name}.data", shown(entry.data), f"not under data; {nearest(entry.data, known)}")
            )
        written = read_yaml(path).get("data")
        if isinstance(written, str) and written != entry.data:
            faults.append(
                Fault(file, f"specs.{name}.data", shown(entry.data), f"{path} says {written!r}; make them equal")
            )
        faults += _outside(path, entry.files)
        if not Path(entry.files).exists():
            faults.append(Fault(file, f"specs.{name}.files", shown(entry.files), "no such folder"))
    for name, raw in index.data.items():
        path = folder / "data" / f"{name}.yaml"
        if not path.is_file():
            known = [found.stem for found in path.parent.glob("*.yaml")]
            faults.append(Fault(file, f"data.{name}", "", f"no such data file; {nearest(name, known)}"))
            continue
        try:
            data: DataSpec = read_spec(path, DataSpec)
        except SpecError as error:
            faults += [fault for fault in error.faults if fault not in faults]
            continue
        if data.source.embedded != (raw.raw == NONE):
            embedded = data.source.embedded
            remedy = f"must be {NONE}: this data is embedded" if embedded else "name the folder of the raw data"
            faults.append(Fault(file, f"data.{name}.raw", shown(raw.raw), remedy))
        elif not Path(raw.raw).exists():
            faults.append(Fault(file, f"data.{name}.raw", shown(raw.raw), _no_such(raw.raw)))
        elif reason := unhashable(Path(raw.raw)):
            remedy = f"{reason}; remove it, since DVC could not tell whether the data has changed"
            faults.append(Fault(file, f"data.{name}.raw", shown(raw.raw), remedy))
    return faults


def _no_such(raw: str) -> str:
    """The remedy for a raw path that is not there."""
    if raw.startswith("~"):
        return f"no such path; write it out, as {Path(raw).expanduser()}"
    beside = Path(raw).parent
    names = [str(beside / other.name) for other in beside.iterdir()] if beside.is_dir() else []
    close = nearest(raw, names)
    return f"no such path; {close}" if "did you mean" in close else "no such path"


def _outside(path: Path, files: str) -> list[Fault]:
    """Given weights and code must lie in the spec's folder of user files, or DVC would not notice that they changed."""
    faults = []
    for place, file in user_files(read_yaml(path)):
        if files == NONE or not Path(file).resolve().is_relative_to(Path(files).resolve()):
            index = path.parent / "index.yaml"
            remedy = f"must lie in the folder that specs.{path.stem}.files names in {index}: {files}"
            faults.append(Fault(str(path), place, shown(file), remedy))
        elif place == "training.start.file" and not Path(file).is_file():
            faults.append(Fault(str(path), place, shown(file), "no such file"))
    return faults


def user_files(content: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (dotted path, file) of every user file that a spec's plain content names: given weights and code."""
    if isinstance(content, dict):
        if content.get("kind") in ("weights", "code") and isinstance(content.get("file"), str):
            yield f"{path}.file", content["file"]
        for name, value in content.items():
            yield from user_files(value, f"{path}.{name}" if path else str(name))
    elif isinstance(content, list):
        for number, value in enumerate(content):
            yield from user_files(value, f"{path}[{number}]")


class _NullWritten(RoundTripRepresenter):
    """Writes null as ``null``, as specs do."""


_NullWritten.add_representer(
    type(None), lambda representer, _: representer.represent_scalar("tag:yaml.org,2002:null", "null")
)


def resolved(specification: Specification) -> str:
    """A spec as it is understood, as YAML: presets and defaults written out."""
    yaml, text = YAML(), io.StringIO()
    yaml.Representer = _NullWritten
    yaml.width = 120
    yaml.default_flow_style = None  # a mapping of plain values on one line, as specs are written
    yaml.dump(specification.model_dump(mode="json"), text)
    return text.getvalue()


def schema() -> str:
    """The JSON Schema of a spec file, for editors: canonical text with a final newline."""
    return json.dumps(Specification.model_json_schema(), indent=1, sort_keys=True) + "\n"


def _value(specification: Specification, path: str) -> Any:
    content: Any = specification.model_dump(mode="json")
    for step in path.replace("[", ".").replace("]", "").split("."):
        content = content[int(step)] if isinstance(content, list) else content[step]
    return content
