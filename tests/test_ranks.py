"""Many ranks are one process: loss and gradient of every objective, twenty steps of the loop, and a rank that is lost.

A row of the law table is the oracle: a double loop over pairs in float64, which knows neither ranks nor blocks.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ruamel.yaml import YAML
from small import CPU, ROOT, SPACE, TRAINING, sharded, space, training
from torch import Tensor, multiprocessing, nn
from torch import distributed as dist

sys.path.insert(0, str(Path(__file__).parent / "objectives"))
from oracle import lengths_to_one, similarities
from pydantic import TypeAdapter
from table import MEMBERS, TABLE

import pipeline.training as loop
from pipeline import collectives
from pipeline.checkpoint import Checkpoints
from pipeline.heartbeat import Heartbeat, lost
from pipeline.reduction import reduced
from pipeline.samplers import Sampler
from pipeline.shards import Shards
from pipeline.state import Row

DOUBLE = torch.float64
SAMPLE = torch.tensor([0, 0, 1, 2, 3, 3, 4, 4, 5, 5, 5, 6, 7, 7, 8, 8])
VIEW = torch.tensor([0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 2, 0, 0, 1, 0, 1])
LABEL = torch.tensor([0, 1, 2, 3, 0, 1, 1, 4, 0])[SAMPLE]
"""Of 4 ranks: 2, 4, 3 and 4 of four anchors have a positive; labels 2, 3 and 4 stand alone."""
COLUMNS = {"sample": SAMPLE, "view": VIEW, "label": LABEL}
CASES = [
    (kind, number, metric)
    for kind, row in TABLE.items()
    for number in range(len(row.fields))
    for metric in sorted(MEMBERS[kind].metrics)
]


def module() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4)).double()
    net.register_parameter("temperature", nn.Parameter(torch.tensor(0.3, dtype=DOUBLE)))
    return net


def data() -> Tensor:
    return torch.randn(16, 5, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)


def gradients(net: nn.Module) -> list[Tensor]:
    return [torch.zeros_like(each) if each.grad is None else each.grad.clone() for each in net.parameters()]


def of_ranks(kind: str, number: int, metric: str, world: int) -> tuple[float, list[Tensor]]:
    """Loss and gradient as the loop makes them: the rank's anchors against all candidates, then DDP's mean."""
    row, net, x = TABLE[kind], module(), data()
    objective = MEMBERS[kind](kind=kind, **row.fields[number])
    sampler = TypeAdapter(Sampler).validate_python(row.sampler or {"kind": "in_batch"})
    gathered = collectives.gather(net(collectives.own(x)))
    mine = {name: collectives.own(column) for name, column in COLUMNS.items()}
    everyone = {name: collectives.gather(column) for name, column in mine.items()}
    temperature = net.temperature if objective.uses_temperature else None
    contrast = sampler.contrast(collectives.own(gathered), mine, metric, temperature, "l2", gathered, everyone)
    loss, value = reduced(objective.terms(contrast))
    (loss * world).backward()
    found = gradients(net)
    for gradient in found:
        if world > 1:
            dist.all_reduce(gradient)
        gradient /= world
    return value, found


def oracle(kind: str, number: int, metric: str) -> tuple[float, list[Tensor]]:
    """The same of the whole batch, one pair at a time."""
    row, net = TABLE[kind], module()
    z = lengths_to_one(net(data()))
    group = LABEL if row.sampler else SAMPLE
    rows = range(len(z))
    positives = [[k for k in rows if k != i and group[k] == group[i]] for i in rows]
    negatives = [[k for k in rows if group[k] != group[i]] for i in rows]
    settings = {**row.fields[number], "metric": metric}
    temperature = net.temperature if MEMBERS[kind].uses_temperature else 1.0
    loss = row.naive(similarities(z, z, metric), positives, negatives, temperature, settings)
    loss.backward()
    return float(loss.detach()), gradients(net)


def meet(rank: int, world: int, port: int) -> None:
    torch.set_num_threads(1)
    ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world, "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in ranks.items()})
    os.environ.update(MASTER_ADDR="127.0.0.1", ACCELERATE_USE_CPU="true")


def on_rank(rank: int, world: int, port: int, folder: str) -> None:
    meet(rank, world, port)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.save([of_ranks(*case, world) for case in CASES], Path(folder) / f"{world}-{rank}.pt")
    dist.destroy_process_group()


def spawned(function: Callable[..., None], world: int, *arguments: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(function, (world, port, *arguments), nprocs=world)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[list[Any]]]:
    folder = tmp_path_factory.mktemp("ranks")
    for world in (2, 4):
        spawned(on_rank, world, str(folder))
    many = {world: [torch.load(folder / f"{world}-{rank}.pt") for rank in range(world)] for world in (2, 4)}
    return {1: [[of_ranks(*case, 1) for case in CASES]], **many}


@pytest.mark.parametrize("world", [1, 2, 4])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_loss_and_gradient_of_every_objective_are_those_of_a_double_loop_on_one_process(
    measured: dict[int, list[list[Any]]], case: tuple[str, int, str], world: int
) -> None:
    value, expected = oracle(*case)
    for results in measured[world]:
        mine, found = results[CASES.index(case)]
        assert mine == pytest.approx(value, abs=1e-10, rel=1e-10)
        for first, second in zip(found, expected, strict=True):
            torch.testing.assert_close(first, second, rtol=1e-10, atol=1e-10)


# -- twenty steps ------------------------------------------------------------------------------------------------------


def twenty(
    folder: str, told: Callable[[Row], None] = lambda row: None, kept: Checkpoints | None = None
) -> tuple[list[Any], dict[str, Tensor]]:
    """Curve and weights of the loop in float64."""
    original = loop.start_network
    loop.start_network = lambda *given: original(*given).double()
    try:
        run = loop.train(space(), training(epochs=5), Shards(Path(folder)), CPU, told, kept)
    finally:
        loop.start_network = original
    return list(run.curve), {name: value.detach().clone() for name, value in run.network.state_dict().items()}


def twenty_on_rank(rank: int, world: int, port: int, folder: str, result: str) -> None:
    meet(rank, world, port)
    found = twenty(folder)
    if rank == 0:
        torch.save([[row.loss for row in found[0]], found[1]], result)
    dist.destroy_process_group()


def test_twenty_steps_on_two_ranks_are_those_of_one_in_float64(tmp_path: Path) -> None:
    sharded(tmp_path / "shards")
    spawned(twenty_on_rank, 2, str(tmp_path / "shards"), str(tmp_path / "two.pt"))
    losses, weights = torch.load(tmp_path / "two.pt")
    curve, expected = twenty(str(tmp_path / "shards"))
    assert len(losses) == len(curve) == 20
    assert losses == pytest.approx([row.loss for row in curve], abs=1e-10)
    assert curve[-1].loss < curve[0].loss
    for name, value in expected.items():
        torch.testing.assert_close(weights[name], value, rtol=0, atol=1e-10, msg=name)


class Cut(Exception):
    """Stands for a kill."""


def cut(row: Row) -> None:
    if row.step == 7:
        raise Cut


def cut_on_rank(rank: int, world: int, port: int, folder: str, run: str) -> None:
    meet(rank, world, port)
    with pytest.raises(Cut):
        twenty(folder, cut, Checkpoints(Path(run), 0, print))
    if dist.is_initialized():
        dist.destroy_process_group()


def resumed_on_rank(rank: int, world: int, port: int, folder: str, run: str, result: str) -> None:
    meet(rank, world, port)
    made: list[Row] = []
    curve, weights = twenty(folder, made.append, Checkpoints(Path(run), 0, print))
    if rank == 0:
        torch.save([[row.loss for row in curve], weights, [row.step for row in made]], result)
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.mark.parametrize("first", [1, 2])
def test_a_restart_may_use_another_number_of_ranks(tmp_path: Path, first: int) -> None:
    sharded(tmp_path / "shards")
    run, result = tmp_path / "run", tmp_path / "result.pt"
    spawned(cut_on_rank, first, str(tmp_path / "shards"), str(run))
    assert [path.name for path in sorted(run.iterdir())] == ["step-00000006", "step-00000007"]
    spawned(resumed_on_rank, 3 - first, str(tmp_path / "shards"), str(run), str(result))
    losses, weights, made = torch.load(result)
    assert made == list(range(7, 20))
    curve, expected = twenty(str(tmp_path / "shards"))
    assert losses == pytest.approx([row.loss for row in curve], abs=1e-10)
    for name, value in expected.items():
        torch.testing.assert_close(weights[name], value, rtol=0, atol=1e-10, msg=name)


# -- a rank that is lost -----------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A working folder in which spec x may be trained for a long time."""
    sharded(tmp_path / "work" / "shard" / "small")
    (tmp_path / "specs").mkdir()
    content = {"data": "small", "space": SPACE, "training": {**TRAINING, "epochs": 5000}}
    with (tmp_path / "specs" / "x.yaml").open("w") as stream:
        YAML(typ="safe").dump(content, stream)
    (tmp_path / "work" / "check" / "x").mkdir(parents=True)
    (tmp_path / "work" / "check" / "x" / "gate.json").write_text('{"gate": "pass"}')
    return tmp_path


