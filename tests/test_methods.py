"""Every shipped method trains by the one loop; what it carries along survives a kill; ranks and micro-batches are one
process; and what keeps a method without negatives from collapsing is what the papers say.
"""

from __future__ import annotations

import inspect
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ruamel.yaml import YAML
from safetensors.torch import load
from small import CPU, ROOT, SPACE, TRAINING, sharded, space, training
from test_queue import oldest_first, queues_of_programmes, run_programme
from test_ranks import meet, spawned
from torch import Tensor
from torch import distributed as dist
from torchvision.ops import StochasticDepth

import pipeline.training as loop
from pipeline import step
from pipeline.batches import Batches, content_codes, settled
from pipeline.checkpoint import Checkpoints, read_checkpoint
from pipeline.keys import Keys, permutation
from pipeline.machine import Machine
from pipeline.network import trained_network
from pipeline.queue import of_tensors
from pipeline.samplers import Queue
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.spec import Refusal, read_section
from pipeline.state import Row
from pipeline.targets import Momentum, StopGradient
from pipeline.training import Trained, start_network, train
from pipeline.training_section import Training
from pipeline.views import draw_view
from stages import pretrain

METHODS = sorted(path.stem for path in (ROOT / "specs" / "examples" / "methods").glob("*.yaml"))
BATCH = 16
NORMED: dict[str, Any] = {"kind": "small_residual", "widths": [8, 16], "strides": [1, 2], "groups": None}
MOMENTUM: dict[str, Any] = {"kind": "momentum", "m": 0.9, "schedule": "cosine"}
QUEUE: dict[str, Any] = {"kind": "queue", "length": 40, "in_batch": False}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return sharded(tmp_path_factory.mktemp("shards") / "small")


def shipped_space(method: str) -> LatentSpace:
    """The method on the small spaces' views, with a queue that fits the small data."""
    found: LatentSpace = read_section(ROOT / "specs" / "examples" / "methods" / f"{method}.yaml", "space", LatentSpace)
    changes: dict[str, Any] = {"invariances": space().invariances}
    if isinstance(found.sampler, Queue):
        changes["sampler"] = found.sampler.model_copy(update={"length": 40})
    return found.model_copy(update=changes)


def fitting(declared: LatentSpace, **changes: Any) -> Training:
    normed = declared.batch_statistics()
    return training(norm_group=BATCH if normed else None, **changes)


def run(
    declared: LatentSpace,
    spec: Training,
    shards: Shards,
    machine: Machine = CPU,
    kept: Checkpoints | None = None,
    cut: int | None = None,
) -> Trained:
    def told(row: Row) -> None:
        if row.step == cut:
            raise KeyboardInterrupt

    return train(declared, spec, shards, machine, told, kept)


def test_the_shipped_methods_are_the_promised_ones() -> None:
    assert set(METHODS) == {
        "simclr",
        "moco_v2",
        "moco_v3",
        "byol",
        "simsiam",
        "debiased",
        "hard_negative",
        "supcon",
    }


@pytest.mark.parametrize("method", METHODS)
def test_a_method_trains_and_its_loss_falls(method: str, shards: Shards) -> None:
    declared = shipped_space(method)
    done = run(declared, fitting(declared, epochs=12), shards)
    losses = [row.loss for row in done.curve]
    assert all(math.isfinite(loss) for loss in losses)
    first = 4 if isinstance(declared.sampler, Queue) else 0  # a queue that fills makes the task harder
    assert np.mean(losses[-4:]) < np.mean(losses[first : first + 4])
    assert done.candidates == declared.sampler.candidates(BATCH, declared.crossed)
    kept = {name.split(".")[0] for name in done.network.state_dict()}
    assert ("predictor" in kept) == (declared.predictor is not None)


def z_of(done: Trained, shards: Shards) -> Tensor:
    """z of the training split in evaluation mode, of length 1."""
    images = torch.from_numpy(shards.images("train")).float() / 255
    with torch.no_grad():
        z = done.network.eval()(images)[1]
    return torch.nn.functional.normalize(z, dim=1)


