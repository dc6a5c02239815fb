"""One hypothesis profile: no deadline, the same examples in every run, torch's generator reset for each example."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import settings


class _TorchRandom:
    """What hypothesis needs of a random source, over torch's global generator."""

    def seed(self, seed: Any) -> None:
        torch.manual_seed(int(seed) % 2**63)

    def getstate(self) -> torch.Tensor:
        return torch.get_rng_state()

    def setstate(self, state: torch.Tensor) -> None:
        torch.set_rng_state(state)


TORCH_RANDOM = _TorchRandom()  # a strong reference: hypothesis itself keeps only a weak one
hypothesis.register_random(TORCH_RANDOM)

settings.register_profile(
    "project",
    deadline=None,
    derandomize=True,
    print_blob=True,
    database=None,
    max_examples=int(os.environ.get("HYPOTHESIS_MAX_EXAMPLES", "25")),
)
settings.load_profile("project")


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Tiny tensors are slower on many threads, far slower where cores are shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
