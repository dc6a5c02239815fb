"""A folder of results is whole or it is the old one: made aside, then renamed into its place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(final: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``final`` when the block ends, and vanishes when it fails.

    What writers that were killed left beside it goes; the caller sees to it that there is one writer at a time.
    """
    for hidden in [*final.parent.glob(f".{final.name}.partial-*"), *final.parent.glob(f".{final.name}.old-*")]:
        shutil.rmtree(hidden, ignore_errors=True)
    partial, old = (final.with_name(f".{final.name}.{what}-{os.getpid()}") for what in ("partial", "old"))
    partial.mkdir(parents=True)
    try:
        yield partial
        if final.exists():
            final.rename(old)
        partial.rename(final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
