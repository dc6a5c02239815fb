"""The queue against a list, whatever goes in, and its mutants; the momentum copy against its closed form."""

from __future__ import annotations

import copy
import math
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from safetensors.torch import load, save
from torch import nn

from pipeline import collectives
from pipeline import queue as module
from pipeline.momentum import follow, target_of
from pipeline.queue import KeyQueue, ages, checksum, drift, empty, enqueued, of_tensors, wear
from pipeline.spec import Refusal, SpecError, parse
from pipeline.state import State
from pipeline.step import Measured
from pipeline.targets import Momentum, momentum_at
from pipeline.training import enqueue

pytestmark = pytest.mark.usefixtures("one_thread")
DIM = 3


def oldest_first(queue: KeyQueue) -> list[tuple[list[float], int, int]]:
    """(z, sample, step) of every key that counts."""
    z, columns = queue.valid
    first = queue.place if queue.filled == len(queue.z) else 0
    order = [(first + number) % len(queue.z) for number in range(len(z))]
    return [(z[at].tolist(), int(columns["sample"][at]), int(columns["step"][at])) for at in order]


class AgainstAList(RuleBasedStateMachine):
    """Batches of any size, also larger than the queue, and a resume between any two."""

    enqueue = staticmethod(enqueued)

    @initialize(length=st.integers(1, 12), groups=st.booleans())
    def begin(self, length: int, groups: bool) -> None:
        self.queue, self.model, self.length, self.groups = empty(length, DIM, torch.float32), [], length, groups
        self.step = 0

    @rule(count=st.integers(0, 30), seed=st.integers(0, 1000))
    def put_in(self, count: int, seed: int) -> None:
        z = torch.randn(count, DIM, generator=torch.Generator().manual_seed(seed))
        columns = {"sample": torch.randint(0, 50, (count,), generator=torch.Generator().manual_seed(seed))}
        if self.groups:
            columns["group"] = columns["sample"] // 3
        before = {name: value.clone() for name, value in self.queue.tensors().items()}
        old = self.queue
        self.queue = type(self).enqueue(old, z, columns, self.step)
        assert all(torch.equal(old.tensors()[name], value) for name, value in before.items())  # nothing in place
        for row in range(count):
            group = int(columns["group"][row]) if self.groups else -1
            self.model.append((z[row].tolist(), int(columns["sample"][row]), group, self.step))
        self.model = self.model[-self.length :]
        self.step += 1

    @rule()
    def resume(self) -> None:
        self.queue = of_tensors(load(save(self.queue.tensors())))

    @invariant()
    def holds_the_last_keys(self) -> None:
        if not hasattr(self, "queue"):
            return
        z, columns = self.queue.valid
        assert len(z) == self.queue.filled == len(self.model)
        first = self.queue.place if self.queue.filled == self.length else 0
        order = [(first + number) % self.length for number in range(len(z))]  # the oldest first
        rows = zip(z.tolist(), *(columns[name].tolist() for name in ("sample", "group", "step")), strict=True)
        found = list(rows)
        assert [found[place] for place in order] == self.model
        assert ages(self.queue, self.step).tolist() == [self.step - columns["step"][row] for row in range(len(z))]


class TestAgainstAList(AgainstAList.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=40, stateful_step_count=12)


def dropped_at_the_end(queue: KeyQueue, z: Any, columns: Any, step: int) -> KeyQueue:
    """As in a published memory bank: what reaches past the end is lost instead of wrapped."""
    room = len(queue.z) - queue.place
    return enqueued(queue, z[:room], {name: value[:room] for name, value in columns.items()}, step)


def newest_first(queue: KeyQueue, z: Any, columns: Any, step: int) -> KeyQueue:
    return enqueued(queue, z.flip(0), {name: value.flip(0) for name, value in columns.items()}, step)


def head_of_a_large_batch(queue: KeyQueue, z: Any, columns: Any, step: int) -> KeyQueue:
    length = len(queue.z)
    return enqueued(queue, z[:length], {name: value[:length] for name, value in columns.items()}, step)


def always_full(queue: KeyQueue, z: Any, columns: Any, step: int) -> KeyQueue:
    found = enqueued(queue, z, columns, step)
    return KeyQueue(found.z, found.columns, found.place, len(found.z))


def place_lost(queue: KeyQueue, z: Any, columns: Any, step: int) -> KeyQueue:
    found = enqueued(queue, z, columns, step)
    return KeyQueue(found.z, found.columns, 0, found.filled)


def without_the_step(queue: KeyQueue, z: Any, columns: Any, step: int) -> KeyQueue:
    return enqueued(queue, z, columns, 0)


