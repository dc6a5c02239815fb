"""Numbers worked out by hand, each against the code that a training loop calls."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from pipeline.contrast import Codes, Contrast, Relation, mean_terms
from pipeline.objectives import ClassPrior, Debiased, class_prior, info_nce, information_bound, nt_xent
from pipeline.objectives.nt_xent import nt_xent_terms
from pipeline.samplers import InBatch
from pipeline.spec import Refusal

DOUBLE = torch.float64


def one_anchor(logits, positive=0, temperature=1.0):
    """A contrast of one anchor whose similarities are given: dot products with the rows of an identity."""
    values = torch.as_tensor(logits, dtype=DOUBLE)
    candidate = torch.eye(len(values), dtype=DOUBLE)
    row = torch.arange(len(values))
    relation = Relation(Codes(torch.tensor([-1]), row), Codes(torch.tensor([positive]), row))
    anchor = values[None].clone().requires_grad_()
    contrast = Contrast.of(anchor, relation, metric="dot", temperature=temperature, candidates=candidate)
    return anchor, mean_terms(nt_xent_terms(contrast))


def gradient_of(logits, positive=0, temperature=1.0):
    """d loss / d similarity, which for orthonormal candidates is d loss / d anchor."""
    anchor, loss = one_anchor(logits, positive, temperature)
    loss.backward()
    return anchor.grad[0]


def in_batch(samples):
    columns = {"sample": torch.arange(samples).repeat_interleave(2), "view": torch.arange(2).repeat(samples)}
    z = torch.randn(2 * samples, 4, dtype=DOUBLE)
    return InBatch(kind="in_batch").contrast(z, columns, "cosine", 0.5, "l2")


def test_three_samples_have_four_negatives_an_anchor_and_six_directional_losses():
    contrast = in_batch(3)
    listed = contrast.parts[0].relation.listed
    assert list(zip(*(side.tolist() for side in listed.positive), strict=True)) == [
        (0, 1),
        (1, 0),
        (2, 3),
        (3, 2),
        (4, 5),
        (5, 4),
    ]
    assert contrast.count("negatives").tolist() == [4] * 6
    assert nt_xent_terms(contrast)[0].values.shape == (6,)


def test_logits_two_one_zero_cost_0_407606_and_the_same_after_subtracting_two():
    for shift in (0, 2):
        _, loss = one_anchor([2.0 - shift, 1.0 - shift, 0.0 - shift])
        assert loss.item() == pytest.approx(0.407606, abs=5e-7)
        assert math.exp(-loss.item()) == pytest.approx(0.665241, abs=5e-7)


def test_loss_one_among_eight_candidates_bounds_the_information_by_1_079442():
    assert information_bound(1.0, 8) == pytest.approx(1.079442, abs=5e-7)


def test_similarity_0_7_against_126_of_0_2_at_temperature_0_1():
    logits = [0.7] + [0.2] * 126  # 64 samples: 2 * 64 - 2 negatives
    _, loss = one_anchor(logits, temperature=0.1)
    assert math.exp((0.7 - 0.2) / 0.1) == pytest.approx(148.4132, abs=5e-5)
    assert math.exp(-loss.item()) == pytest.approx(0.540838, abs=5e-7)
    assert loss.item() == pytest.approx(0.614635, abs=5e-7)
    slope = gradient_of(logits, temperature=0.1)
    assert slope[0].item() == pytest.approx(-4.591617, abs=5e-7)
    assert slope[1:].tolist() == pytest.approx([0.036441] * 126, abs=5e-7)


def test_gradient_at_probability_0_8_is_minus_one_and_doubles_at_half_the_temperature():
    probabilities = [0.8, 0.1, 0.1]
    for temperature, times in ((0.2, 1), (0.1, 2)):
        logits = [temperature * math.log(p) for p in probabilities]
        slope = gradient_of(logits, temperature=temperature)
        assert slope.tolist() == pytest.approx([-1.0 * times, 0.5 * times, 0.5 * times])


def test_gradient_at_probability_0_6_is_minus_two_and_four_times_a_half():
    logits = [0.2 * math.log(p) for p in (0.6, 0.1, 0.1, 0.1, 0.1)]
    assert gradient_of(logits, temperature=0.2).tolist() == pytest.approx([-2.0, 0.5, 0.5, 0.5, 0.5])


def test_the_denominator_of_anchor_0_of_two_samples_has_candidates_1_2_3():
    contrast = in_batch(2)
    positive, negative = contrast.parts[0].relation.tile(slice(0, 1), slice(None))
    assert (positive | negative)[0].nonzero().flatten().tolist() == [1, 2, 3]


def test_four_samples_have_64_entries_56_logits_8_positives_48_negatives():
    contrast = in_batch(4)
    assert len(contrast.anchors) ** 2 == 64
    totals = {over: int(contrast.count(over).sum()) for over in ("candidates", "positives", "negatives")}
    assert totals == {"candidates": 56, "positives": 8, "negatives": 48}


@pytest.mark.parametrize(
    ("samples", "entries", "float32_mebibytes", "float16_mebibytes"),
    [(4096, 67_108_864, 256, 128), (1024, 4_194_304, 16, 8)],
)
def test_the_matrix_that_is_never_made(samples, entries, float32_mebibytes, float16_mebibytes):
    views = 2 * samples
    assert views**2 == entries
    assert entries * torch.finfo(torch.float32).bits // 8 == float32_mebibytes * 2**20
    assert entries * torch.finfo(torch.float16).bits // 8 == float16_mebibytes * 2**20
    assert 2 * views**2 == 8 * samples**2  # multiplications and additions of the product, a dimension


def test_eight_ranks_of_256_samples_gather_half_a_million_numbers():
    gathered = torch.zeros(8 * 256 * 2, 128, dtype=torch.float16)
    assert gathered.numel() == 524_288
    assert gathered.numel() * gathered.element_size() == 2**20


def test_a_head_from_2048_to_128():
    head = nn.Linear(2048, 128)
    assert (head.weight.numel(), head.bias.numel()) == (2048 * 128, 128)


VECTORS = torch.tensor([[1.0, 0.0], [0.8, 0.6], [-1.0, 0.0], [-0.8, -0.6]], dtype=DOUBLE)


def directional(anchor, positive, temperature=0.1):
    """The loss of one anchor of VECTORS against the other three, ``positive`` being called its positive."""
    others = [row for row in range(4) if row != anchor]
    queries, candidates = VECTORS[anchor : anchor + 1], VECTORS[others]
    row = torch.arange(3)
    relation = Relation(Codes(torch.tensor([-1]), row), Codes(torch.tensor([others.index(positive)]), row))
    contrast = Contrast.of(queries, relation, temperature=temperature, candidates=candidates)
    return mean_terms(nt_xent_terms(contrast)).item()


def test_four_vectors_on_the_circle():
    assert (VECTORS[0] @ VECTORS.T).tolist() == pytest.approx([1, 0.8, -1, -0.8])
    assert (VECTORS[0] @ VECTORS[1:].T / 0.1).tolist() == pytest.approx([8, -10, -8])
    pair = (directional(0, 1) + directional(1, 0)) / 2
    assert pair == pytest.approx(1.27765146e-07, rel=1e-8)
    assert directional(0, 2) == pytest.approx(18.000000128, abs=5e-10)
    four = [directional(0, 1), directional(1, 0), directional(2, 3), directional(3, 2)]
    assert nt_xent(VECTORS, 0.1).item() == pytest.approx(sum(four) / 4, rel=1e-10)


@pytest.mark.parametrize(
    ("shares", "collision", "negatives", "false_negatives"),
    [
        ([0.1] * 10, 0.1, 126, 12.6),
        ([0.25] * 4, 0.25, 30, 7.5),
        ([0.5, 0.25, 0.25], 0.375, None, None),
        ([1 / 3] * 3, 1 / 3, None, None),
    ],
)
def test_expected_false_negatives_are_the_collision_probability_of_the_classes(
    shares, collision, negatives, false_negatives
):
    assert sum(share**2 for share in shares) == pytest.approx(collision)
    if negatives is None:
        return
    per_class = 20
    samples = torch.arange(len(shares)).repeat_interleave(per_class)  # balanced classes
    same = (samples[:, None] == samples[None]).double().mean().item()
    assert negatives * same == pytest.approx(false_negatives)


def test_temperature_scales_the_gradient_and_sharpens_the_weights():
    """Its two effects: 1 / tau in front, and softmax weights that lean to the nearest negative."""
    logits = [0.9, 0.5, 0.1]
    for warm, cold in ((1.0, 0.5), (0.5, 0.1)):
        slopes = {t: gradient_of(logits, temperature=t) for t in (warm, cold)}
        shares = {t: slope[1:] / slope[1:].sum() for t, slope in slopes.items()}
        assert shares[cold][0] > shares[warm][0] > 0.5
    equal = {t: gradient_of([0.3, 0.3, 0.3], temperature=t) for t in (0.5, 0.1)}  # no sharpening to be had
    assert torch.allclose(equal[0.1], equal[0.5] * 5)


def test_both_directions_are_counted():
    z = torch.randn(8, 5, dtype=DOUBLE)
    first, second = z[0::2], z[1::2]
    losses = []
    for own, other in ((first, second), (second, first)):
        for i in range(4):
            rest = torch.cat([own[:i], own[i + 1 :], other[:i], other[i + 1 :]])
            losses.append(info_nce(own[i : i + 1], other[i : i + 1], 0.2, rest))
    assert torch.allclose(nt_xent(z, 0.2), torch.stack(losses).mean())


def test_value_and_gradient_are_right_at_temperature_0_005():
    z = torch.randn(16, 8)
    z = (z[::2].repeat_interleave(2, 0) + 0.1 * z).requires_grad_()
    loss = nt_xent(z, 0.005)
    loss.backward()
    wide = z.detach().double().requires_grad_()
    unit = wide / wide.norm(dim=1, keepdim=True)
    logits = (unit @ unit.T / 0.005).masked_fill(torch.eye(16, dtype=torch.bool), -math.inf)
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(16) ^ 1)
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-3, abs=2e-4)
    assert (z.grad.double() - wide.grad).norm() < 1e-3 * wide.grad.norm() + 2e-4


def test_a_prior_of_classes_is_the_sum_of_their_squared_shares():
    assert class_prior([5] * 10) == pytest.approx(0.1)
    assert class_prior([1, 2, 3]) == pytest.approx((1 + 4 + 9) / 36)
    assert class_prior([7]) == 1
    unread = Debiased(kind="debiased", prior=ClassPrior(column="shape"))
    row = torch.arange(4)
    contrast = Contrast.of(torch.randn(4, 2), Relation(Codes(row, row), Codes(row // 2, row // 2)), temperature=0.2)
    with pytest.raises(Refusal, match="not read from the data yet"):
        unread.terms(contrast)
