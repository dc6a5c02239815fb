"""Wrong versions of writing, opening and comparing bundles, each killed by a law that the right version keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import test_bundle as laws
import test_bundle_vectors as vectors
import torch
from bundled import SIZES, bundled, card, h_and_z, saved
from mutants import Mutant, Wrong, applied, broken_in
from small import pictures

from pipeline.bundle import load
from pipeline.bundle.embedding import embed_input
from pipeline.bundle.input import items, parts
from pipeline.bundle.parts import is_there, write_part
from pipeline.bundle.reading import on_canvas
from pipeline.bundle.stored import read_vectors
from pipeline.bundle.vectors import nearest
from pipeline.bundle.weights import packed, unpacked
from pipeline.bundle.writing import write_bundle
from pipeline.spec import Refusal, canonical

Law = Callable[[Path], object]


def refused(spoil: Callable[[Path], None]) -> Law:
    """A bundle that was spoilt does not open."""

    def law(folder: Path) -> None:
        place, _ = bundled(folder / "b")
        spoil(place)
        with pytest.raises(Refusal):
            load(place)

    return law


def weights_only(folder: Path) -> None:
    """Two trainings of one declaration differ in their weights alone."""
    first, network = bundled(folder / "a")
    before = load(first).identity
    next(network.encoder.parameters()).data.mul_(1.01)
    write_bundle(first, network, card())
    assert load(first).identity != before


def z_of(folder: Path) -> None:
    given = card()
    place, network = bundled(folder / "b", given)
    images = pictures(SIZES, 3)
    z = h_and_z(network, given, images)[1]
    bundle = load(place)
    found = bundle.similarity(bundle.embed(images), bundle.embed(images))
    np.testing.assert_allclose(found, vectors.oracle(z, z, "cosine"), atol=2e-6)


def mixed(folder: Path) -> None:
    one, other = (load(bundled(folder / str(seed), card(seed=seed))[0]) for seed in (0, 1))
    with pytest.raises(Refusal):
        one.similarity(one.embed(pictures(SIZES, 3)), other.embed(pictures(SIZES, 3)))


def ties(_: Path) -> None:
    b = np.array([[1, 0], [0, 1], [1, 0], [1, 0]], np.float32)
    assert nearest(b[:1], b, "cosine", 2)[0].tolist() == [[0, 2]]


def accounted(folder: Path) -> None:
    """Every file is kept or refused, in the order of the files."""
    place, _ = bundled(folder / "b")
    saved(folder / "p", pictures(SIZES, 3))
    (folder / "p" / "003.png").write_bytes(b"no picture")
    ledger = embed_input(load(place), folder / "p", folder / "v.npy", folder / "partial", "h", 1)
    assert ledger.kept + len(ledger.refused) == len(SIZES)
    found = read_vectors(folder / "v.npy")
    expected = load(place).embed([folder / "p" / name for name in found.names or ()])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def changed(folder: Path) -> None:
    """A part whose files have changed is made anew."""
    files = saved(folder / "p", pictures(SIZES, 3))
    bundle = load(bundled(folder / "b")[0])
    (part,) = parts(items(folder / "p"))
    found = [on_canvas(path, bundle.input) for path in files]
    write_part(bundle, folder, part, list(found), "h")
    assert is_there(folder, part)
    saved(folder / "p", pictures(SIZES, 3, seed=9))
    (part,) = parts(items(folder / "p"))
    assert not is_there(folder, part)


def stale(folder: Path) -> None:
    """A card whose space was edited, in both of its places."""
    place, network = bundled(folder / "b")
    laws.edited(space={**card()["space"], "temperature": {"kind": "fixed", "value": 0.9}})(place)
    spoilt = json.loads((place / "card.json").read_text())
    for name, module in (("encoder", network.encoder), ("projection", network.projection)):
        (place / f"{name}.safetensors").write_bytes(packed(module.state_dict(), canonical(spoilt)))
    with pytest.raises(Refusal):
        load(place)


def shapes(_: Path) -> None:
    """A tensor of as many numbers in another shape."""
    content = packed({"a": torch.zeros(2, 3)}, "")
    with pytest.raises(Refusal):
        unpacked(content, {"a": torch.zeros(3, 2)}, "w")


WRONG = (
    Wrong(
        "weights are not held against the card's digest",
        "pipeline.bundle",
        "if weight_digest(tensors) != digested:",
        "if False:",
        refused(laws.flipped_bit("encoder.safetensors")),
    ),
    Wrong(
        "the card is not held against the one that travels with the weights",
        "pipeline.bundle",
        "if beside != canonical(card):",
        "if False:",
        refused(laws.edited(licence="none")),
    ),
    Wrong(
        "an edited space keeps its identity",
        "pipeline.bundle.card",
        'if card["identity"] != identity(card):',
        "if False:",
        stale,
    ),
    Wrong(
        "the identity leaves the weights out",
        "pipeline.bundle.card",
        "for name in OF_IDENTITY}",
        'for name in OF_IDENTITY if name != "weights"}',
        weights_only,
    ),
    Wrong(
        "tensors of any shape are taken",
        "pipeline.bundle.weights",
        "if found != wanted:",
        "if False:",
        shapes,
    ),
    Wrong(
        "h is compared as it is",
        "pipeline.bundle.encoder",
        "z: Tensor = self.network.projection(h)",
        "z: Tensor = h",
        z_of,
    ),
    Wrong(
        "vectors of two spaces are compared",
        "pipeline.bundle.encoder",
        "if vectors.identity != self.identity:",
        "if False:",
        mixed,
    ),
    Wrong(
        "the later of equal neighbours comes first",
        "pipeline.bundle.vectors",
        "near = np.flatnonzero(row >= at_least)",
        "near = np.flatnonzero(row >= at_least)[::-1]",
        ties,
    ),
    Wrong(
        "a picture that cannot be read vanishes",
        "pipeline.bundle.parts",
        "refused.append(Refused(item.name, outcome.reason, outcome.detail))",
        "pass",
        accounted,
    ),
    Wrong(
        "a part of changed files is taken over",
        "pipeline.bundle.parts",
        '["key"] == part.key)',
        '["key"] != "")',
        changed,
    ),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_law_kills_what_the_right_bundle_passes(tmp_path: Path, wrong: Wrong) -> None:
    assert not broken_in(tmp_path / "right", wrong.law)
    with applied(Mutant(wrong.name, "bundle", wrong.module, wrong.old, wrong.new)):
        assert broken_in(tmp_path / "wrong", wrong.law), f"survived: {wrong.name}"
