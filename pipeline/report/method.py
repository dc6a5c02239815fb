"""How a space was trained, in words: who is contrasted with whom, what makes the keys, what predicts them.

Read from the spec as it is written, whatever its form: what is missing there is passed over here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SAMPLERS = {
    "in_batch": "all other samples of the batch are negatives",
    "queue": "negatives are the keys of earlier steps",
    "no_duplicates": "all other samples of the batch are negatives, but for copies",
    "threshold": "negatives are the batch's, less the nearest few",
    "hardest": "negatives are the nearest few of the batch",
    "stratified": "all other samples of the batch are negatives; a batch holds each class in proportion",
    "same_label": "samples of other classes are negatives, those of the class positives",
}


def method(space: Any) -> str:
    """One sentence on objective, negatives, target and predictor; empty where the spec has none."""
    return "; ".join(_parts(space)) if isinstance(space, Mapping) else ""


def _parts(space: Mapping[str, Any]) -> Iterator[str]:
    objective, sampler = _part(space, "objective"), _part(space, "sampler")
    kind = str(objective.get("kind", "")).replace("_", " ")
    if objective.get("kind") == "regression":
        yield f"{kind}: positives alone, there are no negatives"
    elif kind:
        words = SAMPLERS.get(str(sampler.get("kind")), "")
        if sampler.get("kind") == "queue":
            words += f" (a queue of {sampler.get('length')})" + (" and the batch's" if sampler.get("in_batch") else "")
        yield f"{kind}: {words}" if words else kind
    target = space.get("target")
    if isinstance(target, Mapping) and target.get("kind") == "momentum":
        rising = ", rising to 1" if target.get("schedule") == "cosine" else ""
        yield f"keys are made by a slow copy of the network (momentum {target.get('m')}{rising})"
    elif target == "stop_gradient":
        yield "keys are the network's own vectors, without a gradient"
    if isinstance(space.get("predictor"), Mapping):
        yield "anchors pass a predictor, which is left behind after the training"
    temperature = space.get("temperature")
    if isinstance(temperature, Mapping):
        yield f"temperature {temperature.get('kind')}"
    elif temperature is not None:
        yield f"temperature {temperature}"


def _part(space: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = space.get(name)
    return found if isinstance(found, Mapping) else {}
