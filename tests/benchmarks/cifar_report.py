"""What the runs of ``cifar.py`` found: a table with intervals over seeds, the curves as CSV, and one picture."""

from __future__ import annotations

import csv
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

NAMES = {"lightly": "lightly, as documented", "tuned": "lightly, tuned by hand", "pipeline": "this pipeline"}
COLOURS = {"lightly": "#8a8a8a", "tuned": "#c77700", "pipeline": "#0b62a4"}


def machine() -> str:
    """What the times were taken on."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "lightly"))
    return (
        f"{len(os.sched_getaffinity(0))} cores ({platform.machine()}), Python {platform.python_version()}, {versions}"
    )


def interval(values: list[float]) -> tuple[float, float] | None:
    """The 95 % interval of a mean over seeds, by Student's t; None for one seed."""
    from scipy.stats import t

    if len(values) < 2:
        return None
    half = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return fmean(values) - half, fmean(values) + half


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a system: means over its seeds, the interval of kNN, and the ratios of images/s."""
    rows: list[dict[str, Any]] = []
    for system in NAMES:
        own = [run for run in runs if run["system"] == system]
        if not own:
            continue
        values = [100 * run["knn"] for run in own]
        bounds = interval(values)
        rows.append(
            {
                "system": system,
                "seeds": sorted(run["seed"] for run in own),
                "images_per_second": round(fmean(run["images_per_second"] for run in own), 1),
                "steps": round(fmean(run["steps"] for run in own)),
                "seconds": round(fmean(run["seconds"] for run in own), 1),
                "loss": round(fmean(run["loss"] for run in own), 3),
                "knn": round(fmean(values), 2),
                "knn_interval": None if bounds is None else [round(bound, 2) for bound in bounds],
            }
        )
    speeds = {row["system"]: row["images_per_second"] for row in rows}
    for row in rows:
        row["times_lightly"] = round(row["images_per_second"] / speeds["lightly"], 2) if "lightly" in speeds else None
        row["times_tuned"] = round(row["images_per_second"] / speeds["tuned"], 2) if "tuned" in speeds else None
    return rows


def text(found: dict[str, Any]) -> str:
    """The table, in Markdown."""
    lines = [
        f"SimCLR on CIFAR-10, {found['minutes']:g} minutes each; {found['machine']}",
        "",
        "| | images/s | of lightly | of tuned | steps | seconds | last loss | kNN on h, % (95 % interval over seeds) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in found["table"]:
        bounds = row["knn_interval"]
        spread = f" ({bounds[0]:.1f} to {bounds[1]:.1f})" if bounds else " (one seed)"
        ratios = " | ".join("" if row[key] is None else f"x{row[key]:.2f}" for key in ("times_lightly", "times_tuned"))
        lines.append(
            f"| {NAMES[row['system']]} | {row['images_per_second']:.0f} | {ratios} | {row['steps']} "
            f"| {row['seconds']:.0f} | {row['loss']:.3f} | {row['knn']:.1f}{spread} |"
        )
    floor = [100 * run["knn_untrained"] for run in found["runs"] if "knn_untrained" in run]
    if floor:
        lines += ["", f"Untrained encoder: {fmean(floor):.1f} % kNN."]
    agreement = min((run["knn_agreement"] for run in found["runs"]), default=1.0)
    if any(run["seconds"] > 60 * found["minutes"] + 1 for run in found["runs"]):
        lines += ["A run took longer than it had: one epoch is the least that the pipeline trains."]
    sizes = sorted({run["parameters"] for run in found["runs"]})
    lines += [f"Parameters with the head: {', '.join(f'{size:,}' for size in sizes)} in all of them."]
    lines += [f"The pipeline's own kNN probe gives at least {100 * agreement:.2f} % of the same answers as lightly's."]
    return "\n".join(lines)


def publish(found: dict[str, Any], folder: Path) -> str:
    """Write cifar.json, cifar.csv and cifar.png; return the table."""
    runs = sorted(found["runs"], key=lambda run: (list(NAMES).index(run["system"]), run["seed"]))
    found = {**found, "runs": runs, "table": summary(runs)}
    partial = folder / "cifar.partial"
    partial.write_text(_json(found), encoding="utf-8")
    partial.replace(folder / "cifar.json")  # whole or not at all: what is stored is not run again
    with (folder / "cifar.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["system", "seed", "step", "seconds", "loss"])
        writer.writerows([run["system"], run["seed"], *row] for run in runs for row in run["curve"])
    if runs:
        picture(found, folder / "cifar.png")
    return text(found)


def _json(found: dict[str, Any]) -> str:
    """One line a run's curve, so that the file is short and a difference is readable."""
    runs = [{**run, "curve": f"@{number}"} for number, run in enumerate(found["runs"])]
    written = json.dumps({**found, "runs": runs}, indent=1)
    for number, run in enumerate(found["runs"]):
        written = written.replace(f'"@{number}"', json.dumps(run["curve"], separators=(",", ":")))
    return written + "\n"


def picture(found: dict[str, Any], file: Path) -> None:
    """The loss over seconds, images/s and kNN, one colour a system, one point a seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    loss, speed, accuracy = figure.subplots(1, 3, width_ratios=[2.2, 1, 1])
    rows = found["table"]
    for place, row in enumerate(rows):
        system = row["system"]
        own = [run for run in found["runs"] if run["system"] == system]
        for number, run in enumerate(own):
            label = NAMES[system] if number == 0 else None
            seconds, losses = [point[1] for point in run["curve"]], [point[2] for point in run["curve"]]
            loss.plot(seconds, losses, color=COLOURS[system], linewidth=1.1, alpha=0.8, label=label)
        for axes, values, shown in (
            (speed, [run["images_per_second"] for run in own], f"{row['images_per_second']:.0f}"),
            (accuracy, [100 * run["knn"] for run in own], f"{row['knn']:.1f}"),
        ):
            axes.plot([place] * len(own), values, "o", color=COLOURS[system], markersize=5, alpha=0.75)
            at = (place, fmean(values))
            axes.annotate(shown, at, (9, -3), textcoords="offset points", color=COLOURS[system], fontsize=9)
        speed.bar(place, row["images_per_second"], width=0.55, color=COLOURS[system], alpha=0.18)
        if row["knn_interval"]:
            low, high = row["knn_interval"]
            accuracy.errorbar(
                place, row["knn"], [[row["knn"] - low], [high - row["knn"]]], color=COLOURS[system], capsize=4
            )
    floor = [100 * run["knn_untrained"] for run in found["runs"] if "knn_untrained" in run]
    if floor:
        accuracy.axhline(fmean(floor), color="#444444", linewidth=0.8, linestyle=":")
        accuracy.annotate("untrained", (-0.45, fmean(floor)), textcoords="offset points", xytext=(0, 3), fontsize=8)
    highest = max(point[2] for run in found["runs"] for point in run["curve"])
    lowest = min(point[2] for run in found["runs"] for point in run["curve"])
    loss.set(xlabel="seconds of training", ylabel="NT-Xent loss", title="loss")
    loss.set_ylim(lowest - 0.05, min(highest, lowest + 1.2))
    loss.legend(frameon=False, fontsize=9)
    speed.set(title="images/s", ylim=(0, None))
    accuracy.set(title="kNN on h, %")
    for axes in (speed, accuracy):
        axes.set_xticks(range(len(rows)), [row["system"] for row in rows])
        axes.set_xlim(-0.5, len(rows) - 0.3)
    for axes in (loss, speed, accuracy):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    figure.savefig(file, dpi=130, metadata={"Software": None})
