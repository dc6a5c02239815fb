"""The batch at which a run diverged, once more: the same samples, views and weights, looked at one sample at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load

from pipeline.batches import Batches, settled
from pipeline.checkpoint import read_checkpoint, write_checkpoint
from pipeline.divergence import Diverged, check_gradient
from pipeline.groups import Division, Statistics
from pipeline.machine import Machine, settle
from pipeline.pictures import views_picture
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.spec import Refusal
from pipeline.step import Stepper
from pipeline.training import in_precision, start_network, start_state, to_training_mode
from pipeline.training_section import Training

SHOWN = 16
"""Samples that are drawn."""


def record(diverged: Diverged, folder: Path) -> None:
    """Keep what a replay needs: which batch it was, and the state before its step."""
    if diverged.state is not None:
        write_checkpoint(folder / "diverged", diverged.step, diverged.state.tensors())
    told = {"what": diverged.what, "step": diverged.step, "epoch": diverged.epoch}
    text = json.dumps({**told, "samples": diverged.samples, "batch": diverged.batch}, indent=1)
    (folder / "diverged.json").write_text(text + "\n", encoding="utf-8")


def replayed(space: LatentSpace, training: Training, shards: Shards, machine: Machine, folder: Path) -> Iterator[str]:
    """Yield what there is to say of the batch and of each of its samples; draw its views.

    Raises:
        Refusal: no run of this spec has diverged, or another network did.
    """
    from accelerate import Accelerator

    try:
        told = json.loads((folder / "diverged.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise Refusal(f"{folder / 'diverged.json'}: not there; no run of this spec has diverged") from None
    kept = read_checkpoint(folder / "diverged")
    space = settled(space, shards.card)
    network = start_network(space, training, shards.card.mean, shards.card.std)
    state = start_state(space, training, network)
    try:
        state.restore(load(kept or b""))
    except Exception as error:
        words = str(error).splitlines()[0]
        raise Refusal(f"{folder / 'diverged'}: not the state of this spec's network ({words})") from None

    settle(machine)
    device = machine.chosen_device()
    accelerator = Accelerator(cpu=device == "cpu", mixed_precision="bf16" if training.precision == "bf16" else "no")
    network.to(device)
    model, target = in_precision(accelerator, state)
    to_training_mode(state)
    samples = np.array(told["batch"])
    batches = Batches(space, training.global_batch, training.epochs, training.seed, shards, machine)
    batch = batches.batch(told["step"], told["epoch"], samples, batches.loader.views(told["epoch"], samples))
    yield f"{told['what']}; once more, on one process:"
    bad = set(told["samples"])
    shown = [place for place, sample in enumerate(told["batch"]) if sample in bad or not bad][:SHOWN]
    with torch.no_grad():
        h, z = model(batch.passes[0])
    for place in shown:
        both = [2 * place, 2 * place + 1]
        views = batch.passes[0][both]
        sizes = f"|h| {float(h[both].float().norm()):.4g}, |z| {float(z[both].float().norm()):.4g}"
        pixels = f"pixels {float(views.min()):.3g} to {float(views.max()):.3g}, mean {float(views.mean()):.3g}"
        yield f"  sample {told['batch'][place]}: {pixels}; {sizes}"
    picture = folder / "diverged.png"
    rows = [row for place in shown for row in (2 * place, 2 * place + 1)]
    views_picture(shards.card.input.pictures(batch.passes[0][rows].cpu()), picture)
    try:
        division = Division.of(len(samples), 0, training.norm_group, machine.micro_batch)
        stepper = Stepper(space, training.seed, division, model, target)
        found = stepper.differentiate(state, batch, Statistics(network))
        check_gradient(network, batch)
        yield f"  the loss is {found.value:.6g} and every gradient finite: it does not diverge on this machine"
    except Diverged as again:
        yield f"  again: {again.what}"
    yield f"  its views: {picture}"
