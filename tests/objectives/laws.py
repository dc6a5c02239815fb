"""The laws: plain functions of (kind, seed) that raise AssertionError. Tests call them, and so do the mutants.

Shapes: A anchors, D dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from oracle import DenseContrast, lengths_to_one, similarities
from pydantic import TypeAdapter
from table import MEMBERS, PLAIN, TABLE, Row
from torch import Tensor

from pipeline.contrast import Candidates, Codes, Contrast, Relation, fused, mean_terms, one_tile, relation, tiling
from pipeline.samplers import Sampler

SMALL_BLOCKS = tiling.Sizes(4, 3, 0)
DOUBLE = torch.float64


@dataclass(frozen=True)
class Case:
    """One contrast to judge an objective by."""

    row: Row
    objective: Any
    settings: dict[str, Any]
    z: Tensor
    columns: dict[str, Tensor]
    temperature: float | None
    generator: torch.Generator

    @property
    def metric(self) -> str:
        return self.settings["metric"]

    def loss(self, z: Tensor, temperature: Any = None, learned: Any = None, columns: Any = None) -> Tensor:
        """The objective through sampler and walk."""
        sampler = TypeAdapter(Sampler).validate_python(self.row.sampler or {"kind": "in_batch"})
        temperature = self.temperature if temperature is None else temperature
        contrast = sampler.contrast(z, columns or self.columns, self.metric, temperature, "l2")
        return mean_terms(self.objective.terms(contrast, learned))

    def masks(self) -> tuple[Tensor, Tensor]:
        """Positives and negatives by looking at each pair."""
        group = self.columns["label" if self.row.sampler else "sample"]
        size = len(group)
        positives = torch.zeros(size, size, dtype=torch.bool)
        negatives = torch.zeros_like(positives)
        for i in range(size):
            for j in range(size):
                positives[i, j] = i != j and group[i] == group[j]
                negatives[i, j] = i != j and group[i] != group[j]
        return positives, negatives

    def dense(self, z: Tensor, temperature: Any = None) -> DenseContrast:
        """The same contrast with the whole matrix."""
        temperature = self.temperature if temperature is None else temperature
        similarity = similarities(lengths_to_one(z), lengths_to_one(z), self.metric)
        return DenseContrast(similarity, *self.masks(), temperature or 1.0, None, self.metric)


def case(kind: str, seed: int, two_views: bool = False, temperature: float | None = None) -> Case:
    """Random settings, vectors, and columns in random order; ``two_views``: pair order and unique labels."""
    row, member = TABLE[kind], MEMBERS[kind]
    generator = torch.Generator().manual_seed(seed)

    def pick(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    fields = row.fields[seed % len(row.fields)]
    metrics = sorted(member.metrics)
    settings = {**fields, "metric": metrics[pick(0, len(metrics) - 1)]}
    samples, dim = pick(2, 6), pick(2, 6)
    views = torch.tensor([2] * samples if two_views else [2, *(pick(1, 3) for _ in range(samples - 1))])
    sample = torch.arange(samples).repeat_interleave(views)
    view = torch.cat([torch.arange(count) for count in views.tolist()])
    label = sample if two_views else torch.randint(0, 3, (samples,), generator=generator)[sample]
    label = label.clone()
    if not two_views:
        label[:2], label[-1] = 0, 1  # at least one anchor has both kinds
    order = torch.arange(len(sample)) if two_views else torch.randperm(len(sample), generator=generator)
    z = torch.randn(len(sample), dim, generator=generator, dtype=DOUBLE)
    z += pick(0, 1) * torch.randn(dim, generator=generator, dtype=DOUBLE)  # sometimes a cone
    if seed % 4 == 3:  # easy anchors
        z = z[torch.arange(len(sample)) - view] + 0.2 * z
    if temperature is None and member.uses_temperature:
        temperature = float(10 ** (torch.rand((), generator=generator) * 1.5 - 1))
    columns = {"sample": sample[order], "view": view[order], "label": label[order]}
    temperature = temperature if member.uses_temperature else None
    return Case(row, member(kind=kind, **fields), settings, z[order], columns, temperature, generator)


def gradient(loss: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)


def near(first: Tensor, second: Tensor, tolerance: float = 1e-9) -> None:
    assert torch.allclose(first.double(), second.double(), rtol=tolerance, atol=tolerance), (first, second)


def equals_the_dense_oracle(kind: str, seed: int) -> None:
    """Value, and the gradients of vectors, temperature and learned scalars."""
    it = case(kind, seed)
    z = it.z.requires_grad_()
    learned = {name: torch.tensor(it.settings[name], dtype=DOUBLE, requires_grad=True) for name in it.objective.learns}
    tau = None if it.temperature is None else torch.tensor(it.temperature, dtype=DOUBLE, requires_grad=True)
    inputs = [z, *learned.values(), *([] if tau is None else [tau])]
    found = it.loss(z, tau, learned)
    expected = mean_terms(it.objective.terms(it.dense(z, tau), learned))
    near(found, expected)
    for one, other in zip(gradient(found, *inputs), gradient(expected, *inputs), strict=True):
        near(one, other, 1e-8)


def equals_a_naive_double_loop(kind: str, seed: int) -> None:
    """Value and gradients against a loop over anchors and candidates that knows nothing of this code."""
    it = case(kind, seed)
    z = it.z.requires_grad_()
    learned = {name: torch.tensor(it.settings[name], dtype=DOUBLE, requires_grad=True) for name in it.objective.learns}
    tau = None if it.temperature is None else torch.tensor(it.temperature, dtype=DOUBLE, requires_grad=True)
    inputs = [z, *learned.values(), *([] if tau is None else [tau])]
    P, N = ([row.nonzero().flatten().tolist() for row in mask] for mask in it.masks())
    length_one = z / z.norm(dim=1, keepdim=True)
    size = len(z)
    S = torch.stack([_similarity(length_one[i], length_one[j], it.metric) for i in range(size) for j in range(size)])
    expected = it.row.naive(S.view(size, size), P, N, tau, {**it.settings, **learned})
    found = it.loss(z, tau, learned)
    near(found, expected)
    for one, other in zip(gradient(found, *inputs), gradient(expected, *inputs), strict=True):
        near(one, other, 1e-8)


def _similarity(a: Tensor, b: Tensor, metric: str) -> Tensor:
    if metric in ("cosine", "dot"):
        return (a * b).sum()
    squared = ((a - b) ** 2).sum()
    return -squared if metric == "squared_euclidean" else -(squared + (0 if squared > 0 else 1)).sqrt()


def block_size_changes_nothing(kind: str, seed: int) -> None:
    """Value and gradient are the same in one block and in many, up to rounding."""
    it = case(kind, seed, temperature=(None, 0.5, 0.0005)[seed % 3])  # the last needs a running maximum
    z = it.z.requires_grad_()
    learned = {name: torch.tensor(it.settings[name], dtype=DOUBLE, requires_grad=True) for name in it.objective.learns}
    tau = None if it.temperature is None else torch.tensor(it.temperature, dtype=DOUBLE, requires_grad=True)
    inputs = [z, *learned.values(), *([] if tau is None else [tau])]
    whole = it.loss(z, tau, learned)
    before, tiling.CPU = tiling.CPU, SMALL_BLOCKS
    try:
        blocks = it.loss(z, tau, learned)
        slopes = gradient(blocks, *inputs)
    finally:
        tiling.CPU = before
    near(whole, blocks, 1e-11)
    for one, other in zip(gradient(whole, *inputs), slopes, strict=True):
        near(one, other, 1e-8)


def the_form_that_is_compiled_changes_nothing(kind: str, seed: int) -> None:
    """Value and gradient through the pure functions that a GPU compiles, in one block and in many."""
    it = case(kind, seed, temperature=(None, 0.5, 0.0005)[seed % 3])
    z = it.z.requires_grad_()
    learned = {name: torch.tensor(it.settings[name], dtype=DOUBLE, requires_grad=True) for name in it.objective.learns}
    inputs = [z, *learned.values()]
    plain = it.loss(z, None, learned)
    expected = gradient(plain, *inputs)
    before = tiling.CPU, fused.compiled, fused.call, relation.PAIRS_PER_ROW
    fused.compiled, fused.call = (lambda device: True), (lambda function: function)
    try:
        for sizes, listed in ((tiling.CPU, 4), (SMALL_BLOCKS, 4), (SMALL_BLOCKS, -1)):
            tiling.CPU, relation.PAIRS_PER_ROW = sizes, listed
            found = it.loss(z, None, learned)
            near(found, plain, 1e-11)
            for one, other in zip(gradient(found, *inputs), expected, strict=True):
                near(one, other, 1e-8)
    finally:
        tiling.CPU, fused.compiled, fused.call, relation.PAIRS_PER_ROW = before


def permuting_rows_permutes_the_gradient(kind: str, seed: int) -> None:
    """The loss does not know the storage order."""
    it = case(kind, seed)
    z = it.z.requires_grad_()
    order = torch.randperm(len(z), generator=it.generator)
    columns = {name: values[order] for name, values in it.columns.items()}
    first, second = it.loss(z), it.loss(z[order], columns=columns)
    near(first, second, 1e-12)
    near(gradient(first, z)[0], gradient(second, z)[0])


def excluded_candidates_are_inert(kind: str, seed: int) -> None:
    """A barred candidate changes neither value nor gradient, whatever it is, and has gradient 0 itself."""
    it = case(kind, seed)
    z = it.z.requires_grad_()
    size = len(z)
    group = it.columns["label" if it.row.sampler else "sample"]
    row = torch.arange(size)
    base = Relation(Codes(row, row), Codes(group, group))
    extra = Candidates(None, Relation(Codes(row, -1 - torch.arange(2)), Codes(group, torch.full((2,), -9)), None))
    bars = Codes(torch.zeros(size, dtype=torch.int64), torch.zeros(2, dtype=torch.int64))
    outcomes = []
    for scale in (0.0, 1e-3, 1e3):
        stranger = (scale * torch.randn(2, z.shape[1], generator=it.generator, dtype=DOUBLE)).requires_grad_()
        contrast = Contrast.of(
            z,
            base,
            metric=it.metric,
            temperature=it.temperature,
            normalization="l2",
            further=[Candidates(stranger, replace(extra.relation, barred=bars))],
        )
        loss = mean_terms(it.objective.terms(contrast))
        outcomes.append((loss, *gradient(loss, z, stranger)))
    plain = it.loss(z)
    slope = gradient(plain, z)[0]
    for loss, of_z, of_stranger in outcomes:
        near(loss, plain, 1e-12)
        near(of_z, slope, 1e-10)
        assert (of_stranger == 0).all()


def shift_changes_nothing(kind: str, seed: int) -> None:
    """Softmax family: any constant on an anchor's logits; the gradient over its candidates sums to 0."""
    it = case(kind, seed)
    if not it.row.shift and it.settings.get("prior") != 0:
        return
    dense = it.dense(it.z)
    similarity = dense.similarity.detach().requires_grad_()
    loss = mean_terms(it.objective.terms(replace(dense, similarity=similarity)))
    shift = torch.randn(len(it.z), 1, generator=it.generator, dtype=DOUBLE)
    shifted = mean_terms(it.objective.terms(replace(dense, similarity=similarity + shift)))
    near(loss, shifted, 1e-10)
    assert gradient(loss, similarity)[0].sum(1).abs().max() < 1e-10
    # the same through the walk, by an offset that is equal for all candidates
    group = it.columns["label" if it.row.sampler else "sample"]
    row = torch.arange(len(it.z))
    relation = Relation(Codes(row, row), Codes(group, group))
    arguments = {"metric": it.metric, "temperature": it.temperature, "normalization": "l2"}
    offset = torch.full((len(it.z),), 3.7, dtype=DOUBLE)
    near(mean_terms(it.objective.terms(Contrast.of(it.z, relation, offset=offset, **arguments))), loss, 1e-10)


