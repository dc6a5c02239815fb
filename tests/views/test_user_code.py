"""User code as an invariance: what validation tells of a bad class, what an edit changes, what never executes it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import test_view_laws as laws
import torch
from small import ROOT, TRAINING, pictures, sharded, space, trained, training, whole

from pipeline.audio import Audio
from pipeline.bundle import load
from pipeline.bundle.writing import write_bundle
from pipeline.images import Input
from pipeline.keys import Keys
from pipeline.modalities import Contract, Modality
from pipeline.network import build_network
from pipeline.samples import several
from pipeline.series import Series
from pipeline.spec import Refusal, SpecError, parse
from pipeline.specification import all_faults, faults_of
from pipeline.views import Choose, Code, CodeFault, Compose, Maybe, Shift, Window, draw_view, located, misfit
from pipeline.views.audio import Gain
from pipeline.views.code_laws import broken_law

CODE = ROOT / "specs" / "examples" / "code"
VIGNETTE, HUM = CODE / "vignette.py", CODE / "hum.py"
GOOD = """
import torch

class Light:
    def __init__(self, amount=0.5):
        self.amount = amount

    def draw(self, keys):
        return {"light": keys.uniform("light", 1 - self.amount, 1.0)}

    def apply(self, images, parameters):
        return images * parameters["light"][:, None, None, None]
