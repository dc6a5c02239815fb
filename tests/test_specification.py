"""A whole spec and its data: what is shipped is right, and each fault is one line with file, path, value and remedy."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from small import ROOT, shipped, space, whole

from pipeline.sources import Digits, Shapes
from pipeline.spec import SpecError, read_spec
from pipeline.specification import Specification, all_faults, faults_of


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the shipped specs."""
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    monkeypatch.chdir(tmp_path)
    return Path("specs")


def write(file: Path, content: dict[str, Any]) -> None:
    with file.open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(content, stream)


def told(specs: Path, **changes: Any) -> str:
    """The one line about specs/digits.yaml with these changes."""
    write(specs / "digits.yaml", whole(**changes))
    faults = faults_of(specs / "digits.yaml")
    assert len(faults) == 1, [str(fault) for fault in faults]
    (line,) = str(faults[0]).splitlines()
    return line


@pytest.mark.parametrize("file", shipped(), ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_shipped_spec_is_valid(file: Path) -> None:
    assert faults_of(file) == []


def test_the_shipped_index_is_valid(specs: Path) -> None:
    assert all_faults(specs) == []


def test_every_shipped_spec_survives_its_own_json() -> None:
    for file in shipped():
        spec = read_spec(file, Specification)
        assert Specification.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    ("name", "known", "others"),
    [
        ("spoken_digits", {"pitch", "onset", "digit", "speaker"}, {"hue", "chirality", "aspect", "channel_order"}),
        ("pendulum", {"tempo", "channel_order", "label_gravity"}, {"hue", "chirality", "pitch", "room"}),
        ("satellite", {"hue", "chirality", "label"}, {"pitch", "tempo", "polarity"}),
    ],
)
def test_what_may_be_preserved_is_what_something_removes_of_such_data(
    specs: Path, name: str, known: set[str], others: set[str]
) -> None:
    file = specs / "examples" / f"{name}.yaml"
    content = YAML(typ="safe").load(file)
    content["space"]["preserves"] = ["zzz"]
    write(file, content)
    (line,) = [str(fault) for fault in faults_of(file) if "space.preserves[0]" in str(fault)]
    words = set(line.partition("known: ")[2].split(", "))
    assert known <= words
    assert not others & words


