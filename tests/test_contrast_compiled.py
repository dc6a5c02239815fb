"""The compiled blocks against the dense oracle, in value and gradient: on the CPU where a C++ compiler is, on a GPU."""

from __future__ import annotations

import os
import shutil
import warnings

import pytest
import torch
from oracle import DenseContrast, similarities
from torch._dynamo.testing import CompileCounter

from pipeline.contrast import Candidates, Codes, Contrast, LogSumExp, Relation, Total, fused, tiling

CXX = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
DEVICES = [
    pytest.param("cpu", marks=pytest.mark.skipif(CXX is None, reason="no C++ compiler, so that nothing compiles")),
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU at hand")),
]
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 1e-2}
CASES = {  # shape, requests, metric, temperature, input type
    "batch": ("batch", "log-sum-exp", "cosine", 0.2, torch.float32),
    "batch, half type": ("batch", "log-sum-exp", "cosine", 0.1, torch.bfloat16),
    "batch, running maximum": ("batch", "two scales", "cosine", 0.004, torch.float32),
    "towers, running maximum": ("towers", "log-sum-exp", "dot", 0.003, torch.float32),
    "batch, distances": ("batch", "two scales", "euclidean", 1.0, torch.float64),
    "queue": ("queue", "log-sum-exp", "cosine", 0.2, torch.float32),
    "batch, totals": ("batch", "totals", "dot", 0.7, torch.float32),
    "towers, totals": ("towers", "totals", "squared_euclidean", 1.0, torch.float64),
}

ON_CPU = {"batch", "batch, half type", "batch, running maximum", "queue", "towers, totals"}
"""Compiled on a CPU too, which takes seconds each; all requests and metrics run uncompiled in test_contrast_walk."""
MANY, ONE = tiling.Sizes(8, 12, 0), tiling.Sizes(64, 64, 4096)


@pytest.fixture
def compiling(monkeypatch):
    monkeypatch.setattr(fused, "MODE", "always")
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"torch\..*")  # the compiler's own
        yield


def case(name, device, dtype, exact):
    """Leaves, contrast and requests; ``exact``: the dense oracle in float64 on the CPU, of the same rounded inputs."""
    shape, asked, metric, temperature, rounded = CASES[name]
    generator = torch.Generator().manual_seed(7)
    count, width = (29, 29) if shape == "batch" else (13, 31)

    def draw(*size):
        return torch.randn(*size, generator=generator, dtype=torch.float64).to(rounded).to(device, dtype)

    anchors, others, side, bias, offset = draw(count, 5), draw(width, 5), draw(count), draw(()), draw(width)
    leaves = [leaf.requires_grad_() for leaf in (anchors, others, side, bias, offset)]
    group = torch.randint(0, 9, (count,), generator=generator).to(device)
    theirs = torch.randint(0, 9, (width,), generator=generator).to(device)
    row, column = (torch.arange(size, device=device) for size in (count, width))
    relation = Relation(Codes(-1 - row, column), Codes(group, theirs), Codes(row % 5, column % 7))
    part = Candidates(others if shape == "towers" else others.detach(), relation, None if shape == "queue" else offset)
    if shape == "batch":
        part = Candidates(None, Relation(Codes(row, row), Codes(group, group)))
    requests = {
        "log-sum-exp": [LogSumExp("negatives")],
        "two scales": [LogSumExp("candidates", 1.5), LogSumExp("negatives", 0.5)],
        "totals": [Total("softplus", "negatives", -1.0, side, bias), Total("squared_relu", "candidates", 1.0, None)],
    }[asked]
    if not exact:
        contrast = Contrast.of(
            anchors,
            part.relation,
            metric=metric,
            temperature=temperature,
            candidates=part.vectors,
            offset=part.offset,
        )
        return leaves, contrast, requests
    similarity = similarities(anchors, anchors if part.vectors is None else part.vectors, metric)
    masks = part.relation.tile(slice(None), slice(None))
    tau = torch.tensor(temperature, dtype=torch.float64)
    return leaves, DenseContrast(similarity, *masks, tau, part.offset, metric), requests


def outcome(name, device, dtype, exact=False):
    leaves, contrast, requests = case(name, device, dtype, exact)
    answers = [torch.where(answer.isfinite(), answer, 0.0) for answer in contrast.walk(*requests)]
    weights = torch.linspace(0.2, 1.7, len(answers[0]), device=device, dtype=answers[0].dtype)
    loss = sum((answer * weights).sum() for answer in answers) + 0 * sum(leaf.sum() for leaf in leaves)
    return [*answers, *torch.autograd.grad(loss, leaves)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_compiled_blocks_equal_the_dense_oracle(name, device, compiling, monkeypatch):
    if device == "cpu" and name not in ON_CPU:
        pytest.skip("on a GPU only: a minute of compilation on a CPU")
    dtype = CASES[name][4]
    used = []
    call = fused.call
    monkeypatch.setattr(fused, "call", lambda function: used.append(function) or call(function))
    expected = outcome(name, "cpu", torch.float64, exact=True)
    for sizes in (MANY,) if device == "cpu" and name != "batch" else (MANY, ONE):
        monkeypatch.setattr(tiling, "CPU", sizes)
        monkeypatch.setattr(tiling, "ACCELERATOR", sizes)
        for found, wanted in zip(outcome(name, device, dtype), expected, strict=True):
            error = float((found.detach().double().cpu() - wanted.detach()).norm())
            assert error <= TOLERANCE[dtype] * max(float(wanted.detach().norm()), 1e-2), (found, wanted)
    assert used


def test_further_batch_sizes_compile_nothing_again(monkeypatch):
    counter = CompileCounter()
    forms = {}

    def call(function):
        return forms.setdefault(function, torch.compile(function, dynamic=True, backend=counter))

    torch._dynamo.reset()
    monkeypatch.setattr(fused, "compiled", lambda device: True)
    monkeypatch.setattr(fused, "call", call)
    monkeypatch.setattr(tiling, "CPU", MANY)
    counts = []
    for size in (26, 30, 44, 62, 90):  # blocks one row or column wide are forms of their own
        z = torch.randn(size, 6, requires_grad=True)
        row = torch.arange(size)
        contrast = Contrast.of(z, Relation(Codes(row, row), Codes(row // 2, row // 2)), temperature=0.1)
        contrast.logsumexp("negatives").sum().backward()
        counts.append(counter.frame_count)
    assert counts[0] <= 6
    assert len(set(counts[1:])) == 1, counts


def test_the_switch_is_on_for_gpus_only():
    assert fused.MODE == "auto"
    assert not fused.compiled(torch.device("cpu"))


def test_without_a_compiler_one_warning_is_given_and_the_walk_goes_on(monkeypatch):
    def broken(function):
        raise RuntimeError("no compiler here")

    expected = outcome("batch", "cpu", torch.float32)
    monkeypatch.setattr(fused, "MODE", "always")
    monkeypatch.setattr(fused, "call", broken)
    fused._works.cache_clear()
    try:
        with pytest.warns(UserWarning, match="uncompiled on cpu.*no compiler here"):
            found = outcome("batch", "cpu", torch.float32)
        outcome("batch", "cpu", torch.float32)  # no second warning, which would be an error
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    finally:
        fused._works.cache_clear()
