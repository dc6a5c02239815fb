"""A file that vanished or was cut between two stages is one line, never a traceback, and nothing is half written."""

from __future__ import annotations

import shutil
from pathlib import Path

from test_stages import CHAIN, Call, call, left_over, place, ran  # noqa: F401

READ = {
    "check": ["shard/mine/index.json", "shard/mine/index.npz", "shard/mine/train-000000.tar"],
    "pretrain": ["check/mine/gate.json", "shard/mine/index.json", "shard/mine/train-000000.tar"],
    "embed": ["pretrain/mine/weights.safetensors", "pretrain/mine/network.json", "shard/mine/test-000000.tar"],
    "probe": ["embed/mine/train.h.npy", "embed/mine/labels.npz", "embed/mine/columns.json"],
    "audit": ["embed/mine/view0.z.npy", "pretrain/mine/summary.json", "shard/mine/train-000000.tar"],
    "gallery": [
        "embed/mine/test.h.npy",
        "embed/mine/train.raw.npy",
        "embed/mine/labels.npz",
        "shard/mine/test-000000.tar",
    ],
    "judge": ["audit/mine/measures.json", "probe/mine/figures.json"],
    "export": [
        "embed/mine/test.h.npy",
        "pretrain/mine/weights.safetensors",
        "check/mine/findings.json",
        "judge/mine/gate.json",
    ],
}


def test_every_file_that_a_stage_reads_may_vanish_or_be_cut(call: Call) -> None:  # noqa: F811
    ran(call, *CHAIN)
    faults = []
    for stage, files in READ.items():
        for name in files:
            file = Path("work") / name
            content = file.read_bytes()
            for kind in ("vanished", "emptied", "cut"):
                file.unlink()
                if kind != "vanished":
                    file.write_bytes(content[: len(content) // 2 * (kind == "cut")])
                try:
                    code, lines = call(stage, "mine")
                    if code != 1 or len(lines) != 1:
                        faults.append((stage, name, kind, code, lines))
                except Exception as error:
                    faults.append((stage, name, kind, type(error).__name__, str(error)[:100]))
                file.write_bytes(content)
    shutil.rmtree("work/locks")
    assert left_over() == []
    assert faults == []
    for stage in READ:
        assert call(stage, "mine")[0] == 0
