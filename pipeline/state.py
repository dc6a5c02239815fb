"""All that changes while a space is trained, as one value, and its tensors by name.

``tensors`` and ``restore`` are the whole of what a checkpoint keeps: order, views and rates are functions of the step,
so no random state is in it. What a method carries along (a momentum copy, a queue) is a field here and a name in each
of the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field, fields
from typing import Any

import torch
from torch import Tensor, nn

from pipeline.network import Network
from pipeline.queue import KeyQueue, of_tensors


@dataclass(frozen=True)
class Row:
    """What one step measured; the loss is the global batch's."""

    step: int
    epoch: int
    loss: float
    starts_at: float
    """The loss of an encoder that tells nothing apart; NaN where the objective has no such number."""
    learning_rate: float
    temperature: float
    """NaN where the objective has none."""
    positive_similarity: float
    negative_similarity: float
    effective_rank: float
    """Of z of a fixed set of pictures when it was last looked at; 0 where they are one point."""
    fixed_positive_similarity: float = 0.0
    """Mean cosine of two views of one of these pictures, looked at with it."""
    fixed_negative_similarity: float = 0.0
    """Mean cosine of views of different ones of them."""
    told_apart: float = 0.0
    """The share of log K by which their NT-Xent is below it: 0 where nothing is told apart, 1 where everything is."""
    key_age: float = 0.0
    """Mean steps since a key of the queue was made, when it was last looked at; 0 where there is none."""
    key_drift: float = 0.0
    """Mean 1 - cosine of queued keys and of those that the target made of the same views when last looked at."""


COLUMNS = tuple(each.name for each in fields(Row))
HEALTH = COLUMNS[COLUMNS.index("effective_rank") :]
"""Those that are looked at now and then."""


@dataclass
class State:
    """The network, its optimizer, what makes and holds its keys, and the curve; ``len(curve)`` steps are done."""

    network: Network
    optimizer: torch.optim.Optimizer
    target: nn.Module | None = None
    """The momentum copy of the network; None where the method has none."""
    queue: KeyQueue | None = None
    """Keys of earlier steps; None where there are none."""
    curve: list[Row] = field(default_factory=list)

    def tensors(self) -> dict[str, Tensor]:
        """Everything by name: ``network.NAME``, ``target.NAME``, ``optimizer.PARAMETER/BUFFER``, ``queue.COLUMN`` and
        ``curve`` (steps, columns)."""
        moments = {f"optimizer.{name}/{key}": value for name, key, value in self._moments()}
        rows = torch.tensor([astuple(row) for row in self.curve], dtype=torch.float64).reshape(-1, len(COLUMNS))
        parts = {"network": self.network.state_dict()}
        parts |= {} if self.target is None else {"target": self.target.state_dict()}
        parts |= {} if self.queue is None else {"queue": self.queue.tensors()}
        named = {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
        return {**named, **moments, "curve": rows}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Become the state that ``tensors`` were taken from; memory layouts stay this network's.

        Raises:
            KeyError, RuntimeError: tensors of another network.
        """
        self.network.load_state_dict(_under("network.", tensors))
        if self.target is not None:
            self.target.load_state_dict(_under("target.", tensors))
        held = _under("queue.", tensors)
        self.queue = of_tensors(held, next(self.network.parameters()).device) if held else None
        parameters = dict(self.network.named_parameters())
        self.optimizer.state.clear()
        for name, value in _under("optimizer.", tensors).items():
            of, key = name.rsplit("/", 1)
            parameter = parameters[of]
            state = self.optimizer.state[parameter]
            like = value.shape == parameter.shape and parameter.ndim > 0 and key != "step"
            state[key] = torch.empty_like(parameter, dtype=value.dtype).copy_(value) if like else value.clone()
        whole = {"step": int, "epoch": int}
        self.curve = [
            Row(**{name: whole.get(name, float)(number) for name, number in zip(COLUMNS, row, strict=True)})  # type: ignore[arg-type]
            for row in tensors["curve"].tolist()
        ]

    def finite(self) -> bool:
        """Whether every weight and every moment is a number: only such a state is worth keeping."""
        values = [*self.network.state_dict().values(), *(value for _, _, value in self._moments())]
        return all(bool(value.isfinite().all()) for value in values)

    def _moments(self) -> Iterator[tuple[str, str, Tensor]]:
        """(parameter, buffer, value) of the optimizer."""
        for name, parameter in self.network.named_parameters():
            held: dict[str, Any] = self.optimizer.state.get(parameter, {})
            yield from ((name, key, value) for key, value in held.items() if isinstance(value, Tensor))


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
