"""Start a spec of your own: ``python -m stages.new NAME --like digits [--data PATH]``.

Copies a shipped spec or an example (comments included) to specs/NAME.yaml and enters it in specs/index.yaml. An
example stands on data that is not embedded: ``--data`` names its folder, and its data file is copied as well.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from ruamel.yaml import YAML

from pipeline.data import DataSpec
from pipeline.index import NONE, read_index
from pipeline.spec import Refusal, SpecError, nearest, read_spec, read_yaml
from pipeline.specification import data_file_of, faults_of, user_files
from stages import SPECS, run

NAME = re.compile(r"[a-z][a-z0-9_]*")


def main(arguments: list[str]) -> None:
    """Write the new files, or nothing at all."""
    parser = argparse.ArgumentParser(prog="python -m stages.new", description=__doc__)
    parser.add_argument("name", help="of the new spec: small letters, digits, underscores")
    parser.add_argument("--like", required=True, help="a spec in specs/ or an example in specs/examples/")
    parser.add_argument("--data", help="the folder of the raw data, for an example")
    given = parser.parse_args(arguments)
    name: str = given.name
    if not NAME.fullmatch(name):
        raise Refusal(f"NAME = {name!r}: small letters, digits and underscores, a letter first")
    new = SPECS / f"{name}.yaml"
    if new.exists() or name == "index":
        raise Refusal(f"{new}: exists already; choose another name")

    known = {path.stem: path for folder in (SPECS / "examples", SPECS) for path in folder.glob("*.yaml")}
    known.pop("index", None)
    if given.like not in known:
        raise Refusal(f"--like {given.like}: no such spec; {nearest(given.like, known)}")
    source = known[given.like]
    index = read_index(SPECS)
    text = source.read_text(encoding="utf-8").replace("../schema.json", "schema.json")
    data = str(read_yaml(source)["data"])
    files: dict[Path, str] = {new: text}
    raw = None
    data_file = data_file_of(source, data)
    if data_file.parent != SPECS / "data" or given.data is not None:
        if given.data is None:
            raise Refusal(f"--like {given.like}: its data is not embedded; add --data PATH, the folder with its files")
        if read_spec(data_file, DataSpec).source.embedded:
            raise Refusal(f"--data {given.data}: the data of {given.like} is embedded; leave it out")
        if not Path(given.data).exists():
            raise Refusal(f"--data {given.data}: no such path")
        raw = given.data
        files[new] = re.sub(r"(?m)^data:.*$", f"data: {name}", text, count=1)
        files[SPECS / "data" / f"{name}.yaml"] = data_file.read_text(encoding="utf-8")
        data = name
        if (SPECS / "data" / f"{name}.yaml").exists():
            raise Refusal(f"{SPECS / 'data' / name}.yaml: exists already; choose another name")
    elif data not in index.data:
        raise Refusal(f"{SPECS / 'index.yaml'}: data set {data} of {given.like} is not in it")

    written: list[Path] = []
    try:
        for path, content in files.items():
            written.append(path)
            path.write_text(content, encoding="utf-8")
        faults = faults_of(new)
        if faults:
            raise SpecError(faults)
        _enter(name, data, raw, _folder_of_files(new))
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    print(f"wrote {', '.join(map(str, files))} and entered {name} in {SPECS / 'index.yaml'}")
    print("edit it, then run: dvc repro")


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
