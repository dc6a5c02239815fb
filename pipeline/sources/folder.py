"""A folder of pictures, walked to any depth: ``class/…/name.ext``, or unlabelled, or one folder a split.

Every file is accounted for. No link is followed: what a link inside the folder points to is met where it lies, and
what lies outside is none of the data; so loops end and nothing leaves the root. Only regular files are opened (a pipe
would block for ever), and only by the process that decodes them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

from pipeline.sources.classed import Classed
from pipeline.sources.names import HIDDEN, MEMBER_LIMIT, folder_of, hidden, printable
from pipeline.sources.record import Item, Note, Record, Refused


class Folder(Classed):
    """Pictures in a folder, or in one folder a split."""

    kind: Literal["folder"]
    place: ClassVar[str] = "folder"

    def records(self, raw: Path | None) -> Iterator[Item]:
        """Yield every file of the folders: a record named by its path under the raw path, or why it is none.

        Raises:
            Refusal: a folder is not there (the nearest name is told), or leaves the raw path.
        """
        for name, split in self.parts():
            base = folder_of(raw, name, split or "train")
            before = "" if name is None else f"{name.rstrip('/')}/"
            empty: set[str] = set()
            for item, inside in walked(base):
                folder, _, rest = inside.partition("/")
                if isinstance(item, Note):
                    empty.add(folder)
                elif isinstance(item, Refused):
                    yield Refused(before + item.name, item.reason, item.detail)
                else:
                    yield self.labelled(before + item.name, item.content, folder if rest else None, split)
            if empty:
                yield Note(f"{len(empty)} empty folder(s), no class: {', '.join(sorted(empty)[:5])}", damage=False)


def walked(base: Path) -> Iterator[tuple[Item, str]]:
    """Yield (record, refusal, or note of an empty first-level folder; path under the base) in the order of names."""
    todo: list[tuple[Path, str]] = [(base, "")]
    while todo:
        folder, before = todo.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            yield Refused(before or ".", "cannot be opened", str(error.strerror)), before
            continue
        below: list[tuple[Path, str]] = []
        for entry in entries:
            name = before + printable(entry.name)
            if hidden(entry.name):
                inside = "a folder, not entered" if entry.is_dir(follow_symlinks=False) else ""
                yield Refused(name, HIDDEN, inside), name
            elif entry.is_symlink():
                yield Refused(name, "no regular file", f"link to {printable(os.readlink(entry.path))}"), name
            elif entry.is_dir(follow_symlinks=False):
                below.append((Path(entry.path), f"{name}/"))
            else:
                yield _file(entry, name), name
        if not entries and before.count("/") == 1:
            yield Note(before), before
        todo += reversed(below)


def _file(entry: os.DirEntry[str], name: str) -> Item:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError as error:
        return Refused(name, "cannot be opened", str(error.strerror))
    if not stat.S_ISREG(status.st_mode):
        return Refused(name, "no regular file", "device or pipe")
    if status.st_size > MEMBER_LIMIT:
        return Refused(name, "too large", f"{status.st_size} bytes, limit {MEMBER_LIMIT}")
    return Record(name, Path(entry.path))
