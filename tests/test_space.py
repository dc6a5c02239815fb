"""The LatentSpace: no field is silently unused, and its identity is all that it declares."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from ruamel.yaml import YAML
from small import SPACE, space

from pipeline.objectives import Objective
from pipeline.space import LatentSpace
from pipeline.spec import SpecError, canonical, parse

MEMBERS = {member.model_fields["kind"].annotation.__args__[0]: member for member in get_args(get_args(Objective)[0])}


PREDICTOR: dict[str, Any] = {"kind": "mlp", "hidden": 4}
MOMENTUM: dict[str, Any] = {"kind": "momentum", "m": 0.99, "schedule": "cosine"}
QUEUE: dict[str, Any] = {"kind": "queue", "length": 32, "in_batch": False}
REGRESSION: dict[str, Any] = {"kind": "regression", "form": "squared_distance"}
REGRESSION_FITS: dict[str, Any] = {"objective": REGRESSION, "temperature": None, "predictor": PREDICTOR}


def told(**changes: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        space(**changes)
    return str(caught.value).splitlines()


def objective_of(kind: str) -> dict[str, Any]:
    """Valid settings of an objective: every number is a half."""
    required = [name for name, field in MEMBERS[kind].model_fields.items() if field.is_required() and name != "kind"]
    return {"kind": kind, **{name: "squared_distance" if name == "form" else 0.5 for name in required}}


def fitting(kind: str) -> dict[str, Any]:
    member = MEMBERS[kind]
    metric = "cosine" if "cosine" in member.metrics else sorted(member.metrics)[0]
    return {
        "objective": objective_of(kind),
        "metric": metric,
        "temperature": 0.2 if member.uses_temperature else None,
        "sampler": {"kind": "same_label", "column": "shape"} if kind == "supervised" else {"kind": "in_batch"},
        **({"predictor": PREDICTOR, "target": "stop_gradient"} if kind == "regression" else {}),
    }


@pytest.mark.parametrize("kind", MEMBERS)
def test_every_objective_has_a_space(kind: str) -> None:
    assert space(**fitting(kind)).objective.kind == kind


@pytest.mark.parametrize("kind", [kind for kind, member in MEMBERS.items() if member.uses_temperature])
def test_an_objective_that_divides_by_the_temperature_needs_one(kind: str) -> None:
    assert told(**{**fitting(kind), "temperature": None}) == [
        f"x.yaml: space.temperature = null: must be a number above 0: {kind} divides by it"
    ]


@pytest.mark.parametrize("kind", [kind for kind, member in MEMBERS.items() if not member.uses_temperature])
def test_a_temperature_that_would_be_unused_is_refused(kind: str) -> None:
    assert told(**{**fitting(kind), "temperature": 0.5}) == [
        f"x.yaml: space.temperature = 0.5: must be null: {kind} has no temperature, so it would be silently unused"
    ]


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        (kind, metric)
        for kind, member in MEMBERS.items()
        for metric in ("cosine", "dot", "euclidean", "squared_euclidean")
        if metric not in member.metrics
    ],
)
def test_a_metric_that_the_objective_has_no_meaning_for_is_refused(kind: str, metric: str) -> None:
    (line,) = told(**{**fitting(kind), "metric": metric})
    assert line.startswith(f'x.yaml: space.metric = "{metric}": {kind} works with ')
    assert all(known in line for known in MEMBERS[kind].metrics)


@pytest.mark.parametrize("temperature", [0, 0.0, -0.1])
def test_a_temperature_is_above_zero(temperature: float) -> None:
    (line,) = told(temperature=temperature)
    assert line.startswith("x.yaml: space.temperature")
    assert "must be greater than 0" in line


def test_the_cosine_needs_unit_vectors_declared() -> None:
    assert told(normalization="none") == [
        'x.yaml: space.normalization = "none": must be l2: the cosine reads directions only'
    ]
    assert space(normalization="none", metric="dot").normalization == "none"


def test_a_name_preserved_twice_is_told_at_its_place() -> None:
    assert told(preserves=["shape", "hue", "shape"]) == ['x.yaml: space.preserves[2] = "shape": named twice']


def test_a_space_without_an_invariance_is_no_space() -> None:
    (line,) = told(invariances=[])
    assert line.startswith("x.yaml: space.invariances = []")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"predictor": PREDICTOR},
            'target = "same": must be stop_gradient or momentum: a predictor that is its own target',
        ),
        (
            {"objective": REGRESSION, "temperature": None, "target": "stop_gradient"},
            "predictor = null: regression needs one, as {kind: mlp, hidden: 512, norm: batch}, or it collapses",
        ),
        (
            {**REGRESSION_FITS, "target": "same", "predictor": None},
            [
                "predictor = null: regression needs one",
                'target = "same": must be stop_gradient or momentum: regression has',
            ],
        ),
        (
            {**REGRESSION_FITS, "target": MOMENTUM, "sampler": QUEUE},
            'sampler = {"kind": "queue", "length": 32, "in_batch": false}: must be in_batch or same_label: regression',
        ),
        (
            {"sampler": QUEUE},
            'target = "same": must be {kind: momentum, …}: the keys of a queue are made by a slow copy',
        ),
        ({"sampler": QUEUE, "target": "stop_gradient"}, 'target = "stop_gradient": must be {kind: momentum, …}'),
        ({"target": "momentum"}, 'target = "momentum": must be same, stop_gradient, or {kind: momentum, m: 0.99, sch'),
        ({"target": {**MOMENTUM, "m": 1.0}}, "target.m = 1.0: must be less than 1"),
        ({"target": {**MOMENTUM, "m": -0.1}}, "target.m = -0.1: must be greater than or equal to 0"),
        ({"target": {"kind": "slow"}}, 'target.kind = "slow": unknown kind; known: momentum, same, stop_gradient'),
        ({"sampler": {"kind": "queue", "length": 0, "in_batch": True}}, "sampler.length = 0: must be greater than or"),
    ],
)
def test_targets_predictors_and_samplers_that_do_not_go_together_are_refused(changes: Any, line: Any) -> None:
    lines = [line] if isinstance(line, str) else line
    found = told(**changes)
    assert len(found) == len(lines)
    for one, expected in zip(found, lines, strict=True):
        assert one.startswith(f"x.yaml: space.{expected}"), one


def test_the_bare_words_of_a_target_are_its_kinds() -> None:
    assert space(target="same") == space(target={"kind": "same"})
    assert space(target="stop_gradient") == space(target={"kind": "stop_gradient"})
    assert space(target="same").identity() != space(target="stop_gradient").identity()


CHANGES: dict[str, Any] = {
    "invariances": [SPACE["invariances"][0]],
    "views": {"kind": "asymmetric", "first": [{"kind": "blur"}], "second": []},
    "preserves": [],
    "projection": {"kind": "none"},
    "predictor": PREDICTOR,
    "target": MOMENTUM,
    "normalization": "none",
    "metric": "dot",
    "temperature": 0.21,
    "sampler": {"kind": "same_label", "column": "shape"},
    "objective": {"kind": "decoupled"},
}


@pytest.mark.parametrize("field", [name for name in LatentSpace.model_fields if name != "preset"])
def test_the_identity_changes_with_any_field(field: str) -> None:
    base = {"metric": "dot"} if field == "normalization" else {}
    base = {"target": "stop_gradient"} if field == "predictor" else base
    assert space(**base).identity() != space(**base, **{field: CHANGES[field]}).identity()


def test_the_order_of_invariances_and_their_smallest_number_are_part_of_the_identity() -> None:
    first, second = SPACE["invariances"]
    identities = {
        space(invariances=each).identity()
        for each in ([first, second], [second, first], [{**first, "pixels": 2.0000001}, second])
    }
    assert len(identities) == 3


def test_the_identity_does_not_change_with_formatting() -> None:
    block = "\n".join(f"{key}: {json.dumps(value)}" for key, value in reversed(SPACE.items()))
    text = "# a comment\n" + block.replace("0.2", "2.0e-1  # warm")
    again = parse(YAML(typ="safe", pure=True).load(text), LatentSpace, "y.yaml")
    assert again.identity() == space().identity()
    assert space(temperature={"kind": "fixed", "value": 0.2}).identity() == space().identity()


def test_a_space_read_back_from_its_own_json_is_the_same_space() -> None:
    assert LatentSpace.model_validate_json(canonical(space())) == space()
