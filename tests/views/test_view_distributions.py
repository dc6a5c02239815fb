"""Every numeric parameter of every invariance can be given by distribution; scipy.stats says what must be drawn."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from scipy import stats

from pipeline.keys import Keys
from pipeline.spec import Spec, SpecError, parse
from pipeline.views import (
    OF_MODALITY,
    Affine,
    Blur,
    Brightness,
    ChannelDrop,
    ChannelGain,
    ChannelMix,
    ColorJitter,
    Contrast,
    Erase,
    Hue,
    Invariance,
    Jpeg,
    Noise,
    Perspective,
    Posterize,
    ResizedCrop,
    Rotation,
    Saturation,
    Sharpness,
    Shift,
    Solarize,
    fault,
)
from pipeline.views.distribution import Choice, Constant, Distribution, LogUniform, Normal, Uniform

COUNT = 6000
RARE = 1e-4  # of some 200 draws, each a function of fixed keys
FLAT = torch.full((COUNT, 2, 1, 1), 0.25)
Read = Callable[[Any, dict[str, torch.Tensor]], torch.Tensor]


@dataclass(frozen=True)
class Row:
    """A field of an invariance: the range it is tried in, how its draws are read, its kind's other fields."""

    model: type[Any]
    name: str
    low: float
    high: float
    read: Read
    rest: dict[str, Any] = field(default_factory=dict)
    whole: bool = False  # draws are rounded

    def given(self, parameter: Any, probability: float = 1.0) -> Any:
        return self.model(**{**self.rest, self.name: parameter, "probability": probability})


def named(name: str, minus: float = 0.0) -> Read:
    return lambda _, drawn: drawn[name].double().reshape(len(drawn[name]), -1)[:, 0] - minus


def gains(invariance: Any, drawn: dict[str, torch.Tensor]) -> torch.Tensor:
    return invariance.apply(FLAT[: len(drawn["acts"])], drawn)[:, 0, 0, 0].double() / 0.25 - 1


AFFINE: dict[str, Any] = {"degrees": 0, "pixels": 0, "scale": (1, 1), "shear": 0}
JITTER: dict[str, Any] = {"brightness": 0, "contrast": 0, "saturation": 0, "hue": 0}
ROWS = (
    Row(Shift, "pixels", -2, 5, named("shift")),
    Row(Rotation, "degrees", -20, 170, named("degrees")),
    Row(Affine, "degrees", -170, 20, named("degrees"), AFFINE),
    Row(Affine, "pixels", 1, 4, named("shift"), AFFINE),
    Row(Affine, "scale", 0.3, 2, named("scale"), AFFINE),
    Row(Affine, "shear", -30, 80, named("shear"), AFFINE),
    Row(Perspective, "distortion", 0.1, 0.9, named("corners")),
    Row(ResizedCrop, "area", 0.1, 1, named("area")),
    Row(ResizedCrop, "ratio", 0.2, 3, named("ratio")),
    Row(Brightness, "amount", -1, 2, named("factor", 1)),
    Row(Contrast, "amount", -0.5, 0.2, named("factor", 1)),
    Row(Saturation, "amount", -0.9, 1, named("factor", 1)),
    Row(Hue, "amount", -0.5, 0.3, named("turn")),
    Row(ColorJitter, "brightness", -0.8, 1.5, named("brightness", 1), JITTER),
    Row(ColorJitter, "contrast", -0.8, 1.5, named("contrast", 1), JITTER),
    Row(ColorJitter, "saturation", -0.8, 1.5, named("saturation", 1), JITTER),
    Row(ColorJitter, "hue", -0.1, 0.5, named("hue"), JITTER),
    Row(Blur, "sigma", 0.2, 4, named("sigma")),
    Row(Noise, "std", 0.01, 0.5, named("std")),
    Row(Solarize, "threshold", 0.1, 0.9, named("threshold")),
    Row(Posterize, "bits", 1, 8, named("bits"), whole=True),
    Row(Sharpness, "amount", -1, 3, named("factor", 1)),
    Row(ChannelGain, "amount", -0.9, 1, gains),
    Row(ChannelDrop, "count", 1, 6, named("count"), whole=True),
    Row(ChannelMix, "amount", 0.2, 1, named("part"), {"rows": ((0.0, 1.0), (1.0, 0.0))}),
    Row(Erase, "area", 0.05, 0.8, named("area")),
    Row(Erase, "ratio", 0.2, 3, named("ratio")),
    Row(Jpeg, "quality", 5, 95, named("quality"), whole=True),
)
EACH = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.model.model_fields['kind'].default}.{row.name}")
CONSTANTS = {"fill", "probability", "share", "spread", "weights", "times", "rows", "strength"}


