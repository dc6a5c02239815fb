"""torchvision's sets by name, from roots that are written here in torchvision's own formats; nothing is downloaded."""

from __future__ import annotations

import hashlib
import io
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.sources import Record, TorchvisionSet
from pipeline.spec import Refusal, SpecError, parse

RNG = np.random.default_rng(0)


def records(name: str, root: Path) -> list[Record]:
    source: TorchvisionSet = parse({"kind": "torchvision", "name": name}, TorchvisionSet, "x.yaml")
    items = list(source.records(root))
    assert all(isinstance(item, Record) and item.array for item in items)
    return items  # type: ignore[return-value]


def pixels(record: Record) -> np.ndarray:
    assert isinstance(record.content, bytes)
    return np.load(io.BytesIO(record.content), allow_pickle=False)


def test_mnist_comes_back_row_by_row(tmp_path: Path) -> None:
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    wanted = {}
    for split, stem, count in (("train", "train", 5), ("test", "t10k", 3)):
        images = RNG.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = RNG.integers(0, 10, count, dtype=np.uint8)
        (folder / f"{stem}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes())
        (folder / f"{stem}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels.tobytes())
        wanted |= {f"{split}/{row:06d}": (images[row], labels[row]) for row in range(count)}
    found = records("MNIST", tmp_path)
    assert [record.name for record in found] == list(wanted)
    for record in found:
        image, label = wanted[record.name]
        np.testing.assert_array_equal(pixels(record)[..., 0], image)
        assert str(record.labels["label"]).startswith(str(label))  # "7 - seven"
        assert record.split == record.name.split("/")[0]


def cifar(root: Path, monkeypatch: pytest.MonkeyPatch, spoil: bool = False) -> np.ndarray:
    """A root like CIFAR-10's, with torchvision told its sums."""
    from torchvision.datasets import CIFAR10

    folder = root / "cifar-10-batches-py"
    folder.mkdir()
    images = RNG.integers(0, 256, (6, 3, 32, 32), dtype=np.uint8)

    def write(name: str, content: Any) -> list[str]:
        data = pickle.dumps(content)
        (folder / name).write_bytes(data + b"x" * spoil)
        return [name, hashlib.md5(data).hexdigest()]

    train = write("data_batch_1", {"data": images[:4].reshape(4, -1), "labels": [0, 1, 2, 9]})
    test = write("test_batch", {"data": images[4:].reshape(2, -1), "labels": [3, 3]})
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    meta = write("batches.meta", {"label_names": names})
    monkeypatch.setattr(CIFAR10, "train_list", [train])
    monkeypatch.setattr(CIFAR10, "test_list", [test])
    monkeypatch.setattr(CIFAR10, "meta", {"filename": meta[0], "key": "label_names", "md5": meta[1]})
    return images


def test_cifar_has_its_split_and_the_names_of_its_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = cifar(tmp_path, monkeypatch)
    found = records("CIFAR10", tmp_path)
    assert [record.labels["label"] for record in found] == ["airplane", "automobile", "bird", "truck", "cat", "cat"]
    assert [record.split for record in found] == ["train"] * 4 + ["test"] * 2
    np.testing.assert_array_equal(np.stack([pixels(record) for record in found]), images.transpose(0, 2, 3, 1))


def test_pickles_that_are_not_the_published_ones_are_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cifar(tmp_path, monkeypatch, spoil=True)
    monkeypatch.setattr(pickle, "load", lambda *_: pytest.fail("unpickled"))
    with pytest.raises(Refusal, match="no CIFAR10 as torchvision keeps it"):
        records("CIFAR10", tmp_path)


@pytest.mark.parametrize("name", ["CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "KMNIST", "SVHN", "STL10"])
def test_a_root_without_the_set_is_one_line_with_the_way_to_fetch_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refusal, match="download=True") as raised:
        records(name, tmp_path)
    assert len(str(raised.value).splitlines()) == 1


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    with pytest.raises(SpecError, match="CIFAR10"):
        parse({"kind": "torchvision", "name": "CIFAR"}, TorchvisionSet, "x.yaml")
