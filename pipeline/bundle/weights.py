"""Weights of a bundle as safetensors: bytes that are a function of their content, and read so that nothing can happen.

With several metadata keys safetensors writes its header in a random order, so there is one, ``card``. Reading takes the
names, types and shapes from the architecture and compares the file's header with them before any tensor is made; so
memory is bounded by the architecture and the file, and nothing is executed. Format:
https://github.com/huggingface/safetensors (8 bytes of length, JSON, numbers).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import torch
from torch import Tensor

from pipeline.bundle.card import CARD_LIMIT
from pipeline.spec import Refusal, nearest

HEADER_LIMIT = 2 * CARD_LIMIT + 2**22
"""bytes of a header: the card in it with every quote escaped, and the names of the tensors"""

TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def packed(weights: Mapping[str, Tensor], card: str) -> bytes:
    """Tensors and one text as safetensors; equal content gives equal bytes."""
    from safetensors.torch import save

    content: bytes = save({name: value.detach().cpu().contiguous() for name, value in weights.items()}, {"card": card})
    return content


def weight_digest(weights: Mapping[str, Tensor]) -> str:
    """SHA-256 over the names, types, shapes and bytes of tensors, in the order of their names."""
    hashed = hashlib.sha256()
    for name in sorted(weights):
        value = weights[name].detach().cpu().contiguous()
        hashed.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        hashed.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return hashed.hexdigest()


def largest(expected: Mapping[str, Tensor]) -> int:
    """The most bytes that a file of these tensors can have."""
    return 8 + HEADER_LIMIT + sum(value.numel() * value.element_size() for value in expected.values())


def unpacked(content: bytes, expected: Mapping[str, Tensor], place: str) -> tuple[dict[str, Tensor], str]:
    """The tensors of a file, and the text beside them.

    Args:
        expected: names, types and shapes; tensors without content (``meta``) will do.

    Raises:
        Refusal: cut or damaged, a tensor missing, one too many, or one of another type or shape.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    header = _header(content, place)
    beside = header.pop("__metadata__", {})
    card = beside.get("card", "") if isinstance(beside, dict) else ""
    missing, extra = sorted(expected.keys() - header.keys()), sorted(header.keys() - expected.keys())
    if missing:
        raise Refusal(f"{place}: lacks the tensor '{missing[0]}' ({len(missing)} of {len(expected)}); copy it again")
    if extra:
        told = f"'{extra[0][:60]}', which the network of card.json does not have"
        raise Refusal(f"{place}: has a tensor {told}; {nearest(extra[0][:60], expected)[:80]}")
    for name, value in expected.items():
        entry = header[name]
        wanted = (TYPES.get(value.dtype), list(value.shape))
        found = (entry.get("dtype"), entry.get("shape")) if isinstance(entry, dict) else (None, None)
        if found != wanted:
            raise Refusal(f"{place}: {name} is {str(found)[:80]}, the network of card.json has {wanted}; copy it again")
    try:
        return load(content), card if isinstance(card, str) else ""
    except (SafetensorError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise Refusal(f"{place}: damaged: {str(error).splitlines()[0][:120]}; copy it again") from None


def _header(content: bytes, place: str) -> dict[str, object]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(HEADER_LIMIT, len(content) - 8):
        raise Refusal(f"{place}: damaged: cut, or no safetensors file; copy it again")
    try:
        header = json.loads(content[8 : 8 + length].decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{place}: damaged: {str(error).splitlines()[0][:120]}; copy it again") from None
    if not isinstance(header, dict):
        raise Refusal(f"{place}: damaged: its header is no mapping; copy it again")
    return header
