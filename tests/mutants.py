"""Wrong versions of the code, as text: each must be killed by a law of the objective named beside it.

A mutant replaces one passage of one module. The functions of the running module get the mutated code, so that every
importer sees it; afterwards they get their own back.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Mutant:
    """In ``module``, ``old`` (which must stand there exactly once) becomes ``new``; judged by the laws of ``kind``."""

    name: str
    kind: str
    module: str
    old: str
    new: str


@dataclass(frozen=True)
class Wrong:
    """One passage of one module replaced, and the one law that must notice; its arguments are the test's affair."""

    name: str
    module: str
    old: str
    new: str
    law: Callable[..., object]


def _functions(owner: object, module: str) -> Iterator[tuple[str, types.FunctionType]]:
    for name, member in list(vars(owner).items()):
        member = getattr(member, "func", None) or getattr(member, "fget", None) or getattr(member, "__func__", member)
        member = inspect.unwrap(member) if callable(member) else member
        if isinstance(member, types.FunctionType) and member.__module__ == module:
            yield name, member
        elif isinstance(member, type) and member.__module__ == module:
            yield from ((f"{name}.{inner}", found) for inner, found in _functions(member, module))


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Run with the mutated code."""
    importlib.import_module(mutant.module)
    module = sys.modules[mutant.module]
    source = inspect.getsource(module)
    assert source.count(mutant.old) == 1, f"{mutant.name}: the passage stands {source.count(mutant.old)} times"
    wrong = types.ModuleType(mutant.module)
    wrong.__file__ = module.__file__
    sys.modules[mutant.module] = wrong  # dataclasses look their module up
    try:
        exec(compile(source.replace(mutant.old, mutant.new), str(module.__file__), "exec"), vars(wrong))
    finally:
        sys.modules[mutant.module] = module
    replaced = dict(_functions(wrong, mutant.module))
    before = {}
    for name, function in _functions(module, mutant.module):
        if name in replaced and function.__code__.co_code is not None and not name.startswith("__"):
            before[name] = (function, function.__code__)
            if function.__code__.co_freevars == replaced[name].__code__.co_freevars:
                function.__code__ = replaced[name].__code__
    try:
        yield
    finally:
        for function, code in before.values():
            function.__code__ = code


def broken(law: Callable[..., object], *arguments: object) -> bool:
    """Whether a law fails."""
    try:
        law(*arguments)
    except (Exception, pytest.fail.Exception):
        return True
    return False


def broken_in(folder: Path, law: Callable[..., object], *arguments: object) -> bool:
    """Whether a law fails whose first argument is an empty folder; ``folder`` is made."""
    folder.mkdir()
    return broken(law, folder, *arguments)


CONTRAST, OBJECTIVES, SAMPLERS = "pipeline.contrast.", "pipeline.objectives.", "pipeline.samplers."

MUTANTS = (
    # which candidates there are
    Mutant(
        "the self-pair is kept as a positive",
        "nt_xent",
        SAMPLERS + "rows",
        "return Codes(both, both)",
        "return Codes(-1 - both, both)",
    ),
    Mutant(
        "the self-pair is kept among the negatives",
        "nt_xent",
        CONTRAST + "tiling",
        "listed.positive + listed.excluded if",
        "listed.positive if",
    ),
    Mutant(
        "the self-pair is out of the value only",
        "nt_xent",
        CONTRAST + "gathering",
        "            found = tile.powers(self.ratio, self.request.over) if powers is None else powers",
        "            tile.erase = lambda scores, over, value: scores\n"
        "            found = tile.powers(self.ratio, self.request.over) if powers is None else powers",
    ),
    Mutant(
        "the positive is among the negatives",
        "nt_xent",
        CONTRAST + "tiling",
        "listed.positive + listed.excluded if",
        "listed.excluded if",
    ),
    Mutant(
        "a barred candidate counts as a negative",
        "nt_xent",
        CONTRAST + "relation",
        "excluded, before = excluded + barred.where(new), (*before, rule)",
        "pass",
    ),
    Mutant(
        "pairs by place instead of by sample",
        "nt_xent",
        SAMPLERS + "rows",
        "Codes(column(columns, positive), column(theirs, positive))",
        "Relation.pair_order(len(columns[positive])).group",
    ),
    # directions
    Mutant(
        "one direction is lost in the value",
        "nt_xent",
        CONTRAST + "gathering",
        "                self.sum[block.columns].add_(powers.sum(0))",
        "                pass",
    ),
    Mutant(
        "one direction is lost in the gradient",
        "nt_xent",
        CONTRAST + "gathering",
        "        both = block.mirrored or block.diagonal\n        if self.peak",
        "        both = False\n        if self.peak",
    ),
    Mutant(
        "only the first view of a pair is an anchor",
        "nt_xent",
        OBJECTIVES + "inputs",
        'return (contrast.count("positives") > 0) & (contrast.count("negatives") > 0)',
        'return ((contrast.count("positives") > 0) & (contrast.count("negatives") > 0)) & '
        '(torch.arange(len(contrast.count("positives"))) % 2 == 0)',
    ),
    Mutant(
        "the candidates' gradient is lost",
        "nt_xent",
        CONTRAST + "scores",
        "            candidates[block.columns].addmm_(weights.T, self.anchors[block.rows])",
        "            pass",
    ),
    # temperature
    Mutant(
        "1 / tau is dropped from the gradient",
        "nt_xent",
        CONTRAST + "walk",
        "            factor = size / ctx.plan.temperature",
        "            factor = size",
    ),
    Mutant(
        "the gradient of the temperature has the wrong sign",
        "nt_xent",
        CONTRAST + "walk",
        "into_temperature = -along * factor",
        "into_temperature = along * factor",
    ),
    Mutant(
        "the degree of a distance is that of a product",
        "nt_xent",
        CONTRAST + "scores",
        "self.root, self.factor, self.degree = root, factor, 1 if root else 2",
        "self.root, self.factor, self.degree = root, factor, 2",
    ),
    Mutant(
        "a log-sum-exp ignores its scale in the gradient",
        "hard_negative",
        CONTRAST + "gathering",
        "        return found if self.request.scale == 1 else found.mul_(self.request.scale)",
        "        return found",
    ),
    # numbers
    Mutant(
        "no maximum is subtracted at low temperature",
        "nt_xent",
        CONTRAST + "walk",
        "largest <= BOUND[anchors.dtype]",
        "True",
    ),
    Mutant(
        "the running maximum does not rescale what was summed",
        "nt_xent",
        CONTRAST + "gathering",
        "self.sum[rows] = self.sum[rows] * fade + powers.sum(1)",
        "self.sum[rows] = self.sum[rows] + powers.sum(1)",
    ),
    Mutant(
        "softplus is linear from 5 on",
        "nt_xent",
        CONTRAST + "requests",
        "return functional.softplus(values, threshold=60)",
        "return functional.softplus(values, threshold=5)",
    ),
    Mutant(
        "logits are rounded to bfloat16",
        "nt_xent",
        CONTRAST + "scores",
        "self.scaled = anchors * factor",
        "self.scaled = (anchors * factor).bfloat16().to(anchors.dtype)",
    ),
    Mutant(
        "the gradient of the length is left out of the normalisation",
        "nt_xent",
        CONTRAST + "unit_length",
        "torch.addcmul(given, own, along, value=-1.0, out=out[rows])",
        "torch.addcmul(given, own, along, value=0.0, out=out[rows])",
    ),
    Mutant(
        "a zero vector is divided by its length",
        "nt_xent",
        CONTRAST + "unit_length",
        "bool(((found > ORDINARY[0]) & (found < ORDINARY[1])).all())",
        "True",
    ),
    Mutant(
        "a near pair is counted twice in the gradient of a distance",
        "nt_xent",
        CONTRAST + "scores",
        "        weights[rows, columns] = 0.0\n",
        "",
    ),
    Mutant(
        "a distance of zero has an infinite gradient",
        "margin",
        CONTRAST + "pairs",
        "given = torch.where(found < 0, given / -torch.where(found < 0, found, 1.0), 0.0)",
        "given = given / -found",
    ),
    # reductions
    Mutant(
        "the mean is over all anchors instead of the counted",
        "nt_xent",
        CONTRAST + "term",
        "count = term.counted.sum()",
        "count = torch.tensor(len(term.counted))",
    ),
    Mutant(
        "uncounted anchors enter the sum",
        "decoupled",
        CONTRAST + "term",
        "torch.where(term.counted, term.values, 0.0).sum()",
        "term.values.sum()",
    ),
    Mutant(
        "the log of a mean is the mean of logs",
        "alignment_uniformity",
        CONTRAST + "term",
        'if term.outer == "identity":',
        "if True:",
    ),
    Mutant(
        "the weight of a term is lost",
        "alignment_uniformity",
        CONTRAST + "term",
        "_mean(term) if term.weight == 1 else term.weight * _mean(term)",
        "_mean(term)",
    ),
    # one block, written out
    Mutant("one block: the self-pair is kept", "nt_xent", CONTRAST + "one_tile", "        sample.zero_()\n", ""),
    Mutant(
        "one block: one direction is lost in the gradient",
        "nt_xent",
        CONTRAST + "one_tile",
        "torch.add(rows, flat, out",
        "torch.add(rows, 0 * flat, out",
    ),
    Mutant(
        "one block: the positive is not pulled back",
        "nt_xent",
        CONTRAST + "one_tile",
        "            sample[:, 1, 0].copy_(own)\n",
        "",
    ),
    Mutant(
        "one block: 1 / tau is dropped from the gradient",
        "nt_xent",
        CONTRAST + "one_tile",
        "inverse.mul_(math.log(2) / count)",
        "inverse.mul_(math.log(2) / count / factor)",
    ),
    Mutant(
        "one block: the gradient of the length is left out",
        "nt_xent",
        CONTRAST + "one_tile",
        "value=-1 / factor",
        "value=0.0",
    ),
    Mutant(
        "one block: the gradient ignores what is given",
        "nt_xent",
        CONTRAST + "one_tile",
        "return ctx.slope * given,",
        "return ctx.slope,",
    ),
    Mutant(
        "one block: no maximum is subtracted at low temperature",
        "nt_xent",
        CONTRAST + "one_tile",
        "if not math.log2(math.e) / BOUND[z.dtype] <= temperature",
        "if not 0 < temperature",
    ),
    Mutant(
        "one block: the positive is left out of the weights",
        "nt_xent",
        CONTRAST + "one_tile",
        "(total + power).reciprocal_()",
        "(total + 0 * power).reciprocal_()",
    ),
    # what a GPU compiles
    Mutant(
        "compiled: the self-pair is kept among the negatives",
        "nt_xent",
        CONTRAST + "fused",
        "(~(own | group | barred) & x.negatives)",
        "(~(group & ~own | barred & ~own) & x.negatives)",
    ),
    Mutant(
        "compiled: the self-pair counts as a positive",
        "supervised",
        CONTRAST + "fused",
        "(group & ~own & x.positives)",
        "(group & x.positives)",
    ),
    Mutant(
        "compiled: the maximum does not rescale what was summed",
        "nt_xent",
        CONTRAST + "gathering_fused",
        "self.sum[side] *= fade",
        "pass",
    ),
    Mutant(
        "compiled: no maximum at low temperature",
        "nt_xent",
        CONTRAST + "fused",
        "return found.amax(1), found.amax(0) if mirrored else None",
        "return 0 * found[:, 0], 0 * found[0] if mirrored else None",
    ),
    Mutant(
        "compiled: one direction is lost in the gradient",
        "nt_xent",
        CONTRAST + "fused",
        "found + (exponent - column[0]).exp2() * column[1]",
        "found",
    ),
    Mutant(
        "compiled: one direction is lost in the value",
        "nt_xent",
        CONTRAST + "fused",
        "None if column_peak is None else (found - column_peak).exp2().sum(0)",
        "None if column_peak is None else 0 * column_peak",
    ),
    Mutant(
        "compiled: a log-sum-exp ignores its scale in the gradient",
        "hard_negative",
        CONTRAST + "gathering_fused",
        "found if self.request.scale == 1 else found.mul_(self.request.scale)",
        "found",
    ),
    Mutant(
        "compiled: a total's columns see no side",
        "triplet",
        CONTRAST + "fused",
        "phi(argument + column_side, kind)",
        "phi(argument, kind)",
    ),
    Mutant(
        "compiled: a slope's columns see no side",
        "triplet",
        CONTRAST + "fused",
        "slope(argument + column[0], kind) * column[1]",
        "slope(argument, kind) * column[1]",
    ),
    Mutant(
        "compiled: a total forgets its bias",
        "sigmoid",
        CONTRAST + "gathering_fused",
        "self.bias if tile.offset is None else",
        "0.0 if tile.offset is None else",
    ),
    # totals
    Mutant(
        "a side has the gradient of its neighbour",
        "triplet",
        CONTRAST + "gathering",
        "given.side[block.rows] += found.sum(1)",
        "given.side[block.rows] += found.sum(1).roll(1)",
    ),
    Mutant(
        "the mirrored side is left out of the gradient",
        "triplet",
        CONTRAST + "gathering",
        "given.side[block.columns] += theirs.sum(0)",
        "pass",
    ),
    Mutant(
        "the bias has no gradient from mirrored blocks",
        "sigmoid",
        CONTRAST + "gathering",
        "given.bias.add_(theirs.sum())",
        "pass",
    ),
    Mutant(
        "the hinge is linear", "margin", CONTRAST + "requests", "return positive.square_() if", "return positive if"
    ),
    # one or more an objective
    Mutant(
        "NT-Xent without its positive in the denominator",
        "nt_xent",
        OBJECTIVES + "nt_xent",
        "softplus(negatives - contrast.positive())",
        "negatives - contrast.positive()",
    ),
    Mutant(
        "decoupled with the positive in the denominator",
        "decoupled",
        OBJECTIVES + "decoupled",
        'contrast.logsumexp("negatives")',
        'contrast.logsumexp("candidates")',
    ),
    Mutant("debiased adds the prior", "debiased", OBJECTIVES + "debias", "-torch.expm1", "1 + torch.exp"),
    Mutant(
        "debiased does not divide by 1 - prior",
        "debiased",
        OBJECTIVES + "debias",
        "log_sum + kept - math.log1p(-prior)",
        "log_sum + kept",
    ),
    Mutant(
        "debiased forgets the number of negatives",
        "debiased",
        OBJECTIVES + "debias",
        "math.log(prior) + count + positive - log_sum",
        "math.log(prior) + positive - log_sum",
    ),
    Mutant(
        "debiased has no clamp",
        "debiased",
        OBJECTIVES + "debias",
        "least = count - 1 / contrast.temperature",
        "least = count - 1e6 / contrast.temperature",
    ),
    Mutant(
        "hard negatives are not normalised",
        "hard_negative",
        OBJECTIVES + "hard_negative",
        "log_sum = weighted - weights + number",
        "log_sum = weighted",
    ),
    Mutant(
        "hardness weighs the sum twice",
        "hard_negative",
        OBJECTIVES + "hard_negative",
        'LogSumExp("negatives", 1 + hardness)',
        'LogSumExp("negatives", 1 + 2 * hardness)',
    ),
    Mutant(
        "supervised takes the log outside (L_in)",
        "supervised",
        OBJECTIVES + "supervised",
        "softplus(negatives - positives) + (positives - mean)",
        "softplus(negatives - positives)",
    ),
    Mutant(
        "supervised sums over positives",
        "supervised",
        OBJECTIVES + "supervised",
        'mean = total / contrast.count("positives").clamp(min=1)',
        "mean = total",
    ),
    Mutant(
        "labels are ignored",
        "supervised",
        SAMPLERS + "same_label",
        "Codes(column(columns, self.column), column(theirs, self.column))",
        'Codes(column(columns, "sample"), column(theirs, "sample"))',
    ),
    Mutant("NCE without log nu", "nce", OBJECTIVES + "nce", ".to(contrast.anchors.dtype).log()", ".double() * 0"),
    Mutant(
        "NCE's normaliser has the wrong sign for the data",
        "nce",
        OBJECTIVES + "nce",
        '"positives", -1.0, ratio, -normaliser)',
        '"positives", -1.0, ratio, normaliser)',
    ),
    Mutant(
        "negative sampling pulls its negatives",
        "negative_sampling",
        OBJECTIVES + "negative_sampling",
        'Total("softplus", "negatives")',
        'Total("softplus", "negatives", -1.0)',
    ),
    Mutant(
        "the sigmoid's bias has one sign for both",
        "sigmoid",
        OBJECTIVES + "sigmoid",
        "-1.0, None, -bias)",
        "-1.0, None, bias)",
    ),
    Mutant("the margin's half is lost", "margin", OBJECTIVES + "margin", "total / (2 * count", "total / (count"),
    Mutant(
        "the margin is measured from the wrong side",
        "margin",
        OBJECTIVES + "margin",
        '"negatives", 1.0, None, margin)',
        '"negatives", -1.0, None, margin)',
    ),
    Mutant("the triplet's margin is subtracted", "triplet", OBJECTIVES + "triplet", "bias=margin", "bias=-margin"),
    Mutant(
        "the triplet's positive has no gradient",
        "triplet",
        OBJECTIVES + "triplet",
        "side=-contrast.positive()",
        "side=-contrast.positive().detach()",
    ),
    Mutant(
        "the cosine's factor of two is lost",
        "alignment_uniformity",
        OBJECTIVES + "alignment_uniformity",
        "(2.0, 2.0) if",
        "(1.0, 1.0) if",
    ),
    Mutant(
        "the regression is of the sum over positives",
        "regression",
        OBJECTIVES + "regression",
        " / positives.clamp(min=1)\n",
        "\n",
    ),
    Mutant(
        "an anchor without a negative does not count though none is read",
        "regression",
        OBJECTIVES + "regression",
        "positives > 0),)",
        'contrast.count("negatives") > 0),)',
    ),
)
