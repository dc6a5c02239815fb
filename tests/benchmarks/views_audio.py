"""Views of sounds on one core: clips a second, side by side with audiomentations doing the same operations.

    python -m tests.benchmarks.views_audio [--rounds 7] [--clips 64] [--out tests/benchmarks/results]

Every figure is the best of several interleaved rounds, in CPU seconds of one thread, so that a busy machine does the
least harm. All of ours is ``draw_view``, as training calls it; audiomentations is called clip by clip, as it works.
Both start from float32 clips in memory. Writes views_audio.json and .md.

What is the same and what is not: parameters have the same ranges. TimeStretch and PitchShift have two methods each: the
phase vocoder of librosa, which is what ours computes, and Signalsmith's, their default. Their impulse responses and
backgrounds are files that they are given here (short ones, kept in their cache); ours are made anew for each clip. A
band-stop filter stands in for a frequency mask, the nearest that there is.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pipeline.keys import Keys
from pipeline.machine import Machine, settle
from pipeline.samples import Waveform
from pipeline.views import audio, draw_view

HERE = Path(__file__).parent
Run = Callable[[], int]
KINDS = {"digits": Waveform(4000, 8000), "speech": Waveform(16000, 16000)}  # half a second at 8 kHz, one at 16 kHz
OURS: dict[str, Any] = {
    "time shift": audio.TimeShift(ms=20),
    "gain": audio.Gain(db=12),
    "polarity": audio.Polarity(probability=1.0),
    "time reversal": audio.TimeReversal(probability=1.0),
    "time mask": audio.TimeMask(ms=(10, 100)),
    "white noise": audio.NoiseAtSnr(snr=(5, 40)),
    "coloured noise": audio.NoiseAtSnr(snr=(5, 40), exponent=(-2, 2)),
    "background": audio.Background(snr=(3, 30)),
    "band filter": audio.BandFilter(low=(50, 400), high=(1500, 3500)),
    "frequency mask": audio.FrequencyMask(share=(0.02, 0.2)),
    "reverberation": audio.Reverberation(seconds=(0.1, 0.4)),
    "tempo": audio.Tempo(speed=(0.8, 1.25)),
    "pitch": audio.Pitch(semitones=4),
}
CHAIN = ("time shift", "gain", "polarity", "time mask", "coloured noise", "background", "band filter", "frequency mask")
CHAIN = (*CHAIN, "reverberation", "tempo", "pitch")  # all but what is twice, and reversal


def voices(count: int, size: Waveform) -> Tensor:
    """Harmonics whose pitch and level move, and some noise: (count,1,T) float32."""
    random = np.random.default_rng(0)
    time_ = np.arange(size.samples) / size.rate
    pitch = (90 + 120 * random.random((count, 1, 1))) * (1 + 0.2 * np.sin(2 * np.pi * 3 * time_))
    phase = 2 * np.pi * np.cumsum(pitch, -1) / size.rate
    voice = sum(np.sin(number * phase) / number for number in range(1, 12))
    made = 0.2 * voice * np.sin(np.pi * time_ / time_[-1]) ** 2 + 0.005 * random.normal(size=phase.shape)
    return torch.from_numpy(made.astype(np.float32))


def ours(clips: Tensor, size: Waveform, invariances: tuple[Any, ...]) -> Run:
    state = {"epoch": 0}

    def run() -> int:
        state["epoch"] += 1
        draw_view(clips, invariances, Keys.of(0, state["epoch"], np.arange(len(clips))), size)
        return len(clips)

    return run


def theirs(clips: Tensor, size: Waveform, transform: Any) -> Run:
    arrays = [np.ascontiguousarray(clip[0]) for clip in clips.numpy()]

    def run() -> int:
        for array in arrays:
            transform(samples=array, sample_rate=size.rate)
        return len(arrays)

    return run


def transforms(folder: Path, size: Waveform, likely: float) -> dict[str, Any]:
    """audiomentations' transforms by our names, each acting with probability ``likely``."""
    import audiomentations as they
    import soundfile

    random = np.random.default_rng(1)
    long = size.rate * 2
    for number in range(4):
        decay = np.exp(-6.9 * np.arange(size.rate * 4 // 10) / (0.1 + 0.1 * number) / size.rate)
        response = random.normal(size=len(decay)) * decay * 0.1
        response[0] = 1.0
        for name, content in (("rooms", response), ("sounds", 0.1 * random.normal(size=long))):
            (folder / name).mkdir(exist_ok=True)
            soundfile.write(folder / name / f"{number}.wav", content.astype(np.float32), size.rate)
    p = {"p": likely}
    return {
        "time shift": they.Shift(-0.02, 0.02, shift_unit="seconds", rollover=False, fade_duration=0.0, **p),
        "gain": they.Gain(-12.0, 12.0, **p),
        "polarity": they.PolarityInversion(**p),
        "time reversal": they.Reverse(**p),
        "time mask": they.TimeMask(10 / 1000 * size.rate / size.samples, 100 / 1000 * size.rate / size.samples, **p),
        "white noise": they.AddGaussianSNR(5.0, 40.0, **p),
        "coloured noise": they.AddColorNoise(5.0, 40.0, **p),
        "background": they.AddBackgroundNoise(folder / "sounds", 3.0, 30.0, **p),
        "band filter": they.BandPassFilter(min_center_freq=800, max_center_freq=1500, **p),
        "frequency mask": they.BandStopFilter(min_center_freq=400, max_center_freq=2000, **p),
        "reverberation": they.ApplyImpulseResponse(folder / "rooms", **p),
        "tempo": they.TimeStretch(0.8, 1.25, method="librosa_phase_vocoder", **p),
        "pitch": they.PitchShift(-4, 4, method="librosa_phase_vocoder", **p),
        "tempo, signalsmith": they.TimeStretch(0.8, 1.25, method="signalsmith_stretch", **p),
        "pitch, signalsmith": they.PitchShift(-4, 4, method="signalsmith_stretch", **p),
    }


def best(rounds: int, runs: dict[str, Run]) -> dict[str, float]:
    """The highest rate of each over interleaved rounds, in clips a CPU second."""
    rates = dict.fromkeys(runs, 0.0)
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.process_time()
            count = run()
            rates[name] = max(rates[name], count / (time.process_time() - start))
    return rates


def measured(kind: str, count: int, rounds: int, folder: Path) -> list[dict[str, Any]]:
    """A row an operation, and two for all of them: with each acting always, and each on half of the clips."""
    import audiomentations as they

    size = KINDS[kind]
    clips = voices(count, size)
    always, half = (transforms(folder, size, likely) for likely in (1.0, 0.5))
    rows = []

    def row(name: str, mine: tuple[Any, ...], other: Any) -> None:
        rates = best(rounds, {"ours": ours(clips, size, mine), "theirs": theirs(clips, size, other)})
        rows.append({"clips": kind, "operation": name} | {key: round(value, 1) for key, value in rates.items()})
        rows[-1]["ratio"] = round(rates["ours"] / rates["theirs"], 2)
        print(f"{kind:8}{name:42}{rates['ours']:10.0f}{rates['theirs']:10.0f}{rows[-1]['ratio']:8.2f}", flush=True)

    for name, transform in always.items():
        row(name, (OURS[name.partition(",")[0]],), transform)
    mine = tuple(OURS[name] for name in CHAIN)
    sometimes = tuple(each.model_copy(update={"probability": 0.5}) for each in mine)
    for label, what, drawn in (("always", mine, always), ("half the time", sometimes, half)):
        for method in ("librosa", "signalsmith"):
            names = [
                name if name not in ("tempo", "pitch") or method == "librosa" else f"{name}, {method}" for name in CHAIN
            ]
            row(f"all {len(CHAIN)}, each {label} ({method})", what, they.Compose([drawn[name] for name in names]))
    return rows


def table(found: dict[str, Any]) -> str:
    head = f"Clips a CPU second of one thread; audiomentations {found['audiomentations']}, torch {found['torch']}, "
    lines = [
        head + f"{found['python']}.",
        "",
        "| clips | operation | ours | audiomentations | ratio |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['clips']} | {row['operation']} | {row['ours']:.0f} | {row['theirs']:.0f} | {row['ratio']:.2f} |"
        for row in found["rows"]
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--clips", type=int, default=64)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")  # theirs, of files that need no resampling
    import audiomentations

    settle(Machine(threads=1))  # as training does; both have the good of it
    print(f"{'clips':8}{'operation':42}{'ours':>10}{'theirs':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for kind in KINDS:
            (Path(folder) / kind).mkdir()
            rows += measured(kind, given.clips, given.rounds, Path(folder) / kind)
    found = {
        "audiomentations": audiomentations.__version__,
        "torch": torch.__version__,
        "python": f"Python {platform.python_version()}",
        "rounds": given.rounds,
        "batch": given.clips,
        "rows": rows,
    }
    (given.out / "views_audio.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (given.out / "views_audio.md").write_text(table(found), encoding="utf-8")


if __name__ == "__main__":
    main()
