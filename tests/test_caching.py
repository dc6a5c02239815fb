"""Micro-batches and ranks change no number: loss, gradient and running statistics of a real ResNet with batch-norm
groups, drop-path and dropout, to 1e-10 in float64; and what torch itself gives where there is one group.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small import SPACE, space, training
from test_ranks import meet, spawned
from torch import Tensor, nn
from torch import distributed as dist
from torchvision import models
from torchvision.ops import StochasticDepth

from pipeline import collectives, groups
from pipeline.batches import Batch, row_columns
from pipeline.caching import gradient
from pipeline.groups import Division, Statistics, dealt, indivisible
from pipeline.network import Network
from pipeline.samplers import Queue
from pipeline.state import State
from pipeline.step import Stepper
from pipeline.training import start_network

pytestmark = pytest.mark.usefixtures("one_thread")
DOUBLE = torch.float64
B, GROUP = 16, 4


def resnet() -> Network:
    """A ResNet-18 for small pictures whose residual branches are dropped at random, two heads with batch norm."""
    torch.manual_seed(0)
    trunk = models.resnet18(weights=None)
    trunk.conv1, trunk.maxpool = nn.Conv2d(3, 64, 3, 2, 1, bias=False), nn.Identity()
    trunk.fc = nn.Identity()
    for stage in (trunk.layer2, trunk.layer4):
        stage[1].bn2 = nn.Sequential(stage[1].bn2, StochasticDepth(0.3, "row"))
    head = nn.Sequential(
        nn.Linear(512, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 8)
    )
    predictor = nn.Sequential(nn.Linear(8, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 8))
    net = Network(trunk, head, torch.full((3,), 0.5), torch.full((3,), 0.25), predictor).double()
    net.scalars["temperature"] = nn.Parameter(torch.tensor(0.1, dtype=DOUBLE))
    return net.train()


LEARNED = {"kind": "learned", "start": 0.2, "low": 0.002, "high": 20.0}
PREDICTOR = {"kind": "mlp", "hidden": 8, "norm": "batch"}
SPACES: dict[str, dict[str, Any]] = {
    "contrast": {"temperature": LEARNED},
    "stop_gradient": {
        "objective": {"kind": "regression", "form": "negative_cosine"},
        "temperature": None,
        "predictor": PREDICTOR,
        "target": "stop_gradient",
    },
    "momentum": {
        "temperature": LEARNED,
        "predictor": PREDICTOR,
        "target": {"kind": "momentum", "m": 0.9, "schedule": "constant"},
    },
}


CASES = [*((declared, 1) for declared in SPACES), ("momentum", 2)]


def whole_batch(passes: int = 1) -> Batch:
    generator = torch.Generator().manual_seed(1)
    views = [torch.rand(2 * B, 3, 8, 8, generator=generator, dtype=DOUBLE)]
    views += [torch.rand(B, 3, 6, 6, generator=generator, dtype=DOUBLE)] * (passes - 1)
    samples = np.arange(B)
    columns = [row_columns(samples, (0, 1), {}, "cpu"), row_columns(samples, (2,), {}, "cpu")][:passes]
    return Batch(3, 0, 0.1, samples, tuple(views), tuple(columns))


def own_part(batch: Batch, rank: int, world: int) -> Batch:
    """A rank's samples with their views."""

    def part(rows: Any) -> Any:
        return rows[len(rows) // world * rank : len(rows) // world * (rank + 1)]

    columns = tuple({name: part(column) for name, column in each.items()} for each in batch.columns)
    return Batch(batch.step, 0, batch.share, part(batch.samples), tuple(map(part, batch.passes)), columns)


def step(
    declared: str,
    micro_batch: int | None,
    group: int | None = GROUP,
    passes: int = 1,
    rank: int = 0,
    world: int = 1,
) -> dict[str, Tensor]:
    """Loss, gradients and the running statistics after one step, by name."""
    net, settings = resnet(), SPACES[declared]
    if declared == "contrast":
        net.predictor = None
    target = None
    if declared == "momentum":
        target = copy.deepcopy(net)
        with torch.no_grad():
            for weight in target.parameters():
                weight.mul_(1.01)
    state = State(net, torch.optim.SGD(net.parameters(), lr=0.1), target)
    stepper = Stepper(space(**settings), 7, Division.of(B // world, rank, group, micro_batch), net, target)
    statistics = Statistics(net)
    before = {name: value.clone() for name, value in net.named_buffers()}
    found = stepper.differentiate(state, own_part(whole_batch(passes), rank, world), statistics)
    assert all(torch.equal(value, before[name]) for name, value in net.named_buffers())  # not before the step
    collectives.add_gradients(net.parameters())
    statistics.apply()
    gradients = {name: each.grad for name, each in net.named_parameters() if each.grad is not None}
    return {"loss": torch.tensor(found.value), **gradients, **dict(net.named_buffers())}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        torch.testing.assert_close(value, second[name], rtol=1e-10, atol=1e-10, msg=name)


@pytest.mark.parametrize(("declared", "passes"), CASES)
def test_four_micro_batches_are_the_whole_batch(declared: str, passes: int) -> None:
    whole = step(declared, None, passes=passes)
    assert any("running_mean" in name for name in whole)
    assert float(whole["encoder.conv1.weight"].abs().max()) > 1e-6
    assert int(whole["encoder.bn1.num_batches_tracked"]) == 1
    for micro_batch in (GROUP, 2 * GROUP):
        same(step(declared, micro_batch, passes=passes), whole)


def on_rank(rank: int, world: int, port: int, result: str) -> None:
    """Steps of four ranks with a group each, then of the first two of them with two micro-batches each."""
    for ranks in (world, world // 2):
        if rank < ranks:
            meet(rank, ranks, port)
            dist.init_process_group("gloo", init_method=f"file://{result}-{ranks}", rank=rank, world_size=ranks)
            found = [step(declared, GROUP, passes=passes, rank=rank, world=ranks) for declared, passes in CASES]
            torch.save(found, f"{result}-{ranks}-{rank}.pt")
            dist.destroy_process_group()


def test_ranks_of_a_real_network_are_the_whole_batch(tmp_path: Path) -> None:
    spawned(on_rank, 4, str(tmp_path / "of"))
    whole = [step(declared, None, passes=passes) for declared, passes in CASES]
    for way in [f"4-{rank}" for rank in range(4)] + [f"2-{rank}" for rank in range(2)]:
        for mine, theirs in zip(torch.load(tmp_path / f"of-{way}.pt"), whole, strict=True):
            same(mine, theirs)


def test_a_group_is_no_matter_of_indifference() -> None:
    """Other groups are another batch norm: the test above would see a group that is split."""
    assert abs(float(step("contrast", None, 4)["loss"]) - float(step("contrast", None, 8)["loss"])) > 1e-6


def test_with_one_group_the_statistics_are_torchs() -> None:
    net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3), nn.BatchNorm1d(3, momentum=0.3)).double()
    theirs = copy.deepcopy(net)
    statistics = Statistics(net)
    for seed in range(3):
        x = torch.randn(10, 4, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)
        for _ in range(2):  # computed again, counted once
            with statistics.aside((0, 0)):
                mine = net(x)
        statistics.apply()
        assert torch.equal(mine, theirs(x))
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(net.state_dict()[name], value, rtol=1e-12, atol=1e-12)


def test_running_statistics_are_the_mean_over_groups() -> None:
    net = nn.BatchNorm1d(3).double()
    statistics = Statistics(net)
    x = torch.randn(4, 5, 3, dtype=DOUBLE)
    for group in (2, 0, 3, 1):
        with statistics.aside((0, group)):
            net(x[group])
    statistics.apply()
    torch.testing.assert_close(net.running_mean, 0.1 * x.mean(1).mean(0))
    torch.testing.assert_close(net.running_var, 0.9 + 0.1 * x.var(1).mean(0))


def test_frozen_layers_keep_their_statistics() -> None:
    net = nn.Sequential(nn.BatchNorm1d(3), nn.BatchNorm1d(3))
    net[0].eval()
    statistics = Statistics(net)
    with statistics.aside((0, 0)):
        net(torch.randn(5, 3))
    statistics.apply()
    assert net[0].running_mean.tolist() == [0.0] * 3
    assert net[1].running_mean.tolist() != [0.0] * 3


def plain_accumulation(
    forward: Callable[[int], tuple[Tensor, ...]], parts: int, loss: Callable[[tuple[Tensor, ...]], tuple[Tensor, Any]]
) -> Any:
    """Each part for itself, as gradient accumulation does: other candidates."""
    for part in range(parts):
        value, found = loss(forward(part))
        (value / parts).backward()
    return found


def other_draws(seed: int, step: int, group: int, number: int, device: Any) -> Any:
    """Dropout that goes on drawing instead of beginning anew."""
    return nullcontext()


@pytest.mark.parametrize("wrong", ["draws", "statistics", "first group"])
def test_the_law_tells_wrong_micro_batches(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = step("contrast", None)
    if wrong == "draws":
        monkeypatch.setattr("pipeline.step.drawn", other_draws)
    elif wrong == "statistics":
        monkeypatch.setattr(Statistics, "aside", lambda self, key: nullcontext())  # both passes of the cache count
    else:
        monkeypatch.setattr(groups.Division, "groups", property(lambda self: [slice(0, 8), slice(8, 16)]))
    with pytest.raises(AssertionError):
        same(step("contrast", GROUP), whole)


def test_plain_accumulation_is_another_loss() -> None:
    torch.manual_seed(0)
    net, x = nn.Linear(3, 2).double(), torch.randn(8, 3, dtype=DOUBLE)

    def forward(part: int) -> tuple[Tensor, ...]:
        return (net(x[4 * part : 4 * part + 4]),)

    def loss(outputs: tuple[Tensor, ...]) -> tuple[Tensor, float]:
        (z,) = outputs
        value = torch.logsumexp(z @ z.T, 1).mean()
        return value, float(value.detach())

    results = []
    for way in (gradient, plain_accumulation):
        net.zero_grad()
        way(forward, 2, loss)
        results.append(net.weight.grad.clone())
    net.zero_grad()
    loss((net(x),))[0].backward()
    torch.testing.assert_close(results[0], net.weight.grad, rtol=1e-12, atol=1e-12)
    assert float((results[1] - net.weight.grad).abs().max()) > 1e-3


def test_an_output_that_the_loss_does_not_train_gets_no_gradient() -> None:
    net = nn.Linear(2, 2).double()
    x = torch.randn(4, 2, dtype=DOUBLE)

    def forward(part: int) -> tuple[Tensor, ...]:
        z = net(x[2 * part : 2 * part + 2])
        return z, z * 2

    gradient(forward, 2, lambda rows: ((rows[0] * rows[1].detach()).sum(), None))
    expected = torch.autograd.grad((net(x) * (net(x) * 2).detach()).sum(), net.weight)[0]
    torch.testing.assert_close(net.weight.grad, expected)


# -- what fits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((64, 1, "cpu", None, 10), None),
        ((64, 1, "cpu", 64, None), None),
        ((64, 2, "cpu", 16, 16), None),
        ((64, 2, "cuda", 64, None), None),
        ((64, 1, "cpu", 16, 24), "micro_batch = 24: splits norm_group (16); take 16"),
        ((64, 1, "cpu", 16, 8), "micro_batch = 8: splits norm_group (16); take 16"),
        ((64, 1, "cpu", 16, 40), "micro_batch = 40: splits norm_group (16); take 32"),
        (
            (64, 2, "cpu", 64, None),
            "training.norm_group = 64: 2 ranks on a CPU cannot share statistics; set processes = 1 in machine.yaml",
        ),
        ((64, 2, "cuda", 64, 16), "micro_batch = 16: splits norm_group (64) over the ranks; take 32, or null"),
        (
            (96, 3, "cpu", 48, None),
            "training.norm_group = 48: 3 ranks of 32 samples split it; take 32, or 96, or other processes",
        ),
        (
            (96, 2, "cpu", 32, None),
            "training.norm_group = 32: does not divide the 48 samples of a rank; take 24, or other processes",
        ),
        (
            (64, 4, "cpu", 16, None, True),
            "training.norm_group = 16: keys are dealt between two groups, and a rank has 1; "
            "take fewer processes, or a smaller norm_group",
        ),
    ],
)
def test_what_would_split_a_group_is_told_with_what_fits(arguments: Any, line: str | None) -> None:
    assert indivisible(*arguments) == line


def test_dealt_keys_change_partners_and_are_a_function_of_no_rank() -> None:
    whole = dealt(0, 5, 32, 4, 0)
    assert sorted(whole.tolist()) == list(range(32))
    halves = [dealt(0, 5, 16, 4, first) for first in (0, 4)]
    assert np.array_equal(whole, np.concatenate([halves[0], halves[1] + 16]))
    assert not np.array_equal(whole, dealt(0, 6, 32, 4, 0))
    for number in range(8):
        members = set((whole[4 * number : 4 * number + 4] // 4).tolist())
        assert members <= {number - number % 2, number - number % 2 + 1}
    assert any(len(set((whole[4 * number : 4 * number + 4] // 4).tolist())) == 2 for number in range(8))


def test_keys_come_back_in_the_batchs_order() -> None:
    declared = space(
        temperature=0.2,
        target={"kind": "momentum", "m": 0.9, "schedule": "constant"},
        sampler=Queue(kind="queue", length=64, in_batch=True).model_dump(),
    )
    net = resnet()
    target = copy.deepcopy(net).eval()
    target.projection[1].train()  # batch statistics of one layer: keys do depend on their groups
    batch = whole_batch()
    stepper = Stepper(declared, 7, Division.of(B, 0, GROUP, None), net, target)
    order = stepper.order_of_keys(batch, target)
    assert order is not None
    with torch.no_grad():
        h = target(batch.passes[0])[0].reshape(B, 2, -1)
        expected = torch.empty(B, 2, 8, dtype=DOUBLE)
        for group in range(B // GROUP):
            members = torch.from_numpy(order[GROUP * group : GROUP * group + GROUP])
            for view in (0, 1):  # statistics of a view alone
                expected[members, view] = target.projection(h[members, view])
    torch.testing.assert_close(stepper.keys(target, target, batch), expected.flatten(0, 1), rtol=1e-9, atol=1e-9)


class Together(Stepper):
    """Wrong: both views of a sample share batch statistics, and keys have their queries' groups."""

    def apart(self, network: nn.Module) -> bool:
        return False


class Undealt(Stepper):
    """Wrong: keys have the groups of their queries."""

    def order_of_keys(self, batch: Batch, network: nn.Module) -> Any:
        return np.arange(len(batch.samples))


def told_by_statistics(kind: type[Stepper], alike: bool) -> tuple[float, float]:
    """How much nearer to an anchor its own key is than other samples' keys, and how much nearer its group's other keys
    are than the rest: of random noise, the same in both views or not, by untrained networks of ten seeds."""
    normed = {"kind": "small_residual", "widths": [8, 16], "strides": [1, 2], "groups": None}
    declared = space(
        target={"kind": "momentum", "m": 0.9, "schedule": "constant"},
        sampler={"kind": "queue", "length": 64, "in_batch": True},
        projection={**SPACE["projection"], "norm": "batch"},
    )
    row, count, group = torch.arange(64), 32, 2
    own = row[:, None] // 2 == row // 2
    near = (row[:, None] // (2 * group) == row // (2 * group)) & ~own
    found = []
    for seed in range(10):
        net = start_network(declared, training(encoder=normed, norm_group=group, seed=seed), [0.5] * 3, [0.25] * 3)
        net.train()
        noise = torch.rand(64, 3, 16, 16, generator=torch.Generator().manual_seed(seed))
        views = noise[::2].repeat_interleave(2, 0) if alike else noise
        samples = np.arange(count)
        batch = Batch(3, 0, 0.1, samples, (views,), (row_columns(samples, (0, 1), {}, "cpu"),))
        stepper = kind(declared, 7, Division.of(count, 0, group, None), net, net)
        with torch.no_grad():
            keys = nn.functional.normalize(stepper.keys(net, net, batch), dim=1)
            (z,) = stepper.vectors(net, batch, list(range(count // group)), Statistics(net))
        cosine = nn.functional.normalize(z, dim=1) @ keys.T
        rest = float(cosine[~own & ~near].mean())
        found.append((float(cosine[row, row ^ 1].mean()) - rest, float(cosine[near].mean()) - rest))
    return float(np.mean([one for one, _ in found])), float(np.mean([other for _, other in found]))


def test_batch_statistics_do_not_tell_whose_a_key_is() -> None:
    """Views that share nothing, not even with their own sample, are as near as any; where they share everything, the
    keys of one's own group are told less well once keys are dealt."""
    assert abs(told_by_statistics(Stepper, alike=False)[0]) < 0.05
    assert told_by_statistics(Together, alike=False)[0] < -0.1
    dealt, undealt = (told_by_statistics(kind, alike=True)[1] for kind in (Stepper, Undealt))
    assert undealt < -0.2
    assert undealt < 1.2 * dealt < 0
