"""Floor 0: the closed, frozen base of every spec, the YAML reader, and the text of its errors.

A spec is read with YAML 1.2 rules (``1e-3`` is a number, ``on`` is a word), checked strictly, and every fault of
a file is told at once, one line each: file, dotted path, value, remedy.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError


@dataclass(frozen=True)
class Fault:
    """One thing wrong with one file: where it is, what stands there, and what to do about it."""

    file: str
    path: str
    value: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}: {self.path}" if self.path else self.file
        return f"{place} = {self.value}: {self.remedy}" if self.value else f"{place}: {self.remedy}"


class Refusal(Exception):
    """Input that cannot be used. Its text is what a user reads: one line a fault, no traceback.

    Every error that a user can cause is raised as a ``Refusal`` (or a subclass); ``stages`` prints it and exits 1.
    """


class SpecError(Refusal):
    """All the faults found in one or more spec files."""

    def __init__(self, faults: Iterable[Fault]):
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


Rule = tuple[str, str]
"""A broken rule between fields: (dotted path inside the model, remedy)."""


class Broken(Exception):
    """Rules that plain content breaks before it can be typed."""

    def __init__(self, rules: Iterable[Rule]):
        self.rules = tuple(rules)
        super().__init__(self.rules)


class Spec(BaseModel):
    """Base of every spec: closed (no unknown key), strict (no coercion), frozen (hashable), finite numbers only."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        validate_default=True,
        use_attribute_docstrings=True,
    )

    @classmethod
    def expand(cls, content: dict[str, Any]) -> dict[str, Any]:
        """Plain content with what one of its lines stands for written out. Raises Broken."""
        return content

    def rules(self) -> Iterator[Rule]:
        """Yield every broken rule between fields, each with the dotted path at which it is reported."""
        yield from ()

    @model_validator(mode="after")
    def _keep_rules(self) -> Spec:
        broken = tuple(self.rules())
        if broken:
            raise PydanticCustomError("rules", "broken rules", {"broken": broken})
        return self


Model = TypeVar("Model", bound=BaseModel)


def canonical(value: Any) -> str:
    """Canonical JSON of a spec or of plain data: sorted keys, no spaces; equal content has equal text."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 (hex) of ``canonical(value)``."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the clause "; did you mean 'x'?" for the nearest known word, or the list of what is known."""
    names = sorted(set(known))
    close = difflib.get_close_matches(word.lower(), [name.lower() for name in names], n=1, cutoff=0.6)
    if close:
        return f"did you mean '{next(name for name in names if name.lower() == close[0])}'?"
    return f"known: {', '.join(names)}" if names else "none is there"


def read_yaml(path: Path, may_be_empty: bool = False) -> dict[str, Any]:
    """Read one YAML 1.2 mapping; a file without content is an empty one where that means something.

    Raises:
        SpecError: the file is missing (with the nearest name beside it), unreadable, not YAML, or no mapping.
    """
    name = str(path)
    if not path.is_file():
        beside = [other.stem for other in sorted(path.parent.glob("*.yaml"))] if path.parent.is_dir() else []
        remedy = "is a folder; name a file" if path.is_dir() else f"no such file; {nearest(path.stem, beside)}"
        raise SpecError([Fault(name, "", "", remedy)])
    try:
        content = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = (error.problem or error.context or "cannot be parsed").strip().splitlines()[0]
        raise SpecError([Fault(name, where, "", f"not valid YAML: {problem}")]) from None
    except (YAMLError, UnicodeDecodeError) as error:
        raise SpecError([Fault(name, "", "", f"not valid YAML: {str(error).splitlines()[0]}")]) from None
    except OSError as error:
        raise SpecError([Fault(name, "", "", error.strerror or str(error))]) from None
    if content is None and may_be_empty:
        return {}
    if not isinstance(content, dict):
        raise SpecError([Fault(name, "", shown(content), "must be a mapping of keys to values")])
    return content


def read_spec(path: Path, model: type[Model]) -> Model:
    """Read a whole YAML file as ``model``. Raises SpecError with every fault of the file."""
    return parse(read_yaml(path), model, str(path))


def read_section(path: Path, section: str, model: type[Model]) -> Model:
    """Read one top-level section of a spec file as ``model``. Raises SpecError with every fault of the section."""
    content = read_yaml(path)
    if section not in content:
        raise SpecError([Fault(str(path), section, "", "missing section")])
    return parse(content[section], model, str(path), section)


def parse(content: Any, model: type[Model], file: str, prefix: str = "") -> Model:
    """Validate plain data as ``model`` (a Spec class); raise SpecError with every fault."""
    content = _expanded(content, model, file, prefix)
    try:
        # Through JSON, so that strict mode takes a YAML list for a tuple and nothing else is coerced.
        return model.model_validate_json(json.dumps(content, default=str))
    except ValidationError as error:
        faults = [fault for detail in error.errors() for fault in _explain(detail, content, model, file, prefix)]
        raise SpecError(faults) from None


def _expanded(content: Any, model: type[BaseModel], file: str, prefix: str) -> Any:
    """The content with what its sections' lines stand for written out."""
    if not isinstance(content, Mapping) or not issubclass(model, Spec):
        return content
    try:
        whole = model.expand(dict(content))
    except Broken as broken:
        places = ((".".join(part for part in (prefix, path) if part), path, remedy) for path, remedy in broken.rules)
        raise SpecError(Fault(file, at, _value_at(content, path), remedy) for at, path, remedy in places) from None
    for name, field in model.model_fields.items():
        inner = field.annotation
        if name in whole and isinstance(inner, type) and issubclass(inner, Spec):
            whole[name] = _expanded(whole[name], inner, file, f"{prefix}.{name}" if prefix else name)
    return whole


