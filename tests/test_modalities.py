"""The seam: a modality that the library has never heard of runs through every stage with a name in three unions.

A copy of the library gets one folder more (``ticks``: text files of numbers, their contract, an invariance, their
proofs) and the lines of LINES; nothing else of it is touched. Then every stage is run on such files, as a user runs it,
with an invariance of the user's own code, which no modality has to be told of.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from ruamel.yaml import YAML
from small import CHECK, ROOT, SPACE, TRAINING, run_stages, whole

from pipeline.images import Input
from pipeline.modalities import contract_of
from pipeline.samples import Steps, Waveform, modality
from pipeline.spec import SpecError
from pipeline.views import OF_MODALITY, Maybe, Shift, Window, misfit
from pipeline.views.audio import Gain

LINES = {
    "pipeline/modalities/__init__.py": [
        ("from pipeline.spec import", "from pipeline.ticks.contract import Ticks\nfrom pipeline.spec import"),
        ("    Annotated[Input, Tag(", '    Annotated[Ticks, Tag("ticks")] | Annotated[Input, Tag('),
    ],
    "pipeline/modalities/proofs.py": [
        ("from pipeline.views import", "from pipeline.ticks.proof import TicksProof\nfrom pipeline.views import"),
        (
            "    if isinstance(contract, Audio):",
            "    if contract.word == 'tick': return TicksProof(contract)\n    if isinstance(contract, Audio):",
        ),
    ],
    "pipeline/views/__init__.py": [
        (
            "from pipeline.views.waves import",
            "from pipeline.ticks.invariance import Louder\nfrom pipeline.views.waves import",
        ),
        ('    "series": (', '    "ticks": (Louder,),\n    "series": ('),
        ("    ImageInvariance | Window |", "    Louder | ImageInvariance | Window |"),
    ],
}
FAMILY = {
    "__init__.py": '"""Text files of numbers."""\n',
    "contract.py": """
from __future__ import annotations
from typing import ClassVar, Literal, NamedTuple
import numpy as np
from pipeline.samples import Extent, Taken, Unreadable
from pipeline.spec import Spec

class Beats(NamedTuple):
    count: int
    rate: int
    @property
    def modality(self): return "ticks"

class Ticks(Spec):
    kind: Literal["ticks"]
    count: int
    word: ClassVar[str] = "tick"
    sides: ClassVar = ("lines", "numbers")
    levels: ClassVar[int] = 1
    exact: ClassVar[bool] = False
    kept: ClassVar[str] = "float32"
    extent: ClassVar[Extent] = Extent(-1.0, 1.0, False, "numbers")
    channels: ClassVar[int] = 1
    @property
    def size(self): return Beats(self.count, 1)
    @property
    def shape(self): return (1, self.count)
    def take(self, raw, array):
        values = self.read(raw).astype(np.float64)
        return Taken("txt", None, (1, values.shape[1]), np.stack([values.sum(1), (values**2).sum(1)]))
    def read(self, content):
        try:
            values = np.array(content.split(), np.float32)
        except ValueError as error:
            raise Unreadable("no numbers", str(error)) from None
        if len(values) != self.count:
            raise Unreadable("other count", str(len(values)))
        return values[None]
    def original(self, content): return self.read(content)
    def given(self, values): return np.asarray(values, np.float32).reshape(1, self.count)
    def as_float(self, batch): return batch.float()
    def pictures(self, batch): return batch[:, :, None].sigmoid().expand(-1, 3, 8, -1)
    def picture(self, sample):
        return np.broadcast_to((255 / (1 + np.exp(-sample[:, None]))).astype(np.uint8), (3, 8, self.count)).copy()
    def own_size(self, shapes): return False
""",
    "invariance.py": """
from __future__ import annotations
from typing import ClassVar, Literal
from pipeline.spec import Spec

class Louder(Spec):
    kind: Literal["louder"] = "louder"
    amount: float = 0.5
    removes: ClassVar[frozenset[str]] = frozenset({"loudness"})
    invertible: ClassVar[bool] = True
    group: ClassVar[bool] = False
    def draw(self, keys): return {"factor": keys.uniform("factor", 1 - self.amount, 1 + self.amount)}
    def apply(self, waves, parameters, rate): return waves * parameters["factor"].to(waves)[:, None, None]
    def at(self, strength): return self.model_copy(update={"amount": self.amount * strength})
    def channels_fault(self, channels): return None
    def size_fault(self, samples, rate): return None
""",
    "proof.py": """
from __future__ import annotations
from pipeline.ticks.invariance import Louder

class TicksProof:
    def __init__(self, contract): self.contract = contract
    def features(self, batch): return {"numbers": batch.flatten(1), "all": batch.flatten(1)}
    def statistics(self, batch): return {"the mean": batch.mean(2)}
    def breakers(self, statistic): yield "louder", Louder(amount=0.9)
    def drafts(self): return [Louder()]
    def controls(self, fill): return [Louder(amount=0.9)]
    def mover(self, factor, fill): return (Louder(), "factor") if factor == "loudness" else None
    def raw(self, batch, side): return batch.flatten(1)
    def raw_again(self, rows, side, smaller): return rows
""",
}
LATER = """
import torch

class Later:
    \"\"\"The user's own: what comes, comes so many numbers later, in a circle.\"\"\"
    def draw(self, keys): return {"places": keys.integers("places", 0, 4)}
    def apply(self, ticks, parameters, rate):
        count = ticks.shape[-1]
        source = (torch.arange(count, device=ticks.device) - parameters["places"][:, None]) % count
        return ticks.gather(2, source[:, None].expand_as(ticks))