NORMED = {"kind": "torchvision", "name": "resnet18", "small_stem": True}
GRAYSCALE = [{"kind": "grayscale", "probability": 0.2}]


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("training__epoch", 3, "training.epoch = 3: unknown key; did you mean 'epochs'?"),
        ("space__projection__dims", 3, "space.projection.dims = 3: unknown key; did you mean 'dim'?"),
        ("colour", 3, "colour = 3: unknown key; known: "),
        ("training__global_batch", "128", 'training.global_batch = "128": must be a valid integer'),
        ("training__global_batch", 128.5, "training.global_batch = 128.5: must be a valid integer"),
        ("space__objective", {"kind": "supervised"}, 'space.sampler = {"kind": "in_batch"}: supervised needs labels'),
        (
            "space__sampler",
            {"kind": "threshold", "above": 1.0, "most": 3, "warmup": 0.1},
            "space.sampler.above = 1.0: must be in [-1, 1)",
        ),
        (
            "space__sampler",
            {"kind": "hardest", "nearest": 254},
            "space.sampler.nearest = 254: must be below the 254 negatives of a batch",
        ),
        ("training__global_batch", 9999, "training.global_batch = 9999: larger than the data set; at most"),
        (
            "space__temperature",
            "warm",
            'space.temperature = "warm": must be a number above 0, or a mapping with a kind',
        ),
        (
            "space__views",
            {"kind": "partners", "column": "labels"},
            "space.views.column = \"labels\": no such label column of classes; did you mean 'label'?",
        ),
        (
            "space__views",
            {
                "kind": "multi_crop",
                "global_crop": {"kind": "resized_crop"},
                "local_crop": {"kind": "resized_crop"},
                "local_views": 2,
                "local_scale": 0.1,
            },
            'space.invariances[0] = {"kind": "shift"',
        ),
        ("space__preserves", "label", 'space.preserves = "label": must be a list'),
        ("space__invariances", [], "space.invariances = []: must have at least 1 item(s)"),
        ("training__global_batch", 1, "training.global_batch = 1: must be greater than or equal to 2"),
        ("training__epochs", 0, "training.epochs = 0: must be greater than or equal to 1"),
        ("training__seed", -1, "training.seed = -1: must be greater than or equal to 0"),
        ("training__precision", "fp16", "training.precision = \"fp16\": must be 'float32' or 'bf16'"),
        ("training", [1], "training = [1]: must be a mapping of keys to values"),
        (
            "space__objective__kind",
            "nt_xnet",
            "space.objective.kind = \"nt_xnet\": unknown kind; did you mean 'nt_xent'?",
        ),
        ("training__encoder__kind", "smal", "training.encoder.kind = \"smal\": unknown kind; did you mean 'small'?"),
        (
            "training__optimizer__kind",
            "adam",
            "training.optimizer.kind = \"adam\": unknown kind; did you mean 'adamw'?",
        ),
        ("space__temperature", 0, "must be greater than 0"),
        ("space__temperature", -0.1, "must be greater than 0"),
        ("space__temperature", None, "space.temperature = null: must be a number above 0: nt_xent divides by it"),
        ("data", "digit", "data = \"digit\": no such data set; did you mean 'digits'?"),
        (
            "space__preserves",
            ["lable"],
            "space.preserves[0] = \"lable\": neither a factor nor a label column; did you mean 'label'?",
        ),
        (
            "probe__labels",
            ["label", "labels"],
            "probe.labels[1] = \"labels\": no such label column; did you mean 'label'?",
        ),
        ("space__invariances", GRAYSCALE, "space.invariances[0] = "),
        (
            "space__invariances",
            [{"kind": "shift", "pixels": 12}],
            "pixels = 12 moves a picture of 12 x 12 off its canvas; use less",
        ),
        ("training__norm_group", 100, "training.norm_group = 100: must divide global_batch (128), or be it, and be at"),
        (
            "space__projection",
            {"kind": "mlp", "hidden": 8, "dim": 8, "boundary": "h", "norm": "batch"},
            "training.norm_group = null: must be global_batch (128), or a divisor of it: projection or predictor",
        ),
        (
            "space__sampler",
            {"kind": "no_duplicates", "columns": ["lable"]},
            "space.sampler.columns = [\"lable\"]: no such label column of classes; did you mean 'label'?",
        ),
        (
            "space__objective",
            {"kind": "debiased", "prior": {"column": "lable"}},
            "space.objective.prior.column = \"lable\": no such label column of classes; did you mean 'label'?",
        ),
        ("space__objective", {"kind": "debiased", "prior": 1.5}, "space.objective.prior = 1.5: must be less than 1"),
        (
            "space__sampler",
            {"kind": "stratified", "column": "lable"},
            "space.sampler.column = \"lable\": no such label column of classes; did you mean 'label'?",
        ),
        ("training__norm_group", 128, "training.norm_group = 128: must be null: this encoder has no batch statistics"),
        (
            "training__encoder",
            NORMED,
            "training.norm_group = null: must be global_batch (128), or a divisor of it: this encoder has batch",
        ),
        (
            "training__start",
            {"kind": "weights", "file": "w.safetensors", "frozen_below": "stage9"},
            'training.start.frozen_below = "stage9": no such layer; did you mean \'stage',
        ),
        (
            "training__encoder",
            {"kind": "small", "widths": [32, 30], "strides": [2, 1], "groups": 8},
            "training.encoder.widths[1] = 30: must be a multiple of groups (8)",
        ),
        (
            "training__encoder",
            {"kind": "small", "widths": [32, 64], "strides": [2], "groups": 8},
            "training.encoder.strides = [2]: must name one stride a stage: 2 of them",
        ),
        (
            "training__schedule",
            {"kind": "cosine", "warmup_epochs": 120},
            "training.schedule.warmup_epochs = 120: ",
        ),
        (
            "check__accept",
            [{"finding": "contradiction", "invariance": "shift", "preserved": "label", "reason": "x"}],
            "shift does not remove label, so nothing would be accepted; take it out",
        ),
        (
            "audit__thresholds",
            [{"measure": "probe.lable.knn.h", "at_least": 0.5}],
            "audit.thresholds[0].measure = \"probe.lable.knn.h\": no such label column: lable; did you mean 'label'?",
        ),
        ("export__licence", "", 'export.licence = "": '),
    ],
)
def test_one_fault_is_one_line_with_file_path_value_and_remedy(specs: Path, path: str, value: Any, line: str) -> None:
    found = told(specs, **{path: value})
    assert found.startswith("specs/digits.yaml: ")
    assert line in found
    assert "Traceback" not in found


