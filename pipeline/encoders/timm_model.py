"""Any image model of timm (Wightman 2019), as an encoder without its classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from torch import nn

from pipeline.encoders.structure import has_batch_norm, on_meta, small_stem
from pipeline.spec import Rule, Spec, nearest


class Timm(Spec):
    """A timm model by name, untrained, pooled, without classifier."""

    kind: Literal["timm"]
    name: str
    """As in ``timm.list_models()``; resnet18, for instance."""
    small_stem: bool
    """3x3 first convolution without max-pooling, for images of 32 to 96 pixels (residual networks)."""

    sides: ClassVar[int] = 2

    def rules(self) -> Iterator[Rule]:
        import timm

        if not timm.is_model(self.name):
            yield "name", f"no such timm model; {nearest(self.name, timm.list_models())}"
        elif self.small_stem:
            try:
                on_meta(self.build)
            except ValueError as error:
                yield "small_stem", str(error)

    def build(self, channels: int) -> nn.Module:
        """An untrained model for images of ``channels`` channels, drawn from torch's global generator."""
        import timm

        module: nn.Module = timm.create_model(self.name, pretrained=False, num_classes=0, in_chans=channels)
        # some models (MobileNetV3) widen once more behind the pooling, and that is what they return
        module.dim = getattr(module, "head_hidden_size", None) or module.num_features
        return small_stem(module, self.name) if self.small_stem else module

    def batch_statistics(self) -> bool:
        """Whether a sample's h depends on the rest of its batch while training."""
        return has_batch_norm(on_meta(self.build))
