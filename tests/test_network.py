"""The network: a function of its specs and the seed alone; given weights, whole or frozen below a layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from small import sharded, space, trained, training
from torch import nn

from pipeline.network import (
    Network,
    build_network,
    described_network,
    freeze_below,
    layers,
    take_weights,
    trained_network,
)
from pipeline.shards import Shards
from pipeline.spec import Refusal
from pipeline.training import start_network

MEAN, STD = (0.2, 0.4, 0.6), (0.5, 0.25, 2.0)
RESNET = {"kind": "torchvision", "name": "resnet18", "small_stem": True}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return sharded(tmp_path_factory.mktemp("shards") / "small")


def network(seed: int = 0, **changes: Any) -> Network:
    return build_network(training(**changes).encoder, space().projection, MEAN, STD, seed)


def same(first: nn.Module, second: nn.Module) -> bool:
    mine, theirs = first.state_dict(), second.state_dict()
    return mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_a_network_is_a_function_of_its_seed_and_leaves_the_generator_alone() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = network(seed=3)
    assert torch.equal(before, torch.get_rng_state())
    torch.randn(100)
    assert same(first, network(seed=3))
    assert not same(first, network(seed=4))


def test_the_cards_moments_are_taken_off_first() -> None:
    net = network().double()
    images = torch.rand(2, 3, 8, 8, dtype=torch.float64)
    normed = torch.stack([(images[:, c] - MEAN[c]) / STD[c] for c in range(3)], 1)
    h, z = net(images)
    torch.testing.assert_close(h, net.encoder(normed), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(z, net.projection(h))
    torch.testing.assert_close(h, net.encode(images))


def test_a_described_network_is_the_one_that_training_started_from() -> None:
    spec, declared = training(), space()
    described = {
        "encoder": spec.encoder.model_dump(mode="json"),
        "projection": declared.projection.model_dump(mode="json"),
        "mean": MEAN,
        "std": STD,
        "seed": spec.seed,
    }
    assert same(described_network(described), start_network(declared, spec, MEAN, STD))


def test_layers_are_the_parts_in_order() -> None:
    assert layers(network().encoder) == ["stage1", "stage2", "pool"]
    assert layers(network(encoder=RESNET, norm_group=16).encoder) == [
        "conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4", "avgpool", "fc",
    ]  # fmt: skip


def contiguous(net: Network) -> dict[str, torch.Tensor]:
    return {name: value.contiguous() for name, value in net.encoder.state_dict().items()}


def weights_of(net: Network, file: Path, prefix: str = "") -> Path:
    save_file({prefix + name: value for name, value in contiguous(net).items()}, file)
    return file


@pytest.mark.parametrize("prefix", ["", "encoder."])
def test_given_weights_are_taken_whole(tmp_path: Path, prefix: str) -> None:
    given = network(seed=9)
    file = weights_of(given, tmp_path / "w.safetensors", prefix)
    start = {"kind": "weights", "file": str(file), "frozen_below": None}
    started = start_network(space(), training(start=start), MEAN, STD)
    assert same(started.encoder, given.encoder)
    assert same(started.projection, network(seed=0).projection)
    assert all(weight.requires_grad for weight in started.parameters())


def test_a_whole_networks_file_may_be_given(tmp_path: Path) -> None:
    given = network(seed=9)
    save_file({name: value.contiguous() for name, value in given.state_dict().items()}, tmp_path / "w.safetensors")
    net = network()
    take_weights(net.encoder, tmp_path / "w.safetensors")
    assert same(net.encoder, given.encoder)


def test_the_classifier_of_a_published_checkpoint_is_left(tmp_path: Path) -> None:
    given = network(seed=9)
    head = {"fc.weight": torch.zeros(7, 8), "fc.bias": torch.zeros(7)}
    save_file({**contiguous(given), **head}, tmp_path / "w.safetensors")
    net = network()
    take_weights(net.encoder, tmp_path / "w.safetensors")
    assert same(net.encoder, given.encoder)


def test_a_pickle_is_never_opened_and_its_remedy_is_told(tmp_path: Path) -> None:
    torch.save(contiguous(network()), tmp_path / "w.pth")
    with pytest.raises(Refusal, match=r"w.pth: a pickle, which is never opened; save its tensors, as safetensors"):
        take_weights(network().encoder, tmp_path / "w.pth")


def test_below_a_layer_nothing_moves_and_above_it_everything_does(tmp_path: Path, shards: Shards) -> None:
    given = network(seed=9, encoder=RESNET, norm_group=16)
    for child in given.modules():
        if isinstance(child, nn.BatchNorm2d):
            nn.init.uniform_(child.running_mean, -0.1, 0.1)
    file = weights_of(given, tmp_path / "w.safetensors")
    changes = {
        "encoder": RESNET,
        "norm_group": 16,
        "start": {"kind": "weights", "file": str(file), "frozen_below": "layer4"},
        "epochs": 1,
        "schedule": {"kind": "constant"},
    }
    after = trained(shards, space(), training(**changes)).network.encoder.state_dict()
    before = given.encoder.state_dict()
    for name, value in after.items():
        moved = not torch.equal(value, before[name])
        assert moved == name.startswith("layer4."), name


def test_frozen_parts_stay_in_evaluation_mode_and_the_rest_trains() -> None:
    from pipeline.network import frozen_to_eval

    net = network(encoder=RESNET, norm_group=16)
    freeze_below(net.encoder, "layer2")
    net.train()
    frozen_to_eval(net)
    norms = {name: child.training for name, child in net.named_modules() if isinstance(child, nn.BatchNorm2d)}
    assert {name.split(".")[1] for name, mode in norms.items() if not mode} == {"bn1", "layer1"}
    assert {name.split(".")[1] for name, mode in norms.items() if mode} == {"layer2", "layer3", "layer4"}


def test_a_layer_that_is_not_there_offers_the_nearest() -> None:
    with pytest.raises(Refusal, match=r"frozen_below = 'stage3': no such layer; did you mean 'stage[12]'\?"):
        freeze_below(network().encoder, "stage3")


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda file: file.unlink(), "no such weights file; name a .safetensors file"),
        (lambda file: file.write_bytes(b"PK\x03\x04 a pickle"), "not a safetensors file"),
        (lambda file: file.write_bytes(file.read_bytes()[:-10]), "not a safetensors file"),
        (lambda file: file.write_bytes(b""), "not a safetensors file"),
        (
            lambda file: save_file({"stage1.0.weight": torch.zeros(3)}, file),
            "does not fit this encoder: it lacks stage1.",
        ),
        (
            lambda file: save_file({**contiguous(network()), "more": torch.zeros(1)}, file),
            "does not fit this encoder: it has an unknown more",
        ),
        (
            lambda file: save_file({**contiguous(network()), "stage1.0.weight": torch.zeros(8, 1, 3, 3)}, file),
            "stage1.0.weight is (8, 1, 3, 3), the encoder's is (8, 3, 3, 3)",
        ),
    ],
)
def test_weights_that_do_not_fit_are_one_line(tmp_path: Path, spoil: Any, line: str) -> None:
    file = weights_of(network(), tmp_path / "w.safetensors")
    spoil(file)
    with pytest.raises(Refusal) as caught:
        take_weights(network().encoder, file)
    (told,) = str(caught.value).splitlines()
    assert told.startswith(f"{file}: ")
    assert line in told


def test_learned_scalars_belong_to_the_network_and_stay_out_of_the_encoder() -> None:
    learned = {"kind": "learned", "start": 0.1, "low": 0.01, "high": 1.0}
    net = start_network(space(temperature=learned), training(), MEAN, STD)
    assert list(net.scalars) == ["temperature"]
    objective = {"kind": "sigmoid", "bias": -3.0}
    net = start_network(space(temperature=learned, objective=objective), training(), MEAN, STD)
    assert net.scalars["bias"].item() == -3.0


def test_scalars_trained_beside_the_network_do_not_hinder_its_use(tmp_path: Path) -> None:
    described = {
        "encoder": {"kind": "small", "widths": [8], "strides": [2], "groups": 4},
        "projection": {"kind": "linear", "dim": 4, "boundary": "h"},
        "mean": [0.5],
        "std": [0.25],
        "seed": 3,
    }
    plain = described_network(described)
    state = {**plain.state_dict(), "scalars.temperature": torch.tensor(0.3)}
    save_file({name: value.contiguous() for name, value in state.items()}, tmp_path / "weights.safetensors")
    images = torch.rand(3, 1, 8, 8)
    with torch.inference_mode():
        found = trained_network(described, tmp_path / "weights.safetensors").encode(images)
        assert torch.equal(found, plain.eval().encode(images))
