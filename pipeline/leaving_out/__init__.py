"""Leave one invariance out: the spec's variants, each without one thing that it declares, as overrides of ``dvc exp``.

A variant is the whole spec with every occurrence of one invariance taken out of every role's views; acceptances of the
check that would then accept nothing go with it. What cannot be taken out (the last one of a view, the crops of
multi-crop) says why.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.space import LatentSpace
from pipeline.spec import SpecError, canonical, parse
from pipeline.specification import Specification

WHOLE = "whole"
LISTS = (("space", "invariances"), ("space", "views", "first"), ("space", "views", "second"))
PLAIN, RESERVED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), ("null", "true", "false", "nan", "inf")
ACCEPTED = re.compile(r"check\.accept\[(\d+)\]")


@dataclass(frozen=True)
class Variant:
    """A spec without one invariance."""

    label: str
    """the invariance's kind, numbered where a kind is declared several times; ``whole``: nothing is left out"""
    removed: dict[str, Any] | None
    """the invariance as it is written"""
    overrides: dict[str, Any] = field(default_factory=dict)
    """dotted path -> value, of all that differs from the spec's file"""
    reason: str | None = None
    """why there is no such spec"""

    def parameters(self, spec: Path) -> list[str]:
        """The arguments of ``dvc exp run``."""
        return [word for path, value in self.overrides.items() for word in ("-S", f"{spec}:{path}={hydra(value)}")]


def variants(content: dict[str, Any], file: str) -> Iterator[Variant]:
    """Yield the whole spec, then one variant for each declared invariance.

    Args:
        content: of a valid spec's file.
        file: its name, for errors.
    """
    yield Variant(WHOLE, None)
    plain = copy.deepcopy(content)
    plain["space"] = LatentSpace.expand(plain["space"])
    declared: dict[str, dict[str, Any]] = {}
    for path in LISTS:
        for each in _at(plain, path) or ():
            declared.setdefault(canonical(each), each)
    kinds = [str(each["kind"]) for each in declared.values()]
    views = plain["space"]["views"]
    for position, (key, invariance) in enumerate(declared.items()):
        kind = kinds[position]
        label = kind if kinds.count(kind) == 1 else f"{kind}-{kinds[: position + 1].count(kind)}"
        yield _without(content, plain, key, label, invariance, file)
    for name in ("global_crop", "local_crop"):
        if name in views:
            yield Variant(name, views[name], reason="the views of multi_crop are made by it")


def _without(
    content: dict[str, Any], plain: dict[str, Any], key: str, label: str, invariance: dict[str, Any], file: str
) -> Variant:
    changed = copy.deepcopy(plain)
    for path in LISTS:
        inside = _at(changed, path)
        if inside is not None:
            inside[:] = [each for each in inside if canonical(each) != key]
    while True:
        try:
            parse(changed, Specification, file)
            break
        except SpecError as error:
            unused = {int(found[1]) for fault in error.faults if (found := ACCEPTED.match(fault.path))}
            if not unused:
                return Variant(label, invariance, reason=error.faults[0].remedy)
            kept = [each for number, each in enumerate(changed["check"]["accept"]) if number not in unused]
            changed["check"]["accept"] = kept
    return Variant(label, invariance, dict(_differences(content, changed)))


def _differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what is to be set, by dotted path: lists as a whole, and all of the views where a preset made them."""
    if before["space"].get("preset") is not None:
        yield "space.preset", None
    for path in (("space", "invariances"), ("check", "accept")):
        if _at(before, path) != _at(after, path):
            yield ".".join(path), _at(after, path)
    old, new = before["space"]["views"], after["space"]["views"]
    if old is None:
        yield "space.views", new
        return
    for name in ("first", "second"):
        if old.get(name) != new.get(name):
            yield f"space.views.{name}", new[name]


def _at(content: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        content = content.get(step) if isinstance(content, dict) else None
    return content


def hydra(value: Any) -> str:
    """Plain data in the grammar of Hydra's overrides, on one line; all texts but plain words are quoted."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {hydra(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(hydra, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    if PLAIN.fullmatch(str(value)) and str(value).lower() not in RESERVED:
        return str(value)
    text = re.sub(r"(\\*)'", r"\1\1\\'", str(value))  # backslashes count only before a quote
    return "'" + re.sub(r"(\\+)$", r"\1\1", text) + "'"
