"""The model card of a bundle: its examples run as they stand, and it says what the latent card says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundled import bundled, card, h_and_z, saved
from PIL import Image, ImageOps
from small import pictures
from test_bundle_graph import needed

from pipeline.bundle.examples import picture
from pipeline.bundle.reading import on_canvas
from pipeline.images import Input

IMAGES = pictures([(16, 20), (30, 7)], 3, seed=5)
ENCODERS: dict[str, dict[str, Any] | None] = {
    "small": None,
    "timm": {"kind": "timm", "name": "resnet18", "small_stem": False},
    "timm, small stem": {"kind": "timm", "name": "resnet18", "small_stem": True},
    "torchvision": {"kind": "torchvision", "name": "mobilenet_v3_small", "small_stem": False},
    "torchvision, small stem": {"kind": "torchvision", "name": "resnet18", "small_stem": True},
}
INPUTS: dict[str, dict[str, Any]] = {
    "resize": {},
    "pad": {"fit": "pad", "background": 40},
    "cover": {"fit": "cover"},
    "grey": {"channels": 1, "fit": "pad", "background": 9, "width": 16},
}


def examples(folder: Path) -> dict[str, str]:
    text = (folder / "README.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^### (.+?)\n\n```python\n(.*?)\n```$", text, re.M | re.S))


def run(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], str]:
    """Run an example in the folder of its README: (its names, what it printed)."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), names)
    return names, printed.getvalue()


def made(folder: Path, given: dict[str, Any], **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """A bundle with two pictures beside it; h and z of them, as in training."""
    _, network = bundled(folder, given, **options)
    images = [image[..., : given["input"]["channels"]] for image in IMAGES]
    for path, name in zip(saved(folder / "made", images), ("a.png", "b.png"), strict=True):
        path.rename(folder / name)
    h, z = h_and_z(network, given, images)
    return h, z / np.linalg.norm(z, axis=1, keepdims=True)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_examples_in_python_run_and_give_the_h_of_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: str
) -> None:
    h, _ = made(tmp_path, card(ENCODERS[encoder]))
    found = examples(tmp_path)
    kind = encoder.split(",")[0]
    assert next(iter(found)) == "With this library"
    alone = [code for title, code in found.items() if title.endswith("PyTorch alone")]
    assert len(alone) == (kind != "small")
    for code in alone:
        assert "pipeline" not in code
        names, _ = run(tmp_path, code, monkeypatch)
        np.testing.assert_allclose(names["h"].numpy(), h, atol=1e-5 * max(1.0, float(np.abs(h).max())))
    names, printed = run(tmp_path, found["With this library"], monkeypatch)
    np.testing.assert_array_equal(names["h"], h)
    assert len(found["With this library"].splitlines()) <= 10
    assert printed.startswith(f"{h.shape}\n[[")


def test_the_card_of_a_bundle_of_series_says_so_and_its_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = {"kind": "small_1d", "widths": [8, 16], "kernels": [5, 3], "strides": [2, 2], "groups": 4}
    given = card(encoder, {"channels": 2}, invariances=[{"kind": "jitter", "share": [0.0, 0.1]}])
    given["input"] = {"kind": "series", "channels": 2, "steps": 40, "rate": 1, "names": None, "layout": "time_first"}
    given["input"] |= {"longer": "centre", "shorter": "hold"}
    bundled(tmp_path, {**given, "data": {"name": "courses", "splits": {"train": 2}}})
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "picture" not in text
    assert "image" not in text
    assert "pipeline_tag: feature-extraction" in text
    assert "with two series `a.npy` and `b.npy` in it" in text
    random = np.random.default_rng(0)
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, random.normal(size=(50, 2)))
    found = examples(tmp_path)
    assert list(found) == ["With this library", "Fine-tuned, in plain PyTorch"]
    for code in found.values():
        assert run(tmp_path, code, monkeypatch)[1]


def test_the_fine_tuning_example_learns_in_twenty_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, card())
    code = examples(tmp_path)["Fine-tuned, in plain PyTorch"]
    assert len(code.splitlines()) <= 20
    _, printed = run(tmp_path, code, monkeypatch)
    losses = [float(line.split()[1]) for line in printed.splitlines()]
    assert len(losses) == 5
    assert losses[-1] < losses[0]


@needed
def test_the_example_of_onnxruntime_gives_the_h_of_training_without_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    h, z = made(tmp_path, card(input_=INPUTS["cover"]), graph=True)
    code = examples(tmp_path)["With onnxruntime, NumPy and Pillow alone"]
    assert set(re.findall(r"^(?:import|from) (\w+)", code, re.M)) == {"numpy", "onnxruntime", "PIL"}
    names, printed = run(tmp_path, code, monkeypatch)
    np.testing.assert_allclose(names["h"], h, atol=1e-5)
    np.testing.assert_allclose(names["z"], z, atol=1e-5)
    assert printed.startswith("[[")


@pytest.mark.parametrize("contract", INPUTS)
@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_what_the_examples_read_of_a_file_is_every_pixel_of_training(
    tmp_path: Path, contract: str, suffix: str
) -> None:
    given = card(input_=INPUTS[contract])
    names: dict[str, Any] = {"np": np, "Image": Image, "ImageOps": ImageOps}
    exec(picture(given["input"]), names)
    for channels in (1, 3):
        sizes = [(16, 12), (40, 30), (5, 9), (1, 1), (16, 16), (33, 12), (12, 33), (200, 3)]
        for path in saved(tmp_path / str(channels), pictures(sizes, channels), suffix):
            expected = on_canvas(path, Input(**given["input"]))
            np.testing.assert_array_equal(names["picture"](path).transpose(2, 0, 1), expected)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Two vectors z are compared by the cosine of the angle"),
        ({"metric": "dot", "normalization": "none"}, "by their inner product"),
        ({"projection": {"kind": "none"}}, "This space has no projection: z is h."),
        ({"invariances": [], "views": {"kind": "partners", "column": "shape"}}, "No transformation is declared"),
        ({"preserves": []}, "Nothing was declared to stay readable."),
    ],
)
def test_it_says_in_words_what_the_space_is(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    bundled(tmp_path, card(**changes))
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert words in text
    assert "Vectors of another bundle, also of another seed" in text
    if not changes:
        assert "- shift: pixels 2.0" in text
        assert "- brightness: amount 0.3, probability 0.8" in text
        assert "Declared to stay readable from h: shape." in text


def test_what_was_accepted_stands_at_the_top_with_its_reason(tmp_path: Path) -> None:
    reason = "hue loses <b>colour</b>; accepted: stains\n# differ"
    audit = {"verdict": "passed", "rows": [], "reasons": [{"sentence": "wrongly invariant: to hue"}]}
    bundled(tmp_path, {**card(), "accepted": [reason], "licence": "CC0", "audit": audit})
    body = (tmp_path / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    assert body.startswith("\n# small\n\n> **Accepted in spite of what was found:**\n> - hue loses &lt;b>colour")
    assert "\n# differ" not in body
    assert "- licence of the data: CC0" in body
    assert "- audit: passed, by thresholds that were declared before\n  - wrongly invariant: to hue" in body


def test_the_hub_reads_the_front_matter(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    bundled(tmp_path)
    data = hub.ModelCard.load(tmp_path / "README.md").data.to_dict()
    assert data["library_name"] == "latent-space-pipeline"
    assert data["pipeline_tag"] == "image-feature-extraction"
    assert (data["license"], data["license_name"]) == ("other", "as-the-data")
