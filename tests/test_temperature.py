"""Temperature: a bare number is fixed, a learned one stays in its bounds with a gradient, a schedule has its ends."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.objectives import nt_xent
from pipeline.spec import Spec, SpecError, parse
from pipeline.temperature import Learned, Scheduled, Temperature


class Holder(Spec):
    temperature: Temperature | None


def read(content):
    return parse({"temperature": content}, Holder, "x.yaml").temperature


def test_a_bare_number_is_a_fixed_temperature():
    assert read(0.2) == read({"kind": "fixed", "value": 0.2})
    assert read(0.2).at(0.7, {}) == 0.2
    assert read(None) is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (0, "temperature = 0: must be greater than 0"),
        (-1.5, "temperature = -1.5: must be greater than 0"),
        ({"kind": "lerned"}, "unknown kind; did you mean 'learned'?"),
        ({"kind": "fixed"}, "temperature.value: missing"),
        (
            {"kind": "learned", "start": 2.0, "low": 0.01, "high": 1.0},
            "temperature.start = 2.0: must lie between low (0.01) and high (1.0)",
        ),
    ],
)
def test_what_is_wrong_is_named(content, text):
    with pytest.raises(SpecError) as error:
        read(content)
    assert text in str(error.value)


@given(position=st.floats(-30, 30))
def test_a_learned_temperature_stays_in_its_bounds(position):
    learned = Learned(kind="learned", start=0.1, low=0.01, high=1.0)
    value = learned.at(0.0, {"temperature": torch.tensor(position, dtype=torch.float64)})
    assert 0.01 * (1 - 1e-9) <= value.item() <= 1.0 * (1 + 1e-9)


def test_a_learned_temperature_starts_where_it_is_told_and_receives_the_loss_gradient():
    learned = Learned(kind="learned", start=0.1, low=0.01, high=1.0)
    scalars = {name: value.double().requires_grad_() for name, value in learned.learned().items()}
    temperature = learned.at(0.0, scalars)
    assert temperature.item() == pytest.approx(0.1)
    z = torch.randn(8, 4, dtype=torch.float64)
    nt_xent(z, temperature).backward()
    step = 1e-6
    moved = [
        nt_xent(z, learned.at(0.0, {"temperature": scalars["temperature"].detach() + sign * step})) for sign in (1, -1)
    ]
    assert scalars["temperature"].grad.item() == pytest.approx(((moved[0] - moved[1]) / (2 * step)).item(), rel=1e-5)


@pytest.mark.parametrize("shape", ["cosine", "linear"])
def test_a_schedule_runs_from_start_to_end(shape):
    scheduled = Scheduled(kind="scheduled", start=1.0, end=0.1, shape=shape)
    values = [scheduled.at(progress / 10, {}) for progress in range(11)]
    assert values[0] == pytest.approx(1.0)
    assert values[5] == pytest.approx(0.55)
    assert values[-1] == pytest.approx(0.1)
    assert values == sorted(values, reverse=True)
