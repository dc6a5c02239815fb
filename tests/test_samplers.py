"""Every sampler against a double loop over pairs and the dense matrix: a row each, and no default row.

A row says what a candidate is to an anchor, looking at one pair and at the similarities of the anchor's row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracle import DenseContrast, lengths_to_one, similarities
from pydantic import TypeAdapter
from torch import Tensor

from pipeline.contrast import mean_terms, relation, tiling
from pipeline.objectives import AlignmentUniformity, Debiased, Decoupled, HardNegative, NTXent, Sigmoid, Triplet
from pipeline.samplers import Beside, Sampler, stratified
from pipeline.spec import Refusal

pytestmark = pytest.mark.usefixtures("one_thread")
DOUBLE = torch.float64
Rows = dict[str, list[int]]
Kinds = list[str]
"""Of one anchor's candidates: excluded, positive or negative."""


def plain(a: Rows, i: int, c: Rows, crossed: bool) -> Kinds:
    """In-batch: own view out, own sample positive, own group out, own view's others out if crossed."""
    found = []
    for sample, view, group in zip(c["sample"], c["view"], c["group"], strict=True):
        if sample == a["sample"][i]:
            found.append("excluded" if view == a["view"][i] else "positive")
        elif group == a["group"][i] or (crossed and view == a["view"][i]):
            found.append("excluded")
        else:
            found.append("negative")
    return found


def of_labels(a: Rows, i: int, c: Rows, crossed: bool) -> Kinds:
    own = [pair == (a["sample"][i], a["view"][i]) for pair in zip(c["sample"], c["view"], strict=True)]
    same = [label == a["label"][i] for label in c["label"]]
    return ["excluded" if o else "positive" if s else "negative" for o, s in zip(own, same, strict=True)]


def of_duplicates(a: Rows, i: int, c: Rows, crossed: bool) -> Kinds:
    kinds = plain(a, i, c, crossed)
    for j, kind in enumerate(kinds):
        if kind == "negative" and (c["content"][j] == a["content"][i] or c["label"][j] == a["label"][i]):
            kinds[j] = "excluded"
    return kinds


def only_positives(a: Rows, i: int, c: Rows, crossed: bool) -> Kinds:
    return [kind if kind == "positive" else "excluded" for kind in plain(a, i, c, crossed)]


def nearest(kinds: Kinds, row: list[float]) -> list[int]:
    return sorted((j for j, kind in enumerate(kinds) if kind == "negative"), key=lambda j: -row[j])


def of_threshold(kinds: Kinds, row: list[float], settings: dict[str, Any]) -> Kinds:
    for j in nearest(kinds, row)[: settings["most"]]:
        if row[j] > settings["above"]:
            kinds[j] = "excluded"
    return kinds


def of_hardest(kinds: Kinds, row: list[float], settings: dict[str, Any]) -> Kinds:
    for j in nearest(kinds, row)[settings["nearest"] :]:
        kinds[j] = "excluded"
    return kinds


Row = tuple[dict[str, Any], Callable[[Rows, int, Rows, bool], Kinds], Callable[..., Kinds] | None]
TABLE: list[Row] = [
    ({"kind": "in_batch"}, plain, None),
    ({"kind": "same_label", "column": "label"}, of_labels, None),
    ({"kind": "queue", "length": 9, "in_batch": True}, plain, None),
    ({"kind": "queue", "length": 9, "in_batch": False}, only_positives, None),
    ({"kind": "no_duplicates", "columns": ["label"]}, of_duplicates, None),
    ({"kind": "threshold", "above": 0.3, "most": 2, "warmup": 0.0}, plain, of_threshold),
    ({"kind": "threshold", "above": -1.0, "most": 100, "warmup": 0.0}, plain, of_threshold),
    ({"kind": "stratified", "column": "label"}, plain, None),
    ({"kind": "hardest", "nearest": 1}, plain, of_hardest),
    ({"kind": "hardest", "nearest": 3}, plain, of_hardest),
]
OBJECTIVES: list[Any] = [
    NTXent(kind="nt_xent"),
    Decoupled(kind="decoupled"),
    Debiased(kind="debiased", prior=0.1),
    HardNegative(kind="hard_negative", prior=0.05, hardness=0.5),
    Sigmoid(kind="sigmoid", bias=-1.0),
    AlignmentUniformity(kind="alignment_uniformity", t=2.0, weight=0.5),
    Triplet(kind="triplet", margin=0.3),
]