def spread(z: Tensor) -> float:
    """Standard deviation of a coordinate times the root of the width: 1 on a full sphere, 0 where all is one vector."""
    return float(z.std(0).mean() * z.shape[1] ** 0.5)


def mutated(module: Any, *changes: str) -> dict[str, Any]:
    """The names of a module in which passages read otherwise: what stands there, what stands there then, and so on."""
    source = inspect.getsource(module)
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    names: dict[str, Any] = dict(vars(module))
    exec(compile(source, f"wrong {module.__name__}", "exec"), names)
    return names


@pytest.mark.parametrize("method", ["simsiam", "byol"])
def test_without_its_stop_gradient_a_method_without_negatives_collapses(
    method: str, shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chen & He 2021, figure 2; the last batch norm is left out, behind which a point becomes a line instead."""
    declared = shipped_space(method)
    stopped = declared.model_copy(update={"projection": declared.projection.model_copy(update={"last_norm": "none"})})
    fast = {"kind": "sgd", "learning_rate": 0.3, "momentum": 0.9, "weight_decay": 1e-4}
    spec = fitting(declared, epochs=30, optimizer=fast)
    monkeypatch.setattr(loop, "APART", 1)
    healthy = run(stopped, spec, shards)
    monkeypatch.setattr(loop, "Stepper", mutated(step, "z.detach(), keys", "z, keys")["Stepper"])
    collapsed = run(stopped.model_copy(update={"target": StopGradient(kind="stop_gradient")}), spec, shards)
    assert spread(z_of(healthy, shards)) > 0.5
    assert healthy.curve[-1].effective_rank > 2
    assert spread(z_of(collapsed, shards)) < 0.3
    assert collapsed.curve[-1].loss < healthy.curve[-1].loss


# -- the queue in the loop ---------------------------------------------------------------------------------------------


def moco(**changes: Any) -> LatentSpace:
    return space(target=MOMENTUM, sampler=QUEUE, **changes)


def test_moco_is_the_loop_written_out_plainly(shards: Shards) -> None:
    """Keys by a copy that follows after the optimizer, a queue read before it is written, own samples left out."""
    spec, declared = training(epochs=4), moco()
    images = torch.from_numpy(shards.images("train"))
    net = start_network(declared, spec, shards.card.mean, shards.card.std).double()
    slow = start_network(declared, spec, shards.card.mean, shards.card.std).double()
    groups = [
        {"params": [weight for weight in net.parameters() if (weight.ndim < 2) == vectors], "weight_decay": decay}
        for vectors, decay in ((False, 1e-4), (True, 0.0))
    ]
    optimizer = torch.optim.AdamW(groups)
    queue: list[tuple[int, Tensor]] = []
    losses, done_steps, steps = [], 0, 16
    for epoch in range(4):
        order = permutation(0, epoch, len(images))
        for batch in range(4):
            samples = order[16 * batch : 16 * batch + 16]
            both = []
            for view in (0, 1):
                keys = Keys.of(0, epoch, samples, view)
                both.append(draw_view(images[samples].float() / 255, declared.invariances, keys).double())
            q = [torch.nn.functional.normalize(net(views)[1], dim=1) for views in both]
            with torch.no_grad():
                k = [torch.nn.functional.normalize(slow(views)[1], dim=1) for views in both]
            each = []
            for view in (0, 1):
                for i, sample in enumerate(samples.tolist()):
                    negatives = [vector for of, vector in queue if of != sample]
                    if negatives:
                        logits = torch.stack([q[view][i] @ other for other in (k[1 - view][i], *negatives)]) / 0.2
                        each.append(torch.logsumexp(logits, 0) - logits[0])
            loss = torch.stack(each).mean() if each else sum(part.sum() for part in q) * 0
            optimizer.zero_grad()
            loss.backward()
            for group in optimizer.param_groups:
                share = (done_steps + 1) / 4 if done_steps < 4 else (1 + math.cos(math.pi * (done_steps - 4) / 12)) / 2
                group["lr"] = 3e-3 * share
            optimizer.step()
            m = 1 - 0.1 * (math.cos(math.pi * done_steps / steps) + 1) / 2
            with torch.no_grad():
                for mine, theirs in zip(slow.parameters(), net.parameters(), strict=True):
                    mine.copy_(m * mine + (1 - m) * theirs)
            queue = (queue + list(zip(samples.tolist(), k[1], strict=True)))[-40:]
            losses.append(float(loss.detach()))
            done_steps += 1
    done = run(declared, spec, shards)
    assert done.curve[0].loss == 0  # an empty queue: no anchor has a negative
    assert done.candidates == 41
    assert [row.loss for row in done.curve] == pytest.approx(losses, abs=2e-4)  # float32 against float64


def test_keys_age_and_a_slower_copy_drifts_less(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "APART", 4)
    slow, fast = (
        run(space(target={**MOMENTUM, "m": m, "schedule": "constant"}, sampler=QUEUE), training(epochs=6), shards).curve
        for m in (0.99, 0.0)
    )
    assert slow[0].key_age == slow[0].key_drift == 0
    assert [row.key_age for row in slow[8::4]] == pytest.approx([1.8] * 4)  # 40 keys: 16 of 1 and 2 steps, 8 of 3
    assert slow[-1].key_drift < 0.5 * fast[-1].key_drift
    assert fast[-1].key_drift > 1e-4


WRONG = {
    "enqueued before the loss": (
        "found = stepper.differentiate(state, batch, statistics)",
        "early = stepper.keys(stepper.target, state.target, batch); "
        "cols = {n: c for n, c in batch.columns[0].items()}; "
        "enqueue(state, space.sampler.length, Measured(0.0, early, 0.0, early, cols), batch.step); "
        "found = stepper.differentiate(state, batch, statistics)",
        "            enqueue(state, space.sampler.length, found, batch.step)\n",
        "            pass\n",
    ),
    "the copy follows before the optimizer": (
        "        state.optimizer.step()\n",
        "        follow(state.target, network, space.target.at(batch.step, batches.steps))\n"
        "        state.optimizer.step()\n",
        "            follow(state.target, network, space.target.at(batch.step, batches.steps))\n",
        "            pass\n",
    ),
    "the copy never follows": ("follow(state.target, network", "(lambda *_: None)(state.target, network"),
    "the schedule advances twice a step": (
        "space.target.at(batch.step, batches.steps)",
        "space.target.at(min(2 * batch.step, batches.steps), batches.steps)",
    ),
    "the first view's keys are kept": ("found.keys[1::2]", "found.keys[0::2]"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_plain_loop_tells_a_wrong_order_of_enqueue_loss_and_update(wrong: str, shards: Shards) -> None:
    right = [row.loss for row in run(moco(), training(epochs=3), shards).curve]
    module = mutated(loop, *WRONG[wrong])
    found: list[float] = []
    module["train"](moco(), training(epochs=3), shards, CPU, lambda row: found.append(row.loss))
    assert max(abs(one - other) for one, other in zip(found, right, strict=True)) > 4e-4  # twice the plain loop's


@pytest.mark.parametrize("method", ["moco_v2", "moco_v3", "byol"])
def test_a_killed_run_ends_with_the_bits_of_one_that_was_not(method: str, shards: Shards, tmp_path: Path) -> None:
    declared = shipped_space(method)
    spec = fitting(declared, epochs=3)
    whole = run(declared, spec, shards)
    for cut in (3, 7):
        with pytest.raises(KeyboardInterrupt):
            run(declared, spec, shards, kept=Checkpoints(tmp_path / "run", 0, print), cut=cut)
    names = {name.split(".")[0] for name in load(read_checkpoint(tmp_path / "run" / "step-00000007") or b"")}
    assert "target" in names
    assert ("queue" in names) == (method == "moco_v2")
    again = run(declared, spec, shards, kept=Checkpoints(tmp_path / "run", 0, print))
    assert str(again.curve) == str(whole.curve)  # no temperature is no number
    one, two = whole.network.state_dict(), again.network.state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_queue_that_is_no_smaller_than_the_data_is_refused(shards: Shards) -> None:
    count = shards.card.splits["train"]
    declared = space(target=MOMENTUM, sampler={**QUEUE, "length": count})
    with pytest.raises(Refusal) as caught:
        run(declared, training(), shards)
    line = f"space.sampler.length = {count}: must be below the training split; at most {count - 1}"
    assert str(caught.value) == line


def test_gradients_are_summed_over_ranks_once_a_step(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(loop.collectives, "add_gradients", lambda weights: calls.append(len(list(weights))))
    machine = Machine(processes=1, device="cpu", threads=1, micro_batch=4)
    done = run(moco(), training(epochs=2), shards, machine)
    assert len(calls) == len(done.curve) == 8


def test_a_queue_beside_the_batch_trains_and_tells_more_candidates(shards: Shards) -> None:
    declared = space(target=MOMENTUM, sampler={**QUEUE, "in_batch": True})
    done = run(declared, training(epochs=3), shards)
    assert done.curve[0].loss == pytest.approx(math.log(BATCH), rel=0.2)  # the batch's negatives are there at once
    assert done.candidates == 40 + BATCH


def test_a_key_of_an_epoch_of_its_own_does_not_break_the_look(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "APART", 1)  # 33 keys of batches of 16: one of an earlier epoch now and then
    declared = space(
        target=MOMENTUM, sampler={**QUEUE, "length": 33}, projection={**SPACE["projection"], "norm": "batch"}
    )
    done = run(declared, training(epochs=3, norm_group=4), shards)
    assert all(math.isfinite(row.key_drift) for row in done.curve)


# -- micro-batches and ranks -------------------------------------------------------------------------------------------


SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "moco": (
        {"target": MOMENTUM, "sampler": QUEUE},
        {"encoder": NORMED, "norm_group": 4},
    ),
    "byol": (
        {
            "target": MOMENTUM,
            "objective": {"kind": "regression", "form": "squared_distance"},
            "temperature": None,
            "predictor": {"kind": "mlp", "hidden": 8, "norm": "batch"},
        },
        {"encoder": NORMED, "norm_group": 4},
    ),
    "simclr": (
        {"temperature": {"kind": "learned", "start": 0.2, "low": 0.002, "high": 20.0}},
        {"encoder": NORMED, "norm_group": 4},
    ),
    "moco of small groups": ({"target": MOMENTUM, "sampler": QUEUE}, {"encoder": NORMED, "norm_group": 2}),
    "dropping": ({"target": MOMENTUM}, {"encoder": NORMED, "norm_group": 4}),
    "hardest": ({"sampler": {"kind": "hardest", "nearest": 3}}, {}),
    "threshold": ({"sampler": {"kind": "threshold", "above": 0.9, "most": 3, "warmup": 0.2}}, {}),
    "no_duplicates": ({"sampler": {"kind": "no_duplicates", "columns": ["shape"]}}, {}),
}


def in_double(name: str, folder: str, micro_batch: int | None) -> tuple[list[float], dict[str, Tensor]]:
    """Curve and weights of eight steps in float64."""
    original = loop.start_network

    def start(*given: Any) -> Any:
        network = original(*given)
        if name == "dropping":  # half of what enters the head, and then whole rows, as dropout and drop-path do
            dropped = (torch.nn.Dropout(0.5), StochasticDepth(0.3, "row"))
            network.projection = torch.nn.Sequential(*dropped, network.projection)
        return network.double()

    loop.start_network = start
    of_space, of_training = SETTINGS[name]
    plain = {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.5, "weight_decay": 1e-4}
    machine = Machine(processes=1, device="cpu", threads=1, micro_batch=micro_batch)
    try:
        spec = training(optimizer=plain, **of_training)
        done = train(space(**of_space), spec, Shards(Path(folder)), machine, lambda row: None)
    finally:
        loop.start_network = original
    return [row.loss for row in done.curve], {k: v.detach().clone() for k, v in done.network.state_dict().items()}


def on_rank(rank: int, world: int, port: int, folder: str, result: str, micro_batch: str) -> None:
    meet(rank, world, port)
    found: dict[str, Any] = {name: in_double(name, folder, int(micro_batch) or None) for name in SETTINGS}
    wrong = mutated(loop, "z = found.keys[1::2]", "z = collectives.own(found.keys)[1::2]")
    try:
        wrong["train"](moco(), training(), Shards(Path(folder)), CPU, lambda row: None)
    except Refusal as refusal:
        found["a queue a rank"] = str(refusal)
    found["queues"] = [queue.tensors() for queue in queues_of_programmes()]
    if rank == world - 1:
        torch.save(found, result)
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """1 rank x 1, 1 x 4 micro-batches, 2 x 2."""
    folder = tmp_path_factory.mktemp("ways")
    sharded(folder / "shards")
    found = {
        f"1 x {BATCH // micro}": {n: in_double(n, str(folder / "shards"), micro) for n in SETTINGS} for micro in (16, 4)
    }
    spawned(on_rank, 2, str(folder / "shards"), str(folder / "two.pt"), "4")
    return {**found, "2 x 2": torch.load(folder / "two.pt")}


@pytest.mark.parametrize("way", ["1 x 4", "2 x 2"])
@pytest.mark.parametrize("name", SETTINGS)
def test_micro_batches_and_ranks_change_no_number(name: str, way: str, ways: dict[str, dict[str, Any]]) -> None:
    losses, weights = ways["1 x 1"][name]
    mine, found = ways[way][name]
    assert len(losses) == 8
    assert mine == pytest.approx(losses, abs=1e-9)
    for part, value in weights.items():
        torch.testing.assert_close(found[part], value, rtol=0, atol=1e-9, msg=part)


def test_queues_of_two_ranks_are_lists_and_go_on_in_one_process(ways: dict[str, dict[str, Any]]) -> None:
    for seed, tensors in enumerate(ways["2 x 2"]["queues"]):
        queue, model = run_programme(seed, range(5, 8), of_tensors(tensors))
        assert oldest_first(queue) == model


@pytest.mark.parametrize("name", ["moco", "byol"])
def test_in_bf16_micro_batches_change_rounding_alone(name: str, shards: Shards) -> None:
    of_space, of_training = SETTINGS[name]
    plain = {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.5, "weight_decay": 1e-4}
    spec = training(optimizer=plain, precision="bf16", **of_training)
    whole = run(space(**of_space), spec, shards)
    parts = run(space(**of_space), spec, shards, Machine(processes=1, device="cpu", threads=1, micro_batch=4))
    assert [row.loss for row in parts.curve] == pytest.approx([row.loss for row in whole.curve], abs=2e-3)
    for name_, value in whole.network.state_dict().items():
        torch.testing.assert_close(parts.network.state_dict()[name_], value, rtol=0.02, atol=2e-3, msg=name_)


def test_a_queue_of_each_rank_for_itself_is_refused_at_once(ways: dict[str, dict[str, Any]]) -> None:
    told = ways["2 x 2"]["a queue a rank"]
    assert told == "step 0: the queue differs between ranks; their processors do not compute alike"


def test_a_copy_that_follows_once_a_micro_batch_is_told(shards: Shards) -> None:
    old = "follow(state.target, network, space.target.at(batch.step, batches.steps))"
    wrong = mutated(loop, old, f"[{old} for _ in stepper.division.parts]")
    four = Machine(processes=1, device="cpu", threads=1, micro_batch=4)
    right = [row.loss for row in run(moco(), training(epochs=3), shards, four).curve]
    assert right == pytest.approx([row.loss for row in run(moco(), training(epochs=3), shards).curve], abs=1e-4)
    found: list[float] = []
    wrong["train"](moco(), training(epochs=3), shards, four, lambda row: found.append(row.loss))
    assert max(abs(one - other) for one, other in zip(found, right, strict=True)) > 1e-3


def test_four_ranks_without_micro_batches_are_one_process(tmp_path: Path, ways: dict[str, dict[str, Any]]) -> None:
    sharded(tmp_path / "shards")
    only = {name: SETTINGS[name] for name in ("byol", "simclr", "moco of small groups", "dropping")}
    os.environ["METHODS_ON_RANKS"] = ",".join(only)
    try:
        spawned(on_four, 4, str(tmp_path / "shards"), str(tmp_path / "four.pt"))
    finally:
        del os.environ["METHODS_ON_RANKS"]
    four = torch.load(tmp_path / "four.pt")
    for name in only:
        losses, weights = ways["1 x 1"][name]
        assert four[name][0] == pytest.approx(losses, abs=1e-9)
        for part, value in weights.items():
            torch.testing.assert_close(four[name][1][part], value, rtol=0, atol=1e-9, msg=part)


def on_four(rank: int, world: int, port: int, folder: str, result: str) -> None:
    meet(rank, world, port)
    found = {name: in_double(name, folder, None) for name in os.environ["METHODS_ON_RANKS"].split(",")}
    if rank == 0:
        torch.save(found, result)
    dist.destroy_process_group()


# -- what is left of it ------------------------------------------------------------------------------------------------


def test_neither_predictor_nor_copy_is_in_what_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = sharded(tmp_path / "work" / "shard" / "small")
    of_space, of_training = SETTINGS["byol"]
    content = {"data": "small", "space": {**SPACE, **of_space}, "training": {**TRAINING, **of_training}}
    (tmp_path / "specs").mkdir()
    (tmp_path / "work" / "check" / "x").mkdir(parents=True)
    (tmp_path / "work" / "check" / "x" / "gate.json").write_text('{"gate": "pass"}')
    with (tmp_path / "specs" / "x.yaml").open("w") as stream:
        YAML(typ="safe").dump(content, stream)
    monkeypatch.chdir(tmp_path)
    for name, value in (("PROCESSES", "1"), ("DEVICE", "cpu"), ("THREADS", "1"), ("MICRO_BATCH", "8")):
        monkeypatch.setenv(f"LATENT_{name}", value)
    pretrain.main(["x"])
    folder = tmp_path / "work" / "pretrain" / "x"
    names = {name.split(".")[0] for name in load((folder / "weights.safetensors").read_bytes())}
    assert names == {"encoder", "projection", "mean", "std"}
    network = trained_network(json.loads((folder / "network.json").read_text()), folder / "weights.safetensors")
    assert network.predictor is None
    spec = training(**of_training)
    machine = Machine(processes=1, device="cpu", threads=1, micro_batch=8)
    direct = run(space(**of_space), spec, shards, machine).network
    assert all(torch.equal(value, direct.state_dict()[name]) for name, value in network.state_dict().items())
    head = (folder / "curve.csv").read_text().splitlines()[0]
    looked_at = "effective_rank,fixed_positive_similarity,fixed_negative_similarity,told_apart,key_age,key_drift"
    assert head.endswith(f"negative_similarity,{looked_at}")


# -- what samplers need of the batches ---------------------------------------------------------------------------------


def test_equal_bytes_have_equal_content_codes(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Shards.read
    monkeypatch.setattr(
        Shards, "read", lambda self, split, row: original(self, split, row // 3 * 3 if row < 9 else row)
    )
    codes = content_codes(shards, "train")
    files = [shards.read("train", row) for row in range(len(codes))]
    assert len(set(files)) == len(files) - 6
    for i in range(len(codes)):
        for j in range(len(codes)):
            assert (codes[i] == codes[j]) == (files[i] == files[j])


def test_a_prior_that_names_a_column_is_the_number_of_the_card(shards: Shards) -> None:
    labels = shards.labels("train")["shape"]
    pairs = np.mean(labels[:, None] == labels[None])
    named = space(objective={"kind": "debiased", "prior": {"column": "shape"}})
    found = settled(named, shards.card)
    assert found.objective.prior == pytest.approx(pairs)
    assert settled(space(), shards.card) == space()
    written = space(objective={"kind": "debiased", "prior": float(found.objective.prior)})
    assert run(named, training(), shards).curve == run(written, training(), shards).curve
    assert named.identity() != written.identity()


def test_a_stratified_batch_holds_the_classes_in_proportion(shards: Shards) -> None:
    declared = space(sampler={"kind": "stratified", "column": "shape"})
    labels = shards.labels("train")["shape"]
    batches = Batches(declared, BATCH, 3, 0, shards, CPU)
    share = np.bincount(labels) / len(labels) * BATCH
    for _, samples in batches.order():
        held = np.bincount(labels[samples], minlength=len(share))
        assert (np.abs(held - share) <= 3).all()
    assert isinstance(Momentum(**MOMENTUM), Momentum)
