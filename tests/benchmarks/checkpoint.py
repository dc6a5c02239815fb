"""What a checkpoint costs: seconds to write one, the interval that the default chooses, and its share of the time.

    python tests/benchmarks/checkpoint.py

Weights and AdamW's moments of three encoders, flushed to the disk of the working folder; the median of five.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import torch

from pipeline.checkpoint import FIRST, SHARE, Checkpoints
from pipeline.encoders import Small, Torchvision
from pipeline.network import build_network
from pipeline.optimizers import AdamW
from pipeline.projections import MLPProjection
from pipeline.state import State

ENCODERS = {
    "small (digits)": Small(kind="small", widths=(32, 64, 128), strides=(1, 2, 2), groups=8),
    "resnet18": Torchvision(kind="torchvision", name="resnet18", small_stem=True),
    "resnet50": Torchvision(kind="torchvision", name="resnet50", small_stem=False),
}


def stepped(encoder: Small | Torchvision) -> State:
    """A state after one step, so that the optimizer has its moments."""
    head = MLPProjection(kind="mlp", hidden=2048, dim=128, boundary="h")
    network = build_network(encoder, head, (0.5,) * 3, (0.2,) * 3, 0)
    optimizer = AdamW(kind="adamw", learning_rate=1e-3, weight_decay=1e-4).build(network)
    for weight in network.parameters():
        weight.grad = torch.randn_like(weight)
    optimizer.step()
    return State(network, optimizer)


def main() -> None:
    """Print a line an encoder."""
    print(f"{'encoder':<16}{'MB':>7}{'write s':>9}{'read s':>8}{'every s':>9}{'share':>8}")
    for name, encoder in ENCODERS.items():
        state = stepped(encoder)
        with tempfile.TemporaryDirectory(dir=".") as folder:
            kept = Checkpoints(Path(folder) / "run", None, print)
            costs = []
            for step in range(5):
                kept.save(step, state.tensors())
                costs.append(kept.cost)
            started = time.monotonic()
            content = kept.newest()
            read = time.monotonic() - started
        cost = statistics.median(costs)
        every = max(FIRST, cost / SHARE)
        size = len(content or b"") / 1e6
        print(f"{name:<16}{size:>7.1f}{cost:>9.3f}{read:>8.3f}{every:>9.0f}{cost / (cost + every):>8.2%}")


if __name__ == "__main__":
    main()