def keys(count: int = COUNT, view: int = 0) -> Keys:
    return Keys.of(11, 0, np.arange(count), view)


def continuous(row: Row) -> list[tuple[Any, Any]]:
    """Distributions over the row's range, with their oracles."""
    low, high = row.low, row.high
    mean, std = low + 0.6 * (high - low), 0.3 * (high - low)
    bell = stats.truncnorm((low - mean) / std, (high - mean) / std, loc=mean, scale=std)
    found = [
        (Uniform(low=low, high=high), stats.uniform(low, high - low)),
        (Normal(mean=mean, std=std, low=low, high=high), bell),
    ]
    return found if low <= 0 else [*found, (LogUniform(low=low, high=high), stats.loguniform(low, high))]


def drawn(row: Row, parameter: Any, view: int = 0, probability: float = 1.0) -> np.ndarray[Any, Any]:
    invariance = row.given(parameter, probability)
    return row.read(invariance, invariance.draw(keys(view=view))).numpy()


@EACH
def test_a_parameter_follows_its_distribution_within_its_range(row: Row) -> None:
    for distribution, oracle in continuous(row):
        values = drawn(row, distribution)
        assert values.min() >= row.low - 1e-6
        assert values.max() <= row.high + 1e-6
        if row.whole:
            steps = np.arange(int(row.low), int(row.high) + 1)
            shares = np.diff(oracle.cdf(np.clip(np.append(steps - 0.5, steps[-1] + 0.5), row.low, row.high)))
            counts = (np.round(values)[:, None] == steps).sum(0)
            assert counts.sum() == COUNT
            assert stats.chisquare(counts, shares / shares.sum() * COUNT).pvalue > RARE, distribution
        else:
            assert stats.kstest(values, oracle.cdf).pvalue > RARE, distribution


@EACH
def test_a_parameter_is_chosen_as_often_as_its_weights_say(row: Row) -> None:
    middle = round((row.low + row.high) / 2) if row.whole else (row.low + row.high) / 2
    values = drawn(row, Choice(values=(row.low, middle, row.high), weights=(1, 0, 3)))
    assert np.abs(values[:, None] - np.array([row.low, row.high])).min(1).max() < 1e-6
    assert stats.binomtest(int((values > middle).sum()), COUNT, 0.75).pvalue > RARE
    assert np.abs(drawn(row, Constant(value=row.high)) - row.high).max() < 1e-5


@EACH
def test_the_two_views_of_a_sample_draw_independently(row: Row) -> None:
    for distribution, _ in continuous(row):
        pair = stats.spearmanr(drawn(row, distribution, 0), drawn(row, distribution, 1)).statistic
        assert abs(pair) < 5 / COUNT**0.5


