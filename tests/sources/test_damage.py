"""Archives and arrays damaged in any way give pictures, refusals or one line, and never anything else."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pipeline.images import encode_png
from pipeline.sources import Arrays, Record, WebDataset
from pipeline.sources.archive import members
from pipeline.sources.arrays import Part
from pipeline.spec import Refusal

PICTURE = encode_png(np.random.default_rng(0).integers(0, 256, (6, 5, 3), dtype=np.uint8))
NAMES = ["cat/0é.png", "cat/" + "x" * 150 + ".png", "dog/1.png", "dog/1.cls", "dog/1.json"]


def tar(form: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for name in NAMES:
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(PICTURE), 1.5
            archive.addfile(info, io.BytesIO(PICTURE))
    return buffer.getvalue()


def packed(method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name in NAMES:
            archive.writestr(name, PICTURE)
    return buffer.getvalue()


def array(squeezed: bool) -> bytes:
    buffer = io.BytesIO()
    pictures = np.random.default_rng(0).integers(0, 256, (6, 5, 4, 3), dtype=np.uint8)
    if squeezed:
        np.savez_compressed(buffer, x=pictures, y=np.arange(6))
    else:
        np.save(buffer, pictures)
    return buffer.getvalue()


WHOLE = {
    "pax": tar(tarfile.PAX_FORMAT),
    "gnu": tar(tarfile.GNU_FORMAT),
    "gz": gzip.compress(tar(tarfile.GNU_FORMAT)),
    "stored": packed(zipfile.ZIP_STORED),
    "deflated": packed(zipfile.ZIP_DEFLATED),
    "npz": array(True),
    "npy": array(False),
}


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Bytes changed, cut out, doubled or set, near the start more often than elsewhere."""
    data = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 5, 20])):
        at = chance.randrange(min(1024, len(data)) if chance.random() < 0.3 else len(data))
        what = chance.randrange(5)
        if what == 0:
            data[at] = chance.randrange(256)
        elif what == 1:
            data[at : at + chance.randrange(1, 9)] = chance.randbytes(4)
        elif what == 2:
            del data[at : at + chance.randrange(1, 600)]
        elif what == 3:
            data[at:at] = data[: chance.randrange(1, 600)]
        else:
            data[at : at + 4] = b"\xff" * 4
        data = data or bytearray(b"x")
    return bytes(data)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", WHOLE)
def test_damage_of_any_kind_is_told_and_never_raises_anything_else(tmp_path: Path, kind: str, seed: int) -> None:
    path = tmp_path / "data"
    path.write_bytes(damaged(WHOLE[kind], random.Random(f"{kind}/{seed}")))
    try:
        if kind in ("npz", "npy"):
            part = Part(file=None, images="x" if kind == "npz" else None, classes={}, numbers={})
            items = list(Arrays(kind="arrays", layout="channels_last", train=part, test=None).records(path))
        else:
            items = list(members(path))
            shards = WebDataset(kind="webdataset", train="data", test=None, classes=("cls", "kind"), numbers=())
            items += list(shards.records(path))
    except Refusal as refusal:
        lines = str(refusal).splitlines()
        items = []
    else:
        lines = ["none"]
    assert len(lines) == 1
    for item in items:
        if isinstance(item, Record):
            item.name.encode("utf-8")
            assert not item.name.startswith("/")
            assert ".." not in item.name.split("/")