def positives_pull_and_negatives_push(kind: str, seed: int) -> None:
    """The gradient is <= 0 on positives, >= 0 on negatives and 0 on the excluded; closer positives cost less.

    Of several positives it is their sum that is <= 0 (supervised: a positive may be closer than its share), and
    hardness weighs the easiest negatives down, which its gradient may pull closer.
    """
    it = case(kind, seed)
    dense = it.dense(it.z)
    similarity = dense.similarity.detach().requires_grad_()
    loss = mean_terms(it.objective.terms(replace(dense, similarity=similarity)))
    slope = gradient(loss, similarity)[0]
    assert ((slope * dense.positives).sum(1) <= 1e-12).all()
    one = dense.positives & (dense.positives.sum(1, keepdim=True) == 1)
    assert (slope[one] <= 1e-12).all()
    if not it.settings.get("hardness"):
        assert (slope[dense.negatives] >= -1e-12).all()
    assert (slope[~(dense.positives | dense.negatives)] == 0).all()
    closer = similarity.detach() + 0.1 * dense.positives * (similarity.detach() < -0.1 if _distance(it) else 1)
    assert mean_terms(it.objective.terms(replace(dense, similarity=closer))) <= loss + 1e-12


def _distance(it: Case) -> bool:
    return it.metric.endswith("euclidean")


