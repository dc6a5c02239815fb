"""Random corruptions of a bundle, and what became of opening it: used by a test and by a benchmark.

A corruption is a function of its number. One of six: bits flipped, a file cut, bytes put in, a stretch written over, a
value of the card replaced by a hostile one, a part of the safetensors header rewritten.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.bundle import load
from pipeline.bundle.card import identity
from pipeline.spec import Refusal

FILES = ("card.json", "encoder.safetensors", "projection.safetensors")
HOSTILE: list[Any] = [
    None, True, -1, 0, 2**70, 1e308, -0.0, "", "x" * 10_000, "../../etc/passwd", "hf-hub:a/b", [], {}, [[]], {"a": {}},
    [1] * 5000, {"kind": "timm", "name": "resnet18", "small_stem": False}, {"__class__": "os.system"},
]  # fmt: skip


def flipped(content: bytearray, chance: random.Random) -> bytearray:
    for _ in range(chance.choice((1, 1, 2, 8))):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return content


def cut(content: bytearray, chance: random.Random) -> bytearray:
    return content[: chance.randrange(len(content))]


def put_in(content: bytearray, chance: random.Random) -> bytearray:
    place = chance.randrange(len(content) + 1)
    return content[:place] + chance.randbytes(chance.randrange(1, 64)) + content[place:]


def written_over(content: bytearray, chance: random.Random) -> bytearray:
    start = chance.randrange(len(content))
    size = min(len(content) - start, chance.randrange(1, 64))
    content[start : start + size] = chance.randbytes(size)
    return content


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) inside plain data."""
    found: list[tuple[Any, Any]] = []
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        found += [(value, key), *places(inner)]
    return found


def hostile(content: bytearray, chance: random.Random) -> bytearray:
    """A value of the card replaced; half of the time the identity is made to fit again."""
    card = json.loads(content)
    container, key = chance.choice(places(card))
    if isinstance(container, dict) and chance.random() < 0.2:
        del container[key]
    else:
        container[key] = chance.choice(HOSTILE)
    if isinstance(card.get("projection", {}), (dict, type(None))) and chance.random() < 0.5:
        card["identity"] = identity(card)
    return bytearray(json.dumps(card).encode())


def header(content: bytearray, chance: random.Random) -> bytearray:
    """A value of the safetensors header replaced, its length made to fit."""
    length = int.from_bytes(content[:8], "little")
    entries = json.loads(content[8 : 8 + length])
    container, key = chance.choice(places(entries))
    container[key] = chance.choice([*HOSTILE, [0, 2**62], "F64", "BOOL", [2**40, 2**40]])
    text = json.dumps(entries).encode()
    return bytearray(len(text).to_bytes(8, "little")) + text + content[8 + length :]


KINDS: dict[str, Callable[[bytearray, random.Random], bytearray]] = {
    "bits flipped": flipped,
    "cut": cut,
    "bytes put in": put_in,
    "written over": written_over,
    "hostile card": hostile,
    "hostile header": header,
}


def corrupt(source: dict[str, bytes], number: int) -> tuple[str, str, bytes]:
    """Corruption ``number`` of a bundle's files: (kind, file, its bytes)."""
    chance = random.Random(number)
    kind = chance.choice(list(KINDS))
    file = chance.choice(FILES)
    if kind == "hostile card":
        file = "card.json"
    elif kind == "hostile header":
        file = chance.choice(FILES[1:])
    return kind, file, bytes(KINDS[kind](bytearray(source[file]), chance))


def attempt(
    folder: Path, source: dict[str, bytes], number: int, sample: list[Any], expected: dict[str, np.ndarray]
) -> str:
    """Open a corrupted bundle: refused, unchanged, or what must not be: ``accepted: …`` or ``crashed: …``."""
    kind, file, content = corrupt(source, number)
    path = folder / file
    path.write_bytes(content)
    try:
        opened = load(folder)
        if all(np.array_equal(opened.embed(sample, layer=layer), rows) for layer, rows in expected.items()):
            return "unchanged"
        return f"accepted: {kind}, {file}, number {number}"
    except Refusal as refusal:
        lines = str(refusal).splitlines()
        return "refused" if lines and max(map(len, lines)) < 1000 else f"crashed: {kind}, a long text, number {number}"
    except BaseException as error:
        return f"crashed: {kind}, {file}, number {number}: {type(error).__name__}: {str(error)[:200]}"
    finally:
        path.write_bytes(source[file])


def tally(folder: Path, numbers: range, sample: list[Any]) -> tuple[Counter[str], list[str]]:
    """Attempt many: how often each outcome was, and every one that must not be."""
    source = {name: (folder / name).read_bytes() for name in FILES}
    whole = load(folder)
    expected = {layer: np.asarray(whole.embed(sample, layer=layer)) for layer in ("h", "z")}
    outcomes = [attempt(folder, source, number, sample, expected) for number in numbers]
    return Counter(each.split(":")[0] for each in outcomes), [each for each in outcomes if ":" in each]
