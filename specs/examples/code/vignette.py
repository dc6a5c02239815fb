"""An invariance of one's own: light that falls off towards the edge, as an old lens draws it."""

import torch


class Vignette:
    """Darken towards the edge, about a centre that is drawn as well."""

    def __init__(self, amount: float):
        self.amount = amount  # how dark the farthest corner becomes at most, in [0, 1]

    def draw(self, keys):
        """What is random: tensors with a row for each key, drawn from the keys alone."""
        return {
            "depth": keys.uniform("depth", 0.0, self.amount),
            "centre": keys.normal("centre", 0.0, 0.3, shape=(2,)),
        }

    def apply(self, images, parameters):
        """What is done: images (N, C, H, W) in [0, 1], each by its own row of the parameters."""
        height, width = images.shape[-2:]
        down = torch.linspace(-1, 1, height, device=images.device)[None, :, None]
        across = torch.linspace(-1, 1, width, device=images.device)[None, None, :]
        y, x = parameters["centre"][:, 0, None, None], parameters["centre"][:, 1, None, None]
        far = ((down - y) ** 2 + (across - x) ** 2) / 2  # (N, H, W)
        light = 1 - parameters["depth"][:, None, None] * far
        return (images * light[:, None]).clamp(0, 1)

    def at(self, strength):
        """The same, weaker: 0 changes nothing, 1 is the class as it was made."""
        return Vignette(self.amount * strength)