SLOW = {"kind": "momentum", "m": 0.99, "schedule": "constant"}
NORMED_HEAD = {"kind": "mlp", "hidden": 8, "dim": 8, "boundary": "h", "norm": "batch"}


@pytest.mark.parametrize(
    ("length", "changes", "line"),
    [
        (127, {}, "space.sampler.length = 127: must be at least global_batch (128), or it forgets part of a batch"),
        (1797, {}, "space.sampler.length = 1797: must be below the data set; at most 1796, less its test split"),
        (
            512,
            {"space__projection": NORMED_HEAD, "training__norm_group": 128},
            "training.norm_group = 128: must be at most 64 with a queue, whose keys are dealt over groups: a batch's "
            "statistics tell whose",
        ),
    ],
)
def test_a_queue_fits_the_batch_the_data_and_the_groups(
    specs: Path, length: int, changes: dict[str, Any], line: str
) -> None:
    queue = {"kind": "queue", "length": length, "in_batch": False}
    assert told(specs, space__sampler=queue, space__target=SLOW, **changes) == f"specs/digits.yaml: {line}"


def test_a_grey_picture_has_no_colours_to_take(specs: Path) -> None:
    assert told(specs, space__invariances=GRAYSCALE).endswith("needs 3 channels (red, green, blue), the data has 1")


def test_columns_of_numbers_are_probed_as_well(specs: Path) -> None:
    content = YAML(typ="safe").load((specs / "shapes.yaml").read_text())
    content["probe"]["labels"] = ["shape", "rotation"]
    content["audit"]["thresholds"] = [{"measure": "probe.rotation.r2.h", "at_least": 0.1}]
    write(specs / "shapes.yaml", content)
    assert faults_of(specs / "shapes.yaml") == []


@pytest.mark.parametrize(
    ("measure", "line"),
    [
        ("probe.hue.knn.h", "hue is not probed; enter it in probe.labels"),
        ("probe.rotation.linear.h", "rotation is a column of numbers; name r2 or mae"),
        ("probe.shape.mae.z.view0", "shape is a column of classes; name knn, linear or few_N"),
        ("probe.shape.few_5.h", "no probe has 5 % of the labels; enter it in probe.few_labels.percent"),
    ],
)
def test_a_threshold_on_what_no_probe_reads_is_told_before_the_training(specs: Path, measure: str, line: str) -> None:
    content = YAML(typ="safe").load((specs / "shapes.yaml").read_text())
    content["probe"]["labels"] = ["shape", "rotation"]
    content["audit"]["thresholds"] = [{"measure": measure, "at_least": 0.1}]
    write(specs / "shapes.yaml", content)
    (fault,) = faults_of(specs / "shapes.yaml")
    assert str(fault) == f'specs/shapes.yaml: audit.thresholds[0].measure = "{measure}": {line}'


