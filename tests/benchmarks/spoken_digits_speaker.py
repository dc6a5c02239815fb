"""What tells the six speakers of the spoken digits apart, and how much of it is left when pitch moves.

    python -m tests.benchmarks.spoken_digits_speaker --data FOLDER     (about five minutes of one core)

Three sets of clips: *as recorded*; *one channel*: each speaker's mean spectrum (of the training clips) is filtered into
the mean spectrum of all, and every clip has one level; *one room*: the same, with pink noise 10 dB below each clip, to
cover what stood between the words. Of each set, single cues are read by the same two probes (linear; kNN of 20 by
distance of standardised numbers), trained on 2,700 clips, tested on 300: F0 alone (YIN:
A. de Cheveigné and H. Kawahara, JASA 111, 2002), the quietest frames alone, bandwidth, length, log-mel statistics. Then
under the pipeline's own pitch, always applied: erased (trained and tested on moved clips) and transported (trained on
clips as they are). The check judges the same claim on the same sets. Writes results/spoken_digits_speaker.json and .md.

Legend: N clips (N, T) of RATE, M mel bins, F frames; support: from a clip's first sample that is not 0 to its last.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline.check.ground import prepare
from pipeline.check.judged import judge
from pipeline.check.losses import loss_findings
from pipeline.data import DataSpec
from pipeline.keys import Keys
from pipeline.modalities.audio_features import features, mel_layer
from pipeline.sharding import shard
from pipeline.shards import Shards
from pipeline.spec import read_spec
from pipeline.specification import Specification
from pipeline.views import draw_view
from pipeline.views.audio import NoiseAtSnr, Pitch
from tests.benchmarks.spoken_digits import KINDS, cells, figures

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "specs" / "examples"
RATE = 8000
SEMITONES = (3, 6, 12)
LABELS = ("digit", "speaker")
EPOCH = -9  # of the views that are drawn here
FRAME, HOP = 320, 80  # samples of a frame of YIN
PITCHES = (60.0, 400.0)  # Hz
UNSURE = 0.3  # of YIN's normalised difference: above it a frame has no pitch
QUIET = 0.1  # part of a clip's frames that are its quietest
LEVEL = 0.05  # root mean square of every clip of one channel
K = 20
Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]
Clips = dict[str, Tensor]
"""by split"""
Labels = dict[str, dict[str, Codes]]
"""by split and label"""


# --- cues ---


def fundamental(clips: Tensor) -> Tensor:
    """Median of log2 F0 and its spread between quartiles, over the frames that have a pitch: (N, 2); 0 where none."""
    frames = clips.unfold(1, FRAME, HOP)  # (N, F, FRAME)
    least, most = int(RATE / PITCHES[1]), int(RATE / PITCHES[0])
    span = FRAME - most
    power = frames.square().cumsum(2)
    loud = power[..., -1] > 0.01 * power[..., -1].amax(1, keepdim=True)  # within 20 dB of the loudest
    head = frames[..., :span]
    size = 1 << (FRAME + span - 1).bit_length()
    crossed = torch.fft.irfft(torch.fft.rfft(head, size).conj() * torch.fft.rfft(frames, size), size)[..., : most + 1]
    before = torch.cat([torch.zeros_like(power[..., :1]), power], dim=2)
    energy = before[..., span : span + most + 1] - before[..., : most + 1]
    difference = (energy[..., :1] + energy - 2 * crossed).clamp(min=0)  # equation 6
    lags = torch.arange(1, most + 1)
    normal = difference[..., 1:] * lags / difference[..., 1:].cumsum(2).clamp(min=1e-12)  # equation 8
    normal = normal[..., least - 1 :]
    dips = normal < UNSURE
    first = dips.int().argmax(2)
    falling = torch.diff(normal, dim=2) >= 0  # from the first lag below the threshold on to its lowest
    falling = torch.cat([falling, torch.ones_like(falling[..., :1])], dim=2)
    lag = ((torch.arange(normal.shape[2]) >= first[..., None]) & falling).int().argmax(2)
    voiced = loud & dips.any(2)
    octave = torch.log2(RATE / (lag + least).float())
    found = torch.zeros(len(clips), 2)
    for number, (values, chosen) in enumerate(zip(octave, voiced, strict=True)):
        if chosen.sum() >= 3:
            low, middle, high = torch.quantile(values[chosen], torch.tensor([0.25, 0.5, 0.75]))
            found[number, 0], found[number, 1] = middle, high - low
    return found


def supports(clips: Tensor) -> Tensor:
    """First and last sample that is not 0: (N, 2)."""
    sounds = clips != 0
    last = clips.shape[1] - 1 - sounds.flip(1).int().argmax(1)
    return torch.stack([sounds.int().argmax(1), last], dim=1)


def cues(clips: Tensor, support: Tensor) -> dict[str, Floats]:
    """Everything that the speaker may be told by, each alone: name to (N, D)."""
    layer = mel_layer(RATE)
    decibels = torch.cat([layer(part[:, None])[:, 0] for part in torch.split(clips, 256)])  # (N, M, F)
    middle = torch.arange(decibels.shape[2]) * HOP
    inside = (middle >= support[:, :1] + FRAME // 4) & (middle <= support[:, 1:] - FRAME // 4)  # (N, F)
    level = (decibels / 10).exp2().mean(1)  # a monotone measure of loudness
    quiet = torch.zeros(len(clips), decibels.shape[1])
    for number in range(len(clips)):
        frames = inside[number].nonzero().flatten()
        some = frames[level[number, frames].argsort()[: max(2, round(QUIET * len(frames)))]]
        quiet[number] = decibels[number][:, some].mean(1)
    mean, spread = decibels.mean(2), decibels.std(2, correction=0)
    spectrum = torch.fft.rfft(clips, 8192).abs().square()
    share = spectrum.cumsum(1) / spectrum.sum(1, keepdim=True).clamp(min=1e-12)
    rolled = [(share < part).sum(1, keepdim=True) for part in (0.5, 0.85, 0.95, 0.99)]
    length = (support[:, 1:] - support[:, :1]).float()
    power = clips.square().sum(1, keepdim=True) / length.clamp(min=1)
    found = {
        "F0: median and spread": fundamental(clips),
        "quietest frames: spectrum": quiet - quiet.mean(1, keepdim=True),
        "quietest frames: level": quiet.mean(1, keepdim=True),
        "level of the clip": 10 * power.clamp(min=1e-10).log10(),
        "bandwidth (50, 85, 95, 99 % of the power)": torch.cat(rolled, dim=1).float().clamp(min=1).log2(),
        "length": length,
        "log-mel means": mean,
        "log-mel spreads": spread,
        "log-mel statistics": torch.cat([mean, spread], dim=1),
        "the check's cheap features": features(clips[:, None], RATE)["all"],
    }
    return {name: each.float().numpy() for name, each in found.items()}


# --- sets of clips ---


def one_channel(clips: Clips, support: dict[str, Tensor], speakers: dict[str, Codes]) -> Clips:
    """Each speaker's mean log spectrum filtered into that of all, by a filter without phase; one level."""
    count = next(iter(clips.values())).shape[1]
    size = 2 * count
    smooth = 9  # of the 8193 lines: 5 Hz each
    logs = torch.fft.rfft(clips["train"], size).abs().clamp(min=1e-6).log()
    logs = torch.nn.functional.avg_pool1d(logs[:, None], smooth, 1, smooth // 2, count_include_pad=False)[:, 0]
    whole = torch.stack([logs[speakers["train"] == speaker].mean(0) for speaker in np.unique(speakers["train"])])
    gains = (whole.mean(0) - whole).exp()  # (speakers, lines)
    found = {}
    for split, each in clips.items():
        heard = torch.fft.irfft(torch.fft.rfft(each, size) * gains[torch.from_numpy(speakers[split])], size)[:, :count]
        place = torch.arange(count)
        inside = (place >= support[split][:, :1]) & (place <= support[split][:, 1:])
        heard = heard * inside
        power = heard.square().sum(1, keepdim=True) / inside.sum(1, keepdim=True)
        found[split] = (heard * LEVEL / power.clamp(min=1e-12).sqrt()).clamp(-1, 1)
    return found


def sets_of(data: Path) -> tuple[dict[str, Clips], dict[str, Tensor], Labels, dict[str, tuple[str, ...]]]:
    """The three sets; of all of them the supports by split, the codes of labels by split, and the labels' names."""
    with tempfile.TemporaryDirectory() as folder:
        shard(read_spec(EXAMPLES / "data" / "spoken_digits.yaml", DataSpec), "spoken", data, Path(folder))
        shards = Shards(Path(folder))
        clips = {split: shards.batch(split, np.arange(shards.card.splits[split]))[:, 0] for split in ("train", "test")}
        labels = {split: shards.labels(split) for split in clips}
        names = {label: tuple(shards.card.columns[label].classes) for label in LABELS}
    support = {split: supports(each) for split, each in clips.items()}
    channel = one_channel(clips, support, {split: each["speaker"] for split, each in labels.items()})
    sets = {"as recorded": clips, "one channel": channel, "one room": with_noise(channel)}
    return sets, support, labels, names


def with_noise(clips: Clips) -> Clips:
    """Pink noise 10 dB below each clip, everywhere."""
    noise = NoiseAtSnr(snr=(10.0, 10.0), exponent=(1.0, 1.0))
    return {split: drawn(each, noise, 20 + number) for number, (split, each) in enumerate(clips.items())}


def drawn(clips: Tensor, invariance: Any, view: int) -> Tensor:
    """One view of every clip (N, T)."""
    from pipeline.audio import Audio

    contract = read_spec(EXAMPLES / "data" / "spoken_digits.yaml", DataSpec).input
    assert isinstance(contract, Audio)
    keys = Keys.of(0, EPOCH, np.arange(len(clips)), view)
    parts = [
        draw_view(clips[some, None], [invariance], keys.take(some), contract.size)[:, 0]
        for some in (slice(start, start + 256) for start in range(0, len(clips), 256))
    ]
    return torch.cat(parts)


# --- probes ---


def accuracy(train: Floats, codes: Codes, asked: Floats, truth: Codes) -> list[float]:
    """Of a linear probe and of a kNN vote."""
    from pipeline.probes.linear import fit_linear

    linear = float((fit_linear(train, codes).predict(asked) == truth).mean())
    mean, scale = train.mean(0), np.maximum(train.std(0), 1e-6)
    gallery, rows = torch.from_numpy((train - mean) / scale), torch.from_numpy((asked - mean) / scale)
    near = torch.cdist(rows, gallery).topk(K, largest=False).indices.numpy()
    votes = np.apply_along_axis(np.bincount, 1, codes[near], minlength=int(codes.max()) + 1)
    return [round(linear, 4), round(float((votes.argmax(1) == truth).mean()), 4)]


def rows_of(clips: Clips, support: dict[str, Tensor], labels: Labels) -> Iterator[dict[str, Any]]:
    """A row a cue and label: read as it is, and under each pitch transported and erased, each by both probes."""
    plain = {split: cues(each, support[split]) for split, each in clips.items()}
    moved = {
        semitones: {
            split: cues(drawn(each, Pitch(semitones=semitones), number), support[split])
            for number, (split, each) in enumerate(clips.items())
        }
        for semitones in SEMITONES
    }
    for label in LABELS:
        codes, truth = labels["train"][label], labels["test"][label]
        for cue in plain["train"]:
            row: dict[str, Any] = {"label": label, "cue": cue}
            row["plain"] = accuracy(plain["train"][cue], codes, plain["test"][cue], truth)
            for semitones, each in moved.items():
                row[f"transported {semitones}"] = accuracy(plain["train"][cue], codes, each["test"][cue], truth)
                row[f"erased {semitones}"] = accuracy(each["train"][cue], codes, each["test"][cue], truth)
            yield row


# --- the check ---


def written(clips: Clips, labels: Labels, names: dict[str, tuple[str, ...]], folder: Path) -> None:
    """Write a set of clips as the archives that the data set comes in: train.tar.gz and test.tar.gz."""
    import soundfile

    folder.mkdir()
    for split, each in clips.items():
        with tarfile.open(folder / f"{split}.tar.gz", "w:gz", compresslevel=1) as archive:
            for number, clip in enumerate(each.numpy()):
                digit, speaker = (names[label][labels[split][label][number]] for label in LABELS)
                buffer = io.BytesIO()
                soundfile.write(buffer, clip, RATE, format="WAV", subtype="PCM_16")
                member = tarfile.TarInfo(f"digit/{digit}_{speaker}_{number}.wav")
                member.size = buffer.tell()
                buffer.seek(0)
                archive.addfile(member, buffer)


def checked(clips: Clips, labels: Labels, names: dict[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    """What the check says of pitch on a set of clips: a row a strength and label."""
    with tempfile.TemporaryDirectory() as temporary:
        raw, shards = Path(temporary) / "raw", Path(temporary) / "shards"
        written(clips, labels, names, raw)
        shards.mkdir()
        shard(read_spec(EXAMPLES / "data" / "spoken_digits.yaml", DataSpec), "spoken", raw, shards)
        whole: Specification = read_spec(EXAMPLES / "spoken_digits.yaml", Specification)
        ground = prepare(Shards(shards), whole.check)
        rows = []
        for semitones in SEMITONES:
            pitch = Pitch(semitones=semitones)
            found = list(loss_findings(ground, judge(ground, [pitch]), "pitch", None, LABELS))
            for label in LABELS:
                before = [
                    each.details["before"] for each in found if each.preserved == label and each.figure is not None
                ]
                rows.append({"semitones": semitones, "label": label, "before": before[-1], **figures(found, label)})
        return rows


# --- all ---


def shown(pair: list[float]) -> str:
    """Both probes in %."""
    return " / ".join(f"{100 * value:.0f}" for value in pair)


def table(found: dict[str, Any]) -> str:
    """Everything as markdown."""
    lines = ["Accuracy in % by the linear probe / by kNN. Chance: digit 10, speaker 17.", ""]
    strengths = " | ".join(f"{each} semitones: transported, erased" for each in SEMITONES)
    lines += [f"| clips | label | read from | as it is | {strengths} |", "|---|---|---|---|---|---|---|"]
    for name, each in found.items():
        for row in each["cues"]:
            read = [row["label"], row["cue"], shown(row["plain"])]
            for semitones in SEMITONES:
                read.append(f"{shown(row[f'transported {semitones}'])}, {shown(row[f'erased {semitones}'])}")
            lines.append(f"| {name} | {' | '.join(read)} |")
    lines += ["", "What the check says (left of what a cheap probe reads above chance, with 95 % intervals).", ""]
    lines += [f"| clips | pitch | label | read as it is | {' | '.join(KINDS)} |", "|---|---|---|---|---|---|---|"]
    for name, each in found.items():
        for row in each["check"]:
            lines.append(f"| {name} | {row['semitones']} | {row['label']} | {row['before']:.2f} | {cells(row)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder with train.tar.gz and test.tar.gz")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    given = parser.parse_args()
    sets, support, labels, names = sets_of(given.data)
    found: dict[str, Any] = {}
    for name, each in sets.items():
        found[name] = {"check": checked(each, labels, names), "cues": list(rows_of(each, support, labels))}
        print(table({name: found[name]}), flush=True)
        (given.out / "spoken_digits_speaker.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (given.out / "spoken_digits_speaker.md").write_text(table(found), encoding="utf-8")


if __name__ == "__main__":
    main()
