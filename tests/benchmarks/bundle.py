"""What a bundle promises in numbers: agreement of its forms, seconds to open it, pictures a second.

    python tests/benchmarks/bundle.py --data ../shared/data     # writes results/bundle.json

On real pictures (CIFAR-10's test archive, the first 1,000). Encoders: the project's ``small``, timm's resnet18, and
torchvision's resnet18 with drawn weights and drawn batch statistics; what agrees is a matter of arithmetic, not of
training. Figures:

- agreement: largest difference of h from the training-time encoder's, of the bundle (safetensors), of timm's or
  torchvision's own class with the bundle's file, and of the ONNX graph, batches of 1 to 33; beside it the largest h;
- load: seconds of ``load`` after its imports, the best of five, each in a process of its own, by that process's time;
- embed: pictures a second of ``Bundle.embed`` on files, beside a bare loop over the same reader and encoder, by the
  process's own time on one thread (others may use the machine), medians of ten rounds in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(ROOT)]
COUNT, ROUNDS, BATCHES = 1000, 5, range(1, 34)
ENCODERS: dict[str, dict[str, Any]] = {
    "small": {"kind": "small", "widths": [32, 64, 128, 128], "strides": [2, 2, 2, 1], "groups": 8},
    "timm resnet18": {"kind": "timm", "name": "resnet18", "small_stem": False},
    "torchvision resnet18": {"kind": "torchvision", "name": "resnet18", "small_stem": False},
}
INPUT = {"height": 32, "width": 32, "channels": 3, "fit": "resize", "background": 0, "range": None}
LOADING = """
import sys, time
import pipeline.bundle
if sys.argv[2] != "small":
    __import__(sys.argv[2])
started = time.process_time()
pipeline.bundle.load(sys.argv[1])
print(time.process_time() - started)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds natural/cifar10_test.tar.gz")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "bundle.json")
    parser.add_argument("--only", choices=ENCODERS, nargs="+", default=list(ENCODERS), help="which encoders")
    given = parser.parse_args()
    import torch
    from bundled import bundled, card

    torch.set_num_threads(1)
    found: dict[str, Any] = json.loads(given.output.read_text()) if given.output.is_file() else {}
    with tempfile.TemporaryDirectory() as place:
        files = pictures(given.data / "natural" / "cifar10_test.tar.gz", Path(place) / "pictures")
        for name in given.only:
            folder, network = bundled(Path(place) / name.replace(" ", "_"), card(ENCODERS[name], INPUT), graph=True)
            found[name] = {
                **agreement(folder, network, files),
                "load_seconds": loading(folder, name.split()[0]),
                **throughput(folder, files),
            }
            given.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(name, json.dumps(found[name]), flush=True)


def pictures(archive: Path, folder: Path) -> list[Path]:
    """The first pictures of an archive, as files."""
    folder.mkdir()
    paths = []
    with tarfile.open(archive, "r:*") as tar:
        for member in tar:
            if member.isfile() and len(paths) < COUNT:
                paths.append(folder / f"{len(paths):04d}{Path(member.name).suffix}")
                file = tar.extractfile(member)
                assert file is not None
                paths[-1].write_bytes(file.read())
    return paths


def agreement(folder: Path, network: Any, files: list[Path]) -> dict[str, Any]:
    """Largest differences from the training-time encoder over all pictures and batches."""
    import numpy as np
    import onnxruntime
    import torch
    from test_bundle_readme import examples

    from pipeline.bundle import load
    from pipeline.bundle.reading import as_input, on_canvas

    bundle = load(folder)
    canvases = [on_canvas(path, bundle.input) for path in files]
    pixels = np.stack(canvases).transpose(0, 2, 3, 1)
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    alone = [code for title, code in examples(folder).items() if title.endswith("PyTorch alone")]
    own = None
    if alone:  # the README's own lines, up to the pictures
        names: dict[str, Any] = {}
        code = alone[0].split("def picture", 1)[0].replace('"encoder.safetensors"', f'"{folder}/encoder.safetensors"')
        exec(code, names)
        own = names["encoder"].eval()
        mean, std = (torch.tensor(bundle.card["network"][part]).reshape(1, -1, 1, 1) for part in ("mean", "std"))
    apart = dict.fromkeys(("safetensors", "own names", "onnx"), 0.0)
    largest, start, batch = 0.0, 0, 0
    with torch.inference_mode():
        while start < len(files):
            size = BATCHES[batch % len(BATCHES)]
            some = slice(start, start + size)
            images = as_input(canvases[some])
            h = network.encode(images).numpy()
            forms = {
                "safetensors": bundle.encode(canvases[some]),
                "onnx": session.run(["h"], {"pixels": pixels[some]})[0],
            }
            if own is not None:
                forms["own names"] = own((images - mean) / std).numpy()
            for form, rows in forms.items():
                apart[form] = max(apart[form], float(np.abs(rows - h).max()))
            largest, start, batch = max(largest, float(np.abs(h).max())), start + size, batch + 1
    if own is None:
        del apart["own names"]
    return {"pictures": len(files), "apart": apart, "largest_h": largest}


def loading(folder: Path, kind: str) -> float:
    """Seconds of ``load`` after its imports."""
    times = []
    for _ in range(ROUNDS):
        command = [sys.executable, "-c", LOADING, str(folder), kind]
        times.append(float(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout))
    return round(min(times), 3)


def throughput(folder: Path, files: list[Path]) -> dict[str, float]:
    """Pictures a second of ``embed`` and of a bare loop."""
    import numpy as np
    import torch

    from pipeline.bundle import load
    from pipeline.images import fit_image, read_image

    bundle = load(folder)

    def bare() -> np.ndarray:
        parts = []
        for start in range(0, len(files), 256):
            some = [
                fit_image(read_image(path.read_bytes(), bundle.input), bundle.input)
                for path in files[start : start + 256]
            ]
            with torch.inference_mode():
                parts.append(bundle.network.encode(torch.from_numpy(np.stack(some)).float() / 255.0).numpy())
        return np.concatenate(parts)

    calls = {"bare": bare, "embed": lambda: bundle.embed(files)}
    seconds: dict[str, list[float]] = {"bare": [], "embed": []}
    for turn in range(2 * ROUNDS):
        for name in ("bare", "embed") if turn % 2 else ("embed", "bare"):
            started = time.process_time()
            calls[name]()
            seconds[name].append(time.process_time() - started)
    return {
        "embed_per_second": round(len(files) / statistics.median(seconds["embed"])),
        "bare_per_second": round(len(files) / statistics.median(seconds["bare"])),
        "embed_of_bare": round(statistics.median(seconds["bare"]) / statistics.median(seconds["embed"]), 3),
    }


if __name__ == "__main__":
    main()