def test_an_encoder_that_cannot_read_the_canvas_is_told_before_training(specs: Path) -> None:
    vit = {"kind": "timm", "name": "vit_tiny_patch16_224", "small_stem": False}
    line = told(specs, training__encoder=vit)
    assert line.startswith("specs/digits.yaml: training.encoder = ")
    assert "12 x 12" in line


def test_a_label_for_positives_that_the_data_lacks_is_told(specs: Path) -> None:
    assert told(specs, space__sampler={"kind": "same_label", "column": "lable"}) == (
        "specs/digits.yaml: space.sampler.column = \"lable\": no such label column of classes; did you mean 'label'?"
    )


def test_all_faults_of_a_file_come_together(specs: Path) -> None:
    write(
        specs / "digits.yaml",
        whole(
            training__epoch=3, space__temperature=-1, probe__k="many", space__objective__kind="nt_xnet", data="digit"
        ),
    )
    lines = [str(fault) for fault in faults_of(specs / "digits.yaml")]
    for part in ("training.epoch", "space.temperature", "probe.k", "space.objective.kind", "data = "):
        assert sum(part in line for line in lines) == 1, (part, lines)
    assert len(lines) == 5


def test_all_faults_of_all_specs_come_together(specs: Path) -> None:
    write(specs / "digits.yaml", whole(training__epochs=0))
    content = YAML(typ="safe").load((specs / "shapes.yaml").read_text())
    content["space"]["preserves"] = ["shpae"]
    write(specs / "shapes.yaml", content)
    data = YAML(typ="safe").load((specs / "data" / "shapes.yaml").read_text())
    data["source"]["pictures"] = 1
    write(specs / "data" / "shapes.yaml", data)
    lines = {str(fault) for fault in all_faults(specs)}
    assert any("specs/digits.yaml: training.epochs" in line for line in lines)
    assert any("specs/data/shapes.yaml: source.pictures" in line for line in lines)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "digits: {data: digits,",
            "digits: {data: shapes,",
            "specs/index.yaml: specs.digits.data = \"shapes\": specs/digits.yaml says 'digits'; make them equal",
        ),
        (
            "  shapes: {data: shapes, files: specs/none}",
            "  shpaes: {data: shapes, files: specs/none}",
            "specs/index.yaml: specs.shpaes: no such spec file; did you mean 'shapes'?",
        ),
        (
            "  shapes: {data: shapes, files: specs/none}",
            "  shapes: {data: shapes, files: nowhere}",
            'specs/index.yaml: specs.shapes.files = "nowhere": no such folder',
        ),
        (
            "  digits: {raw: specs/none}",
            "  digits: {raw: specs/data}",
            'specs/index.yaml: data.digits.raw = "specs/data": must be specs/none: this data is embedded',
        ),
        (
            "  shapes: {raw: specs/none}",
            "  shapes: {raw: specs/none}\n  mine: {raw: specs/none}",
            "specs/index.yaml: data.mine: no such data file; known: digits, shapes",
        ),
        (
            "  shapes: {data: shapes, files: specs/none}",
            "  shapes: {data: shapes, file: specs/none}",
            "specs/index.yaml: specs.shapes.file = \"specs/none\": unknown key; did you mean 'files'?",
        ),
    ],
)
def test_index_and_specs_are_held_equal(specs: Path, old: str, new: str, line: str) -> None:
    text = (specs / "index.yaml").read_text()
    assert old in text
    (specs / "index.yaml").write_text(text.replace(old, new))
    assert line in [str(fault) for fault in all_faults(specs)]