def test_the_parameters_of_one_operation_are_drawn_independently() -> None:
    bell = Normal(mean=0, std=0.2, low=-0.5, high=0.5)
    jitter = ColorJitter(brightness=bell, contrast=bell, saturation=bell, hue=bell).draw(keys())
    affine = Affine(degrees=bell, pixels=bell, scale=LogUniform(low=0.5, high=2), shear=bell).draw(keys())
    crop = ResizedCrop(area=Uniform(low=0.1, high=1), ratio=Uniform(low=0.1, high=1)).draw(keys())
    for parameters in (jitter, affine, crop):
        columns = [values.double().reshape(COUNT, -1) for name, values in parameters.items() if name != "order"]
        together = torch.cat(columns, 1)
        correlations = torch.corrcoef(together[:, together.std(0) > 0].T).fill_diagonal_(0)
        assert float(correlations.abs().max()) < 5 / COUNT**0.5


@EACH
def test_a_distribution_leaves_probability_as_it_was(row: Row) -> None:
    # another value than that of no action, so that every action shows
    values = drawn(row, Constant(value=row.high if row.high != 1 else 0.9), probability=0.3)
    if row.model in (ResizedCrop, Erase, Solarize, Posterize, ChannelDrop):  # these draw whether they act apart
        invariance = row.given(Constant(value=row.low), 0.3)
        flags = {"cropped", "erased", "solarized", "posterized", "acts"}
        values = next(drawn for name, drawn in invariance.draw(keys()).items() if name in flags).numpy()
    often = int((np.abs(values - np.median(values)) > 1e-6).sum()) if values.dtype != bool else int(values.sum())
    assert stats.binomtest(often, COUNT, 0.3).pvalue > RARE


@EACH
def test_strength_draws_a_distribution_in_to_the_identity(row: Row) -> None:
    images = Keys.of(1, 0, np.arange(20)).uniform("pixels", shape=(2 if row.model is ChannelMix else 3, 8, 8))
    for distribution in (Choice(values=(row.low, row.high), weights=(1, 2)), *(found for found, _ in continuous(row))):
        high = min(row.high, 2.0) if row.model is ChannelDrop else row.high
        whole = row.given(distribution if high == row.high else Uniform(low=row.low, high=high))
        nothing = whole.at(0.0)
        assert torch.equal(nothing.apply(images, nothing.draw(keys(20))), images)
        assert whole.at(1.0) == whole
        for part in (whole.at(0.0), whole.at(0.3)):
            assert TypeAdapter(Invariance).validate_json(part.model_dump_json()) == part  # within the bounds still


@EACH
def test_a_plain_form_is_the_distribution_that_it_stands_for(row: Row) -> None:
    forms: dict[Any, tuple[Any, Any]] = {  # of the fields whose plain form is none of the usual
        (Perspective, "distortion"): (0.6, Uniform(low=0, high=0.6)),
        (ChannelMix, "amount"): (0.6, Uniform(low=0, high=0.6)),
        (Solarize, "threshold"): (0.6, None),
        (Posterize, "bits"): (3, None),
        (ChannelDrop, "count"): (2, None),
        (Jpeg, "quality"): ((20, 60), None),
    }
    usual: tuple[Any, Any] = (0.4, Uniform(low=-0.4, high=0.4))
    if row.name in ("area", "sigma", "std"):
        usual = (row.low, row.high), Uniform(low=row.low, high=row.high)
    elif row.name in ("ratio", "scale"):
        usual = (row.low, row.high), LogUniform(low=row.low, high=row.high)
    plain, named_form = forms.get((row.model, row.name), usual)
    assert getattr(row.given(plain), row.name) == plain
    assert TypeAdapter(Invariance).validate_json(row.given(plain).model_dump_json()) == row.given(plain)
    if named_form is not None:
        assert np.abs(drawn(row, plain) - drawn(row, named_form)).max() < 1e-6


def members(annotation: Any) -> set[Any]:
    """All types that an annotation is a union of."""
    if get_origin(annotation) is Annotated:
        return members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return set().union(*(members(part) for part in get_args(annotation)))
    return {get_origin(annotation) or annotation}


