"""An invariance of the user's own: a class in a Python file that the spec names.

The class is constructed with ``arguments`` and has two methods, which the pipeline holds to the laws of every other
invariance (``code_laws``):

- ``draw(keys) -> dict``: what is random, drawn from ``keys`` alone (``keys.uniform("angle", -1, 1)``, ``keys.normal``,
  ``keys.integers``): tensors (N, ...) by name, a row a sample;
- ``apply(samples, parameters) -> samples``: a pure function of the samples as an encoder reads them and of those
  tensors, row by row; the result has the same shape and type, and keeps to the values that the modality asks for:
  pictures (N,C,H,W) float32 stay in [0, 1], which is the class's own duty; of sounds and series (N,C,T) float32 any
  finite number will do. Of what has a time axis it is told the rate, a second's samples or steps, as well:
  ``apply(clips, parameters, rate)``.

It may have ``at(strength)``: the same, weaker, from 0 (the identity) to 1 (itself). Without it a lower strength acts
less often.

Code is executed only because a spec names it; nothing that is exported executes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Literal

import torch
from pydantic import BaseModel, Field, JsonValue, field_serializer
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import Fault, Refusal, Rule, Spec, SpecError, canonical, nearest, shown
from pipeline.views.code_loading import Unusable, call, construct, source_digest
from pipeline.views.factors import FACTORS
from pipeline.views.image_plane import Parameters, applied


class Code(Spec):
    """A class of your own, from a Python file in the spec's folder of user files."""

    kind: Literal["code"] = "code"
    file: str = Field(pattern=r"\.py$")
    """the Python file; its bytes are part of the space's identity"""
    name: str
    """the class in it"""
    arguments: dict[str, JsonValue] = Field(default={})
    """what the class is constructed with"""
    removes: frozenset[str] = Field(min_length=1)
    """the factors that it removes"""
    invertible: bool = False
    """whether another of its kind undoes it"""
    probability: float = Field(default=1.0, ge=0, le=1)
    """of being applied at all"""
    strength: float = Field(default=1.0, ge=0, le=1)
    """0 is the identity, 1 the class as it was constructed"""

    group: ClassVar[bool] = False

    def rules(self) -> Iterator[Rule]:
        for word in sorted(self.removes - FACTORS):
            yield "removes", f"no such factor: {word}; {nearest(word, FACTORS)}"

    @field_serializer("removes")
    def _in_order(self, removes: frozenset[str]) -> list[str]:
        return sorted(removes)

    def __hash__(self) -> int:
        return hash(canonical(self))

    def __getstate__(self) -> dict[Any, Any]:
        """A copy in another process reads the file again: classes of a file by path do not travel."""
        state = super().__getstate__()
        return {**state, "__dict__": {key: value for key, value in state["__dict__"].items() if key != "built"}}

    @cached_property
    def built(self) -> Any:
        """The user's object, made at first use and then kept, so that an edit of the file never changes a run halfway.

        Raises:
            CodeFault: the file, the name or the arguments cannot be used.
        """
        try:
            return construct(self.file, self.name, self.arguments)
        except Unusable as reason:
            raise CodeFault(self, reason) from None

    def scaled(self) -> Any:
        """The user's object at ``strength``."""
        if self.strength in (0.0, 1.0) or not hasattr(self.built, "at"):
            return self.built
        return self.called(self.built, "at", self.strength)

    def draw(self, keys: Keys) -> Parameters:
        """``acts`` (N,) bool, and what the class drew, each name after "drawn."."""
        weaker = self.strength == 0 or not hasattr(self.built, "at")
        acts = applied(keys, self.probability * (self.strength if weaker else 1.0))
        if self.strength == 0 or not len(keys):
            return {"acts": acts}
        drawn = self.called(self.scaled(), "draw", keys)
        return {"acts": acts} | {f"drawn.{name}": values for name, values in drawn.items()}

    def apply(self, samples: Tensor, parameters: Parameters, rate: int | None = None) -> Tensor:
        rows = parameters["acts"].nonzero().flatten()
        if not len(rows):
            return samples
        where = rows.to(samples.device)
        part = samples.index_select(0, where).float().contiguous()  # a copy: what the code writes to it is lost
        drawn = {
            name.removeprefix("drawn."): values[rows].to(samples.device)
            for name, values in parameters.items()
            if name != "acts"
        }
        timed = () if rate is None else (rate,)
        changed = self.called(self.scaled(), "apply", part, drawn, *timed).to(samples.dtype)
        return changed if len(rows) == len(samples) else samples.index_copy(0, where, changed)

    def at(self, strength: float) -> Code:
        """The same at ``strength`` in [0, 1] of its own; 0 is the identity."""
        return self.model_copy(update={"strength": self.strength * strength})

    def channels_fault(self, channels: int) -> str | None:
        return None  # code_laws tries it on the data's canvas

    def size_fault(self, samples: int, rate: int) -> str | None:
        return None

    def called(self, user: Any, method: str, *arguments: Any) -> Any:
        """Call a method of the user's object and look at what it returns.

        Raises:
            CodeFault: it raises, or returns something of another form, shape, type or device, or no numbers.
        """
        try:
            with torch.no_grad():
                return call(self.file, user, method, *arguments)
        except Unusable as reason:
            raise CodeFault(self, reason) from None


class CodeFault(Refusal):
    """The user's code cannot be used: which invariance it is, which of its fields tells so, and why."""

    def __init__(self, code: Code, reason: Unusable):
        super().__init__(f"invariance code: {code.name}: {reason}")
        self.code, self.field, self.reason = code, reason.field, str(reason)


def codes(model: Any, path: str = "") -> Iterator[tuple[str, Code]]:
    """Yield (dotted path, invariance) of every code in a spec, a list or a section, at any depth."""
    if isinstance(model, Code):
        yield path, model
    elif isinstance(model, BaseModel):
        for name in type(model).model_fields:
            yield from codes(getattr(model, name), f"{path}.{name}" if path else name)
    elif isinstance(model, (tuple, list)):
        for number, each in enumerate(model):
            yield from codes(each, f"{path}[{number}]")


def code_digests(model: Any) -> dict[str, str]:
    """SHA-256 of every Python file that a spec's invariances name; empty if there is none.

    Raises:
        CodeFault: a file is not there.
    """
    digests = {}
    for _, code in codes(model):
        try:
            digests[code.file] = source_digest(code.file)
        except Unusable as reason:
            raise CodeFault(code, reason) from None
    return digests


def located(refusal: Refusal, model: Any, file: str, section: str) -> Refusal:
    """A refusal of user code with file and path in the spec, as validation tells it; any other as it is.

    Args:
        refusal: what was raised.
        model: the section that declares the code.
        file: the spec file.
        section: the section's name.
    """
    if not isinstance(refusal, CodeFault):
        return refusal
    path = next((path for path, code in codes(model, section) if code == refusal.code), section)
    value = shown(getattr(refusal.code, refusal.field))
    return SpecError([Fault(file, f"{path}.{refusal.field}", value, refusal.reason)])
