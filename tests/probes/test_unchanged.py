"""What is proved is what was trained: embedding and probing leave every weight and every batch statistic as it was."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).parent.parent))

from small import sharded, space

from pipeline import encoding
from pipeline.embeddings import Embeddings
from pipeline.network import described_network
from pipeline.probes import Probe
from pipeline.probing import probe_layer
from pipeline.spec import parse

pytestmark = pytest.mark.usefixtures("one_thread")
ENCODER = {"kind": "small_residual", "widths": [4, 8], "strides": [1, 2], "groups": None}
PROBE = {"labels": ["shape", "rotation"], "k": 3, "temperature": 0.1, "few_labels": {"percent": [50], "draws": 2}}


def described(shards):
    return {
        "encoder": ENCODER,
        "projection": {"kind": "mlp", "hidden": 8, "dim": 4, "boundary": "h"},
        "views": [[each.model_dump(mode="json") for each in space().through(view)] for view in (0, 1)],
        "mean": shards.card.mean,
        "std": shards.card.std,
        "seed": 0,
    }


def same(state, other):
    return state.keys() == other.keys() and all(torch.equal(state[name], other[name]) for name in state)


def assert_unchanged(folder, monkeypatch):
    """Embed and probe with a network of batch norms, and look at it afterwards."""
    shards = sharded(folder / "shards")
    given = described(shards)
    network = described_network(given)
    for name, value in network.state_dict().items():
        if name.endswith("running_mean"):
            value.normal_()
    before = {name: value.clone().contiguous() for name, value in network.state_dict().items()}
    assert sum("running_mean" in name for name in before) > 3
    save_file(before, folder / "weights.safetensors")
    bytes_before = (folder / "weights.safetensors").read_bytes()

    used = []
    for maker in ("trained_network", "described_network"):
        real = getattr(encoding, maker)
        monkeypatch.setattr(encoding, maker, lambda *args, real=real: used.append(real(*args)) or used[-1])
    start = described_network(given).state_dict()
    vectors = folder / "embed"
    vectors.mkdir()
    for (split, layer), rows in encoding.embed_splits(shards, given, folder / "weights.safetensors"):
        np.save(vectors / f"{split}.{layer}.npy", rows)
    labels = {f"{split}.{name}": each for split in ("train", "test") for name, each in shards.labels(split).items()}
    np.savez(vectors / "labels.npz", **labels)
    columns = {name: {"kind": each.kind, "classes": each.classes} for name, each in shards.card.columns.items()}
    (vectors / "columns.json").write_text(json.dumps(columns))
    saved = {path.name: path.read_bytes() for path in vectors.iterdir()}
    for layer in ("h", "z", "untrained"):
        rows, numbers = probe_layer(Embeddings(vectors), layer, parse(PROBE, Probe, "x"))
        assert any(row["accuracy"] is not None for row in rows)
        assert any(row["mae"] is not None for row in numbers)

    assert len(used) == 2
    for one in used:
        assert not any(part.training for part in one.modules())
        assert not any(weight.grad is not None for weight in one.parameters())
    assert sorted(same(one.state_dict(), before) for one in used) == [False, True]
    assert sorted(same(one.state_dict(), start) for one in used) == [False, True]
    assert (folder / "weights.safetensors").read_bytes() == bytes_before
    assert same(load_file(folder / "weights.safetensors"), before)
    assert {path.name: path.read_bytes() for path in vectors.iterdir()} == saved


def test_weights_and_batch_statistics_are_bitwise_the_same_after_embedding_and_probing(tmp_path, monkeypatch):
    assert_unchanged(tmp_path, monkeypatch)
