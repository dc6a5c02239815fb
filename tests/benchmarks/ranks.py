"""The training curves of one process and of two, drawn over each other (float32, the same spec and seed).

    python tests/benchmarks/ranks.py curves.png

Prints the largest relative difference of the loss; the picture has a second panel with the difference itself.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from kills import Project


def losses(root: Path, processes: int, source: Path | None = None) -> tuple[list[float], Path]:
    """The loss of every step, by `dvc repro pretrain` in a clean folder."""
    project = Project(root, processes) if source is None else Project(root, processes, source)
    code, output = project.repro(targets=("pretrain",))
    assert code == 0, output
    with (root / "work" / "pretrain" / "one" / "curve.csv").open() as file:
        return [float(row["loss"]) for row in csv.DictReader(file)], root


def main() -> None:
    """Draw both curves."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    target = Path(sys.argv[1] if len(sys.argv) > 1 else "curves.png")
    with tempfile.TemporaryDirectory() as folder:
        one, source = losses(Path(folder) / "one", 1)
        two, _ = losses(Path(folder) / "two", 2, source)
    apart = [abs(b - a) / a for a, b in zip(one, two, strict=True)]
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 5), sharex=True, height_ratios=(3, 1), layout="tight")
    above.plot(one, color="#9ab", linewidth=5, label="1 process")
    above.plot(two, color="#c40", linewidth=1.2, label="2 ranks")
    above.set_ylabel("loss, nats")
    above.legend(frameon=False)
    below.semilogy([max(each, 1e-9) for each in apart], color="#444")
    below.set_ylabel("relative\ndifference")
    below.set_xlabel("step")
    figure.savefig(target, dpi=120)
    print(f"{len(one)} steps; largest relative difference of the loss {max(apart):.1e}; {target}")


if __name__ == "__main__":
    main()
