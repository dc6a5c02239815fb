"""Damage and malice: whatever the bytes of a bundle, opening it is a refusal or the same encoder, in bounded memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bundled import bundled
from corrupted import KINDS, corrupt, tally
from hypothesis import given
from hypothesis import strategies as st
from small import ROOT, pictures

from pipeline.bundle.card import identity, parse_card
from pipeline.bundle.weights import packed, unpacked
from pipeline.spec import Refusal

SAMPLE = pictures([(16, 12), (9, 20)], 3)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundled(tmp_path_factory.mktemp("damage") / "bundle")[0]


@pytest.mark.usefixtures("one_thread")
def test_random_corruptions_are_refused_or_change_nothing(folder: Path) -> None:
    counts, faults = tally(folder, range(300), SAMPLE)
    assert faults == []
    assert counts["refused"] > 250
    source = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert {corrupt(source, number)[0] for number in range(300)} == set(KINDS)


@given(plain)
def test_any_json_is_no_card_or_a_refusal_on_one_line(content: Any) -> None:
    with pytest.raises(Refusal) as caught:
        parse_card(json.dumps(content).encode("utf-8", "surrogatepass"), "card.json")
    assert len(str(caught.value).splitlines()) == 1


@given(st.binary(max_size=200))
def test_any_bytes_are_no_card_and_no_weights(content: bytes) -> None:
    import torch

    expected = {"a": torch.zeros(2, 2)}
    for read in (lambda: parse_card(content, "card.json"), lambda: unpacked(content, expected, "w")):
        with pytest.raises(Refusal):
            read()


@given(st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets", "other"]), plain), plain)
def test_any_header_is_refused_or_gives_the_very_tensors(entry: dict[str, Any], beside: Any) -> None:
    import torch

    expected = {"a": torch.arange(4, dtype=torch.float32)}
    content = packed(expected, "the card")
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header = {"a": {**header["a"], **entry}, "__metadata__": beside}
    text = json.dumps(header).encode("utf-8", "surrogatepass")
    spoiled = len(text).to_bytes(8, "little") + text + content[8 + length :]
    try:
        found, _ = unpacked(spoiled, expected, "w")
    except Refusal:
        return
    assert torch.equal(found["a"], expected["a"])


BOUNDED = """
import resource, sys
from pipeline.bundle import load
from pipeline.spec import Refusal
limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + 400 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for folder in sys.argv[1:]:
    try:
        load(folder)
    except Refusal as refusal:
        print(refusal)
"""


def endless_network(folder: Path) -> None:
    card = json.loads((folder / "card.json").read_text())
    card["network"]["encoder"] = {"kind": "small", "widths": [4096] * 900, "strides": [1] * 900, "groups": 8}
    card["identity"] = identity(card)
    (folder / "card.json").write_text(json.dumps(card))


def endless_header(folder: Path) -> None:
    content = (folder / "encoder.safetensors").read_bytes()
    (folder / "encoder.safetensors").write_bytes((2**45).to_bytes(8, "little") + content[8:])


def endless_file(folder: Path) -> None:
    with (folder / "encoder.safetensors").open("r+b") as file:
        file.truncate(2**34)  # a hole: no disk is used


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc, and limits memory as Linux does")
def test_400_mib_beyond_the_imports_are_enough_to_refuse_gigabytes(folder: Path, tmp_path: Path) -> None:
    spoils = {
        endless_network: "encoder.safetensors: lacks the tensor",
        endless_header: "encoder.safetensors: damaged: cut, or no safetensors file",
        endless_file: "bytes that it can have; copy the bundle again",
    }
    places = []
    for spoil in spoils:
        places.append(str(shutil.copytree(folder, tmp_path / spoil.__name__)))
        spoil(Path(places[-1]))
    command = [sys.executable, "-c", BOUNDED, *places]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert found.stderr == ""
    told = found.stdout.splitlines()
    assert [line in each for line, each in zip(spoils.values(), told, strict=True)] == [True] * 3, told