"""
DRAW = '        return {"light": keys.uniform("light", 1 - self.amount, 1.0)}'
APPLY = '        return images * parameters["light"][:, None, None, None]'
TIMED = GOOD.replace("images, parameters)", "images, parameters, rate)").replace("None, None, None]", "None, None]")
"""The same of what has a time axis."""


@dataclass(frozen=True)
class Kind:
    """A modality, and small samples of it."""

    contract: Modality
    """of 3 channels"""
    shape: str
    """of 8 samples with one channel, as a message tells it"""

    def of(self, text: str) -> str:
        """Code of pictures, as it is written for this modality."""
        if len(self.contract.shape) == 3:
            return text
        for old, new in (("images, parameters)", "images, parameters, rate)"), ("None, None, None]", "None, None]")):
            text = text.replace(old, new)
        return text.replace("(2, 3)", "2").replace("1, 1, 1)", "1, 1)")

    def said(self, line: str) -> str:
        """What is said of pictures, as it is said of this modality."""
        whole = self.shape.replace(" 1, ", f" {self.contract.channels}, ", 1)
        line = line.replace("(8, 1, 12, 12)", self.shape).replace("(8, 3, 12, 12)", whole)
        line = line.replace("channels and pixels", self.contract.extent.along)
        return line.replace("pictures", several(self.contract.word)).replace("picture", self.contract.word)


def canvas(channels: int = 3, size: int = 12) -> Input:
    return Input(height=size, width=size, channels=channels, fit="pad")


def clip(channels: int = 3, seconds: float = 0.012) -> Audio:
    rules = {"mix": "mean", "longer": "centre", "shorter": "centre"}
    return parse({"kind": "audio", "rate": 8000, "seconds": seconds, "channels": channels, **rules}, Audio, "a.yaml")


def series(channels: int = 3, steps: int = 96) -> Series:
    rules = {"names": None, "layout": "time_first", "longer": "centre", "shorter": "hold"}
    return parse({"kind": "series", "channels": channels, "steps": steps, "rate": 50, **rules}, Series, "a.yaml")


KINDS = {
    "pictures": Kind(canvas(), "(8, 1, 12, 12)"),
    "sounds": Kind(clip(), "(8, 1, 96)"),
    "series": Kind(series(), "(8, 1, 96)"),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with one good file, mine/light.py."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "light.py").write_text(GOOD)
    return tmp_path


def light(**changes: Any) -> dict[str, Any]:
    return {"kind": "code", "file": "mine/light.py", "name": "Light", "removes": ["brightness"], **changes}


def code(**changes: Any) -> Code:
    return parse(light(**changes), Code, "a.yaml")


def keys(count: int) -> Keys:
    return Keys.of(0, 0, np.arange(count))


def rewritten(*changes: tuple[str, str]) -> str:
    text = GOOD
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def law_broken(code: Code, contract: Modality) -> tuple[str, str] | None:
    return broken_law(code, contract, contract.size)


def told(text: str, contract: Modality = KINDS["pictures"].contract, **changes: Any) -> str:
    """What validation says of a file with this text: "FIELD: REMEDY"."""
    Path("mine/light.py").write_text(text)
    broken = law_broken(code(**changes), contract)
    assert broken is not None
    assert "\n" not in broken[1]
    return ": ".join(broken)


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (3, 12), (13, 1), (3, 97)])
def test_a_good_class_breaks_no_law(folder: Path, channels: int, size: int) -> None:
    assert law_broken(code(), canvas(channels, size)) is None
    shipped = code(file=str(VIGNETTE), name="Vignette", arguments={"amount": 0.5})
    assert law_broken(shipped, canvas(channels, size)) is None or size == 1


@pytest.mark.parametrize("contract", [clip(1), clip(2, 0.5), clip(1, 1 / 8000), series(1, 1), series(13, 50)])
def test_a_good_class_of_waves_breaks_no_law(folder: Path, contract: Modality) -> None:
    (folder / "mine" / "light.py").write_text(TIMED)
    assert law_broken(code(), contract) is None
    shipped = code(file=str(HUM), name="Hum", arguments={"hertz": 50.0, "level": 0.05}, removes=["noise"])
    assert law_broken(shipped, contract) is None


def test_every_contract_says_which_values_its_views_keep() -> None:
    contracts = [get_args(each)[0] for each in get_args(get_args(Contract)[0])]
    assert {Input, Audio, Series} <= {*contracts}
    for each in contracts:
        assert each.extent.low < each.extent.high
        assert each.extent.along
        assert each.extent.kept == (each is Input), "an encoder of pictures is told that they lie in [0, 1]"


BAD: dict[str, tuple[tuple[tuple[str, str], ...], str]] = {
    "a syntax error": (
        (("    def draw(self, keys):", "    def draw(self, keys:"),),
        "file: line 8: not valid Python: '(' was never closed",
    ),
    "an import that fails": (
        (("import torch", "import torhc"),),
        "file: mine/light.py line 2: loading it raises ModuleNotFoundError: No module named 'torhc'",
    ),
    "another name": ((("class Light", "class Lihgt"),), "no such class in mine/light.py; did you mean 'Lihgt'?"),
    "no class": (
        (("class Light:", "def Light():\n    pass\n\nclass Other:"),),
        "name: must be a class with draw and apply; known: Other",
    ),
    "no apply": (
        (("def apply", "def appyl"),),
        "name: mine/light.py line 5: the class has no method apply; it needs draw and apply",
    ),
    "a constructor that wants more": (
        (("amount=0.5):", "amount, radius):"),),
        "arguments: mine/light.py line 5: Light refuses them: missing a required argument: 'amount'; "
        "it takes: amount, radius",
    ),
    "a constructor that raises": (
        (("        self.amount = amount", '        raise ValueError("amount must be odd")'),),
        "arguments: mine/light.py line 6: Light raises ValueError: amount must be odd",
    ),
    "a constructor that exits": (
        (("        self.amount = amount", "        raise SystemExit(3)"),),
        "arguments: mine/light.py line 6: Light raises SystemExit: 3",
    ),
    "a draw that returns a tensor": (
        ((DRAW, '        return keys.uniform("light")'),),
        "name: mine/light.py line 8: draw returns a tensor (8,); return a dict of tensors with 8 rows, one a key",
    ),
    "a draw that returns numbers": (
        ((DRAW, '        return {"light": 0.5}'),),
        "draw returns a float as 'light'; return a dict of tensors with 8 rows, one a key",
    ),
    "a draw of one row": (
        ((DRAW, '        return {"light": torch.ones(1)}'),),
        "draw returns 'light' of shape (1,) for 8 keys; return a dict of tensors with 8 rows, one a key",
    ),
    "a draw from torch's generator": (
        ((DRAW, '        return {"light": torch.rand(len(keys))}'),),
        "draw gives other parameters for the same keys; draw from the keys alone",
    ),
    "a draw by the place in the batch": (
        ((DRAW, '        return {"light": torch.linspace(0, 1, len(keys))}'),),
        "draw lets a row depend on other rows or on their number; draw from the keys alone",
    ),
    "a draw that knows nothing of keys": (
        ((DRAW, '        return {"light": torch.full((len(keys),), 0.5)}'),),
        "draw draws the same for every key, so that all views are alike; draw from the keys alone",
    ),
    "a draw of nothing": (
        ((DRAW, "        return {}"), (APPLY, "        return images * 0.5")),
        "draw draws nothing, so that all views are alike; draw something, or give a probability below 1",
    ),
    "another shape": (
        ((APPLY, "        return images[:, :1]"),),
        "name: mine/light.py line 11: apply returns shape (8, 1, 12, 12), given (8, 3, 12, 12); return the same shape",
    ),
    "another type": (
        ((APPLY, "        return images.double()"),),
        "apply returns float64, given float32; return the same type",
    ),
    "another device": (
        ((APPLY, '        return images.to("meta")'),),
        "apply returns values on meta, given cpu; work on the device of what it is given",
    ),
    "nothing": (
        ((APPLY, "        pass"),),
        "name: mine/light.py line 11: apply returns None; return what it was given, changed, a tensor",
    ),
    "not a number": (
        ((APPLY, "        return ((images - images.mean((2, 3), keepdim=True)) / images.std((2, 3), keepdim=True))"),),
        "apply returns values that are not finite (NaN or infinity); guard divisions, roots and logarithms",
    ),
    "writing to the input": (
        ((APPLY, '        return images.mul_(parameters["light"][:, None, None, None])'),),
        "apply writes to the pictures that it is given; return new ones (clone them)",
    ),
    "writing to the parameters": (
        ((APPLY, '        return images * parameters["light"].mul_(0.5)[:, None, None, None]'),),
        "apply writes to the parameters that it is given; leave them as they are",
    ),
    "mixing rows": (
        ((APPLY, '        return (images * parameters["light"][:, None, None, None] + images.mean(0)) / 2'),),
        "apply mixes rows: a picture alone gives another than in a batch; reduce over channels and pixels only",
    ),
    "chance in apply": (
        ((APPLY, "        return images * torch.rand(len(images), 1, 1, 1)"),),
        "apply gives other pictures for the same pictures and parameters; all that is random must be drawn in draw",
    ),
    "ignored parameters": (
        ((APPLY, "        return images.flip(-1)"),),
        "apply ignores its parameters (light): 64 draws of a picture are all alike",
    ),
    "doing nothing": (
        ((APPLY, "        return images.clone()"),),
        "apply changes none of the tried pictures under 64 draws; take it out",
    ),
    "raising": (
        ((APPLY, '        return images * parameters["dark"]'),),
        "name: mine/light.py line 12: apply raises KeyError: 'dark'",
    ),
    "an at of nothing": (
        ((APPLY, APPLY + "\n\n    def at(self, strength):\n        return None\n"),),
        "name: mine/light.py line 14: at returns None, which has no method draw",
    ),
    "an at that is no strength": (
        ((APPLY, APPLY + "\n\n    def at(self, strength):\n        return self\n"),),
        "name: mine/light.py line 14: at at strength 0 is not the identity",
    ),
}


@every_kind
@pytest.mark.parametrize(("changes", "line"), BAD.values(), ids=BAD)
def test_a_bad_class_is_told_in_one_line(
    folder: Path, changes: tuple[tuple[str, str], ...], line: str, kind: Kind
) -> None:
    assert kind.said(line) in told(kind.of(rewritten(*changes)), kind.contract)


def test_only_pictures_stay_in_0_to_1(folder: Path) -> None:
    text = rewritten((APPLY, '        return images * (1 + parameters["light"][:, None, None, None])'))
    assert "apply leaves [0, 1]: values from 0 to 1.9" in told(text)
    for name in ("sounds", "series"):
        (folder / "mine" / "light.py").write_text(KINDS[name].of(text))
        assert law_broken(code(), KINDS[name].contract) is None


def test_what_has_a_time_axis_is_told_the_rate(folder: Path) -> None:
    line = "name: mine/light.py line 11: apply is called with apply({}, parameters{}), and takes: images, parameters"
    timeless = GOOD.replace("None, None, None]", "None, None]")
    assert told(timeless, clip()) == line.format("clips", ", rate")
    assert told(timeless, series()) == line.format("series", ", rate")
    assert told(TIMED) == line.format("pictures", "") + ", rate"
    (folder / "mine" / "light.py").write_text(TIMED.replace("return images *", "return rate + images *"))
    for contract, rate in ((clip(), 8000), (series(), 50)):
        view = draw_view(torch.zeros(2, 3, 96), [code()], keys(2), contract.size)
        assert bool((view == rate).all())


def test_code_goes_with_any_modality_and_inside_combinators(folder: Path) -> None:
    (folder / "mine" / "light.py").write_text(TIMED)
    mixed = Choose(of=(code(), Compose(of=(Gain(db=3), Maybe(of=code(), probability=0.5)))), weights=(1, 1))
    for contract in (clip(2), series(2)):
        assert misfit(code(), 2, contract.size) is None
    assert misfit(mixed, 2, clip(2).size) is None
    assert "gain is for audio" in str(misfit(mixed, 2, series(2).size))
    waves = torch.rand(40, 2, 96)
    view = draw_view(waves, [mixed], keys(40), clip(2).size)
    assert torch.allclose(draw_view(waves[7:9], [mixed], keys(40).take([7, 8]), clip(2).size), view[7:9], atol=1e-6)
    longer = [0.1 + torch.rand(2, 96 + extra) for extra in (0, 40, 400)]
    share = draw_view(longer, [Window(), code()], keys(3), clip(2).size)
    share /= draw_view(longer, [Window()], keys(3), clip(2).size)
    assert torch.allclose(share, share[:, :1, :1].expand_as(share), atol=1e-5), "each window times a number of its own"
    assert float(share.max()) < 1


def test_a_missing_file_and_arguments_that_nobody_takes_are_told(folder: Path) -> None:
    assert law_broken(code(file="mine/lihgt.py"), canvas()) == ("file", "no such file")
    line = told(GOOD, arguments={"amuont": 0.5})
    assert line == (
        "arguments: mine/light.py line 5: Light refuses them: got an unexpected keyword argument 'amuont'; "
        "it takes: amount=0.5"
    )


def test_an_operation_without_parameters_needs_a_probability(folder: Path) -> None:
    text = rewritten((DRAW, "        return {}"), (APPLY, "        return 1 - images"))
    (folder / "mine" / "light.py").write_text(text)
    assert law_broken(code(probability=0.3), canvas()) is None
    images = torch.zeros(2000, 1, 2, 2)
    share = float(draw_view(images, [code(probability=0.3)], keys(2000)).mean())
    assert abs(share - 0.3) < 0.05
    half = float(draw_view(images, [code(probability=0.6).at(0.5)], keys(2000)).mean())  # no at: acts less often
    assert half == share


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"removes": ["brightnes"]}, 'a.yaml: removes = ["brightnes"]: no such factor: brightnes; did you mean'),
        ({"removes": []}, "a.yaml: removes = []: "),
        ({"file": "mine/light.txt"}, 'a.yaml: file = "mine/light.txt": '),
        ({"argument": {}}, "a.yaml: argument = {}: unknown key; did you mean 'arguments'?"),
        ({"probability": 2}, "a.yaml: probability = 2: must be less than or equal to 1"),
    ],
)
def test_fields_out_of_bounds_are_told(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(SpecError) as caught:
        code(**changes)
    assert str(caught.value).startswith(line)


def specs_with(folder: Path, *invariances: dict[str, Any], files: str = "mine") -> Path:
    from ruamel.yaml import YAML

    (folder / "specs" / "data").mkdir(parents=True, exist_ok=True)
    (folder / "specs" / "none").write_text("")
    (folder / "specs" / "data" / "digits.yaml").write_text((ROOT / "specs" / "data" / "digits.yaml").read_text())
    index = {"data": {"digits": {"raw": "specs/none"}}, "specs": {"one": {"data": "digits", "files": files}}}
    content = {"index": index, "one": whole(space__invariances=list(invariances))}
    for name, each in content.items():
        with (folder / "specs" / f"{name}.yaml").open("w") as stream:
            YAML(typ="safe").dump(each, stream)
    return Path("specs/one.yaml")


def test_validation_tells_file_path_value_and_remedy(folder: Path) -> None:
    shift = {"kind": "shift", "pixels": 1}
    file = specs_with(folder, shift, {"kind": "compose", "of": [shift, light()]})
    assert faults_of(file) == []
    (folder / "mine" / "light.py").write_text(rewritten((APPLY, "        return images[:, :, 1:]")))
    assert [str(fault) for fault in faults_of(file)] == [
        'specs/one.yaml: space.invariances[1].of[1].name = "Light": mine/light.py line 11: apply returns shape '
        "(8, 1, 11, 12), given (8, 1, 12, 12); return the same shape"
    ]


def test_a_file_outside_the_folder_of_user_files_is_told(folder: Path) -> None:
    specs_with(folder, light())
    assert all_faults(Path("specs")) == []
    for files in ("specs/none", "specs/data"):
        specs_with(folder, light(), files=files)
        assert [str(fault) for fault in all_faults(Path("specs"))] == [
            'specs/one.yaml: space.invariances[0].file = "mine/light.py": '
            f"must lie in the folder that specs.one.files names in specs/index.yaml: {files}"
        ]


def test_the_bytes_of_the_code_are_part_of_the_identity(folder: Path) -> None:
    declared = space(invariances=[light()])
    first = declared.identity()
    assert space(invariances=[light()]).identity() == first
    (folder / "mine" / "light.py").write_text(GOOD + "# a comment\n")
    assert declared.identity() != first
    (folder / "mine" / "light.py").unlink()
    with pytest.raises(Refusal, match="no such file"):
        declared.identity()


def test_an_edited_file_is_another_module_and_a_running_spec_keeps_its_own(folder: Path) -> None:
    images, first = torch.ones(4, 1, 2, 2), code()
    view = draw_view(images, [first], keys(4))
    (folder / "mine" / "light.py").write_text(rewritten((APPLY, "        return images * 0.25")))
    assert torch.equal(draw_view(images, [first], keys(4)), view)
    assert bool((draw_view(images, [code()], keys(4)) == 0.25).all())
    assert first == code()
    assert hash(first) == hash(code())
    assert bool((draw_view(images, [pickle.loads(pickle.dumps(first))], keys(4)) == 0.25).all())


def test_loading_leaves_nothing_in_the_users_folder(folder: Path) -> None:
    assert law_broken(code(), canvas()) is None
    assert [path.name for path in (folder / "mine").iterdir()] == ["light.py"]


def test_at_of_the_class_is_its_strength_and_combinators_take_it(folder: Path) -> None:
    vignette = code(file=str(VIGNETTE), name="Vignette", arguments={"amount": 0.8})
    images = torch.ones(300, 3, 9, 9)
    loss = [float(1 - draw_view(images, [vignette.at(strength)], keys(300)).mean()) for strength in (0.0, 0.5, 1.0)]
    assert loss[0] == 0
    assert loss[1] == pytest.approx(loss[2] / 2, rel=0.01)
    mixed = Choose(of=(vignette, Compose(of=(Shift(pixels=1), vignette))), weights=(1, 1))
    view = draw_view(images, [mixed], keys(300))
    assert torch.allclose(draw_view(images[7:9], [mixed], keys(300).take([7, 8])), view[7:9], atol=1e-6)
    assert mixed.removes == {"brightness", "position"}


@pytest.mark.parametrize(
    "law",
    [
        laws.test_an_invariance_is_read_back_from_its_own_json,
        laws.test_strength_0_is_the_identity_and_strength_1_is_itself,
        laws.test_more_strength_moves_images_further,
        laws.test_probability_0_is_the_identity,
        laws.test_the_two_views_of_a_sample_are_independent,
        laws.test_parameters_are_one_a_sample_on_the_cpu,
        laws.test_what_an_invariance_removes_are_factors,
    ],
    ids=lambda law: law.__name__,
)
def test_a_class_without_at_keeps_the_laws_too(folder: Path, law: Callable[[Any], None]) -> None:
    """The table of laws holds a class with ``at``; the laws of lists of invariances are tried on both below."""
    law(code())


def test_a_class_without_at_keeps_the_laws_of_lists_too(folder: Path) -> None:
    for invariances in ((code(),), (Shift(pixels=1), code(probability=0.5))):
        laws.test_a_batch_may_be_split_anywhere(invariances)
        laws.test_the_same_call_gives_the_same_bits_and_leaves_its_input_alone(invariances)
        laws.test_shape_and_range_are_kept(invariances)
        laws.test_the_layout_in_memory_does_not_matter(invariances)
        laws.test_a_batch_may_be_empty(invariances)


LATER = {
    "shape": ("images[:, :, 1:]", "apply returns shape"),
    "type": ("images.double()", "apply returns float64, given float32"),
    "not finite": ("images / 0", "apply returns values that are not finite"),
    "raises": ("images[9999]", "apply raises IndexError"),
}


@pytest.mark.parametrize(("expression", "line"), LATER.values(), ids=LATER)
def test_what_shows_only_in_training_is_told_with_the_same_path(folder: Path, expression: str, line: str) -> None:
    """Code that behaves until it meets a batch that validation never tried."""
    late = f"        return {expression} if len(images) > 16 else images * parameters['light'][:, None, None, None]"
    (folder / "mine" / "light.py").write_text(rewritten((APPLY, late)))
    declared = space(invariances=[{"kind": "shift", "pixels": 1}, light()])
    with pytest.raises(CodeFault) as caught:
        trained(sharded(folder / "shards"), declared, training(epochs=1, schedule={"kind": "constant"}))
    refusal = str(located(caught.value, declared, "specs/one.yaml", "space"))
    assert refusal.startswith('specs/one.yaml: space.invariances[1].name = "Light": mine/light.py line 1')
    assert line in refusal
    assert "\n" not in refusal


def test_a_bundle_opens_without_the_code(folder: Path) -> None:
    declared = space(invariances=[light()])
    encoder = training().encoder
    network = build_network(encoder, declared.projection, (0.5,) * 3, (0.2,) * 3, 0)
    contract = {"height": 16, "width": 16, "channels": 3, "fit": "resize", "background": 0}
    described = {"encoder": TRAINING["encoder"], "mean": [0.5] * 3, "std": [0.2] * 3, "seed": 0}
    written = {"space": declared.model_dump(mode="json"), "space_identity": declared.identity()}
    (folder / "bundle").mkdir()
    write_bundle(folder / "bundle", network, {**written, "network": described, "input": contract})
    raw = pictures([(16, 16), (20, 9)], 3)
    before = load(folder / "bundle").embed(raw)
    (folder / "mine" / "light.py").unlink()
    opened = load(folder / "bundle")
    np.testing.assert_array_equal(opened.embed(raw), before)
    assert opened.card["space"]["invariances"][0]["file"] == "mine/light.py"
    assert opened.card["space_identity"] == written["space_identity"]
    assert json.loads((folder / "bundle" / "card.json").read_text()) == opened.card
