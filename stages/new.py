"""Start a spec of your own: ``python -m stages.new NAME --data PATH``, or ``--like digits``, or both.

``--data`` alone looks at the path (a folder, an archive, webdataset shards, arrays, a table beside files) and writes
specs/data/NAME.yaml and specs/NAME.yaml, a general recipe, with the reasons of its choices. ``--like`` copies a spec or
an example, comments included. Either way the new spec is entered in specs/index.yaml.
"""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ruamel.yaml import YAML

from pipeline.audio import Audio
from pipeline.data import DataSpec
from pipeline.index import NONE, read_index
from pipeline.looking import look
from pipeline.looking.recipe import counted, data_text, kept_columns, left_out, number_columns, spec_text
from pipeline.series import Series
from pipeline.sources import Record
from pipeline.spec import Refusal, SpecError, nearest, read_spec, read_yaml
from pipeline.specification import data_file_of, faults_of, user_files
from pipeline.unusable import LEAST, too_few
from stages import SPECS, run

NAME = re.compile(r"[a-z][a-z0-9_]*")

GENERAL, SOUNDS, SERIES = "general", "sounds", "series"
"""the example that is started from where only data is given"""

LOOKED = 1000
"""files that are looked at for a first sample"""


def main(arguments: list[str]) -> None:
    """Write the new files, or nothing at all."""
    parser = argparse.ArgumentParser(prog="python -m stages.new", description=__doc__)
    parser.add_argument("name", help="of the new spec: small letters, digits, underscores")
    parser.add_argument("--like", help="a spec in specs/ or an example in specs/examples/")
    parser.add_argument("--data", help="the raw data; alone: look at it, and start from a general recipe")
    given = parser.parse_args(arguments)
    name: str = given.name
    if not NAME.fullmatch(name):
        raise Refusal(f"NAME = {name!r}: small letters, digits and underscores, a letter first")
    new = SPECS / f"{name}.yaml"
    if new.exists() or name == "index":
        raise Refusal(f"{new}: exists already; choose another name")

    if given.like is None and given.data is None:
        raise Refusal("give --data PATH (your pictures, sounds or series), or --like SPEC (a spec to copy), or both")
    start = _seen(name, given.data) if given.like is None else _copied(name, given.like, given.data)
    for path in start.files:
        if path.exists():
            raise Refusal(f"{path}: exists already; choose another name")

    written: list[Path] = []
    try:
        for path, content in start.files.items():
            written.append(path)
            path.write_text(content, encoding="utf-8")
        faults = faults_of(new)
        if faults:
            raise SpecError(faults)
        _enter(name, start.data, start.raw, _folder_of_files(new))
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    for line in start.said:
        print(line)
    print(f"wrote {', '.join(map(str, start.files))} and entered {name} in {SPECS / 'index.yaml'}")
    print("edit it, then run: dvc repro")


@dataclass
class _Start:
    """What is to be written and entered."""

    files: dict[Path, str]
    data: str
    """the data set"""
    raw: str | None
    """its raw path, where the data set is new"""
    said: list[str] = field(default_factory=list)


def _seen(name: str, path: str) -> _Start:
    """The general recipe on what lies at a path. Raises Refusal."""
    seen = look(Path(path))
    example = SOUNDS if isinstance(seen.canvas, Audio) else SERIES if isinstance(seen.canvas, Series) else GENERAL
    template = (SPECS / "examples" / f"{example}.yaml").read_text(encoding="utf-8")
    files = {SPECS / f"{name}.yaml": spec_text(template, name, seen), SPECS / "data" / f"{name}.yaml": data_text(seen)}
    assert seen.canvas is not None
    canvas = f"canvas {seen.canvas.size[0]}x{seen.canvas.size[1]}, {seen.canvas.channels} channel(s)"
    if isinstance(seen.canvas, Audio):
        canvas = f"clips of {seen.canvas.seconds:g} s at {seen.canvas.rate} Hz"
    if isinstance(seen.canvas, Series):
        canvas = f"series of {seen.canvas.steps} steps, {seen.canvas.channels} channel(s)"
    labels = ", ".join([*kept_columns(seen), *(f"{name} (numbers)" for name in number_columns(seen))]) or "none"
    said = [f"found {seen.words}: {counted(seen)}; {canvas}; labels: {labels}", *seen.remarks, *left_out(seen)]
    if seen.whole and 0 < seen.count < LEAST:
        said.append(f"shard will refuse it: {too_few(seen.count, seen.source, seen.canvas.size)}")
    return _Start(files, name, str(seen.raw), said)


def _copied(name: str, like: str, path: str | None) -> _Start:
    """A copy of a spec, with its data file where that is given a path. Raises Refusal."""
    folders = (SPECS / "examples" / "methods", SPECS / "examples", SPECS)
    known = {path.stem: path for folder in folders for path in folder.glob("*.yaml")}
    known.pop("index", None)
    if like not in known:
        raise Refusal(f"--like {like}: no such spec; {nearest(like, known)}")
    source = known[like]
    text = re.sub(r"(\.\./)+schema\.json", "schema.json", source.read_text(encoding="utf-8"))
    data = str(read_yaml(source)["data"])
    new = SPECS / f"{name}.yaml"
    data_file = data_file_of(source, data)
    if data_file.parent == SPECS / "data" and path is None:
        if data not in read_index(SPECS).data:
            raise Refusal(f"{SPECS / 'index.yaml'}: data set {data} of {like} is not in it")
        return _Start({new: text}, data, None)
    if path is None:
        raise Refusal(f"--like {like}: its data is not embedded; add --data PATH, the folder with its files")
    declared: DataSpec = read_spec(data_file, DataSpec)
    if declared.source.embedded:
        raise Refusal(f"--data {path}: the data of {like} is embedded; leave it out")
    raw = Path(path).expanduser()
    if not raw.exists():
        raise Refusal(f"--data {path}: no such path")
    try:
        if not any(isinstance(item, Record) for item in islice(declared.records(raw), LOOKED)):
            raise Refusal(f"{raw}: no sample in it")
    except Refusal as refusal:
        raise Refusal(
            f"--data {path} does not hold what {data_file} names: {refusal}; without --like it is looked at"
        ) from None
    text = re.sub(r"(?m)^data:.*$", f"data: {name}", text, count=1)
    files = {new: text, SPECS / "data" / f"{name}.yaml": data_file.read_text(encoding="utf-8")}
    return _Start(files, name, str(raw))


def _folder_of_files(spec: Path) -> str:
    """The folder of the weights and code that a spec names, as the index names it."""
    folders = {str(Path(file).parent) for _, file in user_files(read_yaml(spec))}
    return os.path.commonpath(folders) if folders else NONE


def _enter(name: str, data: str, raw: str | None, files: str) -> None:
    """Add the spec (and its data) to the index, keeping comments."""
    yaml = YAML()
    yaml.width = 4096
    file = SPECS / "index.yaml"
    content = yaml.load(file.read_text(encoding="utf-8"))
    if raw is not None:
        content["data"][name] = _flow({"raw": raw})
    content["specs"][name] = _flow({"data": data, "files": files})
    partial = file.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as stream:
        yaml.dump(content, stream)
    partial.replace(file)


def _flow(content: dict[str, str]) -> object:
    from ruamel.yaml.comments import CommentedMap

    entry = CommentedMap(content)
    entry.fa.set_flow_style()
    return entry


if __name__ == "__main__":
    run(main)