def collapse_has_its_closed_form(kind: str, seed: int) -> None:
    """All vectors equal: log K for the softmax family, to 1e-12 in float64 and 1e-5 in float32."""
    for dtype, tolerance in ((DOUBLE, 1e-12), (torch.float32, 1e-5)):
        it = case(kind, seed, two_views=True)
        z = it.z[:1].expand_as(it.z).to(dtype).clone()
        negatives = len(z) - 2
        logit = (0.0 if _distance(it) else 1.0) / (it.temperature or 1.0)
        expected = it.row.collapse(negatives, logit, it.settings)
        found = float(it.loss(z))
        assert abs(found - expected) <= tolerance * max(1.0, abs(expected)), (found, expected, dtype)


def starts_where_it_says(kind: str, seed: int) -> None:
    """The loss of equal vectors is ``starts_at``; None exactly where that depends on how similar they are."""
    it = case(kind, seed, two_views=True)
    negatives = len(it.z) - 2
    found = [it.row.collapse(negatives, logit, it.settings) for logit in (-1.0, 0.0, 3.0)]
    start = it.objective.starts_at(negatives + 1)
    if max(found) - min(found) > 1e-9:
        assert start is None
    else:
        assert start is not None
        assert abs(start - found[0]) < 1e-12


def stays_above_its_bound(kind: str, seed: int) -> None:
    it = case(kind, seed, two_views=True)
    least = it.row.least(len(it.z) - 2, it.temperature or 1.0, it.settings)
    assert float(it.loss(it.z)) >= least - 1e-12


