"""Floor 0: randomness as a pure function of (seed, epoch, sample, view, operation); there is no generator and no state.

A key is a 64-bit word made by mixing those numbers one after the other; a draw mixes the key with a stream name and
a counter (SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014; used as a
counter-based generator in the sense of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). So a
draw depends on nothing else: not on the batch, the position in it, the worker, the rank, or what was drawn before.

n keys (rows) in one ``Keys``.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Words = NDArray[np.uint64]

_STEP = 0x9E3779B97F4A7C15  # SplitMix64's increment: the golden ratio, in 64 bits
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_ALL = (1 << 64) - 1


@dataclass(frozen=True, eq=False)
class Keys:
    """The keys of n views, one 64-bit word each: ``words`` (n,) uint64."""

    words: Words

    @staticmethod
    def of(seed: int, epoch: int, sample: Any, view: Any = 0) -> Keys:
        """Keys of the given views: a function of these four numbers only.

        Args:
            seed: any integer (taken modulo 2**64).
            epoch: any integer.
            sample: (n,) integers, the samples' indices in their split (array, tensor or list).
            view: (n,) integers, or one integer for all.
        """
        root = _absorb(_absorb(np.zeros(1, np.uint64), _word(seed)), _word(epoch))
        rows = np.atleast_1d(np.asarray(sample)).astype(np.int64).view(np.uint64)
        views = np.broadcast_to(np.asarray(view).astype(np.int64), rows.shape).view(np.uint64)
        return Keys(_absorb(_absorb(root, rows), views))

    def fold(self, word: int | str) -> Keys:
        """Keys of an independent stream, e.g. of an operation (its position in the list, or a name): (n,)."""
        return Keys(_absorb(self.words, _word(word)))

    def take(self, index: Any) -> Keys:
        """Rows by index, slice or mask."""
        return Keys(np.atleast_1d(self.words[index]))

    def __len__(self) -> int:
        return len(self.words)

    def bits(self, stream: int | str, shape: tuple[int, ...] = ()) -> Words:
        """Uniform 64-bit words (n, *shape)."""
        count = math.prod(shape)
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_STEP)
        flat = _mix(self.fold(stream).words[:, None] + steps[None, :])
        return flat.reshape(len(self), *shape)

    def uniform(self, stream: int | str, low: float = 0.0, high: float = 1.0, shape: tuple[int, ...] = ()) -> Tensor:
        """Uniform numbers in [low, high) (``high`` itself only by rounding): (n, *shape) float32, 24 random bits."""
        unit = (self.bits(stream, shape) >> np.uint64(40)).astype(np.float64) * 2.0**-24
        return torch.from_numpy((low + (high - low) * unit).astype(np.float32))

    def normal(self, stream: int | str, mean: float = 0.0, std: float = 1.0, shape: tuple[int, ...] = ()) -> Tensor:
        """Normal numbers (Box and Muller, 1958): (n, *shape) float32."""
        words = self.bits(stream, shape)
        radius = np.sqrt(-2.0 * np.log(((words >> np.uint64(32)).astype(np.float64) + 1.0) * 2.0**-32))
        angle = 2.0 * math.pi * 2.0**-32 * (words & np.uint64(0xFFFFFFFF)).astype(np.float64)
        return torch.from_numpy((mean + std * radius * np.cos(angle)).astype(np.float32))

    def integers(self, stream: int | str, low: int, high: int, shape: tuple[int, ...] = ()) -> Tensor:
        """Integers from low to high - 1, each equally likely (within 2**-32): (n, *shape) int64.

        Raises:
            ValueError: the range is empty or has more than 2**31 numbers.
        """
        span = high - low
        if not 0 < span <= 2**31:
            raise ValueError(f"integers from {low} to {high - 1}: must be between 1 and 2**31 numbers")
        scaled = ((self.bits(stream, shape) >> np.uint64(32)) * np.uint64(span)) >> np.uint64(32)
        return torch.from_numpy(scaled.astype(np.int64) + low)

    def orders(self, stream: int | str, count: int) -> Tensor:
        """Random orders of ``count`` things, all equally likely: (n, count) int64."""
        return torch.from_numpy(np.argsort(self.bits(stream, (count,)), axis=1, kind="stable").astype(np.int64))


def permutation(seed: int, epoch: int, count: int) -> NDArray[np.int64]:
    """The order of an epoch: (count,) int64, a function of (seed, epoch) only."""
    root = Keys.of(seed, epoch, [0]).fold("order of the epoch").words
    # one word a sample, all different since mixing is a bijection: no ties, so no dependence on the sort
    return np.argsort(_absorb(root, np.arange(count, dtype=np.uint64)), kind="stable").astype(np.int64)


def normal_field(words: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Standard normal numbers by pixel: (n, *shape) float32 on the device of ``words`` (n,) int64.

    The same counter-based construction as ``Keys``, in torch, for fields too large to be sent to a device. The random
    words are exact everywhere; the numbers agree between devices up to the rounding of log and cos.
    """
    bits = random_words(words, math.prod(shape))
    radius = (-2.0 * ((_shift(bits, 40).float() + 1.0) * 2.0**-24).log()).sqrt()
    angle = (bits & 0xFFFFFF).float() * (2.0 * math.pi * 2.0**-24)
    return (radius * angle.cos()).reshape(len(words), *shape)


def uniform_field(words: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Uniform numbers in [0, 1): (n, *shape) float32 on the device of ``words`` (n,) int64; exact everywhere."""
    return (_shift(random_words(words, math.prod(shape)), 40).float() * 2.0**-24).reshape(len(words), *shape)


def random_words(words: Tensor, count: int) -> Tensor:
    """Random words (n,count) int64 on the device of ``words`` (n,) int64; exact everywhere."""
    steps = torch.arange(1, count + 1, dtype=torch.int64, device=words.device) * _signed(_STEP)
    bits = words[:, None] + steps[None, :]
    bits = (bits ^ _shift(bits, 30)) * _signed(_FIRST)
    bits = (bits ^ _shift(bits, 27)) * _signed(_SECOND)
    return bits ^ _shift(bits, 31)


def _word(word: int | str) -> Words:
    """One number or name as a word; a name never meets a small number (its top bit is set)."""
    if isinstance(word, str):
        value = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little") | 1 << 63
    else:
        value = word & _ALL
    return np.array([value], np.uint64)


def _absorb(state: Words, word: Words) -> Words:
    """Mix a word into a state; for a given state a bijection of the word, so equal results need equal words."""
    return _mix(_mix(state + np.uint64(_STEP)) ^ word)


def _mix(words: Words) -> Words:
    """SplitMix64's finisher; numpy's arithmetic of arrays is modulo 2**64, silently."""
    mixed = words >> np.uint64(30)
    mixed ^= words
    mixed *= np.uint64(_FIRST)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(_SECOND)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _shift(bits: Tensor, count: int) -> Tensor:
    """Logical shift to the right of int64 words."""
    return (bits >> count) & ((1 << (64 - count)) - 1)
