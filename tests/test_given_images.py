"""Encoders that people have, over pictures that they have: every file kept or in the ledger, drift against the card."""

from __future__ import annotations

import csv
import json
import shutil
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import wavfile
from test_stages import CHAIN, Call, call, place, ran  # noqa: F401

from pipeline.bundle import load
from pipeline.bundle.writing import write_bundle
from pipeline.given.encoder import Preprocessing, open_encoder
from pipeline.spec import Refusal

pytestmark = pytest.mark.usefixtures("one_thread")


def photographs(folder: Path, count: int = 12, bright: int = 0) -> Path:
    """Two classes of noise, a text and a hidden file among them."""
    random = np.random.default_rng(0)
    for number in range(count):
        for name, low, high in (("dark", 0, 120), ("light", 100, 256)):
            pixels = random.integers(low, high, (20, 24 + number, 3))
            (folder / name).mkdir(parents=True, exist_ok=True)
            pixels = np.clip(pixels + bright, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number:02d}.png")
    (folder / "dark" / "notes.txt").write_text("no picture")
    (folder / ".hidden").write_text("x")
    return folder


def read(file):
    return json.loads(Path(file).read_text())


def lines_of(file):
    with open(file, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("encoder", ["timm:test_resnet", "torchvision:shufflenet_v2_x0_5"])
def test_an_untrained_model_over_a_folder_is_audited(place, call: Call, encoder):  # noqa: F811
    photographs(Path("raw"))
    arguments = ["--encoder", encoder, "--weights", "none", "--size", "32", "--images", "raw", "--output", "out"]
    code, lines = call("audit", *arguments)
    assert code == 0, lines
    ledger = read("out/ledger.json")
    assert (ledger["seen"], ledger["kept"], sum(ledger["refused"].values())) == (26, 24, 2)
    rows, vectors = lines_of("out/rows.csv"), np.load("out/embeddings.npy")
    assert len(rows) == len(vectors) == 24
    assert {row["name"].split("/")[0] for row in rows} == {"dark", "light"}
    assert all(row["label"] == row["name"].split("/")[0] for row in rows)
    found = {row["probe"]: row["accuracy"] for row in read("out/figures.json")["rows"] if row["control"] is None}
    assert found.keys() == {"knn", "linear", "few_10"}
    assert read("out/measures.json")["measures"]["effective_rank.h"]["count"] == 24
    assert (Path("out/curation") / "outliers.png").is_file()
    assert lines_of("out/curation/outliers.csv")[0]["name"].endswith(".png")
    assert "untrained" in lines[0]
    opened = open_encoder(encoder, "none", Preprocessing(32))  # another untrained network, but of the same width
    assert opened.encode(torch.zeros(2, 3, 32, 32)).shape == (2, vectors.shape[1])


def test_an_archive_a_table_and_declared_views(place, call: Call):  # noqa: F811
    photographs(Path("raw"))
    with tarfile.open("raw.tar", "w") as tar:
        tar.add("raw/dark", "dark")
        tar.add("raw/light", "light")
    Path("y.csv").write_text("name,size\n" + "".join(f"light/{number:02d}.png,{number % 3}\n" for number in range(12)))
    arguments = ["--encoder", "timm:test_resnet", "--weights", "none", "--size", "32", "--images", "raw.tar"]
    code, lines = call("audit", *arguments, "--labels", "y.csv", "--declared", "mine", "--output", "out")
    assert code == 0, lines
    ledger = read("out/ledger.json")
    assert ledger["refused"] == {"no label": 12, "not a picture": 1}
    assert ledger["seen"] == 25
    measures = read("out/measures.json")["measures"]
    assert measures["alignment.h"]["value"] > 0
    assert {"view0.npy", "view1.npy"} <= {path.name for path in Path("out").iterdir()}
    assert {row["size"] for row in lines_of("out/rows.csv")} == {"0", "1", "2"}


def test_numbers_of_a_table_beside_the_pictures_are_read_by_regression(place, call: Call):  # noqa: F811
    photographs(Path("raw"), 30)
    names = [f"{name}/{number:02d}.png" for name in ("dark", "light") for number in range(30)]
    brightness = [np.asarray(Image.open(f"raw/{name}")).mean() + 0.25 for name in names]
    table = "".join(f"{name},{value:.3f}\n" for name, value in zip(names, brightness, strict=True))
    Path("raw/table.csv").write_text("file,brightness\n" + table)
    arguments = ["--encoder", "timm:test_resnet", "--weights", "none", "--size", "32", "--images", "raw"]
    code, lines = call("audit", *arguments, "--output", "out")
    assert code == 0, lines
    assert "labels: label, brightness" in "\n".join(lines)
    (row,) = [row for row in read("out/figures.json")["numbers"] if row["control"] is None]
    assert row["label"] == "brightness"
    assert row["r2_low"] > 0
    assert {float(row["brightness"]) for row in lines_of("out/rows.csv")} == {round(each, 3) for each in brightness}


def test_samples_that_cannot_be_audited_name_what_helps_and_what_was_refused(place, call: Call):  # noqa: F811
    photographs(Path("raw"), 12)
    for number in range(1, 12):
        Path(f"raw/dark/{number:02d}.png").unlink()
    Path("one").mkdir()
    shutil.copy("raw/light/00.png", "one/a.png")
    arguments = ["--encoder", "timm:test_resnet", "--weights", "none", "--size", "32", "--output", "out", "--samples"]
    code, lines = call("audit", *arguments, "one")
    assert (code, lines[-1]) == (
        1,
        "--samples one: only 1 sample, at least 3 are needed, 2 to train on and 1 to test; add samples",
    )
    Path("raw/dark/00.png").write_bytes(Path("raw/light/00.png").read_bytes()[:-60])
    code, lines = call("audit", *arguments, "raw")
    assert code == 1
    assert "split." not in lines[-1]  # there is no spec
    assert "add samples of another, or give the folder of this one alone (kept 12 of 15; " in lines[-1]
    assert "dark/00.png (damaged picture" in lines[-1]
    assert lines[-1].endswith("; out.ledger.json names all")
    assert len(read("out.ledger.json")["files"]) == 3
    assert not Path("out").exists()


def test_own_weights_are_taken_and_others_refused(place, call: Call):  # noqa: F811
    import timm
    from safetensors.torch import save_file

    photographs(Path("raw"))
    model = timm.create_model("test_resnet", num_classes=0).eval()
    save_file(model.state_dict(), "w.safetensors")
    arguments = ["--encoder", "timm:test_resnet", "--size", "32", "--images", "raw", "--output", "out"]
    assert call("audit", *arguments, "--weights", "w.safetensors")[0] == 0
    own = open_encoder("timm:test_resnet", "w.safetensors", Preprocessing(32))
    picture = torch.rand(3, 3, 32, 32)
    mean, std = (
        torch.tensor(each).reshape(1, 3, 1, 1) for each in (model.default_cfg["mean"], model.default_cfg["std"])
    )
    with torch.inference_mode():
        np.testing.assert_allclose(own.encode(picture), model((picture - mean) / std).numpy(), atol=1e-5)
    whole = timm.create_model("test_resnet").state_dict() | model.state_dict()  # as published: with its classifier
    save_file(whole, "whole.safetensors")
    again = open_encoder("timm:test_resnet", "whole.safetensors", Preprocessing(32))
    np.testing.assert_array_equal(again.encode(picture), own.encode(picture))
    save_file({"other": torch.zeros(1)}, "x.safetensors")
    code, lines = call("audit", *arguments, "--weights", "x.safetensors")
    assert (code, len(lines)) == (1, 1)
    assert "does not fit this encoder" in lines[0]


def test_published_weights_that_cannot_be_fetched_are_one_line(monkeypatch):
    import timm
    from torchvision.models import ShuffleNet_V2_X0_5_Weights

    def fail(*_, **__):
        raise OSError("no route to host\nand more")

    monkeypatch.setattr(timm, "create_model", fail)
    monkeypatch.setattr(ShuffleNet_V2_X0_5_Weights.DEFAULT.__class__, "get_state_dict", fail)
    for name in ("timm:test_resnet", "torchvision:shufflenet_v2_x0_5"):
        with pytest.raises(Refusal) as told:
            open_encoder(name, None, Preprocessing())
        assert "not at hand (no route to host); give --weights FILE.safetensors or none" in str(told.value)
        assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("module", "name", "line"),
    [("timm", "timm:resnet18", "pip install timm"), ("onnxruntime", "x.onnx", "pip install onnxruntime")],
)
def test_a_library_that_is_not_there_is_named(tmp_path, monkeypatch, module, name, line):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    Path("x.onnx").write_bytes(b"x")
    with pytest.raises(Refusal, match=line):
        open_encoder(name, "none" if module == "timm" else None, Preprocessing())


