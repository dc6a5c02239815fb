"""Encoders: widths and stems as published, wrong names told, structure asked without drawing a weight."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
import torchvision
from pydantic import TypeAdapter
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from pipeline.encoders import Encoder, Small, SmallResidual
from pipeline.encoders.structure import on_meta
from pipeline.spec import SpecError, parse

RESNETS = [
    {"kind": kind, "name": "resnet18", "small_stem": stem} for kind in ("timm", "torchvision") for stem in (0, 1)
]


def encoder(**fields: Any) -> Encoder:
    if "small_stem" in fields:
        fields["small_stem"] = bool(fields["small_stem"])
    return TypeAdapter(Encoder).validate_json(json.dumps(fields))  # type: ignore[return-value]


def told(fields: dict[str, Any]) -> str:
    from pipeline.encoders import Timm, Torchvision

    kinds = {"timm": Timm, "torchvision": Torchvision, "small": Small, "small_residual": SmallResidual}
    with pytest.raises(SpecError) as caught:
        parse(fields, kinds[fields["kind"]], "x.yaml", "e")
    (line,) = str(caught.value).splitlines()
    return line


@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("fields", RESNETS, ids=lambda each: f"{each['kind']}-{each['small_stem']}")
def test_resnet18_reads_any_number_of_channels_into_512_numbers(fields: dict[str, Any], channels: int) -> None:
    torch.manual_seed(0)
    module = encoder(**fields).build(channels).eval()
    assert module.dim == 512
    with torch.no_grad():
        h = module(torch.randn(2, channels, 32, 32))
    assert h.shape == (2, 512)
    assert bool(h.isfinite().all())
    assert float((h[0] - h[1]).abs().max()) > 0


@pytest.mark.parametrize("fields", RESNETS, ids=lambda each: f"{each['kind']}-{each['small_stem']}")
def test_a_small_stem_keeps_four_times_the_side(fields: dict[str, Any]) -> None:
    """7x7 stride 2 and max-pooling divide the side by 4; 3x3 stride 1 without pooling divides it by 1."""
    module = encoder(**fields).build(3).eval()
    sides = []
    module.layer1.register_forward_hook(lambda _module, inputs, _output: sides.append(inputs[0].shape[-1]))
    with torch.no_grad():
        module(torch.zeros(1, 3, 32, 32))
    assert sides == [32 if fields["small_stem"] else 8]


def block(state: dict[str, Tensor], name: str, x: Tensor, stride: int) -> Tensor:
    """He et al. 2016, figure 2 with batch normalisation in evaluation mode."""

    def normed(x: Tensor, key: str) -> Tensor:
        return functional.batch_norm(
            x,
            state[f"{key}.running_mean"],
            state[f"{key}.running_var"],
            state[f"{key}.weight"],
            state[f"{key}.bias"],
        )

    y = functional.conv2d(x, state[f"{name}.conv1.weight"], stride=stride, padding=1)
    y = normed(y, f"{name}.bn1").relu()
    y = normed(functional.conv2d(y, state[f"{name}.conv2.weight"], padding=1), f"{name}.bn2")
    if f"{name}.downsample.0.weight" in state:
        shortcut = functional.conv2d(x, state[f"{name}.downsample.0.weight"], stride=stride)
        x = normed(shortcut, f"{name}.downsample.1")
    return (x + y).relu()


@pytest.mark.parametrize("kind", ["timm", "torchvision"])
def test_resnet18_with_a_small_stem_is_the_resnet_of_simclr_for_cifar(kind: str) -> None:
    """Chen et al. 2020, appendix B.9: 3x3 stride 1, no max-pooling, then four stages of two blocks, mean pooling."""
    torch.manual_seed(1)
    module = encoder(kind=kind, name="resnet18", small_stem=True).build(3).double()
    for child in module.modules():
        if isinstance(child, nn.BatchNorm2d):
            nn.init.uniform_(child.weight, 0.5, 1.5)
            nn.init.normal_(child.bias)
            nn.init.normal_(child.running_mean)
            nn.init.uniform_(child.running_var, 0.5, 1.5)
    state = module.eval().state_dict()
    x = torch.randn(2, 3, 16, 16, dtype=torch.float64)
    y = functional.conv2d(x, state["conv1.weight"], padding=1)
    y = functional.batch_norm(
        y, state["bn1.running_mean"], state["bn1.running_var"], state["bn1.weight"], state["bn1.bias"]
    ).relu()
    for stage in (1, 2, 3, 4):
        for number in (0, 1):
            y = block(state, f"layer{stage}.{number}", y, stride=2 if stage > 1 and number == 0 else 1)
    with torch.no_grad():
        torch.testing.assert_close(module(x), y.mean((2, 3)), rtol=1e-10, atol=1e-10)


def test_without_a_small_stem_the_model_is_that_of_torchvision() -> None:
    torch.manual_seed(2)
    module = encoder(kind="torchvision", name="resnet18", small_stem=False).build(3).eval()
    theirs = torchvision.models.resnet18(num_classes=7)
    missing = theirs.load_state_dict(module.state_dict(), strict=False)
    assert sorted(missing.missing_keys) == ["fc.bias", "fc.weight"]
    theirs.fc = nn.Identity()
    x = torch.randn(2, 3, 40, 40)
    with torch.no_grad():
        torch.testing.assert_close(module(x), theirs.eval()(x), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("timm", "mobilenetv3_small_050"),
        ("timm", "vit_tiny_patch16_224"),
        ("timm", "convnext_atto"),
        ("timm", "efficientnet_b0"),
        ("torchvision", "mobilenet_v3_small"),
        ("torchvision", "efficientnet_b0"),
        ("torchvision", "convnext_tiny"),
        ("torchvision", "squeezenet1_0"),
        ("torchvision", "vit_b_16"),
        ("torchvision", "densenet121"),
    ],
)
def test_the_width_that_is_named_is_the_width_that_comes_out(kind: str, name: str) -> None:
    fields = {"kind": kind, "name": name, "small_stem": False}
    if name == "squeezenet1_0":
        assert "no linear classifier" in told(fields)
        return
    module = on_meta(encoder(**fields).build).eval()
    h = module(torch.zeros(2, 3, 224, 224, device="meta"))
    assert h.shape == (2, module.dim)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"kind": "timm", "name": "resnet81", "small_stem": False}, 'e.name = "resnet81": no such timm model; did you'),
        (
            {"kind": "torchvision", "name": "resnet81", "small_stem": False},
            'e.name = "resnet81": no such torchvision model; did you mean \'resnet',
        ),
        (
            {"kind": "timm", "name": "vit_tiny_patch16_224", "small_stem": True},
            "e.small_stem = true: vit_tiny_patch16_224 has no 7x7 stem with max-pooling to replace; set small_stem to",
        ),
        (
            {"kind": "torchvision", "name": "vgg11", "small_stem": True},
            "e.small_stem = true: vgg11 has no 7x7 stem with max-pooling to replace; set small_stem to false",
        ),
        (
            {"kind": "small_residual", "widths": [8, 16], "strides": [1], "groups": None},
            "e.strides = [1]: must name one stride a block: 2 of them",
        ),
        (
            {"kind": "small_residual", "widths": [8, 10], "strides": [1, 1], "groups": 4},
            "e.widths[1] = 10: must be a multiple of groups (4)",
        ),
        ({"kind": "small", "widths": [], "strides": [], "groups": 1}, "e.widths = []: "),
    ],
)
def test_a_model_that_is_not_there_or_does_not_fit_is_one_line(fields: dict[str, Any], line: str) -> None:
    if fields["kind"] == "small":
        with pytest.raises(SpecError) as caught:
            parse(fields, Small, "x.yaml", "e")
        assert line in str(caught.value)
        return
    assert told(fields).startswith(f"x.yaml: {line}")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": "small", "widths": [8], "strides": [1], "groups": 4}, False),
        ({"kind": "small_residual", "widths": [8], "strides": [1], "groups": None}, True),
        ({"kind": "small_residual", "widths": [8], "strides": [1], "groups": 4}, False),
        ({"kind": "timm", "name": "resnet18", "small_stem": False}, True),
        ({"kind": "timm", "name": "vit_tiny_patch16_224", "small_stem": False}, False),
        ({"kind": "torchvision", "name": "resnet18", "small_stem": True}, True),
        ({"kind": "torchvision", "name": "convnext_tiny", "small_stem": False}, False),
        ({"kind": "torchvision", "name": "vgg11", "small_stem": False}, False),
    ],
)
def test_batch_statistics_are_those_that_the_batch_really_has(fields: dict[str, Any], expected: bool) -> None:
    assert encoder(**fields).batch_statistics() is expected


def test_a_sample_of_the_small_network_does_not_see_its_batch() -> None:
    torch.manual_seed(0)
    module = Small(kind="small", widths=(8, 16), strides=(2, 1), groups=4).build(2).train().double()
    images = torch.randn(5, 2, 9, 9, dtype=torch.float64)
    for row, h in enumerate(module(images)):
        torch.testing.assert_close(module(images[row : row + 1])[0], h, rtol=1e-12, atol=1e-12)


def test_the_small_network_is_convolution_group_norm_relu_and_a_mean() -> None:
    torch.manual_seed(4)
    module = Small(kind="small", widths=(8, 12), strides=(2, 1), groups=4).build(3).double()
    x = y = torch.randn(2, 3, 11, 7, dtype=torch.float64)
    for number, stride in ((1, 2), (2, 1)):
        convolution, norm, _ = getattr(module, f"stage{number}")
        y = functional.conv2d(y, convolution.weight, stride=stride, padding=1)
        grouped = y.reshape(2, 4, -1)
        grouped = (grouped - grouped.mean(2, keepdim=True)) / (
            grouped.var(2, unbiased=False, keepdim=True) + 1e-5
        ).sqrt()
        y = (grouped.reshape(y.shape) * norm.weight[:, None, None] + norm.bias[:, None, None]).clamp(min=0)
    torch.testing.assert_close(module(x), y.mean((2, 3)), rtol=1e-10, atol=1e-10)
    assert module.dim == 12


RESIDUAL = {"kind": "small_residual", "widths": [32, 64, 128], "strides": [1, 2, 2]}


@pytest.mark.parametrize("groups", [None, 8])
def test_the_small_residual_network_has_the_size_that_is_told(groups: int | None) -> None:
    """307,360 parameters, and 12.9 million multiply-adds (a multiply-add is two operations) at 32 x 32."""
    module = on_meta(encoder(**RESIDUAL, groups=groups).build).eval()
    assert sum(weight.numel() for weight in module.parameters()) == 307_360
    with FlopCounterMode(display=False) as counted:
        h = module(torch.zeros(1, 3, 32, 32, device="meta"))
    assert counted.get_total_flops() == 2 * 12_943_360
    assert h.shape == (1, module.dim) == (1, 128)


@pytest.mark.parametrize("side", [1, 2, 5, 32])
def test_the_small_residual_network_reads_any_size_down_to_one_pixel(side: int) -> None:
    torch.manual_seed(0)
    h = encoder(**RESIDUAL, groups=8).build(2)(torch.randn(3, 2, side, side + 1))
    assert h.shape == (3, 128)
    assert bool(h.isfinite().all())


def test_the_small_residual_network_is_a_stem_a_pool_and_basic_blocks() -> None:
    torch.manual_seed(3)
    module = encoder(kind="small_residual", widths=[8, 8, 12], strides=[1, 2, 1], groups=None).build(3).double()
    for child in module.modules():
        if isinstance(child, nn.BatchNorm2d):
            nn.init.uniform_(child.weight, 0.5, 1.5)
            nn.init.normal_(child.bias)
            nn.init.normal_(child.running_mean)
            nn.init.uniform_(child.running_var, 0.5, 1.5)
    renamed = {"norm1": "bn1", "norm2": "bn2", "shortcut": "downsample"}  # to the names of He et al.'s authors
    state = {
        ".".join(renamed.get(part, part) for part in name.split(".")): value
        for name, value in module.eval().state_dict().items()
    }
    x = torch.randn(2, 3, 16, 12, dtype=torch.float64)
    y = functional.conv2d(x, state["stem.0.weight"], padding=1)
    y = functional.batch_norm(
        y, state["stem.1.running_mean"], state["stem.1.running_var"], state["stem.1.weight"], state["stem.1.bias"]
    ).relu()
    y = y.reshape(2, 8, 8, 2, 6, 2).amax((3, 5))
    for number, stride in enumerate([1, 2, 1], start=1):
        y = block(state, f"block{number}", y, stride)
    with torch.no_grad():
        torch.testing.assert_close(module(x), y.mean((2, 3)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("groups", [None, 4])
def test_a_sample_sees_its_batch_exactly_where_the_spec_says_so(groups: int | None) -> None:
    torch.manual_seed(0)
    spec = SmallResidual(kind="small_residual", widths=(8, 16), strides=(2, 1), groups=groups)
    module = spec.build(2).train().double()
    images = torch.randn(5, 2, 9, 9, dtype=torch.float64)
    alone = torch.cat([module(image[None]) for image in images])
    together = module(images)
    assert torch.allclose(alone, together, rtol=1e-12, atol=1e-12) is not spec.batch_statistics()


def test_asking_about_a_structure_draws_and_allocates_nothing() -> None:
    before = torch.get_rng_state()
    module = on_meta(encoder(kind="torchvision", name="resnet50", small_stem=True).build)
    assert {weight.device.type for weight in module.parameters()} == {"meta"}
    assert torch.equal(before, torch.get_rng_state())
