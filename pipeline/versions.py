"""The versions of what a result was computed with: they decide its last digits, and sometimes more."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

NAMED = ("latent-space-pipeline", "torch", "torchvision", "numpy", "pillow")


def versions(packages: Sequence[str] = NAMED) -> dict[str, str]:
    """Python's version and those of ``packages`` by name; one that is not installed is left out."""
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
