"""A user's Python file: loaded by its path, and every way in which it can fail told in one line, with its line number.

A file is compiled here from its bytes, so that no compiled copy is left in the user's folder (which is hashed), and
once for each (path, bytes): an edited file is another module.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from pipeline.keys import Keys
from pipeline.spec import nearest

METHODS = ("draw", "apply")


class Unusable(Exception):
    """Why a file, a class or one of its methods cannot be used; ``field`` is the part of the spec that it concerns."""

    def __init__(self, field: str, reason: str):
        super().__init__(reason)
        self.field = field


def read_source(file: str) -> bytes:
    """The bytes of a file. Raises Unusable."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        remedy = "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or str(error)).lower()
        raise Unusable("file", remedy) from None


def source_digest(file: str) -> str:
    """SHA-256 (hex) of a file's bytes. Raises Unusable."""
    return hashlib.sha256(read_source(file)).hexdigest()


_MODULES: dict[str, ModuleType] = {}


def load_module(file: str) -> ModuleType:
    """The module of a file, executed once for each (path, bytes). Raises Unusable."""
    source = read_source(file)
    path = Path(file).resolve()
    word = hashlib.sha256(str(path).encode() + b"\n" + source).hexdigest()
    name = f"_user_code_{word[:32]}"
    if name in _MODULES:
        return _MODULES[name]
    try:
        compiled = compile(source, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise Unusable("file", f"line {error.lineno}: not valid Python: {error.msg}") from None
    except ValueError as error:
        raise Unusable("file", f"not valid Python: {error}") from None
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses look their module up while they are made
    try:
        with _telling("file", file, "loading it"):
            exec(compiled, module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    _MODULES[name] = module
    return module


def construct(file: str, name: str, arguments: Mapping[str, Any]) -> Any:
    """An object of the class ``name`` of ``file``. Raises Unusable."""
    module = load_module(file)
    made_here = {key: value for key, value in vars(module).items() if _is_class_of(value, module)}
    if name not in vars(module):
        raise Unusable("name", f"no such class in {file}; {nearest(name, made_here)}")
    user = vars(module)[name]
    if not inspect.isclass(user):
        raise Unusable("name", f"must be a class with draw and apply; {nearest(name, made_here)}")
    missing = [method for method in METHODS if not callable(getattr(user, method, None))]
    if missing:
        raise Unusable("name", f"{_place(file, user)}: the class has no method {missing[0]}; it needs draw and apply")
    try:
        inspect.signature(user).bind(**arguments)
    except TypeError as error:
        takes = ", ".join(str(each) for each in inspect.signature(user).parameters.values()) or "none"
        raise Unusable("arguments", f"{_place(file, user)}: {name} refuses them: {error}; it takes: {takes}") from None
    with _telling("arguments", file, name):
        return user(**arguments)


def call(file: str, user: Any, method: str, *arguments: Any) -> Any:
    """Call ``draw(keys)``, ``apply(samples, parameters, …)`` or ``at(strength)``; what it returns is looked at.

    Raises:
        Unusable: it raises, or what it returns has another form, shape, type or device, or is not finite.
    """
    with _telling("name", file, method):
        result = getattr(user, method)(*arguments)
    here = place(file, user, method)
    if method == "draw":
        reason = _unlike_parameters(result, arguments[0])
    elif method == "apply":
        reason = _unlike_samples(result, arguments[0])
    else:
        lacking = [name for name in METHODS if not callable(getattr(result, name, None))]
        reason = f"returns {_called(result)}, which has no method {lacking[0]}" if lacking else None
    if reason is not None:
        raise Unusable("name", f"{here}: {method} {reason}")
    return result


def takes(user: Any, method: str, count: int) -> str | None:
    """What a method takes where it cannot be called with ``count`` arguments: "keys, strength"; None where it can."""
    try:
        signature = inspect.signature(getattr(user, method))
        signature.bind(*[None] * count)
    except TypeError:
        return ", ".join(map(str, signature.parameters.values())) or "nothing"
    except ValueError:  # of what is not written in Python nothing is known
        return None
    return None


def place(file: str, user: Any, method: str) -> str:
    """Where a method stands: "FILE line 12"."""
    return _place(file, getattr(type(user), method, type(user)))


def _unlike_parameters(result: Any, keys: Keys) -> str | None:
    wanted = f"return a dict of tensors with {len(keys)} rows, one a key"
    if not isinstance(result, dict):
        return f"returns {_called(result)}; {wanted}"
    for name, values in result.items():
        if not isinstance(name, str):
            return f"returns a dict with the key {name!r}; its keys must be names"
        if not isinstance(values, Tensor):
            return f"returns {_called(values)} as {name!r}; {wanted}"
        if values.ndim == 0 or len(values) != len(keys):
            return f"returns {name!r} of shape {tuple(values.shape)} for {len(keys)} keys; {wanted}"
        if values.device.type != "cpu":
            return f"returns {name!r} on {values.device}; leave it on the CPU"
    return None


def _unlike_samples(result: Any, given: Tensor) -> str | None:
    if not isinstance(result, Tensor):
        return f"returns {_called(result)}; return what it was given, changed, a tensor"
    if result.shape != given.shape:
        return f"returns shape {tuple(result.shape)}, given {tuple(given.shape)}; return the same shape"
    if result.dtype != given.dtype:
        return f"returns {_short(result.dtype)}, given {_short(given.dtype)}; return the same type"
    if result.device != given.device:
        return f"returns values on {result.device}, given {given.device}; work on the device of what it is given"
    if not bool(torch.isfinite(result).all()):
        return "returns values that are not finite (NaN or infinity); guard divisions, roots and logarithms"
    return None


@contextmanager
def _telling(field: str, file: str, what: str) -> Iterator[None]:
    """Turn whatever the user's code raises into one line: type, text, line in the user's file."""
    try:
        yield
    except Unusable:
        raise
    except (Exception, SystemExit) as error:
        text = " ".join(str(error).split())
        text = text if len(text) <= 200 else text[:197] + "..."
        raise Unusable(field, f"{_last_line(error, file)}: {what} raises {type(error).__name__}: {text}") from None


def _last_line(error: BaseException, file: str) -> str:
    """The innermost line of the user's file that an exception passed."""
    path, found, trace = str(Path(file).resolve()), None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            found = trace.tb_lineno
        trace = trace.tb_next
    return file if found is None else f"{file} line {found}"


def _place(file: str, thing: Any) -> str:
    if inspect.isclass(thing):
        functions = [value for value in vars(thing).values() if inspect.isfunction(value)]
        lines = [function.__code__.co_firstlineno for function in functions]
        return f"{file} line {min(lines)}" if lines else file
    code = getattr(inspect.unwrap(thing), "__code__", None)
    return file if code is None else f"{file} line {code.co_firstlineno}"


def _is_class_of(value: Any, module: ModuleType) -> bool:
    return inspect.isclass(value) and value.__module__ == module.__name__


def _called(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {tuple(value.shape)}"
    return "None" if value is None else f"a {type(value).__name__}"


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
