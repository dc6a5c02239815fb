"""The whole of it on a small real space: all is told, the encoder does not change, known spaces are read as such."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import torch
from safetensors.torch import save_file

from pipeline.achieved.achieve import achieve
from pipeline.achieved.found import Found
from pipeline.achieved.looking import Networks
from pipeline.achieved.names import named
from pipeline.audit import range_of
from pipeline.embeddings import Embeddings
from pipeline.encoding import embed_splits
from pipeline.network import OF_TRAINING
from pipeline.rounding import rounded
from pipeline.shards import Shards
from pipeline.views import Code, Compose, Grayscale, HorizontalFlip, Resize, RightAngle, Shift

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTHS = (16, 8, 300)
"""Of h and z in the small space, and of the pixels of a space made by hand."""
NORMED = {"kind": "small_residual", "widths": [8, 16], "strides": [1, 2], "groups": None}
FINDING: dict[str, Any] = {
    "finding": "merged",
    "position": 0,
    "preserved": "shape",
    "figure": 0.7,
    "low": 0.6,
    "high": 0.8,
    "details": {"before": 0.8, "chance": 0.2, "count": 30, "measure": "accuracy"},
}


class World:
    """A trained space with all that the audit reads of it."""

    def __init__(self, folder: Path, shards: Shards, **of_training: Any):
        self.shards, self.space = shards, small.space()
        training = small.training(**of_training)
        trained = small.trained(shards, self.space, training).network
        state = {k: v.contiguous() for k, v in trained.state_dict().items() if not k.startswith(OF_TRAINING)}
        self.weights = folder / "weights.safetensors"
        save_file(state, self.weights)
        views = [[each.model_dump(mode="json") for each in self.space.through(view)] for view in (0, 1)]
        self.described = {
            "encoder": training.encoder.model_dump(mode="json"),
            "projection": self.space.projection.model_dump(mode="json"),
            "views": views,
            "mean": shards.card.mean,
            "std": shards.card.std,
            "seed": training.seed,
        }
        for (split, layer), vectors in embed_splits(shards, self.described, self.weights):
            np.save(folder / f"{split}.{layer}.npy", vectors)
        labels = {f"{split}.{name}": values for split in ("train", "test") for name, values in self.labels(split)}
        np.savez(folder / "labels.npz", **labels)  # type: ignore[arg-type]
        columns = {name: {"kind": each.kind, "classes": each.classes} for name, each in shards.card.columns.items()}
        (folder / "columns.json").write_text(json.dumps(columns))
        self.embeddings = Embeddings(folder)

    def labels(self, split: str) -> Any:
        return self.shards.labels(split).items()

    def achieve(self, declared: Any = None, networks: Any = None, preserves: Any = ("shape",)) -> Found:
        return achieve(
            self.space.declared() if declared is None else declared,
            preserves,
            ["hue"],
            self.shards,
            self.embeddings,
            networks or Networks(self.described, self.weights, self.shards.card.input),
            [FINDING],
            2000,
            5,
        )


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return small.sharded(tmp_path_factory.mktemp("shard"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, shards: Shards) -> World:
    return World(tmp_path_factory.mktemp("embed"), shards)


@pytest.fixture(scope="module")
def found(world: World) -> Found:
    return world.achieve(preserves=("shape", "chirality", "border"))


def test_every_measure_is_one_that_a_threshold_may_name_and_lies_in_its_range(found: Found) -> None:
    for name, entry in found.measures.items():
        within = range_of(name)
        assert within is not None, name
        assert entry["split"]
        if entry["value"] is None:
            assert entry["note"], name
        else:
            assert within[0] <= entry["value"] <= within[1], name


def test_the_tables_are_plain_and_the_same_in_every_run(world: World, found: Found) -> None:
    again = world.achieve(preserves=("shape", "chirality", "border"))
    written = json.dumps(rounded({"measures": found.measures, **found.tables}), allow_nan=False)
    assert written == json.dumps(rounded({"measures": again.measures, **again.tables}), allow_nan=False)


def test_every_declared_invariance_and_every_control_is_looked_at(world: World, found: Found) -> None:
    rows = found.tables["transformations"]
    assert [row["name"] for row in rows if row["declared"]] == list(named(world.space.declared()))
    controls = [row for row in rows if not row["declared"]]
    assert {"rotation", "blur", "noise"} <= {row["name"] for row in controls}
    assert {row["name"] for row in found.tables["left_out"]} >= {"shift", "brightness"}
    for row in rows:
        assert row["reason"] is None
        assert [point["strength"] for point in row["points"]] in ([0.25, 0.5, 0.75, 1.0], [1.0])
    shift = rows[0]["points"]
    moved = [point["layers"]["h"]["movement"]["value"] for point in shift]
    assert moved == sorted(moved)  # the same way, further
    assert set(shift[-1]["layers"]["h"]["labels"]) == {"shape", "hue"}


def test_the_boundary_is_asked_of_every_declared_invariance(found: Found) -> None:
    shift, brightness = found.tables["boundary"]
    assert [each["parameter"] for each in shift["parameters"]] == ["shift"]
    assert [each["parameter"] for each in brightness["parameters"]] == ["factor"]
    for name in ("shift", "brightness"):
        gone = found.measures[f"boundary.{name}"]["value"]
        h, z = (found.measures[f"transformation.{name}.{layer}"]["value"] for layer in "hz")
        assert gone == pytest.approx(h - z)


def test_what_is_preserved_stands_beside_its_controls(found: Found) -> None:
    shape, chirality, border = found.tables["preserved"]
    assert (shape["how"], chirality["how"]) == ("column", "factor")
    assert set(shape["layers"]) == {"h", "z", "raw", "untrained", "shuffled", "cheap"}
    assert set(chirality["layers"]) == {"h", "z", "raw", "untrained", "shuffled"}
    assert chirality["transformation"] == "horizontal_flip"
    assert "no transformation moves it alone" in border["reason"]
    assert found.measures["preserved.border.h"]["value"] is None
    assert found.measures["preserved.shape.cheap"]["value"] == pytest.approx((0.8 - 0.2) / 0.8)
    cost = found.measures["costs.shift.shape"]
    assert (cost["value"], cost["low"], cost["high"]) == pytest.approx((0.3, 0.2, 0.4))


def test_every_other_column_is_a_detail_numbers_too(found: Found) -> None:
    assert {row["name"]: row["kind"] for row in found.tables["detail"]} == {"hue": "class", "rotation": "number"}
    assert {f"detail.{name}.{layer}" for name in ("hue", "rotation") for layer in ("h", "z")} <= set(found.measures)
    assert found.measures["disentanglement.h"]["value"] is not None
    assert len(found.tables["sentences"]) == 5


def test_the_probed_encoder_never_changes_batch_statistics_included(
    tmp_path: Path, shards: Shards, world: World
) -> None:
    normed = World(tmp_path, shards, encoder=NORMED, norm_group=16)
    networks = Networks(normed.described, normed.weights, normed.shards.card.input)
    before = {name: value.clone() for name, value in networks.trained.state_dict().items()}
    assert any("running_mean" in name for name in before)
    normed.achieve(networks=networks)
    after = networks.trained.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert not any(module.training for module in networks.trained.modules())
    assert all(parameter.grad is None for parameter in networks.trained.parameters())


def test_roles_of_their_own_are_looked_at_each_by_its_own_name(world: World) -> None:
    crop = {"kind": "resized_crop", "area": [0.4, 1.0], "ratio": [0.8, 1.25]}
    views = {"kind": "multi_crop", "global_crop": crop, "local_crop": {**crop, "area": [0.1, 0.4]}}
    space = small.space(views={**views, "local_views": 2, "local_scale": 0.5})
    many = world.achieve(space.declared())
    assert {"resized_crop_1", "resized_crop_2"} <= {row["name"] for row in many.tables["transformations"]}
    one, two = (many.measures[f"movement.resized_crop_{number}.h"]["value"] for number in (1, 2))
    assert one < two
    first, second = ({"kind": "blur", "sigma": [0.1, s], "probability": 1.0} for s in (1.0, 2.0))
    asymmetric = small.space(views={"kind": "asymmetric", "first": [first], "second": [second]})
    both = world.achieve(asymmetric.declared())
    assert {"blur_1", "blur_2"} <= {row["name"] for row in both.tables["boundary"]}


def test_what_has_no_strength_does_nothing_or_fails_says_so(world: World, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Dim:\n    def draw(self, keys):\n        return {}\n"
        "    def apply(self, images, parameters):\n        return images * 0.5\n"
        "class Broken(Dim):\n    def apply(self, images, parameters):\n        raise ValueError('no')\n"
    )
    code = [
        Code(file=str(tmp_path / "mine.py"), name=name, removes=frozenset({"brightness"})) for name in ("Dim", "Broken")
    ]
    rows = {row["name"]: row for row in world.achieve([Resize(), *code]).tables["transformations"]}
    assert "changes 0 of" in rows["resize"]["reason"]
    assert rows["code_1"]["strength"] == "acts or does not"
    assert [point["strength"] for point in rows["code_1"]["points"]] == [1.0]
    assert "Broken" in rows["code_2"]["reason"]


class Sorted:
    """A space that sees which values a picture has and not where: invariant to all moves of whole pixels."""

    def encode(self, images: torch.Tensor, layers: Any = ("h", "z")) -> dict[str, torch.Tensor]:
        values = {"h": images.flatten(2).sort(2).values, "z": images, "raw": images}
        found = {}
        for layer, width in zip(("h", "z", "raw"), WIDTHS, strict=True):
            flat = values[layer].flatten(1)
            mixed = torch.randn(flat.shape[1], width, generator=torch.Generator().manual_seed(0))
            found[layer] = (flat - flat.mean(1, keepdim=True)) @ mixed
        return {layer: found[layer] for layer in layers}


def test_a_space_of_known_invariance_is_found_to_have_it(world: World) -> None:
    declared = [HorizontalFlip(), RightAngle(), Grayscale(), Compose(of=(HorizontalFlip(), Shift(pixels=0.0)))]
    found = world.achieve(declared, networks=Sorted())
    for name in ("horizontal_flip", "right_angle", "compose"):
        assert found.measures[f"movement.{name}.h"]["value"] == pytest.approx(0, abs=1e-5)
        assert found.measures[f"retrieval.{name}.h"]["value"] == 1
        assert found.measures[f"movement.{name}.z"]["value"] > 0.3
    assert found.measures["movement.grayscale.h"]["value"] > 0.3
    assert found.measures["transformation.right_angle.h"]["value"] < 0.1


def test_a_collapsed_space_is_told_and_nothing_is_divided_by_nothing(world: World) -> None:
    class Constant(Sorted):
        def encode(self, images: torch.Tensor, layers: Any = ("h", "z")) -> dict[str, torch.Tensor]:
            return {layer: torch.ones(len(images), 4) for layer in layers}

    found = world.achieve(networks=Constant())
    assert found.measures["movement.shift.h"]["value"] is None
    assert "all rows are equal" in found.measures["movement.shift.h"]["note"]
    assert found.measures["transformation.shift.h"]["value"] <= 0.05
    rounded(found.tables)
