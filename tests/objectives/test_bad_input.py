"""Each thing that a user can get wrong has one clear error, raised where the value enters."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import TypeAdapter

from pipeline import objectives
from pipeline.contrast import Codes, Contrast, Relation
from pipeline.objectives import Objective
from pipeline.samplers import InBatch, SameLabel
from pipeline.spec import Refusal, Spec, SpecError, parse

Z = torch.randn(8, 4)
SAMPLER = InBatch(kind="in_batch")
COLUMNS = {"sample": torch.arange(8) // 2, "view": torch.arange(8) % 2}


@pytest.mark.parametrize("temperature", [0.0, -0.1, math.nan, math.inf, torch.tensor(-1.0)])
def test_a_temperature_must_be_a_positive_number(temperature):
    with pytest.raises(Refusal, match=r"temperature = .*: must be a finite number above 0"):
        objectives.nt_xent(Z, temperature)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_non_finite_vectors_are_refused_with_their_share(bad, metric):
    z = Z.clone()
    z[2, 1] = z[5, 0] = bad
    with pytest.raises(Refusal, match=r"anchors: 2 of 8 vectors \(25.0%\) are not finite"):
        objectives.nt_xent(z, 0.1, metric)
    with pytest.raises(Refusal, match=r"candidates: 2 of 8 vectors"):
        objectives.info_nce(Z[:2], Z[2:4], 0.1, z)


@pytest.mark.parametrize("prior", [-0.1, 1.0, math.nan])
def test_a_prior_must_lie_below_one(prior):
    with pytest.raises(Refusal, match=r"prior = .*: must lie in \[0, 1\)"):
        objectives.debiased(Z, 0.1, prior)
    with pytest.raises(Refusal, match="prior"):
        objectives.hard_negative(Z, 0.1, prior, 1.0)


def test_margins_hardness_and_weights_must_not_be_negative():
    for call in (
        lambda: objectives.siamese_margin(Z, -1.0),
        lambda: objectives.triplet(Z, math.nan),
        lambda: objectives.hard_negative(Z, 0.1, 0.0, -1.0),
        lambda: objectives.alignment_uniformity(Z, t=0.0),
        lambda: objectives.alignment_uniformity(Z, weight=-1.0),
    ):
        with pytest.raises(Refusal, match="must be"):
            call()


def test_fewer_than_two_samples_have_no_negatives():
    with pytest.raises(Refusal, match="z has 1 samples: at least 2 are needed"):
        objectives.nt_xent(Z[:2], 0.1)
    with pytest.raises(Refusal, match="1 sample in the batch: at least 2 are needed"):
        SAMPLER.contrast(Z, {**COLUMNS, "sample": torch.zeros(8, dtype=torch.int64)}, "cosine", 0.1, "l2")
    with pytest.raises(Refusal, match="at least 1 negative is needed"):
        objectives.info_nce(Z[:1], Z[1:2], 0.1)


def test_an_odd_number_of_views_is_refused():
    with pytest.raises(Refusal, match=r"z has shape \(7, 4\): must be \(2B, D\)"):
        objectives.nt_xent(Z[:7], 0.1)


def test_a_metric_that_the_objective_cannot_use_is_named():
    contrast = SAMPLER.contrast(Z, COLUMNS, "dot", None, "l2")
    for kind, fields in (("margin", {"margin": 1.0}), ("debiased", {"prior": 0.1})):
        objective = TypeAdapter(Objective).validate_python({"kind": kind, **fields})
        with pytest.raises(Refusal, match=f"metric = dot: {kind} works with"):
            objective.terms(contrast)
    with pytest.raises(Refusal, match="metric = cosin: unknown; did you mean 'cosine'"):
        objectives.nt_xent(Z, 0.1, "cosin")


def test_columns_must_fit_the_vectors():
    with pytest.raises(Refusal, match="columns of 6 anchors and 6 candidates do not match 8 and 8 vectors"):
        SAMPLER.contrast(Z, {name: values[:6] for name, values in COLUMNS.items()}, "cosine", 0.1, "l2")
    with pytest.raises(Refusal, match=r"columns 'sample' \(8\) and 'view' \(6\) differ in length"):
        SAMPLER.contrast(Z, {**COLUMNS, "view": COLUMNS["view"][:6]}, "cosine", 0.1, "l2")
    with pytest.raises(Refusal, match="column 'view' is not in the batch; known: sample"):
        SAMPLER.contrast(Z, {"sample": COLUMNS["sample"]}, "cosine", 0.1, "l2")
    with pytest.raises(Refusal, match="column 'labels' is not in the batch"):
        SameLabel(kind="same_label", column="labels").contrast(Z, COLUMNS, "cosine", 0.1, "l2")


def test_shapes_and_types_that_do_not_fit_are_refused():
    row = torch.arange(8)
    relation = Relation(Codes(row, row), Codes(row, row))
    with pytest.raises(Refusal, match="candidates have 3 dimensions and anchors 4"):
        Contrast.of(Z, relation, candidates=torch.randn(8, 3))
    with pytest.raises(Refusal, match="offset has shape"):
        Contrast.of(Z, relation, offset=torch.zeros(3))
    with pytest.raises(Refusal, match="must be floating vectors"):
        Contrast.of(Z.long(), relation)
    with pytest.raises(Refusal, match="normalization = l1"):
        Contrast.of(Z, relation, normalization="l1")
    with pytest.raises(Refusal, match="must be one integer per row"):
        objectives.supervised_contrastive(Z, torch.arange(7), 0.1)


class Holder(Spec):
    objective: Objective


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"kind": "debiased", "prior": 1.0}, "objective.prior = 1.0: must be less than 1"),
        ({"kind": "margin", "margin": -1.0}, "objective.margin = -1.0: must be greater than or equal to 0"),
        ({"kind": "nt_xnet"}, "unknown kind; did you mean 'nt_xent'?"),
        ({"kind": "nt_xent", "prior": 0.1}, "objective.prior = 0.1: unknown key"),
        ({"kind": "sigmoid"}, "objective.bias: missing"),
    ],
)
def test_a_spec_names_what_is_wrong(content, text):
    with pytest.raises(SpecError) as error:
        parse({"objective": content}, Holder, "specs/x.yaml")
    assert text in str(error.value)
