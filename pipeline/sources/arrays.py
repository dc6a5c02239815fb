"""Pictures as one array: .npy, or .npz (compressed or not), with labels in arrays of the same length.

An array is read row by row from the file, so memory stays flat. Only numbers are read: object arrays would be pickles,
which can execute code, and are refused unread.
"""

from __future__ import annotations

import math
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from pipeline.images import encode_array
from pipeline.sources.names import file_of, leaves, printable
from pipeline.sources.record import ColumnKind, Item, Note, Record, Refused, Split
from pipeline.spec import Refusal, Rule, Spec, nearest

BYTE_LIMIT = 2**28
"""bytes of one picture"""

DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)


class Part(Spec):
    """One split's arrays."""

    file: str | None = Field(min_length=1)
    """.npy or .npz under the raw path; null: the raw path itself"""
    images: str | None = Field(min_length=1)
    """the array's name in the .npz; null for an .npy"""
    classes: dict[str, str]
    """label columns of classes: each column and its array's name in the .npz (or an .npy under the raw path)"""
    numbers: dict[str, str]
    """label columns of numbers, likewise"""


class Arrays(Spec):
    """Pictures in an array, with labels in others."""

    kind: Literal["arrays"]
    layout: Literal["channels_last", "channels_first"]
    """of pictures: (N, H, W, C) or (N, C, H, W); (N, H, W) is one channel in either"""
    train: Part
    """what is trained on; or all, where test is null"""
    test: Part | None
    """what is tested on; null: a share of train is kept for testing (``split``)"""
    embedded: ClassVar[bool] = False

    @property
    def splits_itself(self) -> bool:
        """Whether the source says what is for testing."""
        return self.test is not None

    def rules(self) -> Iterator[Rule]:
        for field, part in (("train", self.train), ("test", self.test)):
            if part is not None and part.file is not None and leaves(part.file):
                yield f"{field}.file", "must lie under the raw path: neither absolute nor with '..'"
        for name in sorted(set(self.train.classes) & set(self.train.numbers)):
            yield f"train.numbers.{name}", "is a column of classes already"
        if self.test is not None:
            for field in ("classes", "numbers"):
                if set(getattr(self.test, field)) != set(getattr(self.train, field)):
                    yield f"test.{field}", f"must have the columns of train: {sorted(getattr(self.train, field))}"
            if (self.test.file, self.test.images) == (self.train.file, self.train.images):
                yield "test.images", "must be another array than train's"

    def columns(self) -> dict[str, ColumnKind]:
        """Name and kind of every label column."""
        return {**dict.fromkeys(self.train.classes, "class"), **dict.fromkeys(self.train.numbers, "number")}

    def count(self) -> int | None:
        """How many pictures there are: not known before the file is read."""
        return None

    def records(self, raw: Path | None) -> Iterator[Item]:
        """Yield every picture, named FILE/ARRAY/NUMBER, as an .npy.

        Raises:
            Refusal: a file or an array is not there, holds objects, or has another length or shape than it must.
        """
        splits: list[tuple[str, Part | None, Split | None]] = [
            ("train", self.train, None if self.test is None else "train"),
            ("test", self.test, "test"),
        ]
        for field, part, split in splits:
            if part is not None:
                yield from self._part(raw, field, part, split)

    def _part(self, raw: Path | None, field: str, part: Part, split: Split | None) -> Iterator[Item]:
        path = file_of(raw, part.file, f"{field}.file")
        labels = dict(self._labels(path, part, field))
        with ExitStack() as stack:
            file, shape, dtype = opened(stack, path, part.images, f"source.{field}.images")
            place = path.name if part.images is None else f"{path.name}/{part.images}"
            if len(shape) not in (3, 4) or min(shape[1:]) < 1:
                raise Refusal(f"{place}: shape {shape}; pictures are (N, H, W) or (N, H, W, C)")
            for column, values in labels.items():
                if len(values) != shape[0]:
                    raise Refusal(
                        f"{place}: {shape[0]} pictures, but {len(values)} values in column '{column}'; mend the file"
                    )
            size = math.prod(shape[1:]) * dtype.itemsize
            if size > BYTE_LIMIT:
                raise Refusal(f"{place}: pictures of {size} bytes, limit {BYTE_LIMIT}")
            for number in range(shape[0]):
                name = f"{place}/{number:09d}"
                try:
                    data = file.read(size)
                except DAMAGE:
                    data = b""
                if len(data) != size:
                    yield Refused(name, "archive cut or damaged", f"{shape[0] - number} pictures are lost")
                    yield Note(f"{place} is cut or damaged after {number} pictures; what follows is lost")
                    return
                picture = np.frombuffer(data, dtype).reshape(shape[1:])
                if picture.ndim == 2:
                    picture = picture[..., None]
                elif self.layout == "channels_first":
                    picture = np.moveaxis(picture, 0, 2)
                kept = {column: values[number] for column, values in labels.items() if values[number] is not None}
                yield Record(name, encode_array(picture), cast(dict[str, str | float], kept), split, array=True)

    def _labels(self, path: Path, part: Part, field: str) -> Iterator[tuple[str, list[str | float | None]]]:
        """(column, its values, None where one is missing)."""
        for kind, arrays in (("classes", part.classes), ("numbers", part.numbers)):
            for column, array in arrays.items():
                beside = path.with_name(array) if array.endswith(".npy") else path
                with ExitStack() as stack:
                    inside = None if array.endswith(".npy") else array
                    file, shape, dtype = opened(stack, beside, inside, f"source.{field}.{kind}.{column}")
                    if math.prod(shape) != (shape[0] if shape else 0):
                        raise Refusal(f"{beside.name}/{array}: shape {shape}; a label column is (N,) or (N, 1)")
                    try:
                        data = file.read(math.prod(shape) * dtype.itemsize)
                        values = np.frombuffer(data, dtype)
                    except DAMAGE as error:
                        raise Refusal(f"{beside.name}/{array}: cut or damaged ({error}); copy it again") from None
                yield column, [_label(value, kind) for value in values.tolist()]


