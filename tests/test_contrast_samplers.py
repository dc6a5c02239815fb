"""Samplers: columns decide, never storage order; ranks, towers and queues are the same thing with other candidates."""

from __future__ import annotations

import math

import pytest
import torch
from oracle import DenseContrast, similarities

from pipeline.contrast import Candidates, Codes, Contrast, LogSumExp, Relation, mean_terms, relation, tiling
from pipeline.objectives import NTXent, info_nce, nt_xent
from pipeline.samplers import InBatch, SameLabel

pytestmark = pytest.mark.usefixtures("one_thread")
DOUBLE = torch.float64
OBJECTIVE = NTXent(kind="nt_xent")
SAMPLER = InBatch(kind="in_batch")


def batch(samples=6, dim=4):
    z = torch.randn(2 * samples, dim, dtype=DOUBLE)
    return z, {"sample": torch.arange(samples).repeat_interleave(2), "view": torch.arange(2).repeat(samples)}


def test_in_batch_equals_the_plain_function_of_pair_order():
    z, columns = batch()
    assert torch.allclose(
        mean_terms(OBJECTIVE.terms(SAMPLER.contrast(z, columns, "cosine", 0.3, "l2"))), nt_xent(z, 0.3)
    )


@pytest.mark.parametrize("ranks", [2, 3])
def test_local_anchors_against_global_candidates_add_up_to_the_whole_batch(ranks):
    z, columns = batch()
    z.requires_grad_()
    whole = nt_xent(z, 0.3)
    (expected,) = torch.autograd.grad(whole, z)
    total, count = torch.zeros((), dtype=DOUBLE), 0
    for part in torch.arange(len(z)).chunk(ranks):
        own = {name: values[part] for name, values in columns.items()}
        contrast = SAMPLER.contrast(z[part], own, "cosine", 0.3, "l2", z, columns)
        (term,) = OBJECTIVE.terms(contrast)
        assert contrast.count("negatives").tolist() == [len(z) - 2] * len(part)
        total, count = total + term.values.sum(), count + int(term.counted.sum())
    (found,) = torch.autograd.grad(total / count, z)
    assert torch.allclose(total / count, whole)
    assert torch.allclose(found, expected)


def test_multi_crop_has_as_many_positives_as_further_views():
    z = torch.randn(12, 3, dtype=DOUBLE)
    columns = {"sample": torch.arange(12) % 3, "view": torch.arange(12) // 3}
    contrast = SAMPLER.contrast(z, columns, "cosine", 0.3, "l2")
    assert contrast.count("positives").tolist() == [3] * 12
    assert contrast.count("negatives").tolist() == [8] * 12


def test_same_label_takes_the_class_for_positives():
    z, columns = batch()
    columns["label"] = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2])
    contrast = SameLabel(kind="same_label", column="label").contrast(z, columns, "cosine", 0.3, "l2")
    assert contrast.count("positives").tolist() == [5] * 6 + [3] * 4 + [1] * 2


def test_a_stale_key_of_the_same_sample_is_neither_positive_nor_negative():
    z, columns = batch(4)
    queue = torch.randn(5, 4, dtype=DOUBLE)
    stale = torch.tensor([0, 9, 2, 9, 9])
    row = torch.arange(len(z))
    of_batch = Relation(Codes(row, row), Codes(columns["sample"], columns["sample"]))
    none = Codes(-1 - row, torch.arange(5))
    of_queue = Relation(none, none, Codes(columns["sample"], stale))
    contrast = Contrast.of(z, of_batch, temperature=0.2, further=[Candidates(queue, of_queue)])
    assert contrast.count("negatives").tolist() == [6 + 4, 6 + 4, 6 + 5, 6 + 5, 6 + 4, 6 + 4, 6 + 5, 6 + 5]
    assert contrast.count("positives").tolist() == [1] * 8


@pytest.mark.parametrize("temperature", [0.2, 0.0005])
def test_a_queue_without_gradient_equals_a_cross_entropy_over_everything(temperature):
    queries, keys = torch.randn(6, 5, dtype=DOUBLE).requires_grad_(), torch.randn(6, 5, dtype=DOUBLE).requires_grad_()
    queue = torch.randn(40, 5, dtype=DOUBLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiling, "CPU", tiling.Sizes(4, 7, 0))
        found = info_nce(queries, keys, temperature, queue)
        gradients = torch.autograd.grad(found, [queries, keys])
    everything = torch.cat([keys, queue])
    logits = torch.nn.functional.normalize(queries) @ torch.nn.functional.normalize(everything).T / temperature
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(6))
    assert torch.allclose(found, expected)
    for one, other in zip(gradients, torch.autograd.grad(expected, [queries, keys]), strict=True):
        assert torch.allclose(one, other, atol=1e-9)


