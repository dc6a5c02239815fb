"""DVC experiments in a temporary clone: the user's own working tree, index and stash are never touched.

The clone shares git's objects and DVC's cache with the repository that it is made of, so what was made already is not
made again, and experiments come back as git references. What is not committed is copied into it and committed there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.index import NONE, read_index
from pipeline.spec import Refusal

MACHINE = "machine.yaml"
COPIED = ("specs", "pipeline", "stages", "dvc.yaml", "dvc.lock", ".dvc/config", ".dvcignore", ".gitignore")
"""What is taken as it stands, committed or not, beside user files: raw data is linked, and nothing else counts."""
LAST = 300
"""letters of a failed command's output that are shown"""


class Clone:
    """A clone of the repository at ``root``, in the empty folder ``place``.

    Raises:
        Refusal: no repository of git and DVC, or git cannot clone it.
    """

    def __init__(self, root: Path, place: Path):
        self.root, self.path = root.resolve(), place / "repository" / "clone"
        for tool, folder in (("git", ".git"), ("dvc", ".dvc")):
            if not (self.root / folder).exists():
                raise Refusal(
                    f"{self.root}: no {tool} repository; run this where {folder} is (`{tool} init` makes one)"
                )
        if self._git("rev-parse", "--verify", "--quiet", "HEAD", at=self.root, may_fail=True) == "":
            raise Refusal(f"{self.root}: nothing was committed yet; experiments need a first commit")
        self.path.parent.mkdir(parents=True)
        self._git("clone", "--quiet", "--shared", str(self.root), str(self.path), at=self.root)
        self._git("config", "user.name", "experiments", at=self.path)
        self._git("config", "user.email", "experiments@localhost", at=self.path)
        self.base = self._git("rev-parse", "HEAD", at=self.path)
        self.dirty = self._copy_changes()
        self._link_raw_data()
        cache = self.dvc("cache", "dir", at=self.root)
        self.dvc("config", "--local", "cache.dir", str((self.root / cache).resolve()))

    def run(self, name: str, target: str, parameters: Sequence[str]) -> None:
        """Run one experiment; its outputs stand in the clone until the next. Raises Refusal where DVC fails."""
        self._git("checkout", "--quiet", "--", ".", at=self.path)
        self.dvc("exp", "run", "--name", name, *parameters, target, shown=True)

    def bring_back(self, names: Sequence[str]) -> bool:
        """Fetch the experiments' references into the user's repository, where their commit is the user's own."""
        if self.dirty:
            return False
        place = f"refs/exps/{self.base[:2]}/{self.base[2:]}"
        for name in names:
            self._git("fetch", "--quiet", str(self.path), f"+{place}/{name}:{place}/{name}", at=self.root)
        return True

    def dvc(self, *arguments: str, at: Path | None = None, shown: bool = False) -> str:
        """Run dvc, in the clone if not said otherwise. Raises Refusal with its last words where it fails."""
        return self._run([sys.executable, "-m", "dvc", *arguments], at or self.path, shown)

    def _git(self, *arguments: str, at: Path, may_fail: bool = False) -> str:
        return self._run(["git", *arguments], at, may_fail=may_fail)

    def _run(self, command: list[str], at: Path, shown: bool = False, may_fail: bool = False) -> str:
        """Run a command: what it printed. What it tells of its progress goes to this process's standard error."""
        to = sys.stderr if shown else subprocess.PIPE
        try:
            done = subprocess.run(command, cwd=at, env=environment(), stdout=to, stderr=subprocess.PIPE, text=True)
        except FileNotFoundError:
            raise Refusal(f"{command[0]}: not installed, and experiments need it") from None
        if done.returncode and not may_fail:
            words = " ".join((done.stderr or "").split())[-LAST:]
            raise Refusal(f"{' '.join(command[2:] if command[1] == '-m' else command)}: failed: {words}")
        return (done.stdout or "").strip()

    def _copy_changes(self) -> bool:
        """Copy what differs from the last commit, and commit it in the clone; whether there was anything."""
        own = [each.files for each in read_index(self.root / "specs").specs.values() if each.files != NONE]
        copied = [name for name in (*COPIED, *own) if not Path(name).is_absolute() and ".." not in Path(name).parts]
        listed = self._git("ls-files", "-z", "-m", "-o", "--exclude-standard", "--", *copied, at=self.root)
        for name in filter(None, listed.split("\0")):
            source, target = self.root / name, self.path / name
            if source.is_file() or source.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
            else:
                target.unlink(missing_ok=True)
        if (self.root / MACHINE).is_file():
            shutil.copy2(self.root / MACHINE, self.path / MACHINE)
        self._git("add", "--all", at=self.path)
        if self._git("status", "--porcelain", at=self.path) == "":
            return False
        self._git("commit", "--quiet", "--no-verify", "--message", "what was not committed", at=self.path)
        return True

    def _link_raw_data(self) -> None:
        """Let relative paths of raw data and user files, which git may not hold, lead to where they lie."""
        index = read_index(self.root / "specs")
        for name in (*(each.raw for each in index.data.values()), *(each.files for each in index.specs.values())):
            target = self.path / name
            if name != NONE and not Path(name).is_absolute() and not target.exists() and (self.root / name).exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to((self.root / name).resolve())


def environment() -> dict[str, str]:
    """Of every command: this interpreter first, so that stages run under it; nothing of an outer git or DVC."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "DVC_EXP", "DVC_STAGE"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**kept, "PATH": path, "DVC_NO_ANALYTICS": "1"}
