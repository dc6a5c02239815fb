"""Vectors in a file, with what they are: Parquet (one row an input, the rest in the schema's metadata), or .npy with a
.json beside it. ``read_vectors`` gives back ``Vectors``, so that files of two spaces are never mixed either.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.bundle.vectors import Layer, Rows, Vectors
from pipeline.spec import Refusal, nearest

FORMS = (".parquet", ".npy")
KEY = b"latent-space"
"""of the schema's metadata"""
AGAIN = "write them with `python -m stages.embed --bundle`"


@dataclass(frozen=True)
class Stored:
    """What vectors in a file are."""

    count: int
    width: int
    input: str
    """where they were made of, as it was given"""
    card: dict[str, Any]
    """of the bundle that made them"""
    layer: Layer

    def plain(self) -> dict[str, Any]:
        """As it is written."""
        space = self.card["space"]
        return {
            "identity": self.card["identity"],
            "bundle": self.card.get("name"),
            "layer": self.layer,
            "count": self.count,
            "width": self.width,
            "metric": space["metric"],
            "normalization": space["normalization"],
            "input": self.input,
        }


def refuse_without_packages(output: Path) -> None:
    """Raise Refusal where what writes such a file is not installed."""
    if output.suffix == ".parquet":
        _parquet()


def write_vectors(output: Path, about: Stored, rows: Iterable[Rows], names: Iterator[str]) -> None:
    """Write vectors part by part, whole or not at all; of an .npy names and the rest go into ``OUTPUT.json``.

    Raises:
        Refusal: Parquet is asked for and pyarrow is not installed.
    """
    aside = output.with_name(f".{output.name}.tmp")
    if output.suffix == ".parquet":
        _write_parquet(aside, about, rows, names)
    else:
        whole = np.lib.format.open_memmap(aside, "w+", np.float32, (about.count, about.width))
        start = 0
        for part in rows:
            whole[start : start + len(part)] = part
            start += len(part)
        whole.flush()
        del whole
        beside = {**about.plain(), "names": list(names)}
        text = json.dumps(beside, indent=1, ensure_ascii=False)
        output.with_name(f"{output.name}.json").write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    aside.rename(output)


def read_vectors(file: str | Path) -> Vectors:
    """Vectors that ``python -m stages.embed --bundle`` wrote.

    Raises:
        Refusal: no such file, damaged, or not known of which space.
    """
    path = Path(file)
    if not path.is_file():
        beside = [each.name for each in path.parent.glob("*") if each.suffix in FORMS] if path.parent.is_dir() else []
        remedy = nearest(path.name, beside) if beside else "give the file that python -m stages.embed --bundle wrote"
        raise Refusal(f"{path}: no such file; {remedy}")
    try:
        values, about, names = _read_parquet(path) if path.suffix == ".parquet" else _read_npy(path)
        return Vectors(values, str(about["identity"]), about["layer"], tuple(names))
    except FileNotFoundError:
        raise Refusal(f"{path}: not known of which space: {path.name}.json is not beside it; {AGAIN}") from None
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise Refusal(f"{path}: no vectors of a bundle ({str(error).splitlines()[0][:120]}); {AGAIN}") from None


def described_vectors(file: str | Path) -> dict[str, Any]:
    """What the vectors in a file are (``Stored.plain``). Raises Refusal."""
    path = Path(file)
    try:
        about = _parquet_about(path) if path.suffix == ".parquet" else _npy_about(path)
    except (ValueError, KeyError, OSError) as error:
        raise Refusal(f"{path}: no vectors of a bundle ({str(error).splitlines()[0][:120]}); {AGAIN}") from None
    return {name: value for name, value in about.items() if name != "names"}


def _npy_about(path: Path) -> dict[str, Any]:
    about = json.loads(path.with_name(f"{path.name}.json").read_text(encoding="utf-8"))
    if not isinstance(about, dict):
        raise ValueError("its description is no mapping")
    return about


def _read_npy(path: Path) -> tuple[Rows, dict[str, Any], list[str]]:
    about = _npy_about(path)
    return np.load(path, allow_pickle=False), about, about["names"]


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise Refusal("Parquet: pyarrow is not installed; pip install pyarrow, or name an .npy") from None
    return pyarrow


def _write_parquet(aside: Path, about: Stored, rows: Iterable[Rows], names: Iterator[str]) -> None:
    arrow = _parquet()
    kind = arrow.list_(arrow.float32(), about.width)
    schema = arrow.schema([("name", arrow.string()), ("vector", kind)], {KEY: json.dumps(about.plain()).encode()})
    with arrow.parquet.ParquetWriter(aside, schema) as writer:
        for part in rows:
            called = arrow.array(list(islice(names, len(part))), arrow.string())
            flat = arrow.array(part.reshape(-1), arrow.float32())
            vectors = arrow.FixedSizeListArray.from_arrays(flat, about.width)
            if len(part):
                writer.write_table(arrow.Table.from_arrays([called, vectors], schema=schema))


def _parquet_about(path: Path) -> dict[str, Any]:
    arrow = _parquet()
    metadata = arrow.parquet.read_schema(path).metadata or {}
    found = json.loads(metadata[KEY])
    if not isinstance(found, dict):
        raise ValueError("its description is no mapping")
    return found


def _read_parquet(path: Path) -> tuple[Rows, dict[str, Any], list[str]]:
    about = _parquet_about(path)
    table = _parquet().parquet.read_table(path)
    vectors = table.column("vector").combine_chunks()
    values: Rows = vectors.flatten().to_numpy(zero_copy_only=False).reshape(len(table), -1)
    return values, about, table.column("name").to_pylist()
