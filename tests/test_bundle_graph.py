"""The ONNX graph: raw pixels in, the network's h and z out at any batch, equal bytes, no word of this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundled import bundled, canvases, card, h_and_z
from small import ROOT, pictures

from pipeline.bundle import graph as bundle_graph
from pipeline.bundle import load
from pipeline.bundle.graph import PACKAGES, refuse_without_packages
from pipeline.network import Network
from pipeline.spec import Refusal

needed = pytest.mark.skipif(
    not all(bundle_graph.importlib.util.find_spec(name) for name in PACKAGES),
    reason=f"needs {', '.join(PACKAGES)}: pip install -e '.[onnx]'",
)
BATCHNORM = {"kind": "small_residual", "widths": [8, 16], "strides": [1, 2], "groups": None}
RESNET = {"kind": "timm", "name": "resnet18", "small_stem": True}
CASES: dict[str, dict[str, Any]] = {
    "batch norm, grey, padded": {"encoder": BATCHNORM, "input_": {"channels": 1, "fit": "pad", "width": 16}},
    "timm": {"encoder": RESNET},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Network]:
    return bundled(tmp_path_factory.mktemp("graph") / "group norm", graph=True)


def agrees(folder: Path, network: Network, given: dict[str, Any]) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_outputs()] == ["h", "z"]
    images = pictures([(20, 20)] * 33, given["input"]["channels"], seed=3)
    h, z = h_and_z(network, given, images)
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    pixels = np.stack(canvases(given, images)).transpose(0, 2, 3, 1)
    for size in (1, 2, 5, 33):
        found = session.run(None, {"pixels": pixels[:size]})
        np.testing.assert_allclose(found[0], h[:size], atol=1e-5 * max(1, np.abs(h).max()))
        np.testing.assert_allclose(found[1], z[:size], atol=1e-5)


@needed
def test_the_graph_agrees_with_the_network_on_any_batch(made: tuple[Path, Network]) -> None:
    agrees(*made, card())


@needed
@pytest.mark.parametrize("case", CASES)
def test_the_graph_of_other_encoders_and_canvases_agrees(tmp_path: Path, case: str) -> None:
    given = card(**CASES[case])
    folder, network = bundled(tmp_path, given, graph=True)
    agrees(folder, network, given)


@needed
@pytest.mark.slow
def test_the_graph_has_equal_bytes_in_another_process_and_no_word_of_the_machine(
    tmp_path: Path, made: tuple[Path, Network]
) -> None:
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT / 'tests')!r}]\n"
        "from pathlib import Path; from bundled import bundled\n"
        "bundled(Path(sys.argv[1]), graph=True)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "other")], check=True, cwd=ROOT, capture_output=True)
    content = (made[0] / "model.onnx").read_bytes()
    assert (tmp_path / "other" / "model.onnx").read_bytes() == content
    for word in (str(ROOT), ".py", "site-packages", str(Path.home()), str(tmp_path)):
        assert word.encode() not in content


@needed
def test_the_graph_carries_the_identity_and_the_card_its_digest(tmp_path: Path, made: tuple[Path, Network]) -> None:
    import onnx

    folder = Path(shutil.copytree(made[0], tmp_path / "copy"))
    written = json.loads((folder / "card.json").read_text())
    props = {each.key: each.value for each in onnx.load(folder / "model.onnx").metadata_props}
    assert props == {"identity": written["identity"], "metric": "cosine", "name": "small"}
    assert load(folder).identity == written["identity"]
    (folder / "model.onnx").write_bytes((folder / "model.onnx").read_bytes() + b"\0")
    with pytest.raises(Refusal, match=r"model\.onnx: not the graph that card\.json describes; copy it again, or take"):
        load(folder)
    (folder / "model.onnx").unlink()
    assert load(folder).identity == written["identity"]


@needed
def test_without_the_projection_the_graph_has_h_alone(tmp_path: Path) -> None:
    import onnxruntime

    folder, _ = bundled(tmp_path, graph=True, projection=False)
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_outputs()] == ["h"]


@needed
def test_a_graph_that_does_not_agree_does_not_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_graph, "AGREEMENT", -1.0)
    with pytest.raises(Refusal, match=r"h of the graph is .* away from the network's on a batch of 1, .*onnx: false"):
        bundled(tmp_path, graph=True)
    assert list(tmp_path.iterdir()) == []


@needed
def test_a_network_without_an_onnx_form_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: Any, **__: Any) -> None:
        raise RuntimeError("no operator for aten::odd\nand a long story")

    monkeypatch.setattr("torch.onnx.export", cannot)
    told = r"the network has no ONNX form \(no operator for aten::odd\); set export\.onnx: false"
    with pytest.raises(Refusal, match=f"export.onnx is true: {told}"):
        bundled(tmp_path, graph=True)


def test_missing_packages_are_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_graph, "PACKAGES", ("numpy", "no_such_package"))
    with pytest.raises(
        Refusal, match=r"export\.onnx is true: no_such_package not installed; pip install .*onnx: false"
    ):
        refuse_without_packages()
