"""An ONNX file as an encoder: its one input of pictures, its first output of one vector a picture.

What a graph expects is in its input: uint8 or floating point, channels first or last, fixed or free sizes. What it
does not say is how numbers are normalised: floating point is given in [0, 1], less ``--mean`` and divided by ``--std``
where these are given.

Legend: n pictures of a batch, C, H, W the canvas, D the width of the output.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.images import Input
from pipeline.spec import Refusal

if TYPE_CHECKING:
    from pipeline.given.encoder import GivenEncoder, Preprocessing

CHANNELS = (1, 3, 4)
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
UINT8 = "tensor(uint8)"


def open_onnx(file: Path, given: Preprocessing) -> GivenEncoder:
    """Open a graph on the CPU.

    Raises:
        Refusal: onnxruntime is not installed, no such file, no graph, or an input that is no batch of pictures.
    """
    from pipeline.given.encoder import GivenEncoder

    if not file.is_file():
        raise Refusal(f"--encoder {file}: no such file")
    try:
        import onnxruntime
    except ImportError:
        raise Refusal(f"--encoder {file}: onnxruntime is not installed; pip install onnxruntime") from None
    try:
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors share no class
        raise Refusal(f"--encoder {file}: no ONNX graph that can be run ({str(error).splitlines()[0][:160]})") from None
    entry = session.get_inputs()[0]
    if len(session.get_inputs()) != 1 or len(entry.shape) != 4 or entry.type not in (*TYPES, UINT8):
        found = ", ".join(f"{each.name} {each.type} {each.shape}" for each in session.get_inputs())
        remedy = "of other samples audit the bundle (--bundle), or vectors (--embeddings)"
        raise Refusal(f"--encoder {file}: its input is no batch of pictures (N, C, H, W): {found}; {remedy}")
    last = entry.shape[3] in CHANNELS and entry.shape[1] not in CHANNELS
    channels, height, width = (entry.shape[place] for place in ((3, 1, 2) if last else (1, 2, 3)))
    channels = channels if isinstance(channels, int) else len(given.mean or (0, 0, 0))
    height, width = (side if isinstance(side, int) else given.size for side in (height, width))
    if height is None or width is None:
        raise Refusal(f"--encoder {file}: takes pictures of any size; say which with --size, as --size 224")
    if given.size is not None and given.size != height:
        raise Refusal(f"--size {given.size}: {file} takes pictures of {height} x {width} only; leave it out")
    batch = entry.shape[0] if isinstance(entry.shape[0], int) else None
    mean, std = (
        None if each is None else np.array(each, np.float32).reshape(1, -1, 1, 1) for each in (given.mean, given.std)
    )
    for name, values in (("mean", mean), ("std", std)):
        if values is not None and (entry.type == UINT8 or values.size != channels):
            raise Refusal(
                f"--{name}: {file} takes {channels} channel(s) of {entry.type}; leave it out, or give as many"
            )

    def encode(pictures: Any) -> np.ndarray:
        x = pictures.cpu().numpy()
        if entry.type == UINT8:
            x = np.rint(x * 255).astype(np.uint8)
        else:
            x = ((x - (0 if mean is None else mean)) / (1 if std is None else std)).astype(TYPES[entry.type])
        x = np.ascontiguousarray(np.moveaxis(x, 1, 3)) if last else x
        parts = [x] if batch is None else [x[start : start + batch] for start in range(0, len(x), batch)]
        return np.concatenate([_run(session, entry.name, part, batch, file) for part in parts])

    numbers = "pixels 0 to 255" if entry.type == UINT8 else "pixels in [0, 1]"
    told = f"ONNX; canvas {height} x {width} covered; {numbers}"
    told += "" if mean is None else f"; mean {', '.join(map(str, given.mean or ()))}"
    told += "" if std is None else f"; std {', '.join(map(str, given.std or ()))}"
    return GivenEncoder(file.stem, Input(height=height, width=width, channels=channels, fit="cover"), encode, told)


def _run(session: Any, name: str, part: np.ndarray, batch: int | None, file: Path) -> np.ndarray:
    """The first output of one pass; a graph of a fixed batch is given its last pictures once more."""
    count = len(part)
    if batch is not None and count < batch:
        part = np.concatenate([part, np.repeat(part[-1:], batch - count, axis=0)])
    try:
        h = session.run(None, {name: part})[0][:count]
    except Exception as error:
        raise Refusal(f"{file}: cannot be run on {part.shape} ({str(error).splitlines()[0][:160]})") from None
    if len(h) != count:
        raise Refusal(f"{file}: gives {h.shape} for {count} pictures, not one vector a picture")
    return np.asarray(h, np.float32).reshape(count, -1)
