"""Look at a path as a new user has it, and say which data spec fits: source, manifest, canvas, split, labels.

A guess is made from names and from a sample of the pictures, and is written down with its reasons for the user to
correct; sharding itself reads every file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline.looking.episodes import long_table
from pipeline.looking.sample import Seen, measure, records
from pipeline.looking.tables import TABLES, tables
from pipeline.modalities import Modality
from pipeline.samples import ANYTHING, several
from pipeline.sources import Archive, Arrays, Folder, Record, TorchvisionSet, WebDataset
from pipeline.sources.archive import OTHER
from pipeline.sources.arrays import Part, arrays_of
from pipeline.sources.names import hidden
from pipeline.sources.webdataset import CLASS, LABELS, split_name
from pipeline.spec import Refusal

TESTS, TRAINS = ("test", "val", "valid", "validation"), ("train", "training")
PACKED = (".tar", ".tar.gz", ".tgz", ".zip")
HEAD = 300
"""Bytes of a file that tell whether it is an archive."""
WORDS = (".md", ".txt", ".json", ".yaml", ".pdf", "readme", "license", "licence")
"""how files end that say something of the data and are none"""
TORCHVISION = {
    "cifar-10-batches-py": "CIFAR10",
    "cifar-100-python": "CIFAR100",
    "MNIST": "MNIST",
    "FashionMNIST": "FashionMNIST",
    "KMNIST": "KMNIST",
    "stl10_binary": "STL10",
    "train_32x32.mat": "SVHN",
}


def look(path: Path, contract: Modality | None = None) -> Seen:
    """Find out what lies at a path.

    Args:
        contract: what the samples are, where that is known; else it is guessed from some of them.

    Raises:
        Refusal: nothing there can be used.
    """
    path = path.expanduser()
    if not path.exists():
        raise Refusal(f"--data {path}: no such path")
    wanted = ANYTHING if contract is None else several(contract.word)
    if path.is_dir() and not any(not hidden(entry.name) for entry in path.iterdir()):
        raise Refusal(f"--data {path}: an empty folder; give the one that holds the {wanted}")
    seen = _file(path) if path.is_file() else _folder(path)
    if seen.canvas is None:
        measure(seen, contract)
    first = {name.lower() for name in seen.classes}
    if isinstance(seen.source, Archive) and len(first) > 1 and first <= {*TRAINS, *TESTS}:
        words = ", ".join(seen.classes)
        raise Refusal(f"--data {path}: its first folders are splits ({words}), no classes; unpack it, give the folder")
    if isinstance(seen.source, Folder | Archive) and (len(seen.classes) < 2 or seen.loose > seen.count / 10):
        only = next(iter(seen.classes), None)
        if seen.table is None and isinstance(seen.source, Folder) and seen.source.test is None and only is not None:
            below = [entry for entry in (seen.raw / only).iterdir() if entry.is_dir() and not hidden(entry.name)]
            if len(below) > 1:
                return look(seen.raw / only, contract)
        if only is not None and seen.table is None:
            remedy = (
                "; unpack the archive and give the folder inside it if there are"
                if isinstance(seen.source, Archive)
                else ""
            )
            seen.remarks.append(f"the first folder level ({only}) tells no classes apart, so no label column{remedy}")
        seen.source = seen.source.model_copy(update={"classes": None})
    return seen


def is_archive(path: Path) -> bool:
    """Whether a file is named or begins as an archive is, also one of a kind that is not read. Raises OSError."""
    with path.open("rb") as file:
        start = file.read(HEAD)
    return _archive(path.name.lower(), start) or start.startswith(tuple(OTHER))


def _archive(name: str, start: bytes) -> bool:
    return name.endswith(PACKED) or start[:2] in (b"\x1f\x8b", b"PK") or start[257:262] == b"ustar"


def _file(path: Path) -> Seen:
    name = path.name.lower()
    if name.endswith((".npz", ".npy")):
        return Seen(path, _arrays(path, None), f"arrays in {path.name}")
    if name.endswith(TABLES):
        try:
            seen = _folder(path.parent)
        except Refusal:
            return long_table(path, path)
        return seen if seen.table is not None and seen.table.manifest.file == path.name else long_table(path, path)
    with path.open("rb") as file:
        start = file.read(HEAD)
    if not _archive(name, start):
        raise Refusal(f"--data {path}: a single file; give a folder, an archive (tar, tar.gz, zip), an npz or a table")
    shards = _sample_shards(path, path.name, None)
    if shards is not None:
        return Seen(path, shards, f"a webdataset shard, {path.name}")
    return Seen(path, Archive(kind="archive", train=None, test=None, classes="folder"), f"an archive, {path.name}")


def _folder(path: Path) -> Seen:
    names = sorted(entry.name for entry in path.iterdir() if not hidden(entry.name))
    if not names:
        raise Refusal(f"--data {path}: an empty folder; give the one that holds the samples")
    for name, known in TORCHVISION.items():
        if name in names and (known in ("CIFAR10", "CIFAR100", "STL10", "SVHN") or (path / name / "raw").is_dir()):
            return Seen(path, TorchvisionSet(kind="torchvision", name=known), f"torchvision's {known}")  # type: ignore[arg-type]
    if {"data", "meta"} <= {*names} and (path / "meta" / "info.json").is_file():
        seen = _folder(path / "data")
        seen.remarks.append("LeRobot's layout: its episodes lie in data; what meta says of them is not read")
        return seen
    packed = [name for name in names if name.lower().endswith(PACKED) and (path / name).is_file()]
    train, test = _pair(packed)
    found = [name for name in names if name.lower().endswith(TABLES)]
    if len(found) == 1 and all(name in found or name.lower().endswith(WORDS) for name in names):
        return long_table(path / found[0], path)
    if packed:
        shards = _shards(path, packed)
        if shards is not None:
            return Seen(path, shards, f"{len(packed)} webdataset shards")
        if len(packed) > 2 or (len(packed) == 2 and test is None):
            raise Refusal(
                f"--data {path}: {len(packed)} archives ({', '.join(packed[:4])}); name train and test in them"
            )
        source = Archive(kind="archive", train=train or packed[0], test=test, classes="folder")
        return _with_table(Seen(path, source, f"archives: {', '.join(packed)}"), found)
    arrays = [name for name in names if name.lower().endswith((".npz", ".npy"))]
    if len(arrays) == 1:
        return Seen(path, _arrays(path / arrays[0], arrays[0]), f"arrays in {arrays[0]}")
    train, test = _pair([name for name in names if (path / name).is_dir()])
    if train is not None and test is not None:
        source_folder = Folder(kind="folder", train=train, test=test, classes="folder")
        return _with_table(Seen(path, source_folder, f"folders {train} and {test}"), found)
    return _with_table(Seen(path, Folder(kind="folder", train=None, test=None, classes="folder"), "a folder"), found)


def _pair(names: Iterable[str]) -> tuple[str | None, str | None]:
    """The names that mean train and test, where there is one of each."""
    words = {name: name.lower().split(".")[0].replace("-", "_").split("_") for name in names}
    train = [name for name, parts in words.items() if set(parts) & set(TRAINS)]
    tests = [[name for name, parts in words.items() if word in parts] for word in TESTS]
    test = next((found for found in tests if found), [])
    return (train[0] if len(train) == 1 else None), (test[0] if len(test) == 1 and len(train) == 1 else None)


def _with_table(seen: Seen, found: list[str]) -> Seen:
    """The first of these tables that names the samples, if any does."""
    if not found:
        return seen
    names = {record.name for record in islice(records(seen.source, seen.raw), 2000)}
    for table in tables(seen.raw, found, names):
        suited = table.suited(names, seen.source.columns(), seen.source.splits_itself)
        if suited is not None:
            seen.words += f", with the table {suited.manifest.file}"
            return replace(seen, table=suited)
    return seen


def _shards(path: Path, packed: list[str]) -> WebDataset | None:
    """Webdataset shards, where the first archive is one."""
    stems = sorted({name.rstrip("0123456789.targz").rstrip("-_") for name in packed})
    train, test = _pair(stems)
    if len(packed) > 2 and train is None:
        return _sample_shards(path / packed[0], "*.tar*", None)
    if train is None:
        return _sample_shards(path / packed[0], "*.tar*" if len(packed) > 1 else packed[0], None)
    return _sample_shards(path / packed[0], f"{train}*", None if test is None else f"{test}*")


def _sample_shards(shard: Path, train: str, test: str | None) -> WebDataset | None:
    bare = WebDataset(kind="webdataset", train=train, test=test, classes=(), numbers=())
    from pipeline.sources.archive import members

    names = [item.name for item in islice(members(shard), 400) if isinstance(item, Record)]
    keys = {split_name(name)[0] for name in names if split_name(name)[1] not in LABELS}
    labels = {split_name(name)[1] for name in names if split_name(name)[0] in keys} & LABELS
    if not labels & {"json", CLASS}:
        return None
    classes: list[str] = [CLASS] if CLASS in labels else []
    numbers: list[str] = []
    if "json" in labels:
        for name, kind in _json_columns(shard).items():
            (classes if kind == "class" else numbers).append(name)
    return bare.model_copy(update={"classes": tuple(classes), "numbers": tuple(numbers)})


def _json_columns(shard: Path) -> dict[str, str]:
    """Columns of the descriptions: few different words are classes, numbers with a fraction are numbers."""
    import json

    from pipeline.sources.archive import members

    values: dict[str, list[Any]] = {}
    for item in islice(members(shard), 1000):
        if isinstance(item, Record) and split_name(item.name)[1] == "json":
            try:
                described = json.loads(bytes(item.content))
            except ValueError:
                continue
            for name, value in described.items() if isinstance(described, dict) else ():
                values.setdefault(name, []).append(value)
    kinds = {}
    for name, found in values.items():
        if all(isinstance(value, float) for value in found):
            kinds[name] = "number"
        elif all(isinstance(value, (str, int)) for value in found) and 1 < len(set(found)) <= len(found) / 2:
            kinds[name] = "class"
    return kinds


def _arrays(path: Path, file: str | None) -> Arrays:
    """The arrays of pictures and of labels in a file, by their shapes and names."""
    known = arrays_of(path)
    pictures = {name: shape for name, (shape, _) in known.items() if len(shape) in (3, 4) and min(shape) > 0}
    if not pictures:
        raise Refusal(f"{path}: no array of pictures (N, H, W), (N, H, W, C) or of series (N, steps, channels) in it")
    train, test = _pair(pictures)
    chosen = train or max(pictures, key=lambda name: pictures[name][0])
    shape = pictures[chosen]
    last = len(shape) == 3 or shape[3] <= shape[1]

    def part(name: str) -> Part:
        count = pictures[name][0]
        word = name.lower().replace("-", "_").split("_")
        mine = [other for other, (shape, _) in known.items() if shape in ((count,), (count, 1))]
        alike = [other for other in mine if set(other.lower().split("_")) & set(word) & {*TRAINS, *TESTS}] or mine
        labels = {"label": alike[0]} if alike and known[alike[0]][1].kind in "uibSU" else {}
        return Part(file=file, images=name or None, classes=labels, numbers={})

    parts = part(chosen), None if test is None or test == chosen else part(test)
    if parts[1] is not None and set(parts[1].classes) != set(parts[0].classes):
        parts = tuple(one.model_copy(update={"classes": {}}) for one in parts if one is not None)  # type: ignore[assignment]
    return Arrays(kind="arrays", layout="channels_last" if last else "channels_first", train=parts[0], test=parts[1])
