"""A bundle's ONNX graph as a stranger runs it: an empty environment, and the lines of the bundle's own README.

    python tests/benchmarks/bundle_alone.py --bundle work/export/NAME --images FOLDER    # results/bundle_alone.json

Makes a virtual environment of onnxruntime, NumPy and Pillow alone, runs the README's lines in it on the first 1,000
files of the folder, 33 at a time, and takes the largest difference of h from the library's for the same files.
The bundle needs a model.onnx (``export.onnx: true``).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1])]
COUNT = 1000
TITLE = "With onnxruntime, NumPy and Pillow alone"
STRANGER = """
import json, sys
lines, out = json.load(open("given.json")), []
exec(lines["before"], globals())
for start in range(0, len(lines["files"]), 33):
    pixels = np.stack([picture(file) for file in lines["files"][start : start + 33]])
    out.append(graph.run(["h"], {"pixels": pixels})[0])
np.save("h.npy", np.concatenate(out))
assert not {"torch", "pipeline"} & sys.modules.keys()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "bundle_alone.json")
    given = parser.parse_args()
    from pipeline.bundle import load

    files = [str(path.resolve()) for path in sorted(given.images.rglob("*")) if path.is_file()][:COUNT]
    text = (given.bundle / "README.md").read_text(encoding="utf-8")
    code = dict(re.findall(r"^### (.+?)\n\n```python\n(.*?)\n```$", text, re.M | re.S))[TITLE]
    before = code[: code.index("\n", code.index("graph = "))]  # up to the line that opens the graph
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        venv.create(folder / "empty", with_pip=True)
        python = str(folder / "empty" / "bin" / "python")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        packages = ["onnxruntime", "numpy", "pillow"]
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], env=clean, check=True)
        (folder / "model.onnx").write_bytes((given.bundle / "model.onnx").read_bytes())
        (folder / "given.json").write_text(json.dumps({"before": before, "files": files}))
        subprocess.run([python, "-c", STRANGER], cwd=folder, env=clean, check=True)
        alone = np.load(folder / "h.npy")
    h = np.asarray(load(given.bundle).embed(files))
    found = {
        "bundle": given.bundle.name,
        "files": len(h),
        "kinds": dict(Counter(Path(file).suffix for file in files)),
        "width": h.shape[1],
        "apart": float(np.abs(h - alone).max()),
        "largest_h": float(np.abs(h).max()),
    }
    given.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