def orthogonal_maps_and_lengths_change_nothing(kind: str, seed: int) -> None:
    """Rotation and reflection leave the loss; so does the length of each vector under the cosine or on the sphere."""
    it = case(kind, seed)
    q = torch.linalg.qr(torch.randn(it.z.shape[1], it.z.shape[1], generator=it.generator, dtype=DOUBLE))[0]
    scale = 10 ** (4 * torch.rand(len(it.z), 1, generator=it.generator, dtype=DOUBLE) - 2)
    near(it.loss(it.z), it.loss(it.z @ q), 1e-10)
    near(it.loss(it.z), it.loss(it.z * scale), 1e-10)


def anchors_that_lack_a_kind_are_not_counted(kind: str, seed: int) -> None:
    """A lone view of a sample is no anchor; alone with its like, the loss and its gradient are 0."""
    it = case(kind, seed)
    z = it.z.requires_grad_()
    loss = it.loss(z)
    assert loss.isfinite()
    assert gradient(loss, z)[0].isfinite().all()
    size = len(z)
    row, one = torch.arange(size), torch.zeros(size, dtype=torch.int64)
    for group in (row, one):  # no positives at all; no negatives at all
        contrast = Contrast.of(
            z,
            Relation(Codes(row, row), Codes(group, group)),
            metric=it.metric,
            temperature=it.temperature,
            normalization="l2",
        )
        terms = it.objective.terms(contrast)
        two_terms = len(terms) == 2
        value = mean_terms(terms)
        slope = gradient(value, z)[0]
        assert slope.isfinite().all()
        if group is one and not it.row.negatives:
            assert value != 0
        elif not two_terms:
            assert value == 0
            assert (slope == 0).all()
        else:
            assert not bool(terms[0 if group is row else 1].counted.any())
            only = mean_terms([terms[1 if group is row else 0]])
            near(value, only, 1e-12)


