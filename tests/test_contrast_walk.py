"""The walk against the dense oracle, in value and in every gradient, over block sizes, relations, metrics, requests."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import DenseContrast, similarities

from pipeline.contrast import Candidates, Codes, Contrast, LogSumExp, Relation, Total, fused, relation, tiling
from pipeline.metrics import METRICS

pytestmark = pytest.mark.usefixtures("one_thread")

REQUESTS = {
    "one log-sum-exp": lambda side, bias: (LogSumExp("negatives"),),
    "over all candidates": lambda side, bias: (LogSumExp("candidates"),),
    "two scales": lambda side, bias: (LogSumExp("negatives", 1.5), LogSumExp("negatives", 0.5)),
    "scale zero": lambda side, bias: (LogSumExp("negatives", 0.0),),
    "positives and negatives": lambda side, bias: (
        LogSumExp("negatives"),
        LogSumExp("positives"),
        Total("identity", "positives"),
    ),
    "softplus": lambda side, bias: (Total("softplus", "negatives", -1.0, None, bias),),
    "hinge with a side": lambda side, bias: (Total("relu", "negatives", 1.0, side, 0.3),),
    "squared hinge": lambda side, bias: (Total("squared_relu", "negatives", 1.0, side, bias),),
    "everything": lambda side, bias: (
        Total("softplus", "candidates", 1.0, side, bias),
        LogSumExp("negatives"),
        Total("identity", "negatives", -1.0),
        Total("softplus", "positives", -1.0, side, bias),
    ),
}
BLOCKS = {"one block": tiling.CPU, "many blocks": tiling.Sizes(4, 6, 0), "ragged blocks": tiling.Sizes(5, 3, 0)}


def answers_and_gradients(contrast, requests, leaves, mixing):
    answers = contrast.walk(*requests)
    loss = sum(
        (torch.where(answer.isfinite(), answer, 0.0) * weight).sum()
        for answer, weight in zip(answers, mixing, strict=True)
    )
    loss = loss + 0 * leaves[0].sum()  # a count has no gradient at all
    return answers, torch.autograd.grad(loss, leaves, allow_unused=True)


def same(first, second, tolerance):
    first, second = (torch.zeros((), dtype=torch.float64) if value is None else value for value in (first, second))
    assert torch.allclose(first, second, rtol=tolerance, atol=tolerance), (first, second)


@pytest.mark.parametrize("listed", [True, False], ids=["listed pairs", "compared codes"])
@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("name", REQUESTS)
@settings(max_examples=max(settings.default.max_examples // 2, 1))
@given(
    seed=st.integers(0, 10**6),
    metric=st.sampled_from(sorted(METRICS)),
    temperature=st.sampled_from([1.0, 0.2, 0.001]),
    shape=st.sampled_from(["batch", "batch with offset", "towers", "queue", "batch and queue"]),
    pure=st.booleans(),
)
def test_every_answer_and_gradient_equals_the_dense_oracle(
    listed, blocks, name, seed, metric, temperature, shape, pure
):
    generator = torch.Generator().manual_seed(seed)

    def draw(*size):
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    count, width, dim = int(torch.randint(2, 14, (), generator=generator)), 11, 3
    temperature = torch.tensor(temperature, dtype=torch.float64, requires_grad=True)
    anchors, others = draw(count, dim).requires_grad_(), draw(width, dim).requires_grad_()
    queue = draw(7, dim)
    side, bias = draw(count).requires_grad_(), draw(()).requires_grad_()
    offset = draw(count if shape.startswith("batch") else width).requires_grad_()

    def codes(first, second=None):
        low = torch.randint(0, 4, (first,), generator=generator)
        return Codes(low, low if second is None else torch.randint(0, 4, (second,), generator=generator))

    row = torch.arange(count)
    fresh = Codes(-1 - row, torch.arange(width))
    in_batch = Relation(Codes(row, row), codes(count), codes(count) if seed % 2 else None)
    in_queue = Relation(Codes(-1 - row, torch.arange(7)), codes(count, 7), codes(count, 7))
    leaves = [anchors, temperature, side, bias]
    parts = [Candidates(None, in_batch)]
    if shape == "batch with offset":
        parts = [Candidates(None, in_batch, offset)]
    elif shape == "towers":
        parts = [Candidates(others, Relation(fresh, codes(count, width)), offset)]
    elif shape == "queue":
        parts, leaves = [Candidates(queue, in_queue)], [anchors, side, bias]
        temperature = temperature.detach()
    elif shape == "batch and queue":
        parts.append(Candidates(queue, in_queue))
    leaves += [others, offset]
    masks = [part.relation.tile(slice(None), slice(None)) for part in parts]
    dense = DenseContrast(
        torch.cat([similarities(anchors, anchors if p.vectors is None else p.vectors, metric) for p in parts], 1),
        torch.cat([mask[0] for mask in masks], 1),
        torch.cat([mask[1] for mask in masks], 1),
        temperature,
        None if parts[0].offset is None else offset,
    )
    requests = REQUESTS[name](side, bias)
    mixing = [draw(count) for _ in requests]
    expected, expected_gradients = answers_and_gradients(dense, requests, leaves, mixing)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiling, "CPU", BLOCKS[blocks])
        if pure:  # the functions that a GPU compiles, as they are
            patch.setattr(fused, "compiled", lambda device: True)
            patch.setattr(fused, "call", lambda function: function)
        patch.setattr(relation, "PAIRS_PER_ROW", 100 if listed else -1)
        first, *further = [
            Candidates(p.vectors, Relation(p.relation.own, p.relation.group, p.relation.barred), p.offset)
            for p in parts
        ]
        contrast = Contrast.of(
            anchors,
            first.relation,
            metric=metric,
            temperature=temperature,
            candidates=first.vectors,
            offset=first.offset,
            further=further,
        )
        found, gradients = answers_and_gradients(contrast, requests, leaves, mixing)
        for over in ("positives", "negatives", "candidates"):
            assert torch.equal(contrast.count(over), dense.count(over))
    for one, other in zip(found, expected, strict=True):
        same(one, other, 1e-10)
    for one, other in zip(gradients, expected_gradients, strict=True):
        same(one, other, 1e-9)
