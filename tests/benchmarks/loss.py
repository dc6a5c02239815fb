"""What the losses cost, beside a matrix product and beside peers, in one run.

    python tests/benchmarks/loss.py             table, memory, queue, objectives (about three minutes on two cores)
    python tests/benchmarks/loss.py --curve     also the curve to 65,536 views
    python tests/benchmarks/loss.py --device cuda   blocks compiled ("this") and not ("eager") side by side

GEMM is one N x N x D product in float32, timed beside each loss. Times are lower quartiles of interleaved rounds,
forward and backward. Extra memory is the peak resident set (VmHWM) of a fresh process, reset before the call, less
what was resident then. ``dense`` is this file's own cross-entropy over the whole matrix; lightly is shown where it is
installed. The tuned allocator keeps freed memory (M_MMAP_MAX=0): half of a dense loss's time is page faults.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from pipeline import objectives
from pipeline.contrast import fused
from pipeline.objectives import NTXent
from pipeline.queue import empty, enqueued
from pipeline.reduction import reduced
from pipeline.samplers import Beside, Queue

DIM, TEMPERATURE = 128, 0.1
REACH = {512: (4.5, 3.0), 2048: (3.4, 2.6), 8192: (3.0, 6.5), 16384: (3.0, 6.5)}
REACH_MEMORY = {8192: 40, 16384: 80}
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "2147483647", "MALLOC_TOP_PAD_": "268435456"}
DEVICE = "cpu"


def dense(z: Tensor) -> Tensor:
    """NT-Xent as a cross-entropy over the whole matrix."""
    z = nn.functional.normalize(z)
    logits = (z @ z.T / TEMPERATURE).masked_fill(torch.eye(len(z), dtype=torch.bool, device=z.device), -math.inf)
    return nn.functional.cross_entropy(logits, torch.arange(len(z), device=z.device) ^ 1)


def lightly(memory_bank: int = 0) -> Callable[..., Tensor] | None:
    """lightly's NTXentLoss, or None where it is not installed."""
    try:
        from lightly.loss import NTXentLoss
    except ImportError:
        return None
    if memory_bank:
        return NTXentLoss(TEMPERATURE, memory_bank_size=(memory_bank, DIM)).to(DEVICE)
    loss = NTXentLoss(TEMPERATURE).to(DEVICE)
    return lambda z: loss(z[0::2], z[1::2])


def eager(z: Tensor) -> Tensor:
    """This loss with nothing compiled."""
    before, fused.MODE = fused.MODE, "never"
    try:
        return objectives.nt_xent(z, TEMPERATURE)
    finally:
        fused.MODE = before


def pair_losses() -> dict[str, Callable[[Tensor], Tensor]]:
    """The losses of one batch that are compared."""
    found = {"this": lambda z: objectives.nt_xent(z, TEMPERATURE), "dense": dense}
    if DEVICE != "cpu":
        found["eager"] = eager
    if (peer := lightly()) is not None:
        found["lightly"] = peer
    return found


def step(loss: Callable[[Tensor], Tensor], z: Tensor) -> None:
    loss(z.detach().requires_grad_()).backward()
    if DEVICE != "cpu":
        torch.cuda.synchronize()