def _label(value: Any, kind: str) -> str | float | None:
    if kind == "classes":
        if isinstance(value, float):
            return str(int(value)) if value.is_integer() else None
        text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
        return text.strip() or None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def opened(
    stack: ExitStack, path: Path, array: str | None, field: str
) -> tuple[BinaryIO, tuple[int, ...], np.dtype[Any]]:
    """An array's stream behind its header, its shape and type. Raises Refusal."""
    place = path.name if array is None else f"{path.name}/{array}"
    if not path.is_file():
        raise Refusal(f"{path}: no such file; name it in the data spec's {field}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's remarks on old headers
            file, shape, fortran, dtype = _header(stack, path, array, field)
    except Refusal:
        raise
    except Exception as error:  # damaged headers make zipfile and NumPy raise nearly anything
        told = printable(str(error)).splitlines() or [type(error).__name__]
        raise Refusal(f"{place}: no array that can be read ({told[0]})") from None
    if dtype.hasobject:
        raise Refusal(f"{place}: an array of Python objects, which could execute code; save it as numbers or text")
    if dtype.fields is not None or dtype.kind not in "buifSU":
        raise Refusal(f"{place}: an array of {dtype}; save it as numbers or text")
    if fortran and len(shape) > 1:
        raise Refusal(f"{place}: saved in Fortran order; save numpy.ascontiguousarray of it")
    return file, tuple(int(side) for side in shape), dtype


def _header(
    stack: ExitStack, path: Path, array: str | None, field: str
) -> tuple[BinaryIO, tuple[int, ...], bool, np.dtype[Any]]:
    if zipfile.is_zipfile(path):
        archive = stack.enter_context(zipfile.ZipFile(path))
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        if array is None or array not in names:
            told = "" if array is None else f"no array '{array}'; "
            raise Refusal(f"{path}: {told}name one of its arrays in {field}; {nearest(array or '', names)}")
        inside = array if array in archive.namelist() else f"{array}.npy"
        file = cast(BinaryIO, stack.enter_context(archive.open(inside)))
    elif array is not None:
        raise Refusal(f"{path}: not an .npz, or damaged; copy it again, or set {field} to null for an .npy")
    else:
        file = stack.enter_context(path.open("rb"))
    version = np.lib.format.read_magic(file)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = reader(file)
    if min(shape, default=0) < 0:
        raise ValueError(f"shape {shape}")
    return file, shape, fortran, dtype


def arrays_of(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Name, shape and type of every readable array of an .npz or .npy ("" for the latter)."""
    names: list[str | None] = [None]
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
    found = {}
    for name in names:
        with ExitStack() as stack:
            try:
                _, shape, dtype = opened(stack, path, name, "source.train.images")
            except Refusal:
                continue
            found[name or ""] = (shape, dtype)
    return found
