"""The boundary: what of a declared transformation is readable from h, and no longer from z.

A contrastive loss asks z to forget the transformation; the projection does that forgetting, so that h before it need
not (Chen et al. 2020, "A simple framework for contrastive learning", section 4.2 and table 3: which of four turns is
read from h in 67.6 % of the cases, from z in 25.6 %). A ridge probe is trained on transformed training pictures and
asked of transformed test pictures what was drawn for them, beside raw pixels. A transformation that only acts or does
not acts on every second picture here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.achieved.found import Found
from pipeline.achieved.looking import Networks, Sample
from pipeline.achieved.reading import Question, question, read, skill, told
from pipeline.achieved.strength import balanced
from pipeline.achieved.targets import targets
from pipeline.check.interval import Resampled, figure
from pipeline.spec import Refusal
from pipeline.views import Invariance, RightAngle

LAYERS = ("h", "z", "raw")


def drawn_questions(
    transformation: Invariance, stream: int, train: Sample, test: Sample
) -> tuple[list[Question], dict[str, Tensor]]:
    """What can be asked of a transformation, and the transformed pictures of both samples.

    Raises:
        Refusal: the transformation cannot be used here, or nothing of it can be asked.
    """
    asked, moved = {}, {}
    for sample in (train, test):
        moved[sample.split], drawn = sample.draw(transformation, stream)
        asked[sample.split] = {
            each.name: each for each in targets(transformation, drawn, sample.images, moved[sample.split])
        }
    questions, reasons = [], []
    for name, target in asked["train"].items():
        made = question(target, asked["test"][name]) if name in asked["test"] else "does not vary"
        if isinstance(made, Question):
            questions.append(made)
        else:
            reasons.append(f"{name}: {made}")
    if not questions:
        raise Refusal("; ".join(reasons) or "nothing is drawn for it that could be asked")
    return questions, moved


def boundary(
    name: str, transformation: Invariance, stream: int, train: Sample, test: Sample, networks: Networks, found: Found
) -> dict[str, Any]:
    """The table of one declared transformation; its scalars are entered.

    Returns:
        plain data: a row a parameter with the skill of each layer and what is gone at the boundary, and a sentence.
    """
    resampled = Resampled.of(test.rows, 0)
    try:
        questions, moved = drawn_questions(balanced(transformation), stream, train, test)
    except Refusal as refusal:
        return _missed(name, str(refusal), found)
    vectors = {split: networks.encode(images, LAYERS) for split, images in moved.items()}
    skills: dict[str, list[Tensor]] = {}
    for layer in LAYERS:
        rows = vectors["train"][layer], vectors["test"][layer]
        if not all(bool(torch.isfinite(part).all()) for part in rows):
            return _missed(name, f"rows of {layer} hold NaN or infinity", found)
        worths = read(*rows, questions)
        skills[layer] = [skill(worth, each, resampled) for worth, each in zip(worths, questions, strict=True)]
    parameters = []
    for number, each in enumerate(questions):
        own = {layer: skills[layer][number] for layer in LAYERS}
        parameters.append(
            {
                "parameter": each.name,
                "kind": each.kind,
                "classes": each.classes,
                "chance": each.chance,
                "trained": int(each.train_rows.sum()),
                "count": len(each.test_rows),
                "skill": {layer: told(drawn) for layer, drawn in own.items()},
                "gone": told(own["h"] - own["z"]),
            }
        )
    count = min(len(each.test_rows) for each in questions)
    means = {layer: torch.stack(drawn).mean(0) for layer, drawn in skills.items()}
    for layer, drawn in means.items():
        found.add_drawn(f"transformation.{name}.{layer}", "test", drawn, count)
    found.add_drawn(f"boundary.{name}", "test", means["h"] - means["z"], count)
    return {"name": name, "parameters": parameters, "reason": None, "sentence": _sentence(transformation, means)}


def _missed(name: str, reason: str, found: Found) -> dict[str, Any]:
    for measure in (f"boundary.{name}", *(f"transformation.{name}.{layer}" for layer in LAYERS)):
        found.miss(measure, "test", reason)
    return {"name": name, "parameters": [], "reason": reason, "sentence": ""}


def _sentence(transformation: Invariance, means: dict[str, Tensor]) -> str:
    """What was found, in words: whether h still tells the transformation, and whether the projection took it away."""
    what = "which turn" if isinstance(transformation, RightAngle) else "what was drawn"
    h, z, gone = figure(means["h"]), figure(means["z"]), figure(means["h"] - means["z"])
    of = f"{what} for {transformation.kind}"
    shares = f"skill {h[0]:.2f} from h, {z[0]:.2f} from z"
    if h[1] <= 0:
        return f"{of} is read from neither layer better than chance ({shares})"
    if gone[1] > 0:
        return f"{of} is readable from h and less so from z: the boundary takes it away ({shares})"
    return f"{of} is readable from h, and the boundary does not take it away ({shares})"
