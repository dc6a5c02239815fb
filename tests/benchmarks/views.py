"""Two SimCLR views of every picture on one core, side by side with lightly's SimCLRTransform of the same operations.

    python -m tests.benchmarks.views [--only WORD] [--rounds 7] [--parts]

Prints one table; every figure is the best of several interleaved rounds, in CPU seconds of one thread, so that a busy
machine does the least harm. lightly and kornia have a row where they are installed. Nothing is normalised: that is the
network's. All of ours is ``draw_view``, as training calls it, of which the tests hold that it is exact.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.io import ImageReadMode, decode_jpeg

from pipeline.images import decode
from pipeline.keys import Keys
from pipeline.machine import Machine, settle
from pipeline.views import (
    Blur,
    ColorJitter,
    Grayscale,
    HorizontalFlip,
    Images,
    Invariance,
    ResizedCrop,
    draw_parameters,
    draw_view,
)

Run = Callable[[], int]
SMALL: tuple[Invariance, ...] = (  # Chen et al. 2020, appendix B.9: at 32 pixels, no blur, colour strength 0.5
    ResizedCrop(area=(0.08, 1.0)),
    HorizontalFlip(),
    ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, probability=0.8),
    Grayscale(probability=0.2),
)
LARGE: tuple[Invariance, ...] = (  # appendix A: at 224 pixels
    ResizedCrop(area=(0.08, 1.0)),
    HorizontalFlip(),
    ColorJitter(brightness=0.8, contrast=0.8, saturation=0.8, hue=0.2, probability=0.8),
    Grayscale(probability=0.2),
    Blur(sigma=(0.1, 2.0), probability=0.5),
)
CHUNK = 8  # pictures that are decoded and cut at a time, as in training


def by_matrix(invariances: tuple[Invariance, ...]) -> tuple[Invariance, ...]:
    return tuple(
        each.model_copy(update={"method": "matrix"}) if isinstance(each, ColorJitter) else each for each in invariances
    )


def best(rounds: int, runs: dict[str, Run]) -> dict[str, float]:
    """The highest rate of each run over interleaved rounds, in images a CPU second; a run returns how many it made."""
    rates = dict.fromkeys(runs, 0.0)
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.process_time()
            count = run()
            rates[name] = max(rates[name], count / (time.process_time() - start))
    return rates


def photograph(seed: int, height: int, width: int) -> np.ndarray:
    """A picture with the spectrum and the edges of a photograph: (height,width,3) uint8."""
    noise = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]) + 1.0 / max(height, width)
    layers = []
    for power in (1.2, 1.8):  # a fine texture and soft shading
        spectrum = np.fft.rfft2(noise.normal(size=(3, height, width))) / frequency**power
        field = np.fft.irfft2(spectrum, (height, width))
        layers.append(field / field.std(axis=(1, 2), keepdims=True))
    mask = layers[1][:1] > 0.3  # regions with borders
    colour = layers[1].mean(0) * 40 + 25 * layers[1] + np.where(mask, 25 * layers[0], 8 * layers[0])
    colour += np.where(mask, noise.uniform(-60, 60, (3, 1, 1)), 0.0)
    return (128 + colour).clip(0, 255).astype(np.uint8).transpose(1, 2, 0)


def stored(picture: np.ndarray) -> bytes:
    """As JPEG."""
    content = io.BytesIO()
    Image.fromarray(picture).save(content, "JPEG", quality=90)
    return content.getvalue()


def decoded(content: bytes) -> Tensor:
    """By torchvision, whose pixels are Pillow's (``main`` says of how many of the pictures)."""
    return decode_jpeg(torch.frombuffer(bytearray(content), dtype=torch.uint8), ImageReadMode.RGB)


def decoded_for_training(content: bytes) -> Tensor:
    """By Pillow, as the pictures of a data set are decoded."""
    return torch.from_numpy(np.array(decode(content).pixels)).permute(2, 0, 1)


def ours(images: Images, invariances: tuple[Invariance, ...], size: int) -> Run:
    """Both views of a chunk of pictures at once, as training makes them."""
    batch = len(images) if isinstance(images, Tensor) else CHUNK

    def run() -> int:
        for start in range(0, len(images), batch):
            chunk = images[start : start + batch]
            draw_pairs(chunk, invariances, size, start)
        return len(images)

    return run


def draw_pairs(chunk: Images, invariances: tuple[Invariance, ...], size: int, start: int = 0) -> Tensor:
    index = np.repeat(np.arange(start, start + len(chunk)), 2)
    pairs = chunk.repeat_interleave(2, 0) if isinstance(chunk, Tensor) else [each for each in chunk for _ in (0, 1)]
    return draw_view(pairs, invariances, Keys.of(0, 0, index, np.tile([0, 1], len(chunk))), (size, size))


def ours_of_bytes(
    contents: Sequence[bytes], invariances: tuple[Invariance, ...], size: int, opened: Callable[[bytes], Tensor]
) -> Run:
    def run() -> int:
        for start in range(0, len(contents), CHUNK):
            draw_pairs([opened(content) for content in contents[start : start + CHUNK]], invariances, size, start)
        return len(contents)

    return run


def lightly(size: int, strength: float, blur: float) -> Callable[[Image.Image], object] | None:
    """lightly's transform as documented, without its normalisation; None where it is not installed."""
    try:
        from lightly.transforms.simclr_transform import SimCLRTransform
    except ImportError:
        return None
    transform: Callable[[Image.Image], object] = SimCLRTransform(
        input_size=size, cj_strength=strength, gaussian_blur=blur, normalize=None
    )
    return transform


