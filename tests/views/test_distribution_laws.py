"""Distributions keep their laws, and wrong versions of them do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutants import Mutant, applied
from scipy import stats

from pipeline.views.distribution import LogUniform, Normal
from pipeline.views.parameter import bounds

sys.path.insert(0, str(Path(__file__).parent))

from distribution_laws import HALF, LAWS, UNITS

DISTRIBUTION, PARAMETER = "pipeline.views.distribution", "pipeline.views.parameter"
MUTANTS = (
    Mutant(
        "what lies outside is moved to the ends",
        "normal",
        DISTRIBUTION,
        "torch.special.ndtri(first + (last - first) * middle)",
        "torch.special.ndtri(middle)",
    ),
    Mutant("the upper tail is taken near 1", "normal", DISTRIBUTION, "if start > 0:", "if start > 1e9:"),
    Mutant(
        "the first draw comes from where no mass is",
        "normal",
        DISTRIBUTION,
        "middle = unit + 2.0**-25",
        "middle = unit",
    ),
    Mutant(
        "a weaker bell is as wide",
        "normal",
        DISTRIBUTION,
        '"std": self.std * strength',
        '"std": self.std',
    ),
    Mutant(
        "log-uniform is uniform",
        "log_uniform",
        DISTRIBUTION,
        "return (low + (high - low) * unit).exp().clamp(self.low, self.high)",
        "return self.low + (self.high - self.low) * unit",
    ),
    Mutant(
        "a ratio is weakened on a linear scale",
        "log_uniform",
        DISTRIBUTION,
        "blend = mixed_ratio if neutral > 0 else mixed",
        "blend = mixed",
    ),
    Mutant(
        "weights are ignored",
        "choice",
        DISTRIBUTION,
        "ends = torch.tensor(self.weights, dtype=unit.dtype).cumsum(0)",
        "ends = torch.ones(len(self.weights), dtype=unit.dtype).cumsum(0)",
    ),
    Mutant("a value of no weight is drawn at the end", "choice", DISTRIBUTION, "right=True", "right=False"),
    Mutant(
        "values that are never drawn are in the bounds",
        "choice",
        DISTRIBUTION,
        "zip(self.values, self.weights, strict=True) if weight > 0]",
        "zip(self.values, self.weights, strict=True)]",
    ),
    Mutant(
        "an amount has one side",
        "number",
        PARAMETER,
        "return keys.uniform(stream, -parameter, parameter, shape)",
        "return keys.uniform(stream, 0.0, parameter, shape)",
    ),
    Mutant(
        "all parameters of an operation are one draw",
        "stream",
        PARAMETER,
        "parameter.quantile(keys.uniform(stream, shape=shape).double())",
        'parameter.quantile(keys.uniform("", shape=shape).double())',
    ),
)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_law_holds(law):
    law()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_law_kills(mutant):
    killed = []
    with applied(mutant):
        for name, law in LAWS.items():
            try:
                law()
            except AssertionError:
                killed.append(name)
                break
    assert killed, f"survived: {mutant.name}"


@given(
    mean=st.floats(-5, 5),
    std=st.floats(0.01, 50),
    low=st.floats(-8, 8),
    width=st.floats(0.01, 20),
)
def test_a_normal_distribution_is_cut_anywhere_as_scipy_cuts_it(mean, std, low, width):
    high = low + width
    if max(low - mean, mean - high) > 30 * std:
        return
    ours = Normal(mean=mean, std=std, low=low, high=high)
    oracle = stats.truncnorm((low - mean) / std, (high - mean) / std, loc=mean, scale=std)
    assert bounds(ours) == (low, high)
    assert abs(ours.quantile(UNITS).numpy() - oracle.ppf((UNITS + HALF).numpy())).max() < 1e-7 * width


@given(low=st.floats(1e-6, 1e3), factor=st.floats(1.01, 1e6))
def test_a_log_uniform_distribution_is_that_of_scipy(low, factor):
    ours = LogUniform(low=low, high=low * factor)
    oracle = stats.loguniform(low, low * factor)
    assert abs(ours.quantile(UNITS).numpy() / oracle.ppf(UNITS.numpy()) - 1).max() < 1e-9
