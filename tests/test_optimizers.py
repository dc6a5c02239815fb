"""Optimizers against torch and the papers' formulas; the learning rate against its closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pipeline.optimizers import LARS, SGD, AdamW, Constant, Cosine, cosine


def module() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(16, 3)).double()


def gradients(net: nn.Module, step: int) -> None:
    random = torch.Generator().manual_seed(step)
    for weight in net.parameters():
        weight.grad = torch.randn(weight.shape, generator=random, dtype=torch.float64)


@given(steps=st.integers(1, 400), share=st.floats(0, 1, exclude_max=True))
def test_the_learning_rate_is_a_line_and_half_a_cosine(steps: int, share: float) -> None:
    warmup = int(share * steps)
    for step in range(steps):
        if step < warmup:
            expected = (step + 1) / warmup
        else:
            expected = math.cos(math.pi / 2 * (step - warmup) / (steps - warmup)) ** 2  # half-angle form
        assert cosine(step, steps, warmup) == pytest.approx(expected, abs=1e-12)


def test_the_peak_is_reached_when_the_warm_up_ends_and_never_passed() -> None:
    schedule = Cosine(kind="cosine", warmup_epochs=2)
    rates = [schedule.factor(step, 100, 10) for step in range(100)]
    assert rates[19] == rates[20] == 1.0
    assert max(rates) == 1.0
    assert min(rates) > 0
    assert rates[:20] == sorted(rates[:20])
    assert rates[20:] == sorted(rates[20:], reverse=True)


def test_torch_has_the_same_cosine() -> None:
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.7)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50)
    for step in range(50):
        assert optimizer.param_groups[0]["lr"] == pytest.approx(0.7 * cosine(step, 50, 0), abs=1e-12)
        optimizer.step()
        scheduler.step()


def test_half_an_epoch_of_warm_up_is_half_its_steps() -> None:
    assert [Cosine(kind="cosine", warmup_epochs=0.5).factor(step, 40, 8) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]


def test_a_constant_rate_is_constant() -> None:
    assert {Constant(kind="constant").factor(step, 100, 10) for step in range(100)} == {1.0}


@pytest.mark.parametrize(
    "optimizer",
    [
        AdamW(kind="adamw", learning_rate=0.1, weight_decay=0.5),
        SGD(kind="sgd", learning_rate=0.1, momentum=0.0, weight_decay=0.5),
        LARS(kind="lars", learning_rate=0.1, momentum=0.0, weight_decay=0.5, trust=0.01),
    ],
    ids=lambda each: each.kind,
)
def test_vectors_do_not_decay_and_matrices_do(optimizer: AdamW | SGD | LARS) -> None:
    net = module()
    before = {name: weight.detach().clone() for name, weight in net.named_parameters()}
    built = optimizer.build(net)
    for weight in net.parameters():
        weight.grad = torch.zeros_like(weight)
    built.step()
    for name, weight in net.named_parameters():
        assert torch.equal(weight, before[name]) == (weight.ndim < 2), name


def test_what_is_frozen_is_in_no_group() -> None:
    net = module()
    net[0].requires_grad_(False)
    built = AdamW(kind="adamw", learning_rate=0.1, weight_decay=0.5).build(net)
    known = {id(weight) for group in built.param_groups for weight in group["params"]}
    assert known == {id(weight) for weight in net.parameters() if weight.requires_grad}


def test_sgd_and_adamw_are_those_of_torch() -> None:
    for optimizer, own in (
        (AdamW(kind="adamw", learning_rate=0.01, weight_decay=0.2), lambda groups: torch.optim.AdamW(groups, lr=0.01)),
        (
            SGD(kind="sgd", learning_rate=0.01, momentum=0.9, weight_decay=0.2),
            lambda groups: torch.optim.SGD(groups, lr=0.01, momentum=0.9),
        ),
    ):
        first, second = module(), module()
        built = optimizer.build(first)
        groups = [
            {"params": [weight], "weight_decay": 0.2 if weight.ndim > 1 else 0.0} for weight in second.parameters()
        ]
        oracle = own(groups)
        for step in range(5):
            gradients(first, step)
            gradients(second, step)
            built.step()
            oracle.step()
        for mine, theirs in zip(first.parameters(), second.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)


def test_lars_steps_as_its_paper_says() -> None:
    """You, Gitman & Ginsburg 2017, algorithm 1: local rate = trust * |w| / (|g| + decay * |w|), then momentum."""
    rate, momentum, decay, trust = 0.3, 0.9, 0.01, 0.02
    net = module()
    built = LARS(kind="lars", learning_rate=rate, momentum=momentum, weight_decay=decay, trust=trust).build(net)
    expected = {name: weight.detach().numpy().copy() for name, weight in net.named_parameters()}
    speed = {name: np.zeros_like(value) for name, value in expected.items()}
    for step in range(4):
        gradients(net, step)
        for name, weight in net.named_parameters():
            gradient, value = weight.grad.numpy(), expected[name]  # type: ignore[union-attr]
            if value.ndim > 1:
                local = trust * np.linalg.norm(value) / (np.linalg.norm(gradient) + decay * np.linalg.norm(value))
                gradient = local * (gradient + decay * value)
            speed[name] = momentum * speed[name] + gradient
            expected[name] = value - rate * speed[name]
        built.step()
    for name, weight in net.named_parameters():
        np.testing.assert_allclose(weight.detach().numpy(), expected[name], rtol=1e-6, atol=1e-9)
