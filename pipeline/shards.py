"""The reader of a sharded data set: random access by index and ``os.pread``, nothing skipped, sizes checked at open.

The shards are plain webdataset tars (``SPLIT-000000.tar``, members ``KEY.EXT`` and ``KEY.json``), so that
``webdataset.WebDataset`` streams them too; training and evaluation need exact epochs and random order, which the
index gives. Beside the tars: ``index.json`` (the card), ``index.npz`` (offset and size of every member, label codes)
``ledger.json`` (what was refused, by reason) and ``card.png`` (examples, a line a class).

Legend: N samples of a split; S one of them on the canvas, whose contract is ``card.input``: of pictures (C, H, W).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from pipeline.images import Pixels, thumbnail
from pipeline.modalities import Contract
from pipeline.samples import Values
from pipeline.spec import Refusal, Spec, parse

if TYPE_CHECKING:
    from torch import Tensor  # sharding needs no torch

CARD, INDEX, LEDGER, EXAMPLES = "index.json", "index.npz", "ledger.json", "card.png"


class Column(Spec):
    """One label column of all pictures."""

    kind: Literal["class", "number"]
    classes: tuple[str, ...]
    """names in the order of the codes, over all splits; empty for numbers"""
    counts: dict[str, tuple[int, ...]]
    """pictures of each class, by split; empty for numbers"""
    agreement: float | None = None
    """sum of the squared shares of the classes in train: the probability that two pictures agree, which objectives
    call ``prior``; null for numbers"""


class Grouped(Spec):
    """Whether the values of a column that belong together, as the pictures of a patient, are on one side."""

    column: str
    groups: int
    """different values"""
    both: int
    """of them, those with pictures in train and in test"""
    pictures: dict[str, int]
    """of those, by split"""


class ShardFile(Spec):
    """One tar: what must be found on disk."""

    file: str
    split: str
    count: int
    """pictures"""
    bytes: int
    sha256: str


class DataCard(Spec):
    """All that is known of a sharded data set without its pictures."""

    name: str
    input: Contract
    splits: dict[str, int]
    """pictures of each split"""
    columns: dict[str, Column]
    group: Grouped | None = None
    """of the column that the data spec's ``split.group`` names"""
    mean: tuple[float, ...]
    """of each channel over the canvas of train, as an encoder reads it: of pictures in [0, 1]"""
    std: tuple[float, ...]
    """of each channel over the canvas of train, likewise"""
    sizes: dict[str, tuple[int, int, int]] = Field(default_factory=dict)
    """least, middle and largest of both sides of the files: of pictures height and width, pixels"""
    shards: tuple[ShardFile, ...]
    index_sha256: str
    """of index.npz"""
    fingerprint: str
    """SHA-256 over the shards' digests, the columns and the canvas: equal fingerprints are equal data"""