# -- ONNX --------------------------------------------------------------------------------------------------------------


def graph(file: Path, shape, kind="FLOAT", last=False) -> Path:
    """A graph that takes the mean of each channel: (N, C, H, W) → (N, C)."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, types = onnx.helper, onnx.TensorProto
    entry = helper.make_tensor_value_info("pixels", getattr(types, kind), shape)
    out = helper.make_tensor_value_info("h", types.FLOAT, [None, None])
    axes = helper.make_tensor("axes", types.INT64, [2], [1, 2] if last else [2, 3])
    nodes = [
        helper.make_node("Cast", ["pixels"], ["x"], to=types.FLOAT),
        helper.make_node("ReduceMean", ["x", "axes"], ["h"], keepdims=0),
    ]
    made = helper.make_graph(nodes, "means", [entry], [out], [axes])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(file))
    return file


@pytest.mark.parametrize(
    ("shape", "kind", "last", "given"),
    [
        (["n", 3, 8, 8], "FLOAT", False, Preprocessing()),
        (["n", 3, "h", "w"], "FLOAT", False, Preprocessing(8)),
        (["n", 8, 8, 3], "UINT8", True, Preprocessing()),
        ([4, 3, 8, 8], "FLOAT16", False, Preprocessing()),
        (["n", 3, 8, 8], "DOUBLE", False, Preprocessing(mean=[0.5, 0.4, 0.3], std=[2, 1, 0.5])),
    ],
)
def test_a_graph_is_given_what_its_input_says(tmp_path, shape, kind, last, given):
    encoder = open_encoder(str(graph(tmp_path / "m.onnx", shape, kind, last)), None, given)
    assert (encoder.canvas.height, encoder.canvas.width, encoder.canvas.channels) == (8, 8, 3)
    pictures = torch.randint(0, 256, (7, 3, 8, 8)).float() / 255
    means = pictures.mean((2, 3)).numpy() * (255 if kind == "UINT8" else 1)
    means = (means - np.array(given.mean or 0)) / np.array(given.std or 1)
    apart = 2e-3 if kind == "FLOAT16" else 1e-6  # means of bytes are up to 255: in float32 they end before 1e-5
    np.testing.assert_allclose(encoder.encode(pictures), means, rtol=apart, atol=apart)


@pytest.mark.parametrize(
    ("shape", "given", "line"),
    [
        (["n", 3, "h", "w"], Preprocessing(), "say which with --size"),
        (["n", 3, 8, 8], Preprocessing(16), "takes pictures of 8 x 8 only"),
        (["n", 3, 8, 8], Preprocessing(mean=[0.5]), "takes 3 channel(s)"),
        (["n", 3, 8, 8, 2], Preprocessing(), "no batch of pictures"),
    ],
)
def test_a_graph_that_does_not_fit_is_one_line(tmp_path, shape, given, line):
    file = graph(tmp_path / "m.onnx", shape)
    with pytest.raises(Refusal) as told:
        open_encoder(str(file), None, given)
    assert line in str(told.value)


def test_what_is_no_graph_is_one_line(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "m.onnx").write_bytes(b"no graph")
    with pytest.raises(Refusal) as told:
        open_encoder(str(tmp_path / "m.onnx"), None, Preprocessing())
    assert "no ONNX graph that can be run" in str(told.value)
    assert "\n" not in str(told.value)


# -- bundles -----------------------------------------------------------------------------------------------------------


def test_a_bundle_on_its_own_data_has_not_drifted_and_on_brighter_data_has(place, call: Call):  # noqa: F811
    ran(call, *CHAIN)
    from pipeline.shards import Shards

    images = Shards(Path("work/shard/mine")).images("test").transpose(0, 2, 3, 1)
    for name, change in (("same", 0), ("brighter", 90)):
        Path(name).mkdir()
        for number, picture in enumerate(images):
            moved = np.clip(picture.astype(int) + change, 0, 255).astype(np.uint8)
            Image.fromarray(moved).save(f"{name}/{number:03d}.png")
    found = {}
    for name in ("same", "brighter"):
        code, lines = call("audit", "--bundle", "work/export/mine", "--images", name, "--output", f"out/{name}")
        assert code == 0, lines
        found[name] = {row["measure"]: row for row in read(f"out/{name}/drift.json")["rows"]}
        assert any("against the card's reference" in line for line in lines)
    vectors = load("work/export/mine").embed(list(images))
    names = [row["name"] for row in lines_of("out/same/rows.csv")]
    order = [int(name.split(".")[0]) for name in names]
    np.testing.assert_allclose(np.load("out/same/embeddings.npy"), vectors[order], atol=1e-5)
    assert found["same"]["mean.h"]["value"] == pytest.approx(0, abs=1e-4)
    assert found["brighter"]["mean.h"]["low"] > found["brighter"]["mean.h"]["expected_without_drift"]
    assert found["brighter"]["channel.0.mean"]["low"] > 0
    measures = read("out/same/measures.json")["measures"]
    assert measures["alignment.h"]["value"] is not None, "the card's invariances make the views"

    card = read("work/export/mine/card.json")  # a bundle of a space too broken to have a reference
    write_bundle(Path("work/export/mine"), load("work/export/mine").network, {**card, "reference": None})
    code, lines = call("audit", "--bundle", "work/export/mine", "--images", "same", "--output", "out/old")
    assert code == 0
    assert any("holds no reference of vectors, so channels alone are compared" in line for line in lines)
    assert {row["measure"].split(".")[0] for row in read("out/old/drift.json")["rows"]} == {"channel"}
    np.save("ref.npy", vectors)
    assert call("audit", "--bundle", "work/export/mine", "--images", "same", "--reference", "ref.npy")[0] == 0
    assert "mean.h" in {row["measure"] for row in read("work/given/mine-same/drift.json")["rows"]}


def test_pictures_that_cannot_be_used_are_one_line(place, call: Call):  # noqa: F811
    Path("empty").mkdir()
    Path("texts").mkdir()
    for number in range(5):
        Path(f"texts/{number}.png").write_text("no picture")
    photographs(Path("few"), 1)
    Path("sounds").mkdir()
    for number in range(5):
        wavfile.write(f"sounds/{number}.wav", 8000, np.zeros(4000, np.int16))
    arguments = ["--encoder", "timm:test_resnet", "--weights", "none", "--size", "32", "--samples"]
    for images, line in (
        ("nowhere", "--samples nowhere: no such path"),
        ("empty", "--samples empty: an empty folder; give the one that holds the pictures"),
        ("texts", "no picture among 5 files"),
        ("few", "--samples few: "),
        ("sounds", "--samples sounds: holds no pictures, which timm:test_resnet reads"),
    ):
        code, lines = call("audit", *arguments, images)
        assert (code, len(lines)) == (1, 1), lines
        assert line in lines[0]
    shutil.rmtree("work/locks", ignore_errors=True)
    left = [path.name for path in Path("work").rglob("*") if path.is_file()]
    assert left == ["timm-test_resnet-few.ledger.json"]  # of the one where samples and other files were found