def plain_function_is_the_member(kind: str, seed: int) -> None:
    """The plain function of pair-ordered views equals the spec through its sampler, in value and gradient."""
    if PLAIN[kind] is None:
        return
    it = case(kind, seed, two_views=True)
    if kind == "alignment_uniformity":
        it = replace(it, settings={**it.settings, "metric": "squared_euclidean"})
    if it.metric == "dot":  # the sampler's contrast is on the sphere, the plain function's is not
        it = replace(it, z=it.z / it.z.norm(dim=1, keepdim=True))
    if _distance(it) and kind not in ("margin", "triplet", "alignment_uniformity"):
        it = replace(it, z=it.z / it.z.norm(dim=1, keepdim=True))
    z = it.z.requires_grad_()
    first, second = it.loss(z), PLAIN[kind](z, it.temperature, it.settings)
    near(first, second, 1e-10)
    if it.metric == "cosine":
        near(gradient(first, z)[0], gradient(second, z)[0], 1e-9)


def float32_keeps_its_digits(kind: str, seed: int) -> None:
    """At temperatures 0.005 to 100: 1e-3 of float64 in L2 norm, or 1e-6 / temperature; easy anchors included."""
    generator = torch.Generator().manual_seed(seed)
    tau = float(10 ** (math.log10(0.005) + torch.rand((), generator=generator) * math.log10(20000)))
    it = case(kind, seed, temperature=tau)
    z = it.z.float()
    if seed % 3 == 1:  # easy anchors: views of a sample nearly equal
        z = z[it.columns["sample"]] + 0.01 * z
    if seed % 3 == 2:
        z = z[it.columns["sample"]].contiguous()  # exact duplicates
    low, high = z.clone().requires_grad_(), z.double().requires_grad_()
    found = it.loss(low)
    expected = mean_terms(it.objective.terms(it.dense(high)))
    absolute = 1e-6 / (it.temperature or 1.0)
    error = (found.double() - expected).abs()
    assert error <= max(1e-3 * float(expected.detach().abs()), absolute), (found, expected)
    (one,), (other,) = gradient(found, low), gradient(expected, high)
    scale = float(lengths(high).min())
    error = (one.double() - other).norm()
    assert error <= max(1e-3 * float(other.norm()), absolute / scale), (one, other)