def test_no_numeric_parameter_is_left_out() -> None:
    given, plain = set(), set()
    for model in OF_MODALITY["image"]:
        for name, information in model.model_fields.items():
            kinds = members(information.annotation)
            if kinds >= {Constant, Uniform, LogUniform, Normal, Choice}:
                given.add((model, name))
            elif kinds & {float, int, tuple} and name != "of":
                plain.add(name)
    assert given == {(row.model, row.name) for row in ROWS}
    assert plain <= CONSTANTS


def test_what_a_jitter_and_an_affine_map_remove_follows_from_what_can_be_drawn() -> None:
    nothing, rarely = Constant(value=0), Choice(values=(0, 0.2), weights=(9, 1))
    jitter = ColorJitter(
        brightness=nothing,
        contrast=rarely,
        saturation=Choice(values=(0, 1), weights=(1, 0)),
        hue=Uniform(low=0, high=0),
    )
    assert jitter.removes == {"contrast"}
    assert jitter.channels_fault(1) is None
    assert ColorJitter(**{**JITTER, "hue": Uniform(low=0, high=0.1)}).channels_fault(1)
    assert Affine(**{**AFFINE, "scale": Constant(value=1)}).removes == frozenset()
    assert Affine(**{**AFFINE, "scale": Constant(value=2), "shear": rarely}).removes == {"scale", "aspect"}


def test_faults_with_the_data_read_what_can_be_drawn() -> None:
    assert fault(Shift(pixels=Uniform(low=-12, high=3)), 3, 12, 40) == (
        "pixels = 12 moves a picture of 12 x 40 off its canvas; use less"
    )
    assert fault(Shift(pixels=Uniform(low=-11, high=3)), 3, 12, 40) is None
    assert fault(ChannelDrop(count=Choice(values=(1, 3), weights=(1, 1))), 3, 8, 8) == (
        "count = 3 drops all of the data's 3 channels; drop fewer"
    )
    assert fault(ChannelDrop(count=Choice(values=(1, 3), weights=(1, 0))), 3, 8, 8) is None


def test_dropped_channels_bits_and_thresholds_are_those_drawn() -> None:
    images = torch.linspace(0, 1, 60).repeat(300, 5, 1, 1)
    drop = ChannelDrop(count=Choice(values=(1, 4), weights=(1, 1)), fill=0.33, probability=1.0)
    parameters = drop.draw(keys(300))
    gone = (drop.apply(images, parameters) == 0.33).flatten(2).all(2).sum(1)
    assert torch.equal(gone.float(), parameters["count"])
    coarse = Posterize(bits=Uniform(low=1, high=4), probability=1.0)
    parameters = coarse.draw(keys(300))
    for image, view, bits in zip(
        images, coarse.apply(images, parameters), parameters["bits"].round().int(), strict=True
    ):
        plain = Posterize(bits=int(bits), probability=1.0)
        assert torch.equal(plain.apply(image[None], plain.draw(keys(1)))[0], view)
    solarize = Solarize(threshold=Uniform(low=0.2, high=0.8), probability=1.0)
    parameters = solarize.draw(keys(300))
    for image, view, limit in zip(images, solarize.apply(images, parameters), parameters["threshold"], strict=True):
        assert torch.equal(torch.where(image >= limit, 1 - image, image), view)


class Holder(Spec):
    """Stands in for the space."""

    invariances: tuple[Invariance, ...]


TURN = {"kind": "rotation"}
NUMBER = "must be a number or a distribution such as {kind: uniform, low: 0.1, high: 0.3}"
PAIR = "must be [low, high] or a distribution such as {kind: uniform, low: 0.1, high: 0.3}"


def test_a_distribution_is_read_from_yaml() -> None:
    bell = {"kind": "normal", "mean": 0, "std": 5, "low": -15, "high": 15}
    space = parse({"invariances": [{**TURN, "degrees": bell}]}, Holder, "a.yaml")
    assert space.invariances[0] == Rotation(degrees=Normal(mean=0, std=5, low=-15, high=15))
    assert space.model_dump(mode="json")["invariances"][0]["degrees"] == bell