def programme(seed: int) -> tuple[int, list[tuple[int, bool]]]:
    """A queue's length, and (global batch, resume before it) of each step: batches that one or two ranks share."""
    random = Random(seed)
    return random.randint(1, 12), [(4 * random.randint(1, 8), random.random() < 0.4) for _ in range(8)]


def run_programme(seed: int, steps: range, queue: KeyQueue | None) -> tuple[KeyQueue, list[Any]]:
    """This rank's queue after some steps of a programme, and the list's after all up to there."""
    length, batches = programme(seed)
    state = State(nn.Module(), torch.optim.SGD([torch.zeros(1)]), queue=queue)  # type: ignore[arg-type]
    model: list[Any] = []
    for step, (count, resume) in enumerate(batches[: steps.stop]):
        generator = torch.Generator().manual_seed(100 * seed + step)
        z = torch.randn(2 * count, DIM, generator=generator)
        sample = torch.arange(count).repeat_interleave(2) + 50 * step
        model = model + [(row.tolist(), int(of), step) for row, of in zip(z[1::2], sample[1::2], strict=True)]
        model = model[-length:]
        if step in steps:
            if resume and state.queue is not None:
                state.queue = of_tensors(load(save(state.queue.tensors())))
            columns = {"sample": collectives.gather(collectives.own(sample))}
            keys = collectives.gather(collectives.own(z))
            enqueue(state, length, Measured(0.0, keys, 0.0, keys, columns), step)
    assert state.queue is not None
    return state.queue, model


def queues_of_programmes() -> list[KeyQueue]:
    """This rank's queues after five steps of twenty programmes, each the list's and the same on every rank."""
    found = []
    for seed in range(20):
        queue, model = run_programme(seed, range(5), None)
        assert oldest_first(queue) == model
        assert collectives.alike(checksum(queue))
        found.append(queue)
    return found


MUTANTS = [dropped_at_the_end, newest_first, head_of_a_large_batch, always_full, place_lost, without_the_step]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_list_tells_a_wrong_queue(mutant: Any) -> None:
    class Wrong(AgainstAList):
        enqueue = staticmethod(mutant)

    from hypothesis.stateful import run_state_machine_as_test

    with pytest.raises((AssertionError, IndexError, ZeroDivisionError)):
        run_state_machine_as_test(Wrong, settings=settings(max_examples=60, stateful_step_count=10, database=None))


def test_a_key_keeps_no_gradient_and_a_loss_that_read_the_queue_is_still_backward() -> None:
    queue = enqueued(empty(4, DIM, torch.float32), torch.randn(4, DIM), {"sample": torch.arange(4)}, 0)
    anchors = torch.randn(2, DIM, requires_grad=True)
    loss = (anchors @ queue.valid[0].T).square().sum()
    queue = enqueued(queue, anchors * 2, {"sample": torch.arange(2)}, 1)
    assert not queue.z.requires_grad
    loss.backward()


