"""Floor 2: read-only access to work/embed/NAME, the vectors that every figure after the training is computed from.

``{split}.{layer}.npy`` (N, D) float32 for the splits train, test, view0, view1 and the layers h, z, raw, untrained;
``labels.npz`` with the arrays ``train.COLUMN`` and ``test.COLUMN``; ``columns.json`` says what a column is. view0 and
view1 are the test images, in order, moved by the declared invariances: their labels are those of test.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pipeline.spec import Refusal, Spec, SpecError, nearest, parse

SPLITS = ("train", "test", "view0", "view1")
LAYERS = ("h", "z", "raw", "untrained")
_ROWS = 4096
_REMEDY = "delete its folder and run `dvc repro`"


class Column(Spec):
    """A label column: classes with their names (a code is an index into them), or numbers."""

    kind: Literal["class", "number"]
    classes: tuple[str, ...] = ()


class Embeddings:
    """The embedded splits of one space. Arrays are memory-mapped; every shape is checked when it is read."""

    def __init__(self, folder: Path):
        """Open work/embed/NAME.

        Raises:
            Refusal: the folder or its columns.json is missing (the stage has not run) or damaged.
        """
        self.folder = folder
        self._archive: Any = None
        path = folder / "columns.json"
        if not path.is_file():
            raise Refusal(f"{path}: not there; run `dvc repro` or `python -m stages.embed {folder.name}` first")
        try:
            content: Any = json.loads(path.read_text(encoding="utf-8"))
            items = content.items()
        except (ValueError, AttributeError):
            raise Refusal(f"{path}: damaged; {_REMEDY}") from None
        try:
            self.columns = {name: parse(column, Column, str(path), name) for name, column in items}
        except SpecError as error:
            raise Refusal(f"{error}; {_REMEDY}") from None

    def features(self, split: str, layer: str) -> npt.NDArray[np.float32]:
        """The vectors of a split: (N, D) float32, read-only.

        Raises:
            Refusal: the file is missing or damaged, or does not have one row for every label.
        """
        path = self.folder / f"{split}.{layer}.npy"
        rows = _load(path)
        if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.dtype != np.float32 or not rows.size:
            found = f"{rows.dtype} of shape {rows.shape}" if isinstance(rows, np.ndarray) else "no array"
            raise Refusal(f"{path}: {found}, not float32 rows (N, D); {_REMEDY}")
        for column in self.columns:
            labels = self._labels(split, column)
            if len(labels) != len(rows):
                raise Refusal(f"{path}: {len(rows)} rows, but {len(labels)} labels in column {column}; {_REMEDY}")
        return rows

    def labels(self, split: str, column: str) -> npt.NDArray[np.int64]:
        """The class codes of a split: (N,) int64, each an index into the column's classes.

        Raises:
            Refusal: no such column (the nearest is named), a column of numbers, a code outside the classes, a damaged
                file.
        """
        if self._kind(column) != "class":
            raise Refusal(f'{self.folder}: the column "{column}" holds numbers; only a column of classes has codes')
        codes = self._labels(split, column)
        classes = len(self.columns[column].classes)
        if codes.dtype != np.int64 or (codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < classes):
            path = self.folder / "labels.npz"
            raise Refusal(f"{path}: {split}.{column} holds other than int64 codes of its {classes} classes; {_REMEDY}")
        return codes

    def numbers(self, split: str, column: str) -> npt.NDArray[np.float64]:
        """The values (N,) float64 of a column of numbers; one that is not known is NaN.

        Raises:
            Refusal: no such column (the nearest is named), a column of classes, a damaged file.
        """
        if self._kind(column) != "number":
            raise Refusal(f'{self.folder}: the column "{column}" holds classes; only a column of numbers has values')
        values = self._labels(split, column)
        if values.dtype.kind not in "fiu":
            path = self.folder / "labels.npz"
            raise Refusal(f"{path}: {split}.{column} holds {values.dtype}, not numbers; {_REMEDY}")
        return values.astype(np.float64)

    def class_columns(self) -> list[str]:
        """Names of the columns of kind class, sorted."""
        return sorted(name for name, column in self.columns.items() if column.kind == "class")

    def _kind(self, column: str) -> str:
        if column not in self.columns:
            raise Refusal(f'{self.folder}: has no label column "{column}"; {nearest(column, self.columns)}')
        return self.columns[column].kind

    def _labels(self, split: str, column: str) -> npt.NDArray[Any]:
        path = self.folder / "labels.npz"
        if self._archive is None:
            self._archive = _load(path)
        archive = self._archive
        key = f"{'train' if split == 'train' else 'test'}.{column}"
        if key not in archive:
            raise Refusal(f"{path}: has no array {key}; {_REMEDY}")
        array: npt.NDArray[Any] = np.asarray(archive[key]).reshape(-1)
        return array


def unusable(rows: npt.NDArray[np.float32], cosine: bool = True) -> str | None:
    """Why nothing can be measured on rows (N, D), or None: broken numbers, a constant space, no direction.

    Args:
        cosine: whether directions are compared; they need two dimensions and rows of some length.
    """
    blocks = [slice(start, start + _ROWS) for start in range(0, len(rows), _ROWS)]
    broken = sum(int((~np.isfinite(rows[block])).any(axis=1).sum()) for block in blocks)
    if broken:
        return f"{broken} of {len(rows)} rows hold NaN or infinity"
    centre = rows.mean(axis=0, dtype=np.float64)
    variance = sum(float(np.square(rows[block] - centre).sum()) for block in blocks) / len(rows)
    if len(rows) > 1 and variance <= 1e-12 * float(centre @ centre):  # a spread below float32's rounding is none
        return "all rows are equal"
    if cosine and rows.shape[1] == 1:
        return "one dimension has no directions to compare"
    zeros = int((~rows.any(axis=1)).sum())
    if cosine and zeros:
        return f"{zeros} of {len(rows)} rows have length zero"
    return None


def _load(path: Path) -> Any:
    try:
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except FileNotFoundError:
        raise Refusal(f"{path}: not there; {_REMEDY}") from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise Refusal(f"{path}: damaged ({str(error).splitlines()[0]}); {_REMEDY}") from None
