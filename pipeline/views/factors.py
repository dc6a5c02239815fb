"""The factors of a sample that an invariance can remove: words shared with ``preserves`` and label columns."""

from __future__ import annotations

OF_PICTURES: dict[str, str] = {
    "position": "where in the picture a thing is",
    "scale": "how large a thing is in the picture",
    "aspect": "how wide a thing is for its height",
    "orientation": "how a thing is turned in the picture plane",
    "chirality": "which of two mirror images a thing is",
    "viewpoint": "from which side a thing is seen",
    "occlusion": "which part of a thing is hidden",
    "border": "what lies near the picture's edge",
    "brightness": "how light the picture is as a whole",
    "contrast": "how far light and dark lie apart",
    "saturation": "how strong the colours are",
    "hue": "which colour a thing has",
    "spectrum": "how the channels compare in strength, of any number of bands",
    "texture": "fine, repeated surface detail",
    "sharpness": "how well the picture is in focus",
    "noise": "random variation of the single pixels",
    "compression": "artefacts of lossy storage",
}
"""The factors of pictures; occlusion, spectrum and noise are of sounds and series as well."""

OF_WAVES: dict[str, str] = {
    "onset": "when in the clip a thing happens",
    "loudness": "how loud the clip is as a whole",
    "tempo": "how fast things follow each other",
    "pitch": "how high a voice or a note is",
    "timbre": "which frequencies are strong",
    "room": "where it was recorded: echo and reverberation",
    "polarity": "which sign the wave has",
    "direction": "which way time runs",
    "time_order": "in which order the parts come",
    "channel_order": "which channel is which",
}
"""The factors of sounds and series."""

MEANINGS: dict[str, str] = {**OF_PICTURES, **OF_WAVES}
"""Every factor, with its meaning."""

OF_MODALITY: dict[str, frozenset[str]] = {
    "image": frozenset(OF_PICTURES),
    "audio": frozenset(OF_WAVES) - {"time_order", "channel_order"} | {"occlusion", "noise"},
    "series": frozenset(OF_WAVES) - {"pitch", "timbre", "room"} | {"occlusion", "spectrum", "noise"},
}
"""Those that something declared of a modality removes."""

FACTORS: frozenset[str] = frozenset(MEANINGS)
"""The names of all factors that invariances remove."""

SYNONYMS: dict[str, str] = {
    "angle": "orientation",
    "rotation": "orientation",
    "size": "scale",
    "zoom": "scale",
    "x": "position",
    "y": "position",
    "location": "position",
    "aspect_ratio": "aspect",
    "color": "hue",
    "colour": "hue",
    "handedness": "chirality",
    "mirror": "chirality",
    "luminance": "brightness",
    "focus": "sharpness",
    "blur": "sharpness",
    "amplitude": "loudness",
    "volume": "loudness",
    "speed": "tempo",
    "reverberation": "room",
}
"""Other names that label columns of these factors commonly have."""


def factor(name: str) -> str | None:
    """The factor that a name in ``preserves`` or a label column stands for, or None: "rotation" is "orientation".

    The last word counts too, so that "background_texture" is "texture" and "position_x" is "position".
    """
    word = name.lower().replace("-", "_").replace(" ", "_")
    for candidate in (word, *reversed(word.split("_"))):
        if candidate in FACTORS:
            return candidate
    for candidate in (word, *reversed(word.split("_"))):
        if candidate in SYNONYMS:
            return SYNONYMS[candidate]
    return None
