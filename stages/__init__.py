"""Floor 3: one thin module a DVC stage, called as ``python -m stages.STAGE NAME`` (a name or a path of its YAML).

What the stages share: how a fault is told, where a spec lies, how an output folder appears whole or not at all (one
writer at a time, which ends with the ``dvc`` that started it), and how a refusal travels: a stage that may not run, and
those after it, write ``refused.json`` and exit 0.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from pipeline.folders import replaced
from pipeline.lifeline import end_with, started_by
from pipeline.lock import held
from pipeline.spec import Fault, Refusal, SpecError, nearest

# Before any library starts its threads: waiting threads sleep. Spinning ones make a busy machine five times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Training in large pages takes a tenth off a small network's step. glibc (2.35 on) reads this once, before any code
# runs, so the process starts anew in place, before anything heavy is imported; a GLIBC_TUNABLES that is set stays.
TUNABLES = "GLIBC_TUNABLES"
if sys.platform == "linux" and sys.orig_argv[1:3] == ["-m", "stages.pretrain"] and TUNABLES not in os.environ:
    os.environ[TUNABLES] = "glibc.malloc.hugetlb=1"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

SPECS = Path("specs")
WORK = Path("work")
STARTED_BY = started_by()
"""The process that a stage must not outlive; looked up before the heavy imports."""


def run(main: Callable[[list[str]], None]) -> NoReturn:
    """Call a stage's ``main`` with the command line; tell what a user can mend in one line a fault, and exit 1."""
    end_with(STARTED_BY)
    if threading.current_thread() is threading.main_thread():  # asked to end: clean up, then end
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        main(sys.argv[1:])
        sys.stdout.flush()
    except Refusal as refusal:
        sys.exit(str(refusal))
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(told(error))
    sys.exit(0)


def told(error: OSError) -> str:
    """An operating system's error on one line: the file, what is wrong, what to do."""
    remedies = {
        "ENOSPC": "free some space and run again",
        "EFBIG": "the file size limit (ulimit -f) or the disk is full; raise it and run again",
        "EDQUOT": "the quota is full; free some space and run again",
        "EACCES": "give this user the right to it and run again",
        "EROFS": "the disk is read-only",
        "ENOTDIR": "a file stands where a folder should be; move it away and run again",
        "EEXIST": "a file stands where a folder should be; move it away and run again",
        "EISDIR": "a folder stands where a file should be; move it away and run again",
        "ENOENT": "it has vanished; `dvc checkout` brings back what DVC had, `dvc repro` makes the rest anew",
    }
    code = errno.errorcode.get(error.errno or 0, "")
    if error.errno is None:  # NumPy's short writes bring no number
        return f"writing output: {error}; the disk or a quota may be full; free some space and run again"
    what = error.strerror or str(error) or type(error).__name__
    remedy = f"; {remedies[code]}" if code in remedies else ""
    return f"{error.filename or 'writing output'}: {what.lower()}{remedy}"


def spec_path(argument: str, folder: Path = SPECS) -> Path:
    """The YAML file that a name or a path means.

    Raises:
        SpecError: there is no such file; the nearest existing name is offered.
    """
    path = Path(argument)
    if path.suffix not in (".yaml", ".yml") and len(path.parts) == 1:
        path = folder / f"{argument}.yaml"
    if path.is_file():
        return path
    known = [found.stem for found in sorted(path.parent.glob("*.yaml")) if found.stem != "index"]
    known = known or [found.stem for found in sorted(folder.glob("*.yaml")) if found.stem != "index"]
    raise SpecError([Fault(str(path), "", "", f"no such spec; {nearest(path.stem, known)}")])


def output_of(stage: str, name: str) -> Path:
    """The one output folder of a stage: work/STAGE/NAME."""
    return WORK / stage / name


@contextmanager
def output_folder(stage: str, name: str) -> Iterator[Path]:
    """Yield an empty folder that becomes work/STAGE/NAME when the block ends, and vanishes when it fails.

    Raises:
        Refusal: a file stands where the folder should be.
    """
    final = output_of(stage, name)
    if final.exists() and not final.is_dir():
        raise Refusal(f"{final}: is a file where an output folder should be; move it away and run again")
    with writing(stage, name), replaced(final) as partial:
        yield partial


@contextmanager
def writing(stage: str, name: str) -> Iterator[None]:
    """Be the only process that writes work/STAGE/NAME while the block runs.

    Raises:
        Refusal: another one is; it is named.
    """
    with held(WORK / "locks" / f"{stage}-{name}", f"{stage} {name}"):
        yield


def write_json(path: Path, content: Any) -> None:
    """Write plain data as indented JSON with sorted keys and a final newline; NaN and infinity are refused."""
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read JSON that an earlier stage wrote.

    Raises:
        Refusal: the file is missing (the stage that writes it has not run) or broken.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Refusal(f"{path}: not there; run `dvc repro` or `python -m stages.{path.parts[-3]}` first") from None
    except ValueError as error:
        raise Refusal(f"{path}: damaged ({error}); delete its folder and run `dvc repro`") from None


def refusal_before(*folders: Path) -> dict[str, str] | None:
    """What an earlier stage refused ({"stage", "reason"}), or None if all of them ran."""
    for folder in folders:
        if (folder / "refused.json").is_file():
            refused: dict[str, str] = read_json(folder / "refused.json")
            return refused
    return None


def write_refusal(stage: str, name: str, refused: dict[str, str]) -> None:
    """Write ``refused.json`` as the whole output of a stage that is not allowed to run, and say so."""
    with output_folder(stage, name) as folder:
        write_json(folder / "refused.json", {"stage": refused["stage"], "reason": refused["reason"]})
    print(f"{stage} {name}: not run; {refused['stage']} refused it: {refused['reason']}")