def plain_function_keeps_its_digits(kind: str, seed: int) -> None:
    """The plain function of two views in float32: as ``float32_keeps_its_digits``, in one block and in many."""
    if PLAIN[kind] is None:
        return
    generator = torch.Generator().manual_seed(seed)
    tau = float(10 ** (math.log10(0.005) + torch.rand((), generator=generator) * math.log10(20000)))
    low_tau = 0.005 * 3 ** float(torch.rand((), generator=generator))
    it = case(kind, seed, two_views=True, temperature=low_tau if seed % 2 else tau)
    if seed % 2 and "cosine" in MEMBERS[kind].metrics:
        it = replace(it, settings={**it.settings, "metric": "cosine"})
    z = it.z / it.z.norm(dim=1, keepdim=True) if it.metric != "cosine" else it.z
    if seed % 3 == 1:  # easy anchors
        z = z[it.columns["sample"] * 2] + 0.01 * z
    low, high = z.float().requires_grad_(), z.float().double().requires_grad_()
    before = tiling.CPU, one_tile.LARGEST, one_tile.SPARE
    if seed % 4 == 2:
        tiling.CPU, one_tile.LARGEST = SMALL_BLOCKS, 0
    elif seed % 4 == 0:
        one_tile.SPARE = 3 * len(z)
    try:
        found = PLAIN[kind](low, it.temperature, it.settings)
        (one,) = gradient(3 * found, low)
    finally:
        tiling.CPU, one_tile.LARGEST, one_tile.SPARE = before
    expected = PLAIN[kind](high, it.temperature, it.settings)
    if kind not in ("alignment_uniformity", "margin") and it.metric == "cosine":
        near(expected, mean_terms(it.objective.terms(it.dense(high))))
    (other,) = gradient(3 * expected, high)
    absolute = 1e-6 / (it.temperature or 1.0)
    assert (found.double() - expected).abs() <= max(1e-3 * float(expected.detach().abs()), absolute), (found, expected)
    error = (one.double() - other).norm()
    assert error <= max(1e-3 * float(other.norm()), 3 * absolute / float(lengths(high).min())), (one, other)


def lengths(z: Tensor) -> Tensor:
    return z.detach().norm(dim=1)


def half_types_are_finite(kind: str, seed: int) -> None:
    """bfloat16 and float16 inputs, a zero vector and a long one among them: float32's value, a finite gradient."""
    for dtype in (torch.bfloat16, torch.float16):
        it = case(kind, seed, temperature=(0.005, 0.07, 1.0)[seed % 3])
        z = it.z.to(dtype)
        z[0], z[1] = 0, z[1] * 300
        z = z.clone().requires_grad_()
        loss = it.loss(z)
        expected = mean_terms(it.objective.terms(it.dense(z.detach().double())))
        absolute = 1e-6 / (it.temperature or 1.0)
        assert (loss.double() - expected).abs() <= max(1e-3 * float(expected.abs()), absolute), (loss, expected)
        assert gradient(loss, z)[0].isfinite().all()


def zero_vector_is_neutral(kind: str, seed: int) -> None:
    """A zero vector has similarity 0 under cosine and dot, and gradient 0 when it is normalised."""
    it = case(kind, seed)
    z = it.z.clone()
    z[seed % len(z)] = 0
    z.requires_grad_()
    loss = it.loss(z)
    near(loss, mean_terms(it.objective.terms(it.dense(z))), 1e-10)
    slope = gradient(loss, z)[0]
    assert slope.isfinite().all()
    assert (slope[seed % len(z)] == 0).all()


LAWS = {
    law.__name__: law
    for law in (
        equals_the_dense_oracle,
        equals_a_naive_double_loop,
        block_size_changes_nothing,
        the_form_that_is_compiled_changes_nothing,
        permuting_rows_permutes_the_gradient,
        excluded_candidates_are_inert,
        shift_changes_nothing,
        positives_pull_and_negatives_push,
        collapse_has_its_closed_form,
        starts_where_it_says,
        stays_above_its_bound,
        orthogonal_maps_and_lengths_change_nothing,
        anchors_that_lack_a_kind_are_not_counted,
        plain_function_is_the_member,
        float32_keeps_its_digits,
        plain_function_keeps_its_digits,
        half_types_are_finite,
        zero_vector_is_neutral,
    )
}
