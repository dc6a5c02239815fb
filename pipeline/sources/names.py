"""Names of files in folders and archives: what is hidden, how any bytes are shown, what lies outside."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from pipeline.spec import Refusal, nearest

MEMBER_LIMIT = 2**28
"""bytes; a larger file is refused unread"""

SYSTEM = frozenset({"__macosx", "thumbs.db", "desktop.ini", "ehthumbs.db", "$recycle.bin", "system volume information"})
"""What systems leave beside pictures, in small letters."""

HIDDEN = "hidden or system file"


def printable(name: str) -> str:
    """A name that can be written as UTF-8: bytes that are not are shown as \\xNN."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def one_line(text: str) -> str:
    """Text for a terminal: what is not printable, as a line end or an escape in a name, is shown as \\n or \\xNN."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def hidden(part: str) -> bool:
    """Whether one part of a path is hidden or a system's own, and so no class and no picture."""
    return part.startswith(".") or part.lower() in SYSTEM


def unfit_name(name: str, size: int) -> tuple[str, str] | None:
    """Why an archive's member of this name and size is not read (reason, detail), or None."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or not parts:
        return "unsafe path", "absolute or with '..'"
    if any(hidden(part) for part in parts):
        return HIDDEN, ""
    if size > MEMBER_LIMIT:
        return "too large", f"{size} bytes, limit {MEMBER_LIMIT}"
    return None


def leaves(name: str) -> bool:
    """Whether a file name in a spec leaves the raw path."""
    return name.startswith("/") or ".." in PurePosixPath(name).parts


def existing(path: Path) -> Path:
    """The path, which must be there. Raises Refusal naming the nearest."""
    if not path.exists():
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        raise Refusal(f"{path}: no such file or folder; {nearest(path.name, beside)}")
    return path


def file_of(raw: Path | None, name: str | None, field: str) -> Path:
    """The file under the raw path that a spec names; the raw path itself where it names none. Raises Refusal."""
    path = existing(_given(raw)) if name is None else existing(_given(raw)) / name
    if name is not None and _given(raw).is_file():
        raise Refusal(f"{raw}: is a file; set source.{field} to null, or give the folder that holds '{name}'")
    if not existing(path).is_file():
        raise Refusal(f"{path}: is no file; name the file in the data spec's source.{field}")
    return path


def folder_of(raw: Path | None, name: str | None, field: str) -> Path:
    """The folder under the raw path that a spec names; the raw path itself where it names none. Raises Refusal."""
    root = existing(_given(raw))
    path = root if name is None else existing(root / name)
    if not path.is_dir():
        raise Refusal(f"{path}: is no folder; give the folder that holds the samples (source.{field})")
    if not path.resolve().is_relative_to(root.resolve()):
        raise Refusal(f"{path}: is a link that leaves {root}; give the folder itself as the raw path")
    return path


def _given(raw: Path | None) -> Path:
    if raw is None:
        raise Refusal("the source needs a raw path; give it in specs/index.yaml")
    return raw
