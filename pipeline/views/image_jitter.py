"""Colour jitter: brightness, contrast, saturation and hue in a random order, exactly or by one colour matrix.

N images (N,C,H,W) with values in [0, 1]; C = 3 is red, green, blue. Factors (N,).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Rule, Spec
from pipeline.views.image_colour import by_row, draw_factor, gray, needs_colour, turn_hue
from pipeline.views.image_matrix import jitter_mixture, mix
from pipeline.views.image_plane import Parameters, applied
from pipeline.views.image_resize import large
from pipeline.views.parameter import Amount, Span, draw, towards, varies, within

BLENDS = ("brightness", "contrast", "saturation")  # numbers 0, 1, 2 of a jitter's order
HUE = 3  # the number of the hue in it


class ColorJitter(Spec):
    """Brightness, contrast, saturation and hue, in an order drawn for each picture (SimCLR, MoCo v2, BYOL).

    ``exact`` computes what torchvision computes. ``matrix`` is an approximation and faster: one 3x4 colour matrix a
    picture, so that values are cut to [0, 1] at the end only and hues turn about the gray axis, not in HSV. With
    amounts of 0.4, 0.4, 0.4 and 0.1, CIFAR-10 is off by 2.7/255 in the mean, of 26.9/255 that the jitter changes.
    """

    kind: Literal["color_jitter"] = "color_jitter"
    brightness: Amount
    """largest change of the factor, or the distribution of the change, as of ``brightness``; 0 leaves it out"""
    contrast: Amount
    """largest change of the factor, or the distribution of the change, as of ``contrast``; 0 leaves it out"""
    saturation: Amount
    """largest change of the factor, or the distribution of the change, as of ``saturation``; 0 leaves it out"""
    hue: Amount
    """largest angle, in turns of the hue circle, or the distribution of the angle, as of ``hue``; 0 leaves it out"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being changed at all"""
    method: Literal["exact", "matrix"] = "exact"
    """how it is computed"""

    invertible: ClassVar[bool] = False
    group: ClassVar[bool] = False

    @property
    def removes(self) -> frozenset[str]:
        """The factors whose range is not 0."""
        amounts = {"brightness": self.brightness, "contrast": self.contrast}
        amounts |= {"saturation": self.saturation, "hue": self.hue}
        return frozenset(name for name, amount in amounts.items() if varies(amount))

    def rules(self) -> Iterator[Rule]:
        for name in BLENDS:
            yield from within(name, getattr(self, name), Span(-1))
        yield from within("hue", self.hue, Span(-0.5, 0.5))

    def draw(self, keys: Keys) -> Parameters:
        """Three factors and ``hue`` in turns (N,); ``order`` (N,4) int64: which of the four is first, second, ..."""
        acts = applied(keys, self.probability)
        return {
            "brightness": draw_factor(keys, "brightness", self.brightness, acts),
            "contrast": draw_factor(keys, "contrast", self.contrast, acts),
            "saturation": draw_factor(keys, "saturation", self.saturation, acts),
            "hue": draw(keys, "hue", self.hue) * acts,
            "order": keys.orders("order", 4),
        }

    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        if self.method == "exact":
            return jitter(images, parameters)
        return mix(images, jitter_mixture(parameters))

    def at(self, strength: float) -> ColorJitter:
        """The same with its ranges scaled by ``strength`` in [0, 1]; 0 is the identity."""
        names = ("brightness", "contrast", "saturation", "hue")
        return self.model_copy(update={name: towards(getattr(self, name), 0.0, strength) for name in names})

    def channels_fault(self, channels: int) -> str | None:
        colour = varies(self.saturation) or varies(self.hue) or self.method == "matrix"
        return needs_colour(channels) if colour else None


def jitter(images: Tensor, parameters: Parameters) -> Tensor:
    """Apply the four operations to ``images`` (N,C,H,W), each row in its own order."""
    return jitter_own(images.clone(), parameters)


def jitter_own(images: Tensor, parameters: Parameters) -> Tensor:
    """The same in place.

    Brightness, contrast and saturation are one blend, factor * image + (1 - factor) * other, with the other being
    nothing, the mean of the gray, and the gray. So all rows take their first, second and third blend together, and
    the hue is turned before, between or after them in the rows whose order says so. Large pictures on a CPU go one by
    one instead: each operation then reads no more of them than it needs.
    """
    if large(images):
        for image, factor, turn in zip(images, *numbers_of(parameters), strict=True):
            jitter_one(image, factor, turn)
        return images
    order = parameters["order"]
    slot = (order == HUE).int().argmax(1)  # (N,): how many blends come before the hue
    blends = order[order != HUE].view(-1, 3)  # (N,3): the order of the others
    factors = torch.stack([parameters[name] for name in BLENDS], dim=1).gather(1, blends)  # (N,3)
    for step in range(4):
        rows = ((slot == step) & (parameters["hue"] != 0)).nonzero().flatten()
        if len(rows):
            where = rows.to(images.device)
            images.index_copy_(0, where, turn_hue(images.index_select(0, where), parameters["hue"][rows]))
        if step < 3:
            images = _blend_each(images, factors[:, step], blends[:, step])
    return images


def _blend_each(images: Tensor, factor: Tensor, kind: Tensor) -> Tensor:
    """Blend each row with what its ``kind`` (N,), a place in BLENDS, says, by its ``factor`` (N,)."""
    shade = gray(images)
    mean = shade.mean((1, 2, 3), keepdim=True)
    rest = 1.0 - factor
    other = shade.mul_(by_row(rest * (kind == BLENDS.index("saturation")), images))
    other.add_(mean.mul_(by_row(rest * (kind == BLENDS.index("contrast")), images)))
    return images.mul_(by_row(factor, images)).add_(other).clamp_(0.0, 1.0)


def numbers_of(parameters: Parameters) -> tuple[list[list[float]], list[list[int]]]:
    """For each row, the factors of brightness, contrast and saturation and the turn of the hue; and their order."""
    factors = torch.stack([parameters[name] for name in (*BLENDS, "hue")], dim=1)  # (N,4)
    return factors.tolist(), parameters["order"].tolist()


def jitter_one(image: Tensor, factors: Sequence[float], order: Sequence[int]) -> Tensor:
    """Apply the four operations to ``image`` (C,H,W) in place, in their ``order``, and return it."""
    for number in order:
        factor, name = factors[number], (*BLENDS, "hue")[number]
        if name == "hue" and factor != 0.0:
            turn_hue(image[None], torch.tensor([factor]), out=image[None])
        elif name == "brightness" and factor != 1.0:
            image.mul_(factor).clamp_(0.0, 1.0)
        elif name == "contrast" and factor != 1.0:
            mean = gray(image.mean((1, 2))[None, :, None, None])[0]  # (1,1,1)
            image.lerp_(mean, 1.0 - factor).clamp_(0.0, 1.0)
        elif name == "saturation" and factor != 1.0:
            shade = gray(image[None])[0]  # (1,H,W)
            image.lerp_(shade, 1.0 - factor).clamp_(0.0, 1.0)
    return image
