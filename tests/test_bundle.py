"""The bundle: raw inputs of any size to h as in training, comparisons by the space alone; damage is one line."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bundled import INPUT, SIZES, bundled, card, h_and_z, network_of, saved
from PIL import Image
from safetensors.torch import load_file, save_file
from small import pictures

from pipeline.bundle import load
from pipeline.bundle.card import FORMAT, card_text, identity
from pipeline.bundle.weights import weight_digest
from pipeline.bundle.writing import write_bundle
from pipeline.network import Network
from pipeline.spec import Refusal, canonical

RESNET = {"kind": "torchvision", "name": "resnet18", "small_stem": True}
INPUTS: dict[str, dict[str, Any]] = {
    "resized": {},
    "padded": {"width": 16, "fit": "pad", "background": 90},
    "covered": {"fit": "cover"},
    "grey": {"height": 12, "channels": 1, "fit": "pad"},
    "five bands": {"channels": 5},
}
Made = tuple[Path, Network, dict[str, Any]]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Made:
    given = card()
    return *bundled(tmp_path_factory.mktemp("bundle") / "small", given), given


@pytest.fixture
def copy(bundle: Made, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bundle[0], tmp_path / "copy"))


# -- what embed gives --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("input_", "encoder"),
    [*((name, None) for name in INPUTS), ("resized", RESNET)],
    ids=[*INPUTS, "batch norm"],
)
def test_h_is_that_of_the_training_time_encoder(tmp_path: Path, input_: str, encoder: dict[str, Any] | None) -> None:
    given = card(encoder, INPUTS[input_])
    folder, network = bundled(tmp_path / "b", given)
    images = pictures(SIZES, given["input"]["channels"])
    vectors = load(folder).embed(images)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, h_and_z(network, given, images)[0])


def test_z_is_what_the_loss_compared(bundle: Made) -> None:
    folder, network, given = bundle
    images = pictures(SIZES, 3)
    z = h_and_z(network, given, images)[1]
    found = load(folder).embed(images, layer="z")
    np.testing.assert_allclose(found, z / np.linalg.norm(z, axis=1, keepdims=True), atol=1e-6)
    assert (found.layer, found.shape) == ("z", (len(images), 8))


def test_arrays_bytes_paths_and_pillow_images_of_one_picture_are_one_h(bundle: Made, tmp_path: Path) -> None:
    folder, network, given = bundle
    images = pictures(SIZES, 3)
    paths = saved(tmp_path, images)
    opened, expected = load(folder), h_and_z(network, given, images)[0]
    opened_images = [Image.open(path) for path in paths]
    for raw in (images, [path.read_bytes() for path in paths], paths, list(map(str, paths)), opened_images):
        np.testing.assert_array_equal(opened.embed(raw), expected)
    assert opened.embed(paths).names == tuple(map(str, paths))
    assert opened.embed(images).names is None


def test_a_turned_or_transparent_picture_is_read_alike_from_its_path_and_from_pillow(
    bundle: Made, tmp_path: Path
) -> None:
    (image,) = pictures([(9, 14)], 3)
    turned = Image.fromarray(image)
    turned.getexif()[0x0112] = 6
    turned.save(tmp_path / "turned.jpg", exif=turned.getexif(), quality=95)
    Image.fromarray(np.concatenate([image, image[..., :1]], axis=2)).save(tmp_path / "clear.png")
    opened = load(bundle[0])
    for name in ("turned.jpg", "clear.png"):
        path = tmp_path / name
        np.testing.assert_array_equal(opened.embed([path]), opened.embed([Image.open(path)]))


def test_the_number_in_one_pass_changes_rounding_only(bundle: Made) -> None:
    images, opened = pictures([(16, 12)] * 7, 3), load(bundle[0])
    np.testing.assert_allclose(opened.embed(images, batch=2), opened.embed(images), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(opened.embed(np.stack(images)), opened.embed(iter(images)))


def test_grey_pictures_may_come_without_a_channel_axis(bundle: Made) -> None:
    (image,) = pictures([(9, 9)], 1)
    opened = load(bundle[0])
    np.testing.assert_array_equal(opened.embed([image[..., 0]]), opened.embed([np.repeat(image, 3, 2)]))


# -- what is written ---------------------------------------------------------------------------------------------------


def test_equal_networks_and_cards_write_equal_bytes(tmp_path: Path, bundle: Made) -> None:
    folder, _ = bundled(tmp_path / "again")
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "card.json",
        "encoder.safetensors",
        "projection.safetensors",
    }
    for file in folder.iterdir():
        assert file.read_bytes() == (bundle[0] / file.name).read_bytes()


def test_weights_stand_under_the_architecture_s_own_names_with_the_card_beside_them(bundle: Made) -> None:
    folder, network, _ = bundle
    written = json.loads((folder / "card.json").read_text())
    for file, part in (("encoder", network.encoder), ("projection", network.projection)):
        weights = load_file(folder / f"{file}.safetensors")
        assert weights.keys() == part.state_dict().keys()
        content = (folder / f"{file}.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        assert header["__metadata__"] == {"card": canonical(written)}
    assert written["format"] == FORMAT
    assert written["weights"] == weight_digest(dict(network.encoder.state_dict()))
    assert written["identity"] == identity(written)
    assert (written["width"], written["layer"]) == (16, "h")


def test_another_seed_is_another_space_and_a_projection_left_behind_is_not(tmp_path: Path, bundle: Made) -> None:
    first = load(bundle[0]).identity
    other, _ = bundled(tmp_path / "seed", card(seed=1))
    assert load(other).identity != first
    assert load(bundled(tmp_path / "temperature", card(temperature=0.5))[0]).identity != first
    assert load(bundled(tmp_path / "behind", projection=False)[0]).identity == first
    assert not (tmp_path / "behind" / "projection.safetensors").exists()


def test_learned_scalars_and_the_predictor_do_not_leave(tmp_path: Path) -> None:
    given = card(temperature={"kind": "learned", "start": 0.2, "low": 0.1, "high": 0.4})
    network = network_of(given)
    network.scalars["temperature"] = torch.nn.Parameter(torch.tensor(0.2))
    network.predictor = torch.nn.Linear(8, 8)
    write_bundle(tmp_path, network, given)
    assert load_file(tmp_path / "encoder.safetensors").keys() == network.encoder.state_dict().keys()


def test_every_byte_of_a_bundle_is_text_or_numbers_and_so_no_pickle(bundle: Made) -> None:
    for file in bundle[0].iterdir():
        content = file.read_bytes()
        if file.suffix == ".safetensors":
            length = int.from_bytes(content[:8], "little")
            header = json.loads(content[8 : 8 + length])
            size = max(each["data_offsets"][1] for name, each in header.items() if name != "__metadata__")
            assert 8 + length + size == len(content)
        elif file.suffix == ".json":
            assert card_text(json.loads(content)).encode() == content
        else:
            assert all(letter.isprintable() or letter == "\n" for letter in content.decode())


def test_a_card_of_another_network_is_not_written(tmp_path: Path) -> None:
    given = card()
    given["network"] = {**given["network"], "mean": [0.1, 0.2, 0.3]}
    with pytest.raises(ValueError, match=r"network\.mean is not the network's"):
        write_bundle(tmp_path, network_of(card()), given)


def test_a_bundle_opens_from_memory_by_its_url(bundle: Made) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.put(str(bundle[0]), "/bundles/small", recursive=True)
    images = pictures(SIZES, 3)
    np.testing.assert_array_equal(load("memory://bundles/small").embed(images), load(bundle[0]).embed(images))
    memory.rm("/bundles/small/projection.safetensors")
    with pytest.raises(Refusal, match=r"memory://bundles/small: no bundle: projection\.safetensors is missing"):
        load("memory://bundles/small")


def test_an_architecture_that_cannot_be_built_without_numbers_opens_too(
    bundle: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline import bundle as module

    def refuses(*_: object) -> None:
        raise NotImplementedError("Cannot copy out of meta tensor")

    images = pictures(SIZES, 3)
    expected = load(bundle[0]).embed(images).values
    meta = module.on_meta
    monkeypatch.setattr(
        module, "on_meta", lambda build, *rest: refuses() if "Small" in str(build) else meta(build, *rest)
    )
    np.testing.assert_array_equal(load(bundle[0]).embed(images), expected)


# -- what is not as it was written -------------------------------------------------------------------------------------


def tampered_weights(folder: Path) -> None:
    weights = load_file(folder / "encoder.safetensors")
    weights["stage1.0.weight"] = weights["stage1.0.weight"] + 1e-4
    save_file(weights, folder / "encoder.safetensors")


def without(name: str) -> Any:
    def spoil(folder: Path) -> None:
        weights = load_file(folder / "encoder.safetensors")
        save_file({key: value for key, value in weights.items() if key != name}, folder / "encoder.safetensors")

    return spoil


def beside(name: str, shape: tuple[int, ...]) -> Any:
    def spoil(folder: Path) -> None:
        weights = load_file(folder / "encoder.safetensors")
        save_file({**weights, name: torch.zeros(shape)}, folder / "encoder.safetensors")

    return spoil


def flipped_bit(name: str) -> Any:
    def spoil(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[-5] ^= 1
        (folder / name).write_bytes(content)

    return spoil


def cut(name: str, keep: int) -> Any:
    def spoil(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:keep])

    return spoil


def edited(fresh: bool = False, **changes: Any) -> Any:
    """Change the card; ``fresh``: and its identity with it, as somebody would who means it."""

    def spoil(folder: Path) -> None:
        content = json.loads((folder / "card.json").read_text())
        for name, value in changes.items():
            if value is None:
                del content[name]
            else:
                content[name] = value
        if fresh:
            content["identity"] = identity(content)
        (folder / "card.json").write_text(json.dumps(content))

    return spoil


def written(text: str | bytes) -> Any:
    return lambda folder: (folder / "card.json").write_bytes(text.encode() if isinstance(text, str) else text)


NOT_THE_WEIGHTS = "not the weights that card.json describes; copy both again"
SMALL: dict[str, Any] = {"kind": "small", "widths": [8, 16], "strides": [2, 2], "groups": 4}


def network_part(**changes: Any) -> dict[str, Any]:
    return {**card()["network"], **changes}


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (tampered_weights, NOT_THE_WEIGHTS),
        (flipped_bit("encoder.safetensors"), NOT_THE_WEIGHTS),
        (flipped_bit("projection.safetensors"), NOT_THE_WEIGHTS),
        (without("stage1.0.weight"), "lacks the tensor 'stage1.0.weight' (1 of 6); copy it again"),
        (beside("backdoor", (3,)), "has a tensor 'backdoor', which the network of card.json does not have"),
        (beside("stage1.0.weight", (8, 3, 5, 5)), "stage1.0.weight is ('F32', [8, 3, 5, 5]), the network"),
        (lambda folder: (folder / "card.json").unlink(), "no bundle: card.json is missing; name a folder that"),
        (lambda folder: (folder / "encoder.safetensors").unlink(), "no bundle: encoder.safetensors is missing; copy"),
        (lambda folder: (folder / "projection.safetensors").unlink(), "no bundle: projection.safetensors is missing"),
        (cut("card.json", 100), "damaged"),
        (cut("card.json", 0), "damaged"),
        (cut("encoder.safetensors", 300), "damaged"),
        (cut("encoder.safetensors", 5), "damaged"),
        (cut("encoder.safetensors", -4), "damaged"),
        (edited(format=FORMAT + 1), f"format is not {FORMAT} but {FORMAT + 1}; install the version that wrote it"),
        (edited(format=1), f"format is not {FORMAT} but 1; export it again with `dvc repro`"),
        (edited(format=None), f"format is not {FORMAT}"),
        (edited(format=True), f"format is not {FORMAT}"),
        (written("[]"), f"format is not {FORMAT}"),
        (written(b"\xff\xfe"), "damaged"),
        (written("[" * 100_000), "damaged: nested too deep"),
        (written('{"a":' * 50_000 + "1" + "}" * 50_000), "damaged: nested too deep"),
        (written('{"format": ' + "9" * 10_000 + "}"), "damaged"),
        (written('{"format": 2, "x": 1e999}'), "damaged"),
        (written('{"format": 2, "x": NaN}'), "damaged"),
        (written('{"format": 2, "x": "\\ud800"}'), "damaged"),
        (written(b" " * (2**24 + 1)), "more than the 16777216 bytes that it can have"),
        (edited(space={"metric": "dot"}), "card.json: was changed after it was written"),
        (edited(network=None), "card.json: 'network' is missing or no dict"),
        (edited(input=[]), "card.json: 'input' is missing or no dict"),
        (edited(weights=7), "card.json: 'weights' is missing or no str"),
        (edited(projection=None), "card.json: 'projection' is missing or no dict"),
        (edited(input={**INPUT, "height": 17}), "card.json: was changed after it was written"),
        (edited(fresh=True, input={**INPUT, "height": 17}), "not the card that travels in encoder.safetensors"),
        (edited(licence="none"), "not the card that travels in encoder.safetensors; copy both again"),
        (edited(fresh=True, input={**INPUT, "channels": 1}), "input of 1 channels, network of 3"),
        (edited(fresh=True, input={**INPUT, "height": "17"}), "input.height = "),
        (edited(fresh=True, weights="a" * 64), NOT_THE_WEIGHTS),
        (edited(fresh=True, network=network_part(encoder={"kind": "pickle"})), "network.encoder.kind = "),
        (edited(fresh=True, network=network_part(std=[1.0])), "must have one value a channel: 3"),
        (
            edited(fresh=True, network=network_part(encoder={**SMALL, "widths": [4096, 4096]})),
            "stage1.0.weight is ('F32', [8, 3, 3, 3]), the network of card.json has ('F32', [4096, 3, 3, 3])",
        ),
        (
            edited(fresh=True, network=network_part(encoder={**SMALL, "widths": [4] * 9000, "strides": [1] * 9000})),
            "describes a network at a length of which none is",
        ),
        (edited(fresh=True, network=network_part(encoder={"kind": "timm", "name": "hf-hub:a/b", "small_stem": False})),
         "no such timm model"),
    ],
)  # fmt: skip
def test_a_bundle_that_is_not_as_it_was_written_is_one_line(copy: Path, spoil: Any, line: str) -> None:
    spoil(copy)
    with pytest.raises(Refusal) as caught:
        load(copy)
    (told,) = str(caught.value).splitlines()
    assert told.startswith(str(copy))
    assert line in told
    assert len(told) < 500


def test_a_space_that_defines_no_metric_is_told(copy: Path) -> None:
    content = json.loads((copy / "card.json").read_text())
    edited(fresh=True, space={**content["space"], "metric": "manhattan"})(copy)
    with pytest.raises(Refusal, match=r"card\.json: space\.metric = \"manhattan\""):
        load(copy)


def test_a_network_beyond_all_numbers_is_told(copy: Path) -> None:
    content = json.loads((copy / "card.json").read_text())
    edited(fresh=True, space={**content["space"], "projection": {**content["space"]["projection"], "dim": 2**70}})(copy)
    with pytest.raises(Refusal, match=r"card\.json: no network can be built of it"):
        load(copy)


def test_a_folder_that_is_no_bundle_is_told(tmp_path: Path, bundle: Made) -> None:
    with pytest.raises(Refusal, match=r"no bundle: card\.json is missing"):
        load(tmp_path)
    with pytest.raises(Refusal, match=r"no such bundle: card\.json is missing; did you mean 'small'\?"):
        load(bundle[0].with_name("smal"))
    (tmp_path / "refused.json").write_text('{"stage": "judge", "reason": "below a threshold"}')
    with pytest.raises(Refusal, match=r"no bundle: judge refused it: below a threshold"):
        load(tmp_path)
    with pytest.raises(Refusal, match=r"gopher://there: cannot be opened"):
        load("gopher://there")


@pytest.mark.parametrize(
    ("image", "line"),
    [
        (np.zeros((4, 4, 3), np.float32), "must be uint8"),
        (np.zeros((4, 4, 5), np.uint8), "5 channels"),
        (np.zeros((0, 4, 3), np.uint8), "must be uint8 of shape"),
        (b"not a picture", "encoded bytes: not a picture"),
        ("nowhere.png", "nowhere.png: no such file or directory"),
        (Path("/"), "is a directory"),
        (Path("/dev/zero"), "no regular file"),
        (torch.zeros(3, 4, 4), "Tensor is no picture"),
        (Image.new("F", (4, 4)), "picture of mode F: its range is not known"),
    ],
)
def test_a_picture_that_cannot_be_read_is_one_line(bundle: Made, image: Any, line: str) -> None:
    with pytest.raises(Refusal) as caught:
        load(bundle[0]).embed([image])
    (told,) = str(caught.value).splitlines()
    assert line in told


def test_no_pictures_are_told(bundle: Made) -> None:
    with pytest.raises(Refusal, match="no picture was given; give one or more"):
        load(bundle[0]).embed([])


@pytest.mark.parametrize(
    "one", [np.zeros((8, 8, 3), np.uint8), "a.png", b"a", Path("a.png"), Image.new("L", (2, 2))], ids=type
)
def test_one_image_instead_of_a_list_is_told(bundle: Made, one: Any) -> None:
    with pytest.raises(Refusal, match="one picture was given; give a list, or"):
        load(bundle[0]).embed(one)


def test_encoded_bytes_are_decided_by_what_they_are(bundle: Made) -> None:
    (image,) = pictures([(7, 9)], 3)
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "BMP")
    opened = load(bundle[0])
    np.testing.assert_array_equal(opened.embed([stream.getvalue()]), opened.embed([image]))