def one_by_one(pictures: Sequence[Image.Image], transform: Callable[[Image.Image], object]) -> Run:
    def run() -> int:
        for picture in pictures:
            transform(picture)
        return len(pictures)

    return run


def kornia(images: Tensor, size: int, strength: float, blur: float) -> Run | None:
    """kornia's batched transforms on floating point; None where it is not installed."""
    try:
        from kornia import augmentation
    except ImportError:
        return None
    jitter = [0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength]
    transform = augmentation.AugmentationSequential(
        augmentation.RandomResizedCrop((size, size), scale=(0.08, 1.0)),
        augmentation.RandomHorizontalFlip(),
        augmentation.ColorJitter(*jitter, p=0.8),
        augmentation.RandomGrayscale(p=0.2),
        *([augmentation.RandomGaussianBlur((23, 23), (0.1, 2.0), p=blur)] if blur else []),
    )

    def run() -> int:
        for _ in (0, 1):
            transform(images.float() / 255.0)
        return len(images)

    return run


def groups() -> dict[str, dict[str, Run | None]]:
    """The table: a heading, its rows."""
    small = [photograph(seed, 32, 32) for seed in range(256)]
    tiny = torch.from_numpy(np.stack(small)).permute(0, 3, 1, 2).contiguous()
    contents = [stored(photograph(seed, 375, 500)) for seed in range(16)]
    large = [decoded(content) for content in contents]
    simclr, both = lightly(32, 0.5, 0.0), lightly(224, 1.0, 0.5)

    def opened() -> int:
        assert both is not None
        for content in contents:
            both(Image.open(io.BytesIO(content)).convert("RGB"))
        return len(contents)

    kilobytes = sum(map(len, contents)) / len(contents) / 1000
    return {
        "32 x 32, no blur, colour strength 0.5": {
            "lightly, PIL": simclr and one_by_one([Image.fromarray(each) for each in small], simclr),
            "kornia, batched": kornia(tiny, 32, 0.5, 0.0),
            "exact": ours(tiny, SMALL, 32),
            "colour matrix": ours(tiny, by_matrix(SMALL), 32),
        },
        "224 x 224 of 500 x 375, blur, colour strength 1": {
            "lightly, PIL": both
            and one_by_one([Image.fromarray(each.permute(1, 2, 0).numpy()) for each in large], both),
            "kornia, batched": kornia(torch.stack(large), 224, 1.0, 0.5),
            "exact": ours(large, LARGE, 224),
            "colour matrix": ours(large, by_matrix(LARGE), 224),
        },
        f"the same of JPEG bytes ({kilobytes:.0f} kB)": {
            "lightly, PIL": both and opened,
            "exact": ours_of_bytes(contents, LARGE, 224, decoded),
            "colour matrix": ours_of_bytes(contents, by_matrix(LARGE), 224, decoded),
            "exact, decoded by Pillow": ours_of_bytes(contents, LARGE, 224, decoded_for_training),
            "colour matrix, decoded by Pillow": ours_of_bytes(contents, by_matrix(LARGE), 224, decoded_for_training),
        },
    }


def parts() -> dict[str, dict[str, Run | None]]:
    """Where the time goes: each operation by itself."""
    tiny = (
        torch.from_numpy(np.stack([photograph(seed, 32, 32) for seed in range(256)])).permute(0, 3, 1, 2).contiguous()
    )
    contents = [stored(photograph(seed, 375, 500)) for seed in range(16)]
    large = [decoded(content) for content in contents]
    canvas = torch.rand(16, 3, 224, 224)
    keys = Keys.of(0, 0, np.arange(256))

    def drawn() -> int:
        draw_parameters(SMALL, keys), draw_parameters(SMALL, keys)
        return 256

    def opened() -> int:
        return len([decoded(content) for content in contents])

    return {
        "32 x 32, parts": {"parameters": drawn, "bytes as numbers": ours(tiny, (), 32)}
        | {each.kind: ours(tiny if number == 0 else tiny / 255.0, (each,), 32) for number, each in enumerate(SMALL)}
        | {"colour matrix": ours(tiny / 255.0, by_matrix(SMALL)[2:3], 32)},
        "224 x 224, parts": {"decoding": opened, "crop": ours(large, LARGE[:1], 224)}
        | {each.kind: ours(canvas, (each,), 224) for each in LARGE[1:]}
        | {"colour matrix": ours(canvas, by_matrix(LARGE)[2:3], 224)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="a word of the headings that are wanted")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--parts", action="store_true", help="each operation by itself")
    options = parser.parse_args()
    settle(Machine(threads=1))  # as training does; every row has the good of it
    print(f"two views of each picture, images a CPU second of one thread, torch {torch.__version__}")
    for heading, rows in (parts() if options.parts else groups()).items():
        if options.only not in heading:
            continue
        rates = best(options.rounds, {name: run for name, run in rows.items() if run is not None})
        print(f"\n{heading:52}{'images/s':>10}{'times':>8}")
        for name in rows:
            times = f"{rates[name] / rates['lightly, PIL']:8.2f}" if name in rates and "lightly, PIL" in rates else ""
            print(f"  {name:50}" + (f"{rates[name]:10.0f}{times}" if name in rates else "    skipped: not installed"))
    if not options.parts:
        contents = [stored(photograph(seed, 375, 500)) for seed in range(16)]
        same = sum(torch.equal(decoded(content), decoded_for_training(content)) for content in contents)
        print(f"\ntorchvision decodes {same} of {len(contents)} pictures to Pillow's pixels")
        print("on a GPU: " + ("not measured here" if torch.cuda.is_available() else "skipped: there is none"))


if __name__ == "__main__":
    main()
