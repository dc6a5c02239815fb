"""The files of a bundle, in a folder or at a URL that fsspec opens (s3://, hf://, memory:// …), never more than asked.

Only names that are known beforehand are asked for, and no file is read beyond the size that its place in the bundle
allows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from pipeline.bundle.card import CARD
from pipeline.spec import Refusal, nearest

BLOCK = 2**22
"""bytes"""
Read = Callable[[str, int], bytes | None]
"""(name, most bytes) → content; None: there is no such file. Raises Refusal where there are more bytes."""


def reader(place: str | Path) -> Read:
    """How the files of a bundle are read.

    Raises:
        Refusal: no such folder (the nearest bundle is told), or a URL of an unknown kind.
    """
    if "://" in str(place):
        return _remote(str(place))
    folder = Path(place).expanduser()
    if not folder.is_dir():
        what = "a file" if folder.is_file() else "no such bundle"
        beside = sorted(path.parent.name for path in folder.parent.glob(f"*/{CARD}"))
        remedy = f"; {nearest(folder.name, beside)}" if beside else "; name a folder that the export stage wrote"
        raise Refusal(f"{folder}: {what}: {CARD} is missing{remedy}")
    refused = folder / "refused.json"
    if refused.is_file() and not (folder / CARD).is_file():
        raise Refusal(f"{folder}: no bundle: {_reason(refused)}")

    def read(name: str, most: int) -> bytes | None:
        path = folder / name
        if not path.is_file():
            return None
        try:
            with path.open("rb") as file:
                return _read(file, most, str(path))
        except OSError as error:
            raise Refusal(f"{path}: {(error.strerror or str(error)).lower()}") from None

    return read


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file, read in parts."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remote(url: str) -> Read:
    try:
        import fsspec

        system, root = fsspec.core.url_to_fs(url)
    except Exception as error:  # whatever a protocol's package raises
        raise Refusal(f"{url}: cannot be opened ({_first(error)}); name a folder, or a URL that fsspec opens") from None

    def read(name: str, most: int) -> bytes | None:
        try:
            with system.open(f"{root.rstrip('/')}/{name}", "rb") as file:
                return _read(file, most, f"{url}/{name}")
        except FileNotFoundError:
            return None
        except Refusal:
            raise
        except Exception as error:
            raise Refusal(
                f"{url}/{name}: cannot be read ({_first(error)}); try again, or copy the bundle into a folder"
            ) from None

    return read


def _read(file: BinaryIO, most: int, place: str) -> bytes:
    """All of a file, in blocks: what it may have can be far more than what it has."""
    blocks, size = [], 0
    while block := file.read(BLOCK):
        blocks.append(block)
        size += len(block)
        if size > most:
            raise Refusal(f"{place}: more than the {most} bytes that it can have; copy the bundle again")
    return b"".join(blocks)


def _reason(file: Path) -> str:
    try:
        refused: Any = json.loads(file.read_text(encoding="utf-8"))
        return f"{refused['stage']} refused it: {refused['reason']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "its export was refused"


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