def sampler_of(settings: dict[str, Any]) -> Any:
    return TypeAdapter(Sampler).validate_json(json.dumps(settings))


def test_every_sampler_has_a_row() -> None:
    members = {member.model_fields["kind"].annotation.__args__[0] for member in get_args(get_args(Sampler)[0])}
    assert {settings["kind"] for settings, _, _ in TABLE} == members


def columns_of(samples: list[int], views: list[int], seed: int) -> Rows:
    """The columns of some views; label, group and content are functions of the sample."""
    of = torch.randint(0, 3, (3, 20), generator=torch.Generator().manual_seed(seed)).tolist()
    group = [sample // 2 if of[1][sample] == 0 else 100 + sample for sample in samples]
    content = [sample // 3 if of[2][sample] == 0 else 200 + sample for sample in samples]
    label = [of[0][sample] for sample in samples]
    return {"sample": samples, "view": views, "label": label, "group": group, "content": content}


def tensors(rows: Rows) -> dict[str, Tensor]:
    return {name: torch.tensor(values, dtype=torch.int64) for name, values in rows.items()}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: "-".join(map(str, row[0].values())))
@given(seed=st.integers(0, 10**6), crossed=st.booleans(), queued=st.integers(0, 5), listed=st.sampled_from([4, 1, -1]))
def test_a_sampler_is_its_double_loop_under_every_objective(
    row: Row, seed: int, crossed: bool, queued: int, listed: int
) -> None:
    settings, kind_of, choose = row
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(10, generator=generator).tolist()
    a = columns_of([n // 2 for n in order], [n % 2 for n in order], seed)
    z = torch.randn(10, 4, generator=generator, dtype=DOUBLE)
    keys = torch.randn(10, 4, generator=generator, dtype=DOUBLE) if crossed else z
    queue = torch.randn(queued, 4, generator=generator, dtype=DOUBLE)
    kept = columns_of(torch.randint(0, 9, (queued,), generator=generator).tolist(), [1] * queued, seed)
    uses_queue = settings["kind"] == "queue"

    S = similarities(z, torch.cat([keys, queue]) if uses_queue else keys, "cosine")
    kinds = []
    for i in range(10):
        of_batch = kind_of(a, i, a, crossed)
        if choose is not None:
            of_batch = choose(of_batch, S[i, :10].tolist(), settings)
        pairs = zip(kept["sample"], kept["group"], strict=True)
        own = [sample == a["sample"][i] or group == a["group"][i] for sample, group in pairs]
        kinds.append(of_batch + (["excluded" if each else "negative" for each in own] if uses_queue else []))
    positives = torch.tensor([[kind == "positive" for kind in line] for line in kinds])
    negatives = torch.tensor([[kind == "negative" for kind in line] for line in kinds])

    beside = Beside(crossed, (queue, tensors(kept)) if uses_queue else None)
    with pytest.MonkeyPatch.context() as patch:
        if listed != 4:  # 1: the rule of the views is long; -1: all rules are
            patch.setattr(tiling, "CPU", tiling.Sizes(3, 4, 0))
            patch.setattr(relation, "PAIRS_PER_ROW", listed)
        for objective in OBJECTIVES:
            anchors = z.clone().requires_grad_()
            theirs = keys.clone().requires_grad_() if crossed else anchors
            tau = torch.tensor(0.4, dtype=DOUBLE, requires_grad=True) if objective.uses_temperature else None
            inputs = [each for each in (anchors, theirs if crossed else None, tau) if each is not None]
            given_keys = (theirs, tensors(a)) if crossed else ()
            contrast = sampler_of(settings).contrast(
                anchors, tensors(a), "cosine", tau, "l2", *given_keys, beside=beside
            )
            assert contrast.count("positives").tolist() == positives.sum(1).tolist()
            assert contrast.count("negatives").tolist() == negatives.sum(1).tolist()
            found = mean_terms(objective.terms(contrast))
            everything = torch.cat([theirs, queue]) if uses_queue else theirs
            S = similarities(lengths_to_one(anchors), lengths_to_one(everything), "cosine")
            dense = DenseContrast(S, positives, negatives, 1.0 if tau is None else tau)
            expected = mean_terms(objective.terms(dense))
            assert torch.allclose(found, expected, rtol=1e-9, atol=1e-9), objective
            mine = torch.autograd.grad(found, inputs, allow_unused=True, materialize_grads=True)
            wanted = torch.autograd.grad(expected, inputs, allow_unused=True, materialize_grads=True)
            for one, other in zip(mine, wanted, strict=True):
                assert torch.allclose(one, other, rtol=1e-8, atol=1e-8), objective


def test_a_threshold_waits_for_its_warmup() -> None:
    a = columns_of([0, 0, 1, 1, 2, 2], [0, 1] * 3, 0)
    a = {**a, "group": [100 + sample for sample in a["sample"]]}
    sampler = sampler_of({"kind": "threshold", "above": -1.0, "most": 9, "warmup": 0.5})
    z = torch.randn(6, 4)
    counts = [
        sampler.contrast(z, tensors(a), "cosine", 0.2, "l2", beside=Beside(share=share)).count("negatives").tolist()
        for share in (0.0, 0.49, 0.5, 1.0)
    ]
    assert counts == [[4] * 6, [4] * 6, [0] * 6, [0] * 6]


@pytest.mark.parametrize("kind", ["no_duplicates", "same_label"])
def test_a_column_that_is_not_there_is_named_with_the_nearest(kind: str) -> None:
    settings = {"no_duplicates": {"columns": ["lable"]}, "same_label": {"column": "lable"}}[kind]
    rows = tensors(columns_of([0, 0, 1, 1], [0, 1] * 2, 0))
    with pytest.raises(Refusal, match=r"column 'lable' is not in the batch; did you mean 'label'\?"):
        sampler_of({"kind": kind, **settings}).contrast(torch.randn(4, 3), rows, "cosine", 0.2, "l2")


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("row", TABLE, ids=lambda row: "-".join(map(str, row[0].values())))
def test_no_anchor_has_more_candidates_than_a_sampler_says_and_of_strangers_it_has_as_many(
    row: Row, crossed: bool
) -> None:
    settings = row[0]
    crossed = crossed or settings["kind"] == "queue"  # whose target is always another network
    if settings["kind"] in ("threshold", "no_duplicates"):
        settings = {**settings, "above": 2.0} if "above" in settings else {**settings, "columns": []}
    rows = tensors({**columns_of([n // 2 for n in range(12)], [0, 1] * 6, 0), "label": [n // 2 for n in range(12)]})
    rows["group"], rows["content"] = rows["sample"] + 100, rows["sample"]
    queue = torch.randn(9, 4), {"sample": torch.arange(50, 59), "group": torch.arange(150, 159)}
    z = torch.randn(12, 4)
    sampler = sampler_of(settings)
    contrast = sampler.contrast(
        z, rows, "cosine", 0.2, "l2", *((z, rows) if crossed else ()), beside=Beside(crossed, queue)
    )
    most = sampler.candidates(6, crossed)
    assert contrast.count("candidates").tolist() == [most] * 12


# -- stratified --------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**31), sizes=st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_every_stretch_of_a_stratified_order_holds_each_class_in_proportion(seed: int, sizes: list[int]) -> None:
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    order = stratified(codes, seed, 3)
    assert sorted(order.tolist()) == list(range(len(codes)))
    assert (order == stratified(codes, seed, 3)).all()
    total = len(codes)
    for batch in (1, 2, 7, total):
        for start in range(0, total - batch + 1):
            held = np.bincount(codes[order[start : start + batch]], minlength=len(sizes))
            for count, of in zip(held, sizes, strict=True):
                assert abs(count - batch * of / total) <= 1 + len(sizes) * of / total + 1e-9


def test_a_stratified_order_differs_between_epochs_and_mixes_within_a_class() -> None:
    codes = np.repeat([0, 1], [40, 10])
    orders = [stratified(codes, 0, epoch) for epoch in range(40)]
    assert len({tuple(order) for order in orders}) == 40
    first = [int(order[codes[order] == 0][0]) for order in orders]
    assert len(set(first)) > 20
    held = [int(np.sum(codes[order[:10]] == 1)) for order in orders]
    assert min(held) >= 1
    assert max(held) <= 3
    assert math.isclose(np.mean(held), 2, abs_tol=0.3)
