"""Vectors that somebody has already, as .npy or .npz. No pickle is ever opened.

Legend: N rows, D dimensions.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.spec import Refusal

Rows = npt.NDArray[np.float32]


def read_rows(file: Path, count: int | None = None, of: Path | None = None) -> Rows:
    """Vectors (N, D) float32 of a .npy file, or of an .npz with one array of two dimensions.

    Args:
        count: how many rows there must be, and ``of`` which file has them.

    Raises:
        Refusal: no such file, no array of numbers (N, D), a pickle, a cut file, or another number of rows.
    """
    rows = read_array(file, dimensions=2)
    if rows.ndim != 2 or not rows.size:
        shape = " x ".join(map(str, rows.shape))
        flat = f"; save it as rows.reshape({len(rows)}, -1)" if rows.ndim not in (0, 2) and rows.size else ""
        raise Refusal(f"{file}: an array of {shape or 'one number'}, not one vector a row (N, D){flat}")
    if rows.dtype.kind not in "fiu":
        raise Refusal(f"{file}: holds {rows.dtype}, not real numbers; save float32")
    if count is not None and len(rows) != count:
        raise Refusal(f"{file}: {len(rows)} rows, but {of} has {count}; row i must be the same sample in both")
    with np.errstate(over="ignore"):  # beyond float32's range is infinity, and goes to the ledger
        found: Rows = rows.astype(np.float32, copy=False)
    return found


def read_array(file: Path, dimensions: int) -> npt.NDArray[Any]:
    """The one array of a file that has ``dimensions``, memory-mapped where it can be. Raises Refusal."""
    if file.suffix not in (".npy", ".npz"):
        raise Refusal(f"{file}: neither .npy nor .npz; save the array with np.save")
    try:
        if file.suffix == ".npy":
            content = np.load(file, mmap_mode="r", allow_pickle=False)
            if isinstance(content, np.ndarray):
                return content
            raise Refusal(f"{file}: is an .npz by its content; name it so")
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            suited = [name for name in arrays.files if arrays[name].ndim == dimensions] or arrays.files
            if len(suited) != 1:
                raise Refusal(
                    f"{file}: {len(suited)} arrays ({', '.join(suited[:5])}); save the one that is meant alone"
                )
            array: npt.NDArray[Any] = arrays[suited[0]]
            return array
    except FileNotFoundError:
        raise Refusal(f"{file}: no such file") from None
    except IsADirectoryError:
        raise Refusal(f"{file}: is a folder; name a .npy file") from None
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        if "pickle" in str(error) or "Python objects" in str(error) or "Object arrays" in str(error):
            raise Refusal(f"{file}: holds Python objects, which are never loaded; save float32 with np.save") from None
        raise Refusal(f"{file}: cut or damaged ({str(error).splitlines()[0]})") from None