def start(place: Path, **settings: Any) -> subprocess.Popen[str]:
    machine = {"processes": 2, "device": "cpu", "threads": 1, "collective_timeout": 30, **settings}
    variables = {f"LATENT_{name.upper()}": str(value) for name, value in machine.items()}
    environment = {**os.environ, **variables, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "stages.pretrain", "x"]
    return subprocess.Popen(command, cwd=place, env=environment, stderr=subprocess.PIPE, text=True)


def signs(place: Path, rank: int, step: int = 3) -> dict[str, Any]:
    """What a rank says of itself, when it is at a step."""
    file = place / "work" / "logs" / "x" / "ranks" / f"{rank}.json"
    for _ in range(1200):
        try:
            told: dict[str, Any] = YAML(typ="safe").load(file.read_text())
            if told["step"] >= step:
                return told
        except (OSError, ValueError, TypeError):
            pass
        time.sleep(0.05)
    raise AssertionError(f"rank {rank} never came to step {step}")


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (
            signal.SIGKILL,
            r"rank 1 died \(SIGKILL\); the others were ended; run again to go on from the last checkpoint",
        ),
        (
            signal.SIGSTOP,
            r"rank 1 \(process \d+ on .*, at step \d+\) does not answer; the others waited 30 s "
            r"\(collective_timeout\); run again to go on from the last checkpoint",
        ),
    ],
    ids=["dies", "hangs"],
)
def test_a_rank_that_dies_or_hangs_ends_the_others_with_its_name(place: Path, number: int, told: str) -> None:
    process = start(place)
    others = [signs(place, rank)["pid"] for rank in (0, 1)]
    os.kill(others[1], number)
    since = time.monotonic()
    _, errors = process.communicate(timeout=120)
    if number == signal.SIGSTOP:
        assert time.monotonic() - since >= 29  # and not before collective_timeout
    assert process.returncode == 1
    lines = [line for line in errors.replace("\r", "\n").splitlines() if line.strip() and "step/s" not in line]
    assert re.fullmatch(told, lines[-1]), errors
    assert "Traceback" not in errors
    for pid in others:
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("processes", [1, 2])
def test_a_second_writer_is_refused_with_the_first_ones_process_id(place: Path, processes: int) -> None:
    process = start(place, processes=processes)
    try:
        log = place / "work" / "logs" / "x" / "pretrain-0.jsonl"
        pid = process.pid if processes == 1 else signs(place, 0)["pid"]
        for _ in range(1200):
            if (place / "work" / "checkpoints").exists() or (log.exists() and log.stat().st_size):
                break
            time.sleep(0.05)
        second = start(place, processes=1)
        _, errors = second.communicate(timeout=60)
        assert second.returncode == 1
        line = f"pretrain x: process {pid} is writing it; wait for it or stop it, then run again"
        assert errors.strip().splitlines()[-1] == line
    finally:
        process.kill()
        process.communicate()
    for _ in range(100):  # the ranks go with their launcher
        if not Path(f"/proc/{pid}").exists():
            break
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()


def test_a_rank_that_is_busy_elsewhere_has_begun_fewer_operations(tmp_path: Path) -> None:
    for rank, begun in enumerate((7, 7, 6)):
        Heartbeat(tmp_path, rank, lambda begun=begun: begun).step = 4
    told = lost(tmp_path, 3, 0)
    assert told is not None
    assert re.fullmatch(r"rank 2 \(process \d+ on .*, at step 4\) is busy and does not join the others", told)
