"""Which declaration paid: ``python -m stages.leave_one_out NAME`` trains the spec once without each of its invariances.

Each is one experiment of DVC (``dvc exp run``), made in a temporary clone that shares the cache: the working tree is
not touched, and what is in the cache is not made again. Afterwards ``dvc exp show`` lists NAME-without-INVARIANCE.
Writes work/leave_one_out/NAME/table.json. ``--print`` only shows the commands.
"""

from __future__ import annotations

import argparse
import shlex
import tempfile
from pathlib import Path
from typing import Any

from pipeline.leaving_out import WHOLE, Variant, variants
from pipeline.probes import Probe
from pipeline.spec import Refusal, SpecError, read_section, read_yaml
from pipeline.specification import faults_of
from stages import SPECS, WORK, output_folder, read_json, run, spec_path, write_json


def main(arguments: list[str]) -> None:
    """Make the experiments of the spec that the one argument names, and the table of what each invariance paid."""
    parser = argparse.ArgumentParser(prog="python -m stages.leave_one_out", description=__doc__)
    parser.add_argument("name", help="a spec's name")
    parser.add_argument("--print", action="store_true", dest="only", help="show the commands, run nothing")
    given = parser.parse_args(arguments)
    path = spec_path(given.name)
    name = path.stem
    if path.parent != SPECS or name not in read_yaml(SPECS / "index.yaml").get("specs", {}):
        raise Refusal(f"{path}: is not in {SPECS / 'index.yaml'}, so `dvc repro` does not know it; enter it there")
    faults = faults_of(path)
    if faults:
        raise SpecError(faults)
    made = list(variants(read_yaml(path), str(path)))
    if given.only:
        for each in made:
            command = ["dvc", "exp", "run", "--name", experiment(name, each), *each.parameters(path), f"judge@{name}"]
            print(shlex.join(command) if each.reason is None else f"# {each.label} cannot be left out: {each.reason}")
        return
    content, back = _trained(path, made)
    from pipeline.leaving_out.figures import table
    from pipeline.rounding import rounded

    with output_folder("leave_one_out", name) as folder:
        write_json(folder / "table.json", rounded({"found": content}))
    for line in table(content):
        print(line)
    print("one training each, with one seed: a small difference may be the seed's")
    if back:
        print(f"`dvc exp show` lists them; `dvc exp apply {name}-without-…` takes one over")


def experiment(name: str, variant: Variant) -> str:
    """What an experiment is called."""
    return f"{name}-{WHOLE}" if variant.removed is None else f"{name}-without-{variant.label}"


def _trained(path: Path, made: list[Variant]) -> tuple[list[dict[str, Any]], bool]:
    """Run every experiment: its rows of the table, and whether the experiments are in the repository now."""
    from pipeline.experiments import Clone
    from pipeline.leaving_out.figures import beside, sentence

    name, probe = path.stem, read_section(path, "probe", Probe)
    content: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="leave-one-out-") as place:
        clone = Clone(Path(), Path(place))
        whole = None
        for number, variant in enumerate(made):
            if variant.reason is not None:
                told = f"cannot be left out: {variant.reason}"
                content.append({"removed": variant.label, "invariance": variant.removed, "rows": [], "sentence": told})
                continue
            print(f"{number + 1} of {len(made)}: {experiment(name, variant)}", flush=True)
            clone.run(experiment(name, variant), f"judge@{name}", variant.parameters(path))
            found = _answered(clone.path, path, probe)
            if variant.removed is None:
                if isinstance(found, str):
                    raise Refusal(f"{name}: the whole spec has no figures to compare with: {found}")
                whole = found
                continue
            assert whole is not None  # it comes first
            rows = list(beside(whole, found))
            one = {"removed": variant.label, "invariance": variant.removed, "rows": rows, "sentence": sentence(rows)}
            content.append(one)
        names = [experiment(name, variant) for variant in made if variant.reason is None]
        return content, clone.bring_back(names)


def _answered(clone: Path, path: Path, probe: Probe) -> Any:
    """Which test images the space that stands in the clone answers right, or why it has none."""
    from pipeline.audit.estimate import NotComputable
    from pipeline.embeddings import Embeddings
    from pipeline.leaving_out.figures import answers
    from pipeline.leaving_out.views import moved_vectors
    from pipeline.machine import read_machine, settle
    from pipeline.space import LatentSpace

    name = path.stem
    for stage in ("pretrain", "embed"):
        refused = clone / WORK / stage / name / "refused.json"
        if refused.is_file():
            content = read_json(refused)
            return f"{content['stage']} refused it: {content['reason']}"
    machine = read_machine()
    settle(machine)
    space: LatentSpace = read_section(path, "space", LatentSpace)  # the whole declaration, from the user's own file
    embeddings = Embeddings(clone / WORK / "embed" / name)
    labels = [label for label in probe.labels if embeddings.columns[label].kind == "class"]
    data = clone / WORK / "shard" / str(read_yaml(path)["data"])
    moved = moved_vectors(clone / WORK / "pretrain" / name, data, space.through(0), machine.chosen_device())
    try:
        return answers(embeddings, moved, labels, probe.k, probe.temperature)
    except NotComputable as reason:
        return str(reason)


if __name__ == "__main__":
    run(main)