"""
STAGES = ("validate", "shard", "check", "pretrain", "embed", "probe", "audit", "judge", "export", "report")


def with_ticks(root: Path) -> None:
    """A copy of the library with a further modality: its folder, and the lines of LINES."""
    for name in ("pipeline", "stages"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "pipeline" / "ticks").mkdir()
    for name, text in FAMILY.items():
        (root / "pipeline" / "ticks" / name).write_text(text)
    for name, changes in LINES.items():
        text = (root / name).read_text()
        for old, new in changes:
            assert text.count(old) == 1, f"{name}: {old}"
            text = text.replace(old, new)
        (root / name).write_text(text)


def with_data(root: Path) -> None:
    """Text files of two classes, and a spec of them."""
    random = np.random.default_rng(0)
    for number in range(160):
        kind = number % 2
        values = random.normal(size=32) * 0.1 + np.sin((1 + kind) * np.arange(32) + random.uniform(0, 6))
        folder = root / "raw" / ("slow", "fast")[kind]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:03}.txt").write_text(" ".join(f"{value:.5f}" for value in values))
    (root / "raw" / "slow" / "bad.txt").write_text("1 2 three")
    data = {
        "source": {"kind": "folder", "train": None, "test": None, "classes": "folder"},
        "manifest": None,
        "input": {"kind": "ticks", "count": 32},
        "split": {"test": 0.3, "seed": 0},
        "labels": ["label"],
    }
    encoder = {"kind": "small_1d", "widths": [8, 16], "kernels": [5, 3], "strides": [2, 2], "groups": 4}
    own = {"kind": "code", "file": "mine/later.py", "name": "Later", "removes": ["onset"]}
    (root / "mine").mkdir()
    (root / "mine" / "later.py").write_text(LATER)
    spec = {
        **whole(data="ticks"),
        "space": {**SPACE, "invariances": [{"kind": "louder", "amount": 0.5}, own], "preserves": ["label"]},
        "check": CHECK,
        "training": {**TRAINING, "encoder": encoder},
        "audit": {**whole()["audit"], "samples": 100, "thresholds": []},
    }
    (root / "specs" / "data").mkdir(parents=True)
    index = {"data": {"ticks": {"raw": "raw"}}, "specs": {"ticks": {"data": "ticks", "files": "mine"}}}
    for name, content in (("ticks", spec), ("data/ticks", data), ("index", index)):
        with (root / "specs" / f"{name}.yaml").open("w") as file:
            YAML().dump(json.loads(json.dumps(content)), file)


@pytest.mark.slow
def test_a_further_modality_touches_nothing_outside_its_family(tmp_path: Path) -> None:
    with_ticks(tmp_path)
    with_data(tmp_path)
    assert sum(len(changes) for changes in LINES.values()) == 7  # an import and a name in each of three unions
    named = {stage: "" if stage in ("validate", "report") else "ticks" for stage in STAGES}
    run_stages(tmp_path, (f"{stage}/{name}" for stage, name in named.items()), library=tmp_path)
    work = tmp_path / "work"
    ledger = json.loads((work / "shard" / "ticks" / "ledger.json").read_text())
    assert (ledger["kept"], ledger["refused"]) == (160, {"no numbers": 1})
    for stage in STAGES[1:-1]:
        assert not (work / stage / "ticks" / "refused.json").exists(), stage
    assert json.loads((work / "check" / "ticks" / "gate.json").read_text())["gate"] == "pass"
    assert (work / "report.html").is_file()
    assert (work / "pretrain" / "ticks" / "views.png").is_file()


def test_the_type_of_a_size_tells_the_modality() -> None:
    assert [modality(size) for size in ((4, 4), Waveform(4, 4), Steps(4, 4))] == ["image", "audio", "series"]
    assert set(OF_MODALITY) == {"image", "audio", "series"}


@pytest.mark.parametrize(
    ("invariance", "size", "reason"),
    [
        (Shift(pixels=1), Waveform(800, 8000), "is for image, and the data is audio; known for it: background, band_"),
        (Gain(db=3), (32, 32), "is for audio, and the data is image; known for it: affine, blur,"),
        (Maybe(of=Gain(db=3), probability=0.5), (32, 32), "gain is for audio, and the data is image"),
        (Shift(pixels=1), Steps(80, 10), "is for image, and the data is series; known for it: channel_scale"),
    ],
)
def test_an_invariance_of_another_modality_is_refused(invariance: object, size: tuple[int, int], reason: str) -> None:
    found = misfit(invariance, 1, size)
    assert found is not None
    assert found.startswith(reason)


def test_an_invariance_of_the_modality_is_not() -> None:
    assert misfit(Gain(db=3), 1, Waveform(800, 8000)) is None
    assert misfit(Window(), 2, Steps(80, 10)) is None
    assert misfit(Shift(pixels=1), 1, (32, 32)) is None


def test_a_contract_without_a_kind_is_of_pictures() -> None:
    plain = {"height": 4, "width": 4, "channels": 1, "fit": "pad"}
    assert isinstance(contract_of(plain, "x.json"), Input)
    with pytest.raises(SpecError, match=r"input.colour = 3: unknown key; known: background, channels"):
        contract_of({**plain, "colour": 3}, "x.json")
    with pytest.raises(SpecError, match=r'input.kind = "audoi": unknown kind; did you mean .audio'):
        contract_of({**plain, "kind": "audoi"}, "x.json")
    pictures = 'input.kind = "image": unknown kind; known: audio, series (pictures have no kind: leave it out)'
    with pytest.raises(SpecError) as raised:
        contract_of({**plain, "kind": "image"}, "x.json")
    assert str(raised.value) == f"x.json: {pictures}"
    with pytest.raises(SpecError, match=r"input.rate: missing; write it out"):
        contract_of({"kind": "audio", "seconds": 1.0, "channels": 1, "mix": "mean"}, "x.json")
