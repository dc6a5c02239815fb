"""Two SimCLR views of every 32x32 picture on one core, beside torchvision v2 of the same operations, sample by sample.

    python -m tests.benchmarks.views [--size 32] [--batch 256] [--rounds 7]

Prints a table; every figure is the best of several interleaved rounds, in CPU seconds of one thread, so that a busy
machine does the least harm.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms import v2

from pipeline.keys import Keys
from pipeline.views import ColorJitter, Grayscale, HorizontalFlip, Invariance, ResizedCrop, draw_parameters, draw_view

SIMCLR: tuple[Invariance, ...] = (  # Chen et al. 2020, appendix B.9: at 32 pixels, no blur, colour strength 0.5
    ResizedCrop(area=(0.08, 1.0)),
    HorizontalFlip(),
    ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, probability=0.8),
    Grayscale(probability=0.2),
)
MATRIX = tuple(
    each.model_copy(update={"method": "matrix"}) if isinstance(each, ColorJitter) else each for each in SIMCLR
)


def best(rounds: int, runs: dict[str, Callable[[], int]]) -> dict[str, float]:
    """The highest rate of each run over interleaved rounds, in images a CPU second; a run returns how many it made."""
    rates = dict.fromkeys(runs, 0.0)
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.process_time()
            count = run()
            rates[name] = max(rates[name], count / (time.process_time() - start))
    return rates


def batched(images: Tensor, invariances: tuple[Invariance, ...]) -> Callable[[], int]:
    index = np.arange(len(images))

    def run() -> int:
        for view in (0, 1):
            draw_view(images, invariances, Keys.of(0, 0, index, view))
        return len(images)

    return run


def one_by_one(images: Tensor, transform: Callable[[Tensor], Tensor]) -> Callable[[], int]:
    def run() -> int:
        for image in images:
            transform(image), transform(image)
        return len(images)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    size, batch = options.size, options.batch
    images = torch.from_numpy(np.random.default_rng(0).random((batch, 3, size, size), np.float32))
    reference = v2.Compose(
        [
            v2.RandomResizedCrop(size, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8),
            v2.RandomGrayscale(0.2),
        ]
    )
    runs = {
        "torchvision v2, float tensor, one by one": one_by_one(images[:64], reference),
        "pipeline.views, SimCLR": batched(images, SIMCLR),
        "pipeline.views, SimCLR by colour matrix": batched(images, MATRIX),
    }
    runs |= {f"  {invariance.kind} alone": batched(images, (invariance,)) for invariance in SIMCLR}
    keys = Keys.of(0, 0, np.arange(batch), 0)

    def parameters_alone() -> int:
        draw_parameters(SIMCLR, keys), draw_parameters(SIMCLR, keys)
        return batch

    runs["  parameters alone"] = parameters_alone
    rates = best(options.rounds, runs)
    base = next(iter(rates.values()))
    print(f"two views of {size}x{size}, batch {batch}, one core, torch {torch.__version__}")
    print(f"{'':44}{'images/s':>10}{'times':>8}")
    for name, rate in rates.items():
        print(f"{name:44}{rate:10.0f}{rate / base:8.1f}")


if __name__ == "__main__":
    main()
