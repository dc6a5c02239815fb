"""Presets: published recipes of views by name, as the YAML that they stand for.

``space.preset: NAME`` is replaced by ``invariances`` and ``views`` before anything is typed, so a preset is exactly
what it expands to, in the space's identity too. The numbers are those of the papers:

simclr, simclr_32: Chen et al. 2020, arXiv:2002.05709, appendix A (colour strength 1) and B.9 (strength 0.5, no blur).
moco_v2: Chen, Fan, Girshick, He 2020, arXiv:2003.04297. byol: Grill et al. 2020, arXiv:2006.07733, appendix B.
multi_crop: Caron et al. 2020, arXiv:2006.09882, section 4.1 (two views at the full side, six at 3/7 of it).
stained_slides, satellite: no paper's; what turns, moves and lights such pictures without changing what they show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.spec import nearest

Plain = dict[str, Any]

PAIR: Plain = {"kind": "pair"}
FLIP: Plain = {"kind": "horizontal_flip", "probability": 0.5}
GRAY: Plain = {"kind": "grayscale", "probability": 0.2}


def _crop(low: float, high: float = 1.0) -> Plain:
    return {"kind": "resized_crop", "area": [low, high], "ratio": [0.75, 4 / 3]}


def _jitter(brightness: float, contrast: float, saturation: float, hue: float) -> Plain:
    amounts = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue}
    return {"kind": "color_jitter", **amounts, "probability": 0.8}


def _blur(probability: float) -> Plain:
    return {"kind": "blur", "sigma": [0.1, 2.0], "probability": probability}


PRESETS: dict[str, Plain] = {
    "simclr": {
        "invariances": [_crop(0.08), FLIP, _jitter(0.8, 0.8, 0.8, 0.2), GRAY, _blur(0.5)],
        "views": PAIR,
    },
    "simclr_32": {
        "invariances": [_crop(0.08), FLIP, _jitter(0.4, 0.4, 0.4, 0.1), GRAY],
        "views": PAIR,
    },
    "moco_v2": {
        "invariances": [_crop(0.2), _jitter(0.4, 0.4, 0.4, 0.1), GRAY, _blur(0.5), FLIP],
        "views": PAIR,
    },
    "byol": {
        "invariances": [_crop(0.08), FLIP, _jitter(0.4, 0.4, 0.2, 0.1), GRAY],
        "views": {
            "kind": "asymmetric",
            "first": [_blur(1.0)],
            "second": [_blur(0.1), {"kind": "solarize", "threshold": 0.5, "probability": 0.2}],
        },
    },
    "multi_crop": {
        "invariances": [FLIP, _jitter(0.8, 0.8, 0.8, 0.2), GRAY, _blur(0.5)],
        "views": {
            "kind": "multi_crop",
            "global_crop": _crop(0.14),
            "local_crop": _crop(0.05, 0.14),
            "local_views": 6,
            "local_scale": 3 / 7,
        },
    },
    "stained_slides": {
        "invariances": [
            {"kind": "shift", "pixels": 6, "fill": 0.8},
            {"kind": "rotation", "degrees": 180, "fill": 0.8},
            FLIP,
            {"kind": "brightness", "amount": 0.1, "probability": 0.8},
            {"kind": "blur", "sigma": [0.1, 0.8], "probability": 0.3},
        ],
        "views": PAIR,
    },
    "satellite": {
        "invariances": [
            {"kind": "shift", "pixels": 6},
            {"kind": "right_angle", "probability": 1.0},
            FLIP,
            {"kind": "brightness", "amount": 0.2, "probability": 0.8},
            {"kind": "contrast", "amount": 0.2, "probability": 0.8},
        ],
        "views": PAIR,
    },
}


def expanded(space: Mapping[str, Any]) -> dict[str, Any]:
    """The plain content of a ``space`` section, without ``preset_faults``, with its preset written out."""
    name = space.get("preset")
    return dict(space) if name is None else {**space, "preset": None, **PRESETS[name]}


def preset_faults(space: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a broken rule (path, remedy) for a preset that is unknown or stands beside what it would say."""
    name = space.get("preset")
    if name is None:
        return
    if not isinstance(name, str) or name not in PRESETS:
        yield "preset", f"no such preset; {nearest(str(name), PRESETS)}"
        return
    for key in PRESETS[name]:
        if space.get(key) is not None:
            yield key, f"must be null: preset {name} says it; or set preset to null and write both out"