class Shards:
    """A sharded data set, opened.

    Raises:
        Refusal: a file is missing, cut, or not the one that the index describes.
    """

    card: DataCard

    def __init__(self, folder: Path):
        self.folder = folder
        self.card = read_card(folder)
        self._files: dict[int, int] = {}
        self._images: dict[str, Values] = {}
        for shard in self.card.shards:
            found = _size(folder / shard.file)
            if found != shard.bytes:
                raise Refusal(f"{folder / shard.file}: {found} bytes, the index says {shard.bytes}; {REMEDY}")
        self._index = _read_index(folder / INDEX, self.card)

    def __reduce__(self) -> tuple[type[Shards], tuple[Path]]:
        return Shards, (self.folder,)  # a worker opens its own files

    def __del__(self) -> None:
        for file in getattr(self, "_files", {}).values():
            os.close(file)

    def read(self, split: str, index: int) -> bytes:
        """The original bytes of sample ``index`` of a split. Raises Refusal where the shard has become shorter."""
        self._check(split)
        number = int(self._index[f"{split}.shard"][index])
        offset, size = (int(self._index[f"{split}.{what}"][index]) for what in ("offset", "size"))
        if number not in self._files:
            self._files[number] = os.open(self.folder / self.card.shards[number].file, os.O_RDONLY | os.O_CLOEXEC)
        content = os.pread(self._files[number], size, offset)
        if len(content) != size:
            raise Refusal(f"{self.folder / self.card.shards[number].file}: ends inside sample {index}; {REMEDY}")
        return content

    def image(self, split: str, index: int) -> Pixels:
        """What sample ``index`` of a split looks like, a picture on its canvas: (C, H, W) uint8."""
        return self.card.input.picture(self.card.input.read(self.read(split, index)))

    def original(self, split: str, index: int) -> Values:
        """Sample ``index`` of a split at its own size, with the canvas's channels first. It may be written to."""
        return self.card.input.original(self.read(split, index))

    def thumbnail(self, split: str, index: int, side: int) -> Pixels:
        """Sample ``index`` of a split as a person looks at it: (h, w, 3) uint8, at most ``side`` pixels a side, of one
        size for all samples of a data set. What a sample of another modality looks like is said here."""
        return thumbnail(self.image(split, index), side)

    def shapes(self, split: str) -> npt.NDArray[np.int32]:
        """Both sides of every sample of a split, as in its file: (N, 2), of pictures height and width."""
        self._check(split)
        if f"{split}.shape" not in self._index:
            raise Refusal(f"{self.folder / INDEX}: written by an earlier version, without sizes; {REMEDY}")
        return self._index[f"{split}.shape"]

    def canvases(self, split: str, indices: npt.NDArray[np.int64]) -> Values:
        """Some samples of a split on the canvas, (n, *S), pictures as uint8; only these are decoded if ``images`` was
        not called."""
        if split in self._images:
            return self._images[split][indices]
        canvas = self.card.input
        samples: Values = np.empty((len(indices), *canvas.shape), canvas.kept)
        for position, index in enumerate(indices):
            samples[position] = canvas.read(self.read(split, int(index)))
        return samples

    def batch(self, split: str, indices: npt.NDArray[np.int64]) -> Tensor:
        """Some samples of a split as an encoder reads them: (n, *S) floating point, pictures in [0, 1]."""
        import torch

        return self.card.input.as_float(torch.from_numpy(self.canvases(split, indices)))

    def images(self, split: str) -> Values:
        """All samples of a split on the canvas, (N, *S), pictures as uint8: decoded at the first call, then kept."""
        self._check(split)
        if split not in self._images:
            self._images[split] = self.canvases(split, np.arange(self.card.splits[split]))
        return self._images[split]

    def canvas_bytes(self, split: str) -> int:
        """Memory of all samples of a split on the canvas."""
        canvas = self.card.input
        return self.card.splits[split] * math.prod(canvas.shape) * np.dtype(canvas.kept).itemsize

    def labels(self, split: str) -> dict[str, npt.NDArray[Any]]:
        """Every label column of a split: (N,) int64 codes of classes, or float64 numbers."""
        self._check(split)
        return {name: self._index[f"{split}.label.{name}"] for name in self.card.columns}

    def verify(self) -> None:
        """Read every shard once and compare its SHA-256. Raises Refusal naming the first that differs."""
        for shard in self.card.shards:
            if sha256(self.folder / shard.file) != shard.sha256:
                raise Refusal(f"{self.folder / shard.file}: its SHA-256 is not the index's; {REMEDY}")

    def _check(self, split: str) -> None:
        if split not in self.card.splits:
            raise Refusal(f"{self.folder}: no split '{split}'; known: {', '.join(self.card.splits)}")


REMEDY = "delete the folder and run `dvc repro`, or `dvc checkout`"


def read_card(folder: Path) -> DataCard:
    """Read the card alone. Raises Refusal where the folder holds no sharded data set."""
    path = folder / CARD
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise Refusal(f"{path}: not there; run `dvc repro` or `python -m stages.shard {folder.name}` first") from None
    try:
        return parse(json.loads(text), DataCard, str(path))
    except ValueError as error:
        raise Refusal(f"{path}: damaged ({error}); {REMEDY}") from None


def sha256(path: Path) -> str:
    """SHA-256 (hex) of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        raise Refusal(f"{path}: not there, but the index names it; {REMEDY}") from None


def _read_index(path: Path, card: DataCard) -> dict[str, npt.NDArray[Any]]:
    if not path.is_file() or sha256(path) != card.index_sha256:
        raise Refusal(f"{path}: missing or not the one that {CARD} describes; {REMEDY}")
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
