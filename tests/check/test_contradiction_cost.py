"""check: what a declaration contradicts, and what a batch costs, in counted numbers."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small import CHECK, space
from torch import nn

from pipeline.check import Check, Finding, contradictions, cost, gate, unused_acceptances
from pipeline.projections import LinearProjection, MLPProjection, NoProjection
from pipeline.spec import parse

GRAYSCALE = {"kind": "grayscale", "probability": 0.2}
ROTATION = {"kind": "rotation", "degrees": 15}


def found(preserves: list[str], *accept: dict[str, str], invariances: tuple[Any, ...] = (GRAYSCALE,)) -> list[Finding]:
    check = parse({**CHECK, "accept": list(accept)}, Check, "x.yaml")
    return list(contradictions(space(invariances=list(invariances), preserves=preserves), check))


def accepted(invariance: str, preserved: str, reason: str = "colour is a stain here") -> dict[str, str]:
    return {"finding": "contradiction", "invariance": invariance, "preserved": preserved, "reason": reason}


def test_grayscale_contradicts_a_preserved_hue() -> None:
    (finding,) = found(["shape", "hue"])
    assert (finding.invariance, finding.preserved, finding.verdict) == ("grayscale", "hue", "fail")
    assert finding.sentence == "grayscale removes hue, which preserves says must stay readable"
    assert gate([finding]) == "fail"


@pytest.mark.parametrize(
    ("invariance", "column", "factor"),
    [
        (GRAYSCALE, "colour", "hue"),
        (ROTATION, "rotation", "orientation"),
        (ROTATION, "angle", "orientation"),
        ({"kind": "shift", "pixels": 2}, "x", "position"),
        ({"kind": "horizontal_flip", "probability": 0.5}, "handedness", "chirality"),
    ],
)
def test_a_label_column_that_is_another_word_for_a_factor_is_recognised(
    invariance: dict[str, Any], column: str, factor: str
) -> None:
    (finding,) = found([column], invariances=(invariance,))
    assert finding.verdict == "fail"
    assert f"removes {factor}, that is {column}," in finding.sentence


def test_nothing_contradicts_where_the_factors_are_others() -> None:
    assert found(["shape", "position"]) == []
    assert found([]) == []
    assert gate([]) == "pass"


def test_every_invariance_that_removes_it_is_told() -> None:
    hue = {"kind": "hue", "amount": 0.1, "probability": 1.0}
    findings = found(["hue"], invariances=(GRAYSCALE, ROTATION, hue))
    assert [finding.invariance for finding in findings] == ["grayscale", "hue"]


def test_an_accepted_contradiction_keeps_its_reason_and_opens_the_gate() -> None:
    (finding,) = found(["hue"], accepted("grayscale", "hue"))
    assert finding.verdict == "accepted"
    assert finding.sentence.endswith("; accepted: colour is a stain here")
    assert gate([finding]) == "accepted"


def test_accepting_one_contradiction_accepts_no_other() -> None:
    findings = found(["hue", "saturation"], accepted("grayscale", "hue"))
    assert {finding.preserved: finding.verdict for finding in findings} == {"hue": "accepted", "saturation": "fail"}
    assert gate(findings) == "fail"


def test_an_acceptance_of_nothing_is_refused() -> None:
    check = parse({**CHECK, "accept": [accepted("grayscale", "hue"), accepted("rotation", "hue")]}, Check, "x.yaml")
    rules = list(unused_acceptances(space(invariances=[GRAYSCALE, ROTATION], preserves=["hue"]), check))
    assert rules == [("accept[1]", "rotation does not remove hue, so nothing would be accepted; take it out")]


# -- cost: every number is counted by hand or by a loop over pairs -----------------------------------------------------


def test_three_samples_have_six_directional_losses_with_four_negatives_each() -> None:
    counts = cost(3, 2)
    assert (counts["views"], counts["positives"], counts["negatives_per_anchor"], counts["candidates"]) == (6, 6, 4, 5)


def test_four_samples() -> None:
    counts = cost(4, 2)
    assert (counts["matrix_entries"], counts["logits"], counts["positives"], counts["negatives"]) == (64, 56, 8, 48)


def test_4096_samples_cost_what_is_written() -> None:
    counts = cost(4096, 128)
    assert counts["matrix_entries"] == 67_108_864
    assert counts["matrix_bytes"] == {"float32": 256 * 2**20, "float16": 128 * 2**20}
    assert counts["product_operations"] == 8 * 4096**2 * 128


def test_1024_samples_fill_16_mebibytes() -> None:
    assert cost(1024, 128)["matrix_bytes"]["float32"] == 16 * 2**20


def test_eight_ranks_of_256_gather_a_mebibyte() -> None:
    counts = cost(8 * 256, 128, ranks=8)
    assert counts["gathered_elements"] == 524_288
    assert counts["gathered_bytes"]["float16"] == 2**20
    assert counts["gathered_from_others"] == 524_288 * 7 // 8
    assert cost(8 * 256, 128)["gathered_from_others"] == 0


def test_ten_balanced_classes_give_every_eighth_hundred_false_negatives() -> None:
    counts = cost(64, 8, shares={"label": [0.1] * 10})
    assert counts["negatives_per_anchor"] == 126
    assert counts["same_class_share"]["label"] == pytest.approx(0.1, abs=1e-15)
    assert counts["false_negatives_per_anchor"]["label"] == pytest.approx(12.6, abs=1e-12)


def test_four_balanced_classes() -> None:
    counts = cost(16, 8, shares={"label": [0.25] * 4})
    assert counts["negatives_per_anchor"] == 30
    assert counts["false_negatives_per_anchor"]["label"] == 7.5


def test_unbalanced_classes_meet_more_often_than_balanced_ones() -> None:
    shares = {"skewed": [0.5, 0.25, 0.25], "balanced": [1 / 3] * 3}
    share = cost(16, 8, shares=shares)["same_class_share"]
    assert share["skewed"] == 0.375
    assert share["balanced"] == pytest.approx(1 / 3, abs=1e-15)


@given(batch=st.integers(2, 12), dim=st.integers(1, 9))
def test_the_counts_are_those_of_a_loop_over_all_pairs(batch: int, dim: int) -> None:
    views = range(2 * batch)
    pairs = [(i, j) for i, j in itertools.product(views, views) if i != j]
    positives = [(i, j) for i, j in pairs if i // 2 == j // 2]
    counts = cost(batch, dim)
    assert counts["logits"] == len(pairs)
    assert counts["positives"] == len(positives)
    assert counts["negatives"] == len(pairs) - len(positives)
    assert counts["candidates"] == sum(i == 0 for i, _ in pairs)
    assert counts["log_k"] == pytest.approx(math.log(counts["candidates"]), abs=1e-15)
    assert counts["product_operations"] == sum(2 * dim for _ in itertools.product(views, views))


# -- projections -------------------------------------------------------------------------------------------------------


def test_a_head_from_2048_to_128_has_a_weight_of_both_and_a_bias_of_128() -> None:
    head = LinearProjection(kind="linear", dim=128, boundary="h").build(2048)
    assert isinstance(head, nn.Linear)
    assert sorted(head.weight.shape) == [128, 2048]
    assert tuple(head.bias.shape) == (128,)
    assert sum(weight.numel() for weight in head.parameters()) == 2048 * 128 + 128
    assert head(torch.zeros(3, 2048)).shape == (3, 128)


def test_an_mlp_is_linear_relu_linear() -> None:
    head = MLPProjection(kind="mlp", hidden=7, dim=3, boundary="h").build(5)
    first, _, last = head
    h = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    inner = (h @ first.weight.T + first.bias).clamp(min=0)
    torch.testing.assert_close(head(h), inner @ last.weight.T + last.bias)


def test_no_projection_leaves_h_as_it_is() -> None:
    h = torch.randn(4, 5)
    assert NoProjection(kind="none").build(5)(h) is h
