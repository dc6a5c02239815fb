"""torchvision's data sets by name, from a local root where torchvision has put them; nothing is ever downloaded.

Only sets that are one array of pictures. CIFAR's files are pickles: torchvision compares their MD5 with the published
ones before it opens them, which is what makes that safe.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from pipeline.images import encode_array
from pipeline.sources.names import existing
from pipeline.sources.record import ColumnKind, Item, Record, Split
from pipeline.spec import Refusal, Spec

BY_WORD = frozenset({"SVHN", "STL10"})
"""The sets whose split is a word instead of a flag."""


class TorchvisionSet(Spec):
    """One of torchvision's sets, with its own split and the column ``label``."""

    kind: Literal["torchvision"]
    name: Literal["CIFAR10", "CIFAR100", "FashionMNIST", "KMNIST", "MNIST", "STL10", "SVHN"]
    """torchvision's name; the raw path is its root"""
    embedded: ClassVar[bool] = False
    splits_itself: ClassVar[bool] = True

    def columns(self) -> dict[str, ColumnKind]:
        """Name and kind of every label column."""
        return {"label": "class"}

    def count(self) -> int | None:
        """How many pictures there are: not told before the files are read."""
        return None

    def records(self, raw: Path | None) -> Iterator[Item]:
        """Yield every picture, named SPLIT/NUMBER, as an .npy.

        Raises:
            Refusal: the files are not in the root, or not those that were published.
        """
        if raw is None:
            raise Refusal(f"{self.name} needs a raw path, torchvision's root; give it in specs/index.yaml")
        splits: tuple[Split, ...] = ("train", "test")
        for split in splits:
            pictures, targets, names = self._read(existing(raw), split)
            for number, target in enumerate(targets):
                label = names[int(target)] if names else str(int(target))
                yield Record(f"{split}/{number:06d}", encode_array(pictures[number]), {"label": label}, split, True)

    def _read(self, root: Path, split: str) -> tuple[Any, Any, list[str]]:
        """Pictures (N, H, W, C) uint8, class numbers (N,), and the names of the classes (or none)."""
        from torchvision import datasets  # slow to import, and other sources do not need it

        which: dict[str, Any] = {"split": split} if self.name in BY_WORD else {"train": split == "train"}
        try:
            found = getattr(datasets, self.name)(str(root), download=False, **which)
        except (RuntimeError, OSError, ValueError, EOFError) as error:
            line = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise Refusal(
                f"{root}: no {self.name} as torchvision keeps it ({line}); fetch it once with "
                f"torchvision.datasets.{self.name}(root={str(root)!r}, download=True)"
            ) from None
        pictures = np.asarray(found.data)
        if pictures.ndim == 3:
            pictures = pictures[..., None]
        elif self.name in BY_WORD:
            pictures = np.moveaxis(pictures, 1, 3)
        targets = found.labels if self.name in BY_WORD else found.targets
        return pictures, targets, [str(name) for name in getattr(found, "classes", ())]
