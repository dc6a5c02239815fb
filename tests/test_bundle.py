"""The bundle: raw inputs of any size to h as in training, and nothing else; damage is one line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from small import pictures, sharded, space, trained, training

from pipeline.bundle import FORMAT, load, weight_digest, write_bundle
from pipeline.images import Input, fit_image
from pipeline.network import Network
from pipeline.shards import Shards
from pipeline.spec import Refusal

RESNET = {"kind": "torchvision", "name": "resnet18", "small_stem": True}
INPUTS = {
    "resized": {"height": 16, "width": 12, "channels": 3, "fit": "resize", "background": 0},
    "padded": {"height": 16, "width": 16, "channels": 3, "fit": "pad", "background": 90},
    "grey": {"height": 12, "width": 12, "channels": 1, "fit": "pad", "background": 0},
}
SIZES = [(16, 16), (40, 30), (5, 9), (1, 1), (16, 12)]


def card(shards: Shards, encoder: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "small",
        "space": space().model_dump(mode="json"),
        "network": {"encoder": encoder, "mean": shards.card.mean, "std": shards.card.std, "seed": 0},
        "input": shards.card.input.model_dump(mode="json"),
    }


def made(folder: Path, input_: str = "resized", **changes: Any) -> tuple[Path, Network, Input]:
    shards = sharded(folder / "shards", input=INPUTS[input_])
    invariances = [{"kind": "shift", "pixels": 2}]
    spec = training(epochs=1, schedule={"kind": "constant"}, **changes)
    network = trained(shards, space(invariances=invariances), spec).network
    bundle = folder / "bundle"
    bundle.mkdir()
    write_bundle(bundle, network, card(shards, spec.encoder.model_dump(mode="json")))
    return bundle, network, shards.card.input


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Network, Input]:
    return made(tmp_path_factory.mktemp("bundle"))


@pytest.fixture
def copy(bundle: tuple[Path, Network, Input], tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in bundle[0].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def training_time_h(network: Network, canvas: Input, images: list[np.ndarray]) -> np.ndarray:
    pixels = np.stack([fit_image(image, canvas) for image in images])
    with torch.no_grad():
        return network.eval()(torch.from_numpy(pixels).float() / 255.0)[0].numpy()


@pytest.mark.parametrize(
    ("input_", "changes"),
    [("resized", {}), ("padded", {}), ("grey", {}), ("resized", {"encoder": RESNET, "norm_group": 16})],
    ids=["resized", "padded", "grey", "batch norm"],
)
def test_h_is_that_of_the_training_time_encoder(tmp_path: Path, input_: str, changes: dict[str, Any]) -> None:
    folder, network, canvas = made(tmp_path, input_, **changes)
    images = pictures(SIZES, canvas.channels)
    h = load(folder).embed(images)
    assert h.dtype == np.float32
    np.testing.assert_array_equal(h, training_time_h(network, canvas, images))


def test_arrays_bytes_and_paths_of_one_picture_are_one_h(bundle: tuple[Path, Network, Input], tmp_path: Path) -> None:
    folder, network, canvas = bundle
    images = pictures(SIZES, 3)
    encoded, paths = [], []
    for number, image in enumerate(images):
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "PNG")
        encoded.append(buffer.getvalue())
        paths.append(tmp_path / f"{number}.png")
        paths[-1].write_bytes(encoded[-1])
    opened, expected = load(folder), training_time_h(network, canvas, images)
    for raw in (images, encoded, paths, [str(path) for path in paths]):
        np.testing.assert_array_equal(opened.embed(raw), expected)


def test_the_number_in_one_pass_changes_rounding_only(bundle: tuple[Path, Network, Input]) -> None:
    images, opened = pictures([(16, 12)] * 7, 3), load(bundle[0])
    np.testing.assert_allclose(opened.embed(images, batch=2), opened.embed(images), rtol=1e-5, atol=1e-6)
    batch = np.stack(images)
    np.testing.assert_array_equal(opened.embed(batch), opened.embed(images))


def test_grey_pictures_may_come_without_a_channel_axis(bundle: tuple[Path, Network, Input]) -> None:
    (image,) = pictures([(9, 9)], 1)
    opened = load(bundle[0])
    np.testing.assert_array_equal(opened.embed([image[..., 0]]), opened.embed([np.repeat(image, 3, 2)]))


def test_equal_runs_write_equal_bytes(tmp_path: Path, bundle: tuple[Path, Network, Input]) -> None:
    (tmp_path / "again").mkdir()
    folder, _, _ = made(tmp_path / "again")
    for name in ("card.json", "encoder.safetensors"):
        assert (folder / name).read_bytes() == (bundle[0] / name).read_bytes()


def test_the_projection_stays_behind_and_the_card_travels_with_the_weights(
    bundle: tuple[Path, Network, Input],
) -> None:
    folder, network, _ = bundle
    weights = load_file(folder / "encoder.safetensors")
    expected = {name for name in network.state_dict() if name.startswith("encoder.")} | {"mean", "std"}
    assert set(weights) == expected
    written = json.loads((folder / "card.json").read_text())
    assert written["format"] == FORMAT
    assert written["weights"] == weight_digest(weights)
    assert len(written["identity"]) == 64
    assert sorted(path.name for path in folder.iterdir()) == ["card.json", "encoder.safetensors"]


def test_learned_scalars_of_the_loss_do_not_leave(tmp_path: Path) -> None:
    shards = sharded(tmp_path / "shards")
    learned = space(temperature={"kind": "learned", "start": 0.2, "low": 0.1, "high": 0.4})
    network = trained(shards, learned, training(epochs=1, schedule={"kind": "constant"})).network
    (tmp_path / "bundle").mkdir()
    write_bundle(tmp_path / "bundle", network, card(shards, training().encoder.model_dump(mode="json")))
    images = pictures(SIZES, 3)
    expected = training_time_h(network, shards.card.input, images)
    np.testing.assert_array_equal(load(tmp_path / "bundle").embed(images), expected)


def test_every_byte_of_a_bundle_is_json_or_numbers_and_so_no_pickle(bundle: tuple[Path, Network, Input]) -> None:
    for file in bundle[0].iterdir():
        content = file.read_bytes()
        if file.suffix == ".safetensors":
            length = int.from_bytes(content[:8], "little")
            header = json.loads(content[8 : 8 + length])
            size = max(each["data_offsets"][1] for name, each in header.items() if name != "__metadata__")
            assert 8 + length + size == len(content)
        else:
            json.loads(content)


def tampered_weights(folder: Path) -> None:
    weights = load_file(folder / "encoder.safetensors")
    weights["mean"] = weights["mean"] + 1e-4
    save_file(weights, folder / "encoder.safetensors")


def flipped_bit(folder: Path) -> None:
    content = bytearray((folder / "encoder.safetensors").read_bytes())
    content[-5] ^= 1
    (folder / "encoder.safetensors").write_bytes(content)


def cut(name: str, keep: int) -> Any:
    def spoil(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:keep])

    return spoil


def edited(**changes: Any) -> Any:
    def spoil(folder: Path) -> None:
        content = json.loads((folder / "card.json").read_text())
        for name, value in changes.items():
            if value is None:
                del content[name]
            else:
                content[name] = value
        (folder / "card.json").write_text(json.dumps(content))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (tampered_weights, "not the weights that card.json describes; copy both again"),
        (flipped_bit, "not the weights that card.json describes; copy both again"),
        (lambda folder: (folder / "card.json").unlink(), "no bundle: card.json is missing; name a folder that"),
        (lambda folder: (folder / "encoder.safetensors").unlink(), "no bundle: encoder.safetensors is missing"),
        (cut("card.json", 100), "damaged"),
        (cut("card.json", 0), "damaged"),
        (cut("encoder.safetensors", 300), "damaged"),
        (cut("encoder.safetensors", 5), "damaged"),
        (cut("encoder.safetensors", -4), "damaged"),
        (edited(format=FORMAT + 1), f"format is not {FORMAT}; install the version that wrote it"),
        (edited(format=None), f"format is not {FORMAT}"),
        (lambda folder: (folder / "card.json").write_text("[]"), f"format is not {FORMAT}"),
        (lambda folder: (folder / "card.json").write_bytes(b"\xff\xfe"), "damaged"),
        (edited(space={"metric": "dot"}), "card.json: was changed after it was written"),
        (edited(network=None), "card.json: was changed after it was written"),
        (edited(input=None), "card.json: was changed after it was written"),
        (edited(input={**INPUTS["resized"], "height": 17}), "card.json: was changed after it was written"),
        (edited(weights=None), "not the weights that card.json describes"),
    ],
)
def test_a_bundle_that_is_not_as_it_was_written_is_one_line(copy: Path, spoil: Any, line: str) -> None:
    spoil(copy)
    with pytest.raises(Refusal) as caught:
        load(copy)
    (told,) = str(caught.value).splitlines()
    assert told.startswith(str(copy))
    assert line in told


def test_a_folder_that_is_no_bundle_is_told(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(Refusal, match=r"no bundle: card\.json is missing"):
            load(folder)


@pytest.mark.parametrize(
    ("image", "line"),
    [
        (np.zeros((4, 4, 3), np.float32), "must be uint8"),
        (np.zeros((4, 4, 5), np.uint8), "5 channels"),
        (np.zeros((0, 4, 3), np.uint8), "must be uint8 of shape"),
        (b"not a picture", "an encoded image: not a picture"),
        ("nowhere.png", "nowhere.png: no such file or directory"),
        (Path("/"), "is a directory"),
    ],
)
def test_a_picture_that_cannot_be_read_is_one_line(bundle: tuple[Path, Network, Input], image: Any, line: str) -> None:
    with pytest.raises(Refusal) as caught:
        load(bundle[0]).embed([image])
    (told,) = str(caught.value).splitlines()
    assert line in told


def test_no_pictures_are_told(bundle: tuple[Path, Network, Input]) -> None:
    with pytest.raises(Refusal, match="no images were given"):
        load(bundle[0]).embed([])


@pytest.mark.parametrize("one", [np.zeros((8, 8, 3), np.uint8), "a.png", b"a", Path("a.png")], ids=type)
def test_one_image_instead_of_a_list_is_told(bundle: tuple[Path, Network, Input], one: Any) -> None:
    with pytest.raises(Refusal, match="one image was given; give a list of images"):
        load(bundle[0]).embed(one)