def shown(value: Any) -> str:
    """A value as it is printed in an error: JSON, one line, at most 60 characters."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _explain(detail: ErrorDetails, content: Any, model: Any, file: str, prefix: str) -> Iterator[Fault]:
    loc, kind, context = detail["loc"], detail["type"], detail.get("ctx", {})
    path, value, around = _locate(loc, content, model, missing=kind == "missing")
    dotted = ".".join(part for part in (prefix, _dotted(path)) if part)
    if kind == "rules":
        for inner, remedy in context["broken"]:
            whole = ".".join(part for part in (dotted, inner) if part).replace(".[", "[")
            yield Fault(file, whole, _value_at(value, inner), remedy)
        return
    if kind == "missing":
        nullable = _may_be_null(around, str(path[-1]))
        yield Fault(file, dotted, "", f"missing; write it out{' (null where it does not apply)' if nullable else ''}")
    elif kind == "extra_forbidden":
        yield Fault(file, dotted, shown(value), f"unknown key; {nearest(str(path[-1]), _fields(around))}")
    elif kind in ("union_tag_invalid", "union_tag_not_found") or (kind == "literal_error" and path[-1:] == ["kind"]):
        found = value.get("kind") if isinstance(value, dict) else value
        expected = context.get("expected_tags") or context.get("expected") or ", ".join(_kinds(around))
        known = [word.strip(" '\"") for word in str(expected).replace(" or ", ",").split(",")]
        at = dotted if path[-1:] == ["kind"] else ".".join(part for part in (dotted, "kind") if part)
        if found is None:
            yield Fault(file, at, "", f"missing; known: {', '.join(known)}")
        else:
            yield Fault(file, at, shown(found), f"unknown kind; {nearest(str(found), known)}")
    elif kind == "unknown_kind":
        kinds, _, others = detail["msg"].partition("; ")
        remedy = f"{nearest(str(value['kind']), kinds.split(', '))} ({others})"
        yield Fault(file, f"{dotted}.kind", _value_at(value, "kind"), f"unknown kind; {remedy}")
    elif kind in ("model_attributes_type", "model_type", "dict_type"):
        yield Fault(file, dotted, shown(value), "must be a mapping of keys to values")
    elif kind in ("tuple_type", "list_type"):
        yield Fault(file, dotted, shown(value), "must be a list")
    elif kind == "too_short":
        if not isinstance(value, list) or len(value) < context["min_length"]:  # else its items' faults are told already
            yield Fault(file, dotted, shown(value), f"must have at least {context['min_length']} item(s)")
    elif kind == "too_long":
        yield Fault(file, dotted, shown(value), f"must have at most {context['max_length']} item(s)")
    else:
        message = detail["msg"][:1].lower() + detail["msg"][1:]
        yield Fault(file, dotted, shown(value), message.replace("input should be", "must be"))


def _locate(loc: tuple[int | str, ...], content: Any, model: Any, missing: bool) -> tuple[list[int | str], Any, Any]:
    """Follow pydantic's location through the data; return (path without union tags, value, enclosing model)."""
    path: list[int | str] = []
    value, here, around = content, model, model
    for position, step in enumerate(loc):
        here = _resolve(here, value)
        if isinstance(value, Mapping) and step in value:
            around, value, here = here, value[step], _inside(here, step)
        elif isinstance(value, (list, tuple)) and isinstance(step, int) and step < len(value):
            value, here = value[step], _inside(here, step)
        elif missing and position == len(loc) - 1:
            around = here
        else:
            continue  # a union's tag, which is no part of the file
        path.append(step)
    if missing and loc:
        path = path if path and path[-1] == loc[-1] else [*path, loc[-1]]
    # a missing or unknown kind is told with the union's members, everything else with the enclosing model
    return path, value, here if path and path[-1] != "kind" and not _fields(here) and _kinds(here) else around


def _resolve(annotation: Any, value: Any) -> Any:
    """The member of a (discriminated or optional) union that ``value`` means, or the annotation itself."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        members = [_resolve(member, value) for member in get_args(annotation) if member is not type(None)]
        tag = value.get("kind") if isinstance(value, Mapping) else None
        models = [member for member in members if isinstance(member, type) and issubclass(member, BaseModel)]
        for member in models:
            if tag in _tags(member):
                return member
        untagged = [member for member in models if "kind" not in member.model_fields]
        if isinstance(value, Mapping) and tag is None and len(untagged) == 1:
            return untagged[0]  # the member that needs no kind
        return members[0] if len(members) == 1 else annotation
    return annotation


def _inside(annotation: Any, step: int | str) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(str(step))
        return field.annotation if field is not None else None
    arguments = get_args(annotation)
    return arguments[0 if isinstance(step, int) else -1] if arguments else None


def _tags(model: type[BaseModel]) -> tuple[Any, ...]:
    field = model.model_fields.get("kind")
    return get_args(field.annotation) if field is not None and get_origin(field.annotation) is Literal else ()


def _kinds(annotation: Any) -> list[str]:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [str(tag) for tag in _tags(annotation)]
    return [kind for member in get_args(annotation) for kind in _kinds(member)]


def _fields(annotation: Any) -> list[str]:
    model = annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
    return list(model.model_fields) if model is not None else []


def _may_be_null(annotation: Any, name: str) -> bool:
    model = annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
    field = model.model_fields.get(name) if model is not None else None
    return field is not None and (field.annotation is type(None) or type(None) in get_args(field.annotation))


def _dotted(path: Iterable[int | str]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _value_at(content: Any, dotted: str) -> str:
    """What stands in the file at a rule's path; nothing where the path is absent."""
    for step in dotted.replace("[", ".[").split("."):
        if not step:
            continue
        try:
            content = content[int(step[1:-1])] if step.startswith("[") else content[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return ""
    return shown(content)