@pytest.mark.parametrize(
    ("kind", "name", "value", "line"),
    [
        ("rotation", "degrees", "high", f'degrees = "high": {NUMBER}'),
        ("rotation", "degrees", True, f"degrees = true: {NUMBER}"),
        ("rotation", "degrees", None, f"degrees = null: {NUMBER}"),
        ("rotation", "degrees", [-5, 10], f"degrees = [-5, 10]: {NUMBER}"),
        ("blur", "sigma", 2, f"sigma = 2: {PAIR}"),
        ("blur", "sigma", [1, "x"], 'sigma[1] = "x": must be a valid number'),
        ("blur", "sigma", [1], "sigma[1]: missing"),
        ("rotation", "degrees", {"kind": "gaussian"}, 'degrees.kind = "gaussian": unknown kind; known: choice, '),
        (
            "rotation",
            "degrees",
            {"kind": "unifrom"},
            "degrees.kind = \"unifrom\": unknown kind; did you mean 'uniform'?",
        ),
        ("rotation", "degrees", {"low": 1, "high": 2}, "degrees.kind: missing; known: constant, uniform, "),
        ("blur", "sigma", {"kind": "uniform", "low": 1}, "sigma.high: missing"),
        (
            "rotation",
            "degrees",
            {"kind": "uniform", "low": 1, "high": 2, "mean": 1},
            "degrees.mean = 1: unknown key; known: high, kind, low",
        ),
        ("rotation", "degrees", {"kind": "constant", "value": "x"}, 'degrees.value = "x": must be a valid number'),
        (
            "rotation",
            "degrees",
            {"kind": "uniform", "low": 2, "high": 1},
            "degrees.low = 2: must not be above high (1)",
        ),
        (
            "blur",
            "sigma",
            {"kind": "log_uniform", "low": 0, "high": 1},
            "sigma.low = 0: must be greater than 0",
        ),
        (
            "blur",
            "sigma",
            {"kind": "log_uniform", "low": 3, "high": 1},
            "sigma.low = 3: must not be above high (1)",
        ),
        (
            "rotation",
            "degrees",
            {"kind": "normal", "mean": 0, "std": 0, "low": -1, "high": 1},
            "degrees.std = 0: must be greater than 0",
        ),
        (
            "rotation",
            "degrees",
            {"kind": "normal", "mean": 0, "std": 1, "low": 1, "high": 1},
            "degrees.low = 1: must be below high (1)",
        ),
        (
            "rotation",
            "degrees",
            {"kind": "normal", "mean": 0, "std": 1, "low": 31, "high": 40},
            "degrees.mean = 0: lies over 30 std from [low, high], where nothing is drawn",
        ),
        (
            "rotation",
            "degrees",
            {"kind": "choice", "values": [1, 2], "weights": [1]},
            "degrees.weights = [1]: must be as many as the values: 2",
        ),
        (
            "rotation",
            "degrees",
            {"kind": "choice", "values": [1, 2], "weights": [0, 0]},
            "degrees.weights = [0, 0]: must be 0 or more, and one of them above 0",
        ),
        (
            "rotation",
            "degrees",
            {"kind": "choice", "values": [], "weights": []},
            "degrees.values = []: must have at least 1 item",
        ),
        (
            "rotation",
            "degrees",
            {"kind": "constant", "value": 200},
            'degrees = {"kind": "constant", "value": 200}: reaches from 200 to 200; must stay from -180 to 180',
        ),
        (
            "hue",
            "amount",
            {"kind": "uniform", "low": -0.6, "high": 0},
            "reaches from -0.6 to 0; must stay from -0.5 to 0.5",
        ),
        ("brightness", "amount", {"kind": "uniform", "low": -1.5, "high": 1}, "from -1.5 to 1; must stay -1 or more"),
        ("blur", "sigma", {"kind": "uniform", "low": -1, "high": 1}, "reaches from -1 to 1; must stay 0 or more"),
        ("jpeg", "quality", {"kind": "uniform", "low": 0, "high": 90}, "must stay from 1 to 100"),
        ("solarize", "threshold", {"kind": "constant", "value": 1.5}, "must stay from 0 to 1"),
        ("solarize", "threshold", 1.5, "threshold = 1.5: must be less than or equal to 1"),
        ("posterize", "bits", {"kind": "constant", "value": 9}, "must stay from 1 to 8"),
        ("posterize", "bits", 9, "bits = 9: must be less than or equal to 8"),
        ("posterize", "bits", 0, "bits = 0: must be greater than or equal to 1"),
        ("channel_drop", "count", {"kind": "constant", "value": 0}, "must stay 1 or more"),
        ("channel_gain", "amount", 1.5, "amount = 1.5: must be less than or equal to 1"),
        ("perspective", "distortion", 1, "distortion = 1: must be less than 1"),
        ("perspective", "distortion", {"kind": "uniform", "low": 0, "high": 1}, "must stay from 0 to below 1"),
        ("erase", "area", {"kind": "constant", "value": 1}, "must stay from 0 to below 1"),
        ("resized_crop", "area", {"kind": "constant", "value": 0}, "must stay above 0 and up to 1"),
        ("resized_crop", "ratio", {"kind": "constant", "value": 0}, "must stay above 0"),
        (
            "rotation",
            "degrees",
            {"kind": "normal", "mean": 0, "std": 1e9, "low": 0, "high": 40},
            "degrees.std = 1000000000.0: is so wide that all of [low, high] is equally likely; use {kind: uniform}",
        ),
        ("brightness", "amount", 1e300, "amount = 1e+300: must stay within 1,000,000 of 0"),
        ("shift", "pixels", {"kind": "uniform", "low": -1e9, "high": 0}, "must stay within 1,000,000 of 0"),
        ("noise", "std", [0, 1e9], "std = [0, 1000000000.0]: must stay within 1,000,000 of 0"),
        ("rotation", "probability", 1.5, "probability = 1.5: must be less than or equal to 1"),
        ("rotation", "probability", {"kind": "constant", "value": 1}, "probability = {"),
    ],
    ids=str,
)
def test_a_wrong_parameter_is_told_on_one_line_with_its_path(kind: str, name: str, value: Any, line: str) -> None:
    content = {"kind": kind, **({"degrees": 1} if kind == "rotation" else {}), name: value}
    with pytest.raises(SpecError) as caught:
        parse({"invariances": [content]}, Holder, "a.yaml")
    (told,) = map(str, caught.value.faults)
    assert told.startswith(f"a.yaml: invariances[0].{name}")
    assert line in told


def test_only_what_is_wrong_is_told() -> None:
    content = [
        {**TURN, "degrees": {"kind": "gaussian"}},
        {"kind": "shift", "pixels": "far"},
        {"kind": "blur", "sigma": 1},
    ]
    with pytest.raises(SpecError) as caught:
        parse({"invariances": content}, Holder, "a.yaml")
    assert len(caught.value.faults) == 3


def test_editors_are_told_every_form() -> None:
    schema = TypeAdapter(Invariance).json_schema()
    forms = schema["$defs"]["Rotation"]["properties"]["degrees"]["oneOf"]
    assert {"minimum": 0, "type": "number"} in forms
    kinds = {get_args(model.model_fields["kind"].annotation)[0] for model in members(Distribution)}
    named_kinds = next(form for form in forms if "discriminator" in form)["discriminator"]["mapping"]
    assert set(named_kinds) == kinds == {"constant", "uniform", "log_uniform", "normal", "choice"}
    assert all(row.model.model_fields[row.name].description for row in ROWS)
