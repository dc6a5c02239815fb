"""Raw data that changed is noticed by ``dvc repro``, whatever it lies in; what did not change is not read again."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from small import ROOT

from pipeline.images import encode_png
from pipeline.index import unhashable

pytestmark = pytest.mark.slow


def picture(number: int) -> bytes:
    return encode_png(np.random.default_rng(number).integers(0, 256, (6, 6, 3), dtype=np.uint8))


NAMES = [f"{'ab'[number % 2]}/{number}.png" for number in range(30)]


def folder(path: Path, first: int) -> None:
    for number, name in enumerate(NAMES):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(picture(number or first))


def archive(path: Path, first: int) -> None:
    with tarfile.open(path, "w") as tar:
        for number, name in enumerate(NAMES):
            content = picture(number or first)
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def packed(path: Path, first: int) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for number, name in enumerate(NAMES):
            file.writestr(name, picture(number or first))


def repro(place: Path) -> str:
    done = subprocess.run(
        ["dvc", "repro", "-s", "shard@mine"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DVC_NO_ANALYTICS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("kind", "write"), [("folder", folder), ("archive", archive), ("archive", packed)])
def test_a_changed_picture_reruns_sharding_and_nothing_else_does(
    tmp_path: Path, kind: str, write: Callable[[Path, int], None]
) -> None:
    place, raw = tmp_path / "project", tmp_path / "raw"
    place.mkdir()
    for name in ("pipeline", "stages", "specs"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "dvc.yaml", place)
    shutil.copy(ROOT / ".dvcignore", place)
    subprocess.run(
        ["dvc", "init", "-q", "--no-scm"], cwd=place, check=True, env={**os.environ, "DVC_NO_ANALYTICS": "1"}
    )
    (place / "specs" / "data" / "mine.yaml").write_text(
        f"source: {{kind: {kind}, train: null, test: null, classes: folder}}\n"
        "input: {height: 6, width: 6, channels: 3, fit: resize}\nsplit: {test: 0.3, seed: 0}\nlabels: [label]\n"
    )
    (place / "specs" / "index.yaml").write_text(f"data:\n  mine: {{raw: {raw}}}\nspecs: {{}}\n")
    (place / "work" / "validate" / "specs").mkdir(parents=True)
    write(raw, 100)
    assert "Running stage" in repro(place)
    first = (place / "work" / "shard" / "mine" / "index.json").read_bytes()
    assert "Running stage" not in repro(place)
    write(raw, 101)
    assert "Running stage" in repro(place)
    assert (place / "work" / "shard" / "mine" / "index.json").read_bytes() != first


def test_what_dvc_could_not_hash_is_found_before_it_tries(tmp_path: Path) -> None:
    folder(tmp_path / "raw", 1)
    assert unhashable(tmp_path / "raw") is None
    (tmp_path / "raw" / "a" / "gone.png").symlink_to("nowhere")
    assert unhashable(tmp_path / "raw") == f"{tmp_path}/raw/a/gone.png is a link to nowhere"
    (tmp_path / "raw" / "a" / "gone.png").unlink()
    os.mkfifo(tmp_path / "raw" / "b" / "pipe")
    assert unhashable(tmp_path / "raw") == f"{tmp_path}/raw/b/pipe is a device or pipe"