def test_the_checksum_tells_the_same_keys_in_another_order_or_place() -> None:
    z = torch.randn(6, DIM, generator=torch.Generator().manual_seed(0))
    columns = {"sample": torch.arange(6), "group": torch.arange(6) // 2}
    one = enqueued(empty(8, DIM, torch.float32), z, columns, 3)
    assert checksum(one) == checksum(of_tensors(load(save(one.tensors()))))
    turned = {name: column.flip(0) for name, column in columns.items()}
    others = [
        enqueued(empty(8, DIM, torch.float32), z.flip(0), columns, 3),
        enqueued(empty(8, DIM, torch.float32), z, turned, 3),
        enqueued(empty(8, DIM, torch.float32), z, columns, 4),
        enqueued(empty(8, DIM, torch.float32), z[:, [1, 0, 2]], columns, 3),
        KeyQueue(one.z, one.columns, one.place + 1, one.filled),
        KeyQueue(one.z, one.columns, one.place, one.filled - 1),
    ]
    assert [other for other in others if checksum(other) == checksum(one)] == []


def test_a_lone_key_of_an_epoch_is_not_looked_at_alone() -> None:
    queue = empty(5, DIM, torch.float32)
    for step, count in ((0, 1), (1, 4)):
        queue = enqueued(queue, torch.ones(count, DIM), {"sample": torch.arange(count)}, step)
    asked: list[int] = []

    def look(epoch: int, samples: Any) -> torch.Tensor:
        asked.append(len(samples))
        return torch.ones(len(samples), DIM)

    assert wear(queue, 2, 1, look) == (pytest.approx(1.2), pytest.approx(0.0))
    assert asked == [4]


def test_drift_is_one_minus_the_cosine() -> None:
    a = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    b = torch.tensor([[2.0, 0.0], [1.0, 0.0], [-3.0, -3.0]])
    assert drift(a, b).tolist() == pytest.approx([0, 1, 2])


def test_wear_is_the_mean_age_and_drift_of_keys_of_all_ages() -> None:
    queue = empty(6, 2, torch.float32)
    assert wear(queue, 5, 2, lambda epoch, samples: torch.zeros(0, 2)) == (0.0, 0.0)
    asked = []
    for step in range(4):  # samples 0 1, 2 3, 4 5, 6 7; the first two are forgotten
        queue = enqueued(
            queue, torch.tensor([[1.0, 0.0], [0.0, 1.0]]), {"sample": torch.tensor([2 * step, 2 * step + 1])}, step
        )

    def look(epoch: int, samples: Any) -> torch.Tensor:
        asked.append((epoch, samples.tolist()))
        return torch.tensor([[1.0, 0.0]]).expand(len(samples), 2)

    age, drifted = wear(queue, 4, 2, look)
    assert asked == [(0, [2, 3]), (1, [4, 5, 6, 7])]
    assert age == 2.0
    assert drifted == pytest.approx(0.5)
    asked.clear()
    wear(queue, 4, 2, look, most=2)
    assert asked == [(0, [2]), (1, [7])]


def test_the_queue_says_what_it_is() -> None:
    assert "first in, first out" in (module.__doc__ or "")


# -- momentum ----------------------------------------------------------------------------------------------------------


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


@given(m=st.floats(0, 0.999), steps=st.integers(1, 6), seed=st.integers(0, 99))
def test_after_some_steps_the_copy_is_the_geometric_sum(m: float, steps: int, seed: int) -> None:
    online = network().double()
    target = target_of(online)
    path = [copy.deepcopy(online.state_dict())]
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        with torch.no_grad():
            for value in online.state_dict().values():
                if value.is_floating_point():
                    value.add_(torch.randn(value.shape, generator=generator, dtype=value.dtype))
                else:
                    value.add_(1)
        follow(target, online, m)
        path.append(copy.deepcopy(online.state_dict()))
    for name, value in target.state_dict().items():
        if not value.is_floating_point():
            assert torch.equal(value, path[-1][name])
            continue
        expected = m**steps * path[0][name]
        for step, before in enumerate(path[1:], 1):
            expected = expected + (1 - m) * m ** (steps - step) * before[name]
        assert torch.allclose(value, expected, atol=1e-12)


def test_the_copy_is_no_part_of_the_network_and_needs_no_gradient() -> None:
    online = network()
    online.predictor = nn.Linear(2, 2)
    target = target_of(online, without=("predictor",))
    assert target.predictor is None
    assert not any(weight.requires_grad for weight in target.parameters())
    assert {name for name, _ in target.named_parameters()} < {name for name, _ in online.named_parameters()}
    before = {name: value.clone() for name, value in target.state_dict().items()}
    with torch.no_grad():
        online[0].weight.add_(1)
    assert all(torch.equal(target.state_dict()[name], value) for name, value in before.items())


def test_a_half_network_is_followed_in_float32() -> None:
    online = nn.Linear(1, 1, bias=False).bfloat16()
    with torch.no_grad():
        online.weight.fill_(1.0)
    target = target_of(online)
    assert target.weight.dtype == torch.float32
    with torch.no_grad():
        online.weight.fill_(2.0)
    for _ in range(100):
        follow(target, online, 0.999)
    assert float(target.weight) == pytest.approx(2 - 0.999**100, abs=1e-5)


def test_the_share_that_is_kept_rises_along_a_cosine_to_one() -> None:
    cosine = Momentum(kind="momentum", m=0.9, schedule="cosine")
    shares = [cosine.at(step, 10) for step in range(11)]
    assert shares[0] == pytest.approx(0.9)
    assert shares[5] == pytest.approx(0.95)
    assert shares[10] == 1
    assert shares == sorted(shares)
    assert momentum_at(0.9, 3, 10) == pytest.approx(1 - 0.1 * (math.cos(0.3 * math.pi) + 1) / 2)
    assert {Momentum(kind="momentum", m=0.9, schedule="constant").at(step, 10) for step in range(11)} == {0.9}


@pytest.mark.parametrize("m", [-0.1, 1.0, 1.5])
def test_a_momentum_outside_its_range_is_refused(m: float) -> None:
    with pytest.raises(SpecError) as caught:
        parse({"kind": "momentum", "m": m, "schedule": "constant"}, Momentum, "x.yaml", "space.target")
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"x.yaml: space.target.m = {m}: ")
    assert isinstance(caught.value, Refusal)
