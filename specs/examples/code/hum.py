"""An invariance of one's own, of sounds: the hum of the mains, as a bad cable or a near transformer adds it."""

import math

import torch


class Hum:
    """Add a tone of the mains and two of its harmonics, from a place in its turn that is drawn as well."""

    def __init__(self, hertz: float, level: float):
        self.hertz = hertz  # of the mains: 50 or 60
        self.level = level  # of the tone at most, where full scale is 1

    def draw(self, keys):
        """What is random: tensors with a row for each key, drawn from the keys alone."""
        return {
            "level": keys.uniform("level", 0.0, self.level),
            "turn": keys.uniform("turn", 0.0, 1.0),
            "harmonics": keys.uniform("harmonics", 0.0, 1.0, shape=(2,)),
        }

    def apply(self, clips, parameters, rate):
        """What is done: clips (N, C, T) at ``rate`` samples a second, each by its own row of the parameters."""
        seconds = torch.arange(clips.shape[-1], device=clips.device) / rate
        turns = self.hertz * seconds + parameters["turn"][:, None]  # (N, T)
        hum = torch.sin(2 * math.pi * turns)
        for number in (0, 1):
            hum = hum + parameters["harmonics"][:, number, None] * torch.sin(2 * math.pi * (number + 2) * turns)
        return clips + (parameters["level"][:, None] * hum)[:, None]

    def at(self, strength):
        """The same, weaker: 0 changes nothing, 1 is the class as it was made."""
        return Hum(self.hertz, self.level * strength)
