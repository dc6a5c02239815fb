"""The README.md of a bundle: a Hugging Face model card, written from the latent card and nothing else.

It says in words what the space ignores, what it keeps and how two vectors are compared, shows accepted findings at the
top, and has an example for each way to run the encoder (``pipeline.bundle.examples``). Front matter:
https://huggingface.co/docs/hub/model-cards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pipeline.bundle.card import CARD, GRAPH, PROJECTION, WEIGHTS
from pipeline.bundle.examples import examples
from pipeline.modalities import contract_of
from pipeline.samples import several

COMPARED = {
    "cosine": "the cosine of the angle between them: 1 the same direction, 0 unrelated, -1 opposite",
    "dot": "their inner product: larger is more alike; it has no distance",
    "euclidean": "their Euclidean distance: 0 the same; similarity is minus the distance",
    "squared_euclidean": "the square of their Euclidean distance: 0 the same; similarity is minus that",
}
ENDINGS = {"image": "png", "audio": "wav"}
"""of a file of one input, by modality; of all others npy"""
FITS = {
    "pad": "shrunk where larger, aspect kept, centred on a canvas of level {background}",
    "resize": "each side scaled to the canvas, bilinear with antialiasing",
    "cover": "the largest central part of the canvas's aspect, scaled to it, bilinear with antialiasing",
}


def model_card(card: dict[str, Any]) -> str:
    """The text of README.md."""
    return "\n".join([*_front(card), *_top(card), *_space(card), *_use(card), *_record(card)]) + "\n"


def _front(card: dict[str, Any]) -> Iterator[str]:
    yield "---"
    yield "library_name: latent-space-pipeline"
    yield f"pipeline_tag: {'' if 'kind' in card['input'] else 'image-'}feature-extraction"
    yield "license: other"
    yield "license_name: as-the-data"
    yield "tags: [contrastive-learning, self-supervised-learning, feature-extraction, safetensors]"
    yield "---"
    yield ""


def _top(card: dict[str, Any]) -> Iterator[str]:
    yield f"# {_line(card.get('name', 'encoder'))}"
    yield ""
    if card.get("accepted"):
        yield "> **Accepted in spite of what was found:**"
        yield from (f"> - {_line(each)}" for each in card["accepted"])
        yield ""
    yield _line(card.get("description", "An encoder of a declared contrastive space."))
    yield ""


def _space(card: dict[str, Any]) -> Iterator[str]:
    space = card["space"]
    yield "## What the space ignores"
    yield ""
    inputs, _ = _inputs(card)
    ignored = card.get("ignores") or [{"invariance": each, "removes": []} for each in space.get("invariances", [])]
    if ignored:
        yield f"Two {inputs} that differ in this alone were trained to lie together, in order of application:"
    else:
        yield f"No transformation is declared; positive pairs are other {inputs}: `{json.dumps(space.get('views'))}`."
    yield ""
    for each in ignored:
        gone = f" ({', '.join(each['removes'])} must not matter)" if each["removes"] else ""
        yield f"- {_invariance(each['invariance'])}{gone}"
    yield ""
    yield "## What it keeps"
    yield ""
    kept = ", ".join(_line(name) for name in space.get("preserves", ()))
    yield f"Declared to stay readable from h: {kept}." if kept else "Nothing was declared to stay readable."
    yield ""
    yield "## How to compare two vectors"
    yield ""
    normal = "scaled to length 1" if space["normalization"] == "l2" else "as they are"
    yield f"The encoder hands over h ({card['width']} numbers); the loss acted on z, behind a projection, {normal}."
    yield f"Two vectors z are compared by {COMPARED[space['metric']]}."
    if space["projection"]["kind"] == "none":
        yield "This space has no projection: z is h."
    elif card["projection"]["given"]:
        yield f"The projection is in `{PROJECTION}`; `similarity`, `distance` and `neighbors` take h through it."
    else:
        yield "The projection was left behind, so h can be read (by a classifier, say), and not compared."
    yield "The loss says nothing of distances between h. Vectors of another bundle, also of another seed, lie in"
    yield "another coordinate system and must not be mixed."
    yield ""


def _use(card: dict[str, Any]) -> Iterator[str]:
    yield "## Use it"
    yield ""
    contract = card["input"]
    inputs, ending = _inputs(card)
    yield f"Each example runs in this folder, with two {inputs} `a.{ending}` and `b.{ending}` in it."
    for title, code in examples(card):
        yield ""
        yield f"### {title}"
        yield ""
        yield "```python"
        yield code.strip("\n").replace('.png"', f'.{ending}"')
        yield "```"
    yield ""
    if "kind" in contract:
        yield f"Input: `{json.dumps(contract)}`; values less {_numbers(card['network']['mean'])} and divided by"
        yield f"{_numbers(card['network']['std'])}, by channel. `{WEIGHTS}` holds the weights."
        if GRAPH in card["files"]:
            shape = ", ".join(map(str, contract_of(contract, CARD).shape))
            yield f"In `{GRAPH}` both are inside: its `pixels` are float32 (N, {shape}), any N."
        yield ""
        return
    size = f"{contract['height']} x {contract['width']}, {contract['channels']} channel(s)"
    yield f"Input: pictures of any size, upright (EXIF), 8 bits; {FITS[contract['fit']].format(**contract)}; {size}."
    yield f"`{WEIGHTS}` holds the weights under the architecture's own names; inputs are scaled to [0, 1], then"
    yield f"less {_numbers(card['network']['mean'])} and divided by {_numbers(card['network']['std'])}, by channel."
    if GRAPH in card["files"]:
        shape = f"(N, {contract['height']}, {contract['width']}, {contract['channels']})"
        yield f"In `{GRAPH}` all of that is inside: it takes uint8 pixels {shape}, any N."
    yield ""


def _record(card: dict[str, Any]) -> Iterator[str]:
    yield "## Data, training, verdicts"
    yield ""
    data = card.get("data") or {}
    if data:
        splits = sorted(data.get("splits", {}).items(), reverse=True)
        counts = " and ".join(f"{count} {split}" for split, count in splits)
        counts = f"{counts} {_inputs(card)[0]}"
        yield f"- data: {_line(data.get('name', ''))}, {counts}, fingerprint `{data.get('fingerprint', '')}`"
    yield f"- licence of the data: {_line(card.get('licence', 'not stated'))}"
    yield f"- encoder: `{json.dumps(card['network']['encoder'], sort_keys=True)}`"
    training = card.get("training") or {}
    if training:
        steps = f"{training.get('epochs')} epochs ({training.get('steps')} steps)"
        yield f"- trained for {steps}, final loss {training.get('loss')}"
    audit = card.get("audit") or {}
    if audit:
        yield f"- audit: {audit.get('verdict')}, by thresholds that were declared before"
    for row in audit.get("rows", ()):
        bound = f"at least {row['at_least']:g}" if "at_least" in row else f"at most {row['at_most']:g}"
        value = "not computable" if row["value"] is None else f"{row['value']:g}"
        yield f"  - {row['verdict']}: `{row['measure']}` = {value}, demanded {bound}"
    for reason in audit.get("reasons", ()):
        yield f"  - {_line(reason['sentence'])}"
    versions = ", ".join(f"{name} {version}" for name, version in sorted((card.get("versions") or {}).items()))
    if versions:
        yield f"- versions: {versions}"
    yield ""
    yield f"Identity: `{card['identity']}` (of space, architecture, input and weights). Everything that is known stands"
    yield "in `card.json`. No file here can execute code."


def _inputs(card: dict[str, Any]) -> tuple[str, str]:
    """What several inputs are called, and the ending of a file of one."""
    word = contract_of(card["input"], CARD).word
    return several(word), ENDINGS.get(card["input"].get("kind", "image"), "npy")


def _invariance(each: dict[str, Any]) -> str:
    """An invariance in one line: its kind and what it is drawn from."""
    values = {name: value for name, value in each.items() if name not in ("kind", "fill") and value is not None}
    if values.get("probability") == 1.0:
        del values["probability"]
    told = ", ".join(f"{name} {json.dumps(value)}" for name, value in values.items())
    return _line(f"{each['kind'].replace('_', ' ')}" + (f": {told}" if told else ""))


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


def _line(text: Any) -> str:
    """One line of plain text: no line ends, and no mark-up of its own."""
    plain = " ".join(str(text).split())
    return plain.replace("<", "&lt;").replace("|", "\\|")