def timed(actions: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Lower quartile of the seconds of each action, interleaved: a foreign load sits in the slower samples."""
    samples: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            if number:
                samples[name].append(time.perf_counter() - start)
    return {name: statistics.quantiles(values, n=4)[0] for name, values in samples.items()}


def product(z: Tensor, out: Tensor) -> None:
    torch.mm(z, z.T, out=out)
    if DEVICE != "cpu":
        torch.cuda.synchronize()


def times(views: int) -> dict[str, float]:
    """Seconds of the product and of each loss."""
    z = torch.randn(views, DIM, device=DEVICE)
    rounds = max(5, min(101, 200_000_000 // views**2))
    out = torch.zeros(views, views, device=DEVICE)
    actions = {"GEMM": lambda: product(z, out)}
    actions |= {name: (lambda loss=loss: step(loss, z)) for name, loss in pair_losses().items()}
    return timed(actions, rounds)


def memory(name: str, views: int) -> float:
    """Extra peak MiB of one forward and backward pass of a loss in this process."""
    z = torch.randn(views, DIM)
    step(pair_losses()[name], z[:64])
    resident, _ = _status()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    step(pair_losses()[name], z)
    return _status()[1] - resident


def _status() -> tuple[float, float]:
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return tuple(int(lines[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))


def elsewhere(action: str, *arguments: object, tuned: bool = False) -> object:
    """Run ``action`` of this file in a fresh process; None if it fails (out of memory)."""
    command = [sys.executable, __file__, "--only", action, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ | (TUNED if tuned else {}))
    return json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else None


def show_table() -> None:
    print("\nNT-Xent, forward + backward, D = 128, float32   (reach: GEMM, times faster than lightly)")
    for views, (gemms, faster) in REACH.items():
        found = times(views)
        tuned = elsewhere("times", views, tuned=True) or {}
        line = f"{views:6d} views  GEMM {found['GEMM'] * 1e3:8.2f} ms"
        for name in ("this", "eager", "dense", "lightly"):
            if name in found:
                line += f"  {name} {found[name] * 1e3:8.2f} ms = {found[name] / found['GEMM']:5.2f} GEMM"
                line += "" if name == "this" else f" (x{found[name] / found['this']:.1f}"
                line += "" if name == "this" else f", tuned x{tuned[name] / tuned['this']:.1f})" if tuned else ")"
        print(f"{line}  reach {gemms}, x{faster}", flush=True)


def show_memory() -> None:
    print("\nExtra peak memory, fresh process, MiB")
    for views in REACH:
        line = f"{views:6d} views"
        for name in pair_losses():
            found = elsewhere("memory", name, views)
            line += f"  {name} {'failed' if found is None else f'{found:.0f}'}"
        print(line + (f"  reach {REACH_MEMORY[views]}" if views in REACH_MEMORY else ""), flush=True)


def show_queue() -> None:
    print("\n512 queries against their keys and 65,536 further keys without gradient, ms   (reach: x2.5)")
    queries, keys = (torch.randn(512, DIM, device=DEVICE) for _ in range(2))
    queue = nn.functional.normalize(torch.randn(65536, DIM, device=DEVICE))

    def mine() -> None:
        first, second = queries.detach().requires_grad_(), keys.detach().requires_grad_()
        objectives.info_nce(first, second, TEMPERATURE, queue).backward()

    def whole() -> None:
        first, second = queries.detach().requires_grad_(), keys.detach().requires_grad_()
        everything = torch.cat([nn.functional.normalize(second), queue])
        logits = nn.functional.normalize(first) @ everything.T / TEMPERATURE
        nn.functional.cross_entropy(logits, torch.arange(512, device=DEVICE)).backward()

    sample = torch.arange(256, device=DEVICE).repeat_interleave(2)
    columns = {"sample": sample, "view": torch.arange(512, device=DEVICE) % 2}
    sampler, objective = Queue(kind="queue", length=65536, in_batch=False), NTXent(kind="nt_xent")
    earlier = {"sample": torch.arange(65536, device=DEVICE) + 256}
    held = [enqueued(empty(65536, DIM, queue.dtype, DEVICE), queue, earlier, 0)]

    def loop() -> None:
        """As the training loop does it: own samples left out by their number, and the new keys put in."""
        z, beside = queries.detach().requires_grad_(), Beside(True, held[0].valid, 0.0)
        contrast = sampler.contrast(z, columns, "cosine", TEMPERATURE, "l2", keys, columns, beside)
        reduced(objective.terms(contrast))[0].backward()
        held[0] = enqueued(held[0], keys[1::2], {"sample": sample[1::2]}, 1)

    actions: dict[str, Callable[[], object]] = {"this": mine, "this in the loop": loop, "dense": whole}
    if (bank := lightly(65536)) is not None:
        actions["lightly"] = lambda: bank(queries.detach().requires_grad_(), keys.detach().requires_grad_()).backward()
    found = timed(actions, 7)
    print("  ".join(f"{name} {value * 1e3:.0f} (x{value / found['this']:.1f})" for name, value in found.items()))


def show_objectives(views: int = 2048) -> None:
    print(f"\nEvery objective at {views} views, relative to NT-Xent")
    z = torch.randn(views, DIM, device=DEVICE)
    half, labels = views // 2, torch.arange(views, device=DEVICE) % 10
    losses: dict[str, Callable[[Tensor], Tensor]] = {
        "nt_xent": lambda z: objectives.nt_xent(z, TEMPERATURE),
        "nt_xent, temperature 0.01": lambda z: objectives.nt_xent(z, 0.01),
        "nt_xent, learned temperature": lambda z: objectives.nt_xent(z, torch.tensor(0.1, requires_grad=True)),
        "decoupled": lambda z: objectives.decoupled(z, TEMPERATURE),
        "debiased": lambda z: objectives.debiased(z, TEMPERATURE, 0.1),
        "hard_negative": lambda z: objectives.hard_negative(z, TEMPERATURE, 0.1, 0.5),
        "supervised, ten classes": lambda z: objectives.supervised_contrastive(z, labels, TEMPERATURE),
        "nce": lambda z: objectives.nce(z[:half], z[half:], z, TEMPERATURE, metric="cosine"),
        "negative_sampling": lambda z: objectives.negative_sampling(z[:half], z[half:]),
        "sigmoid": lambda z: objectives.sigmoid(z, TEMPERATURE, torch.tensor(-10.0, requires_grad=True)),
        "margin": lambda z: objectives.siamese_margin(z, 1.0, "l2"),
        "triplet": lambda z: objectives.triplet(z, 0.2),
        "alignment_uniformity": lambda z: objectives.alignment_uniformity(z),
    }
    found = timed({name: (lambda loss=loss: step(loss, z)) for name, loss in losses.items()}, 9)
    for name, value in found.items():
        print(f"  {name:30s} {value / found['nt_xent']:5.2f}")


def show_curve() -> None:
    print("\nThe curve, where a whole matrix cannot go (float32, bytes of the matrix beside it)")
    for views in (4096, 8192, 16384, 32768, 65536):
        z = torch.randn(views, DIM, device=DEVICE)
        seconds = timed({"this": lambda z=z: step(pair_losses()["this"], z)}, 3)["this"]
        extra = f"{elsewhere('memory', 'this', views):.0f} MiB" if DEVICE == "cpu" else ""
        print(f"{views:6d} views  {seconds:7.2f} s  {extra}  matrix {views**2 * 4 / 2**20:,.0f} MiB", flush=True)


def main() -> None:
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--only", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    DEVICE = arguments.device
    if arguments.only:
        action, *values = arguments.only
        print(json.dumps(memory(values[0], int(values[1])) if action == "memory" else times(int(values[0]))))
        return
    load = os.getloadavg()[0]
    print(f"torch {torch.__version__}, {DEVICE}, {torch.get_num_threads()} threads, load average {load:.1f} before")
    if load > 0.5:
        print("the machine is not idle: absolute times mean little, and short losses look slower than they are")
    if lightly() is None:
        print("lightly is not installed here: shown beside the dense form only (pip install lightly)")
    if not torch.cuda.is_available():
        print("no GPU at hand: --device cuda runs the walk on one, its blocks compiled; not measured here")
        if DEVICE != "cpu":
            return
    if DEVICE != "cpu":
        print(f"blocks are {'' if fused.compiled(torch.device(DEVICE)) else 'not '}compiled in the column 'this'")
    show_table()
    if DEVICE == "cpu":
        show_memory()
    show_queue()
    show_objectives()
    if arguments.curve:
        show_curve()


if __name__ == "__main__":
    main()
