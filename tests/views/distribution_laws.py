"""The laws of distributions: plain functions that raise AssertionError. Tests call them, and so do the mutants.

scipy.stats is the oracle of every inverse cumulative function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import stats

from pipeline.keys import Keys
from pipeline.views.distribution import Choice, Constant, LogUniform, Normal, Uniform
from pipeline.views.parameter import bounds, draw, one_sided, towards, varies

COUNT = 20_000
RARE = 1e-3  # a p-value below this is a fault: draws are functions of fixed keys, so a pass is a pass for ever
HALF = 2.0**-25  # of a unit's cell
UNITS = torch.cat([torch.arange(64), torch.arange(0, 2**24, 9973), 2**24 - 1 - torch.arange(64)]).double() * 2.0**-24
UNEVEN = Choice(values=(9.0, -2.0, 0.5, 4.0, -7.0), weights=(0, 3, 1, 4, 0))


def truncated(mean: float, std: float, low: float, high: float) -> tuple[Normal, Any]:
    oracle = stats.truncnorm((low - mean) / std, (high - mean) / std, loc=mean, scale=std)
    return Normal(mean=mean, std=std, low=low, high=high), oracle


CONTINUOUS: dict[str, tuple[Any, Any]] = {
    "uniform": (Uniform(low=-2, high=5), stats.uniform(-2, 7)),
    "log-uniform": (LogUniform(low=0.01, high=30), stats.loguniform(0.01, 30)),
    "normal, cut on both sides": truncated(1, 2, -1, 4),
    "normal, hardly cut": truncated(0, 5, -30, 30),
    "normal, cut at its top": truncated(3, 1, 3, 9),
    "normal, far upper tail": truncated(0, 1, 9, 12),
    "normal, far lower tail": truncated(0, 1, -30, -25),
    "normal, all but flat": truncated(0, 1e5, -1, 2),
}
FAMILY: dict[str, Any] = {name: found for name, (found, _) in CONTINUOUS.items()}
FAMILY |= {"choice": UNEVEN, "constant": Constant(value=1.5)}


def keys(count: int = COUNT, view: int = 0, epoch: int = 0) -> Keys:
    return Keys.of(7, epoch, np.arange(count), view)


def quantiles_are_those_of_scipy() -> None:
    for name, (distribution, oracle) in CONTINUOUS.items():
        low, high = bounds(distribution)
        units = UNITS + HALF if isinstance(distribution, Normal) else UNITS
        off = np.abs(distribution.quantile(UNITS).numpy() - oracle.ppf(units.numpy())).max()
        assert off < 1e-8 * (high - low), f"{name}: off by {off}"


def draws_follow_their_distribution() -> None:
    for name, (distribution, oracle) in CONTINUOUS.items():
        drawn = draw(keys(), "drawn", distribution).double().numpy()
        assert stats.kstest(drawn, oracle.cdf).pvalue > RARE, name


def choices_are_as_frequent_as_their_weights() -> None:
    drawn = draw(keys(), "drawn", UNEVEN).numpy()
    counts = [int((drawn == value).sum()) for value in UNEVEN.values]
    assert sum(counts) == COUNT
    assert counts[0] == counts[4] == 0
    assert stats.chisquare(counts[1:4], np.array([3, 1, 4]) / 8 * COUNT).pvalue > RARE
    assert set(UNEVEN.quantile(UNITS).tolist()) == {-2.0, 0.5, 4.0}  # the first and the last unit too
    assert bounds(UNEVEN) == (-2.0, 4.0)


def draws_stay_within_their_bounds() -> None:
    for name, distribution in FAMILY.items():
        low, high = bounds(distribution)
        drawn = draw(keys(), "drawn", distribution, shape=(3,))
        assert drawn.dtype == torch.float32
        assert drawn.shape == (COUNT, 3)
        assert float(drawn.min()) >= np.float32(low), name
        assert float(drawn.max()) <= np.float32(high), name
        assert varies(distribution)


def larger_units_give_no_smaller_values() -> None:
    for name, distribution in FAMILY.items():
        order = UNITS.sort().values
        if not isinstance(distribution, Choice):
            assert bool((distribution.quantile(order).diff() >= 0).all()), name


def strength_moves_every_draw_along_its_way() -> None:
    for name, distribution in FAMILY.items():
        whole = draw(keys(500), "drawn", distribution).double()
        for neutral in (0.0, 1.0, 100.0):
            for strength in (0.0, 0.25, 0.9, 1.0):
                weaker: Any = towards(distribution, neutral, strength)
                expected = neutral + strength * (whole - neutral)
                if isinstance(distribution, LogUniform) and neutral > 0:
                    expected = neutral ** (1 - strength) * whole**strength
                assert torch.allclose(draw(keys(500), "drawn", weaker).double(), expected, rtol=1e-6, atol=5e-6), name
            assert towards(distribution, neutral, 1.0) == distribution
            assert towards(distribution, neutral, 0.0) == Constant(value=neutral)
            assert bool((draw(keys(500), "drawn", towards(distribution, neutral, 0.0)) == neutral).all())


def plain_forms_mean_what_they_meant() -> None:
    few = keys(500)
    for amount in (0.4, 3):
        plain = few.uniform("a", -amount, amount, (2,))
        assert torch.equal(draw(few, "a", amount, shape=(2,)), plain)
        assert torch.equal(draw(few, "a", Uniform(low=-amount, high=amount), shape=(2,)), plain)
        assert torch.equal(draw(few, "a", one_sided(amount)), few.uniform("a", 0.0, amount))
        assert bounds(amount) == (-amount, amount)
        assert towards(amount, 0.0, 0.25) == 0.25 * amount
    assert torch.equal(draw(few, "a", (0.1, 2.0)), few.uniform("a", 0.1, 2.0))
    assert torch.equal(draw(few, "a", Uniform(low=0.1, high=2.0)), few.uniform("a", 0.1, 2.0))
    logs = few.uniform("a", float(np.log(0.1)), float(np.log(2.0))).exp()
    assert torch.equal(draw(few, "a", (0.1, 2.0), log=True), logs)
    assert torch.allclose(draw(few, "a", LogUniform(low=0.1, high=2.0)), logs, rtol=1e-6)
    assert towards((0.5, 2.0), 1.0, 0.5) == (0.75, 1.5)
    assert towards((0.25, 4.0), 1.0, 0.5, log=True) == (0.5, 2.0)
    assert not varies(0.0)
    assert not varies((1.0, 1.0), 1.0)
    assert not varies(Choice(values=(0, 5), weights=(1, 0)))


def streams_views_and_epochs_are_independent() -> None:
    for name, distribution in FAMILY.items():
        if isinstance(distribution, Constant):
            continue
        one = draw(keys(), "one", distribution)
        others = [draw(keys(), "two", distribution)]
        others += [draw(keys(view=1), "one", distribution), draw(keys(epoch=1), "one", distribution)]
        for other in others:
            assert abs(stats.spearmanr(one, other).statistic) < 5 / COUNT**0.5, name
        assert torch.equal(one[::3], draw(keys().take(slice(None, None, 3)), "one", distribution))


LAWS: dict[str, Callable[[], None]] = {
    law.__name__: law
    for law in (
        quantiles_are_those_of_scipy,
        draws_follow_their_distribution,
        choices_are_as_frequent_as_their_weights,
        draws_stay_within_their_bounds,
        larger_units_give_no_smaller_values,
        strength_moves_every_draw_along_its_way,
        plain_forms_mean_what_they_meant,
        streams_views_and_epochs_are_independent,
    )
}