def test_half_queries_meet_a_single_precision_queue():
    queries, keys = torch.randn(6, 5).bfloat16(), torch.randn(6, 5).bfloat16()
    assert info_nce(queries, keys, 0.2, torch.randn(9, 5)).dtype == torch.float32


def test_autocast_does_not_reach_the_logits():
    z = torch.randn(32, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = nt_xent(z, 0.01)
    assert torch.equal(inside, nt_xent(z, 0.01))


def test_a_second_backward_pass_gives_the_same_gradient():
    z, _ = batch()
    z.requires_grad_()
    loss = nt_xent(z, 0.3)
    first, second = (torch.autograd.grad(loss, z, retain_graph=True)[0] for _ in range(2))
    assert torch.allclose(first, second)


def test_a_vector_changed_in_place_between_the_passes_is_noticed():
    z = torch.randn(8, 4, requires_grad=True)
    vectors = z * 1.0
    row = torch.arange(8)
    contrast = Contrast.of(vectors, Relation(Codes(row, row), Codes(row // 2, row // 2)), metric="dot")
    loss = contrast.logsumexp("negatives").sum()
    with torch.no_grad():
        vectors.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("listed", [100, -1])
def test_top_finds_the_nearest_negatives_in_order(listed):
    z, columns = batch(8)
    queue = torch.randn(5, 4, dtype=DOUBLE)
    row = torch.arange(len(z))
    none = Codes(-1 - row, torch.arange(5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiling, "CPU", tiling.Sizes(3, 4, 0))
        patch.setattr(relation, "PAIRS_PER_ROW", listed)
        contrast = Contrast.of(
            z,
            Relation(Codes(row, row), Codes(columns["sample"], columns["sample"])),
            metric="squared_euclidean",
            temperature=0.5,
            further=[Candidates(queue, Relation(none, none))],
        )
        logits, where = contrast.top(30)
    everything = similarities(z, torch.cat([z, queue]), "squared_euclidean") / 0.5
    same = torch.cat([columns["sample"][:, None] == columns["sample"][None], torch.zeros(16, 5, dtype=torch.bool)], 1)
    expected, order = everything.masked_fill(same, -math.inf).sort(dim=1, descending=True)
    assert torch.allclose(logits[:, :19], expected[:, :19])
    assert torch.equal(where[:, :19], order[:, :19])
    assert (logits[:, 19:] == -math.inf).all()
    assert (where[:, 19:] == -1).all()


@pytest.mark.parametrize("metric", ["euclidean", "squared_euclidean"])
def test_near_duplicates_keep_their_digits(metric):
    """Vectors a thousand lengths from the origin, a hundredth apart: the product alone has no digit left."""
    z = 1000 + 0.01 * torch.randn(12, 8)
    z[4] = z[3]
    row = torch.arange(12)
    wide = z.double().requires_grad_()
    z.requires_grad_()
    contrast = Contrast.of(z, Relation(Codes(row, row), Codes(row // 2, row // 2)), metric=metric, temperature=0.01)
    (found,) = contrast.walk(LogSumExp("negatives"))
    same = row[:, None] // 2 == row[None] // 2
    dense = DenseContrast(similarities(wide, wide, metric), same, ~same, 0.01)
    expected = dense.logsumexp("negatives")
    assert torch.allclose(found.double(), expected, rtol=1e-5)
    one, other = torch.autograd.grad(found.sum(), z)[0], torch.autograd.grad(expected.sum(), wide)[0]
    assert (one.double() - other).norm() < 1e-3 * other.norm()


def test_memory_is_linear_in_the_views():
    """No tensor of the walk is as large as a hundredth of the matrix would be."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        size = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for each in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(each, torch.Tensor):
                    self.size = max(self.size, each.untyped_storage().nbytes() // 4)
            return result

    z = torch.randn(8192, 16, requires_grad=True)
    with Largest() as largest:
        nt_xent(z, 0.1).backward()
    assert largest.size <= 512 * 1024
    assert largest.size * 100 < 8192**2
