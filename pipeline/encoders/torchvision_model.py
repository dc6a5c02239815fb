"""Any classification model of torchvision, as an encoder without its classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from torch import nn

from pipeline.encoders.structure import has_batch_norm, on_meta, small_stem
from pipeline.spec import Rule, Spec, nearest


class Torchvision(Spec):
    """A torchvision classification model by name, untrained, without classifier."""

    kind: Literal["torchvision"]
    name: str
    """As in ``torchvision.models.list_models()``; resnet18, for instance."""
    small_stem: bool
    """3x3 first convolution without max-pooling, for images of 32 to 96 pixels (residual networks)."""

    sides: ClassVar[int] = 2

    def rules(self) -> Iterator[Rule]:
        from torchvision import models

        names = models.list_models(module=models)
        if self.name not in names:
            yield "name", f"no such torchvision model; {nearest(self.name, names)}"
            return
        try:
            on_meta(self.build)
        except ValueError as error:
            yield "small_stem" if self.small_stem else "name", str(error)

    def build(self, channels: int) -> nn.Module:
        """An untrained model for images of ``channels`` channels, drawn from torch's global generator.

        Raises:
            ValueError: the architecture has no classifier or first convolution that can be replaced.
        """
        from torchvision import models

        module: nn.Module = models.get_model(self.name, weights=None)
        dim = _cut_classifier(module, self.name)
        if channels != 3:
            _replace_first_convolution(module, channels)
        module.dim = dim  # type: ignore[assignment]
        return small_stem(module, self.name) if self.small_stem else module

    def batch_statistics(self) -> bool:
        """Whether a sample's h depends on the rest of its batch while training."""
        return has_batch_norm(on_meta(self.build))


def _cut_classifier(module: nn.Module, name: str) -> int:
    """Put the identity in place of the last linear layer; return the width that it read."""
    for attribute in ("fc", "classifier", "head", "heads"):
        head = getattr(module, attribute, None)
        if isinstance(head, nn.Linear):
            setattr(module, attribute, nn.Identity())
            return head.in_features
        if isinstance(head, nn.Sequential) and isinstance(head[-1], nn.Linear):
            width = head[-1].in_features
            head[-1] = nn.Identity()
            return width
    raise ValueError(f"{name} has no linear classifier that can be taken off; choose a classification model")


def _replace_first_convolution(module: nn.Module, channels: int) -> None:
    for parent in module.modules():
        for name, child in parent.named_children():
            if isinstance(child, nn.Conv2d):
                first = nn.Conv2d(
                    channels,
                    child.out_channels,
                    child.kernel_size,  # type: ignore[arg-type]
                    stride=child.stride,  # type: ignore[arg-type]
                    padding=child.padding,  # type: ignore[arg-type]
                    bias=child.bias is not None,
                )
                setattr(parent, name, first)
                return