@pytest.mark.parametrize(
    ("pattern", "new", "line"),
    [
        (
            ", files: specs/none}",
            "}",
            "specs.digits.files: missing; write it out: the folder of its code",
        ),
        ("{data: digits, files", "{files", "specs.digits.data: missing; write it out: the name of its data set"),
        (
            "digits: {raw: specs/none}",
            "digits: {}",
            "data.digits.raw: missing; write it out: the path of its raw",
        ),
        ("digits: {raw: specs/none}", "digits:", "data.digits = null: must be a mapping of keys to values"),
        (r"(?s)specs:  #.*", "", "specs: missing; write it out: the specs, each as NAME: {data: NAME, files: PATH}"),
        (r"(?s)data:  #.*(?=specs:  #)", "", "data: missing; write it out: the data sets, each as NAME: {raw: PATH}"),
        ("raw: specs/none", "raw: null", "data.digits.raw = null: "),
    ],
)
def test_a_missing_key_of_the_index_is_told_with_what_it_must_say(
    specs: Path, pattern: str, new: str, line: str
) -> None:
    """DVC, which reads the index before it runs anything, has its own words for it."""
    text = (specs / "index.yaml").read_text()
    (specs / "index.yaml").write_text(re.sub(pattern, new, text, count=1))
    (fault,) = all_faults(specs)
    assert str(fault).startswith(f"specs/index.yaml: {line}")


def test_a_data_set_that_the_index_does_not_list_is_told(specs: Path) -> None:
    text = (specs / "index.yaml").read_text()
    (specs / "index.yaml").write_text(text.replace("  shapes: {raw: specs/none}\n", ""))
    assert [str(fault) for fault in all_faults(specs)] == [
        'specs/index.yaml: specs.shapes.data = "shapes": not under data; known: digits'
    ]


def test_raw_data_that_is_not_there_is_told(specs: Path) -> None:
    shutil.copy(specs / "examples" / "cifar10.yaml", specs / "cifar10.yaml")
    shutil.copy(specs / "examples" / "data" / "cifar10.yaml", specs / "data" / "cifar10.yaml")
    text = (specs / "index.yaml").read_text()
    text = text.replace("specs:  #", "  cifar10: {raw: gone}\nspecs:  #")
    (specs / "index.yaml").write_text(text + "  cifar10: {data: cifar10, files: specs/none}\n")
    assert [str(fault) for fault in all_faults(specs)] == ['specs/index.yaml: data.cifar10.raw = "gone": no such path']
    (specs / "index.yaml").write_text((specs / "index.yaml").read_text().replace("raw: gone", "raw: specs/none"))
    assert [str(fault) for fault in all_faults(specs)] == [
        'specs/index.yaml: data.cifar10.raw = "specs/none": name the folder of the raw data'
    ]


@pytest.mark.parametrize("source", ["digits", "shapes"])
def test_an_embedded_source_counts_its_pictures_without_drawing_them(source: str) -> None:
    spec = {"kind": "digits"} if source == "digits" else {"kind": "shapes", "pictures": 7, "seed": 0, "watermark": None}
    (shared,) = (kind for kind in (Digits, Shapes) if kind.__name__.lower() == source)
    embedded = shared.model_validate_json(json.dumps(spec))
    assert embedded.count() == sum(1 for _ in embedded.records(None))


@pytest.mark.parametrize(
    "sampler", [{"kind": "same_label", "column": "label"}, {"kind": "no_duplicates", "columns": []}]
)
def test_a_sampler_that_reads_one_rows_label_refuses_partners(sampler: dict[str, Any]) -> None:
    with pytest.raises(SpecError) as caught:
        space(views={"kind": "partners", "column": "shape"}, sampler=sampler)
    assert f"space.sampler = {json.dumps(sampler)}: {sampler['kind']} reads one row's label" in str(caught.value)


@pytest.mark.parametrize(
    "sampler", [{"kind": "stratified", "column": "shape"}, {"kind": "no_duplicates", "columns": ["shape"]}]
)
def test_supervised_with_a_sampler_that_makes_no_positives_is_refused(sampler: dict[str, Any]) -> None:
    """They read labels, and yet an anchor's only positive is its own view: NT-Xent by another name."""
    with pytest.raises(SpecError, match="supervised needs labels: "):
        space(objective={"kind": "supervised"}, sampler=sampler)
