"""The relation matrix counts as the loss does, and the first batch is the one that training takes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.keys import permutation
from pipeline.report.first_batch import FirstBatch, class_codes, first_batch, order
from pipeline.report.laboratory import same_class_share
from pipeline.report.matrix import matrix
from pipeline.report.relations import false_negatives_of, negatives_in, relations
from pipeline.report.results import Column, DataCard
from pipeline.samplers import Beside, InBatch, SameLabel


def card(counts: tuple[int, ...] = (60, 30, 10)) -> DataCard:
    column = Column(kind="class", classes=tuple("abc"), counts={"train": counts})
    canvas = {"channels": 1, "height": 8, "width": 8, "fit": "pad"}
    return DataCard(
        name="d",
        input=canvas,
        splits={"train": sum(counts), "test": 1},
        columns={"kind": column, "size": Column(kind="number", classes=(), counts={})},
        mean=(0.0,),
        std=(1.0,),
        shards=(),
        fingerprint="f",
    )


def spec(**space: Any) -> dict[str, Any]:
    whole = {"sampler": {"kind": "in_batch"}, "objective": {"kind": "nt_xent"}, "views": {"kind": "pair"}}
    whole |= {"target": "same", "preserves": []}
    return {"space": {**whole, **space}, "training": {"global_batch": 16, "seed": 3}}


CODES = {"kind": np.repeat(np.arange(3), (60, 30, 10)), "size": np.linspace(0, 1, 100)}


def test_three_samples_have_one_positive_and_four_negatives_a_row() -> None:
    drawn = relations([0, 1, 2])
    for anchor, line in enumerate(drawn):
        assert line[anchor] == "self"
        assert line[anchor ^ 1] == "positive"
        assert line.count("negative") == 4


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("supervised", [False, True])
def test_relations_are_those_of_the_sampler(crossed: bool, supervised: bool) -> None:
    classes = [0, 1, 0, 2, 1]
    columns = {"sample": torch.arange(5).repeat_interleave(2), "view": torch.arange(2).repeat(5)}
    columns["kind"] = torch.tensor(classes).repeat_interleave(2)
    sampler = SameLabel(kind="same_label", column="kind") if supervised else InBatch(kind="in_batch")
    z = torch.randn(10, 4, dtype=torch.float64)
    contrast = sampler.contrast(z, columns, "cosine", 0.5, "l2", beside=Beside(crossed=crossed))
    drawn = relations(classes, crossed, supervised)
    false = 0 if supervised else sum(line.count("false negative") for line in drawn)
    assert contrast.count("positives").tolist() == [line.count("positive") for line in drawn]
    assert int(contrast.count("negatives").sum()) == sum(line.count("negative") for line in drawn) + false


@pytest.mark.parametrize("crossed", [False, True])
def test_counts_of_a_batch_are_those_of_its_matrix(crossed: bool) -> None:
    classes = [random.Random(1).randrange(3) for _ in range(9)]
    cells = [cell for line in relations(classes, crossed) for cell in line]
    assert false_negatives_of(classes, crossed) == cells.count("false negative")
    assert negatives_in(9, crossed) == cells.count("false negative") + cells.count("negative")


def test_over_many_batches_the_whole_numbers_have_the_expected_mean() -> None:
    source, share = random.Random(0), same_class_share([60, 30, 10])
    drawn = [false_negatives_of(source.choices(range(3), (60, 30, 10), k=8)) for _ in range(4000)]
    assert sum(drawn) / len(drawn) == pytest.approx(negatives_in(8) * share, rel=0.02)


@pytest.mark.parametrize(
    ("seed", "epoch", "count"), [(0, 0, 1), (0, 0, 1423), (7, 3, 100), (-1, 0, 50), (1 << 70, 1, 9)]
)
def test_the_order_is_that_of_training(seed: int, epoch: int, count: int) -> None:
    assert order(seed, epoch, count).tolist() == permutation(seed, epoch, count).tolist()


def test_the_first_batch_is_the_start_of_the_first_epoch_by_the_column_that_must_be_kept() -> None:
    two = {**CODES, "other": CODES["kind"][::-1]}
    known = card()
    known = known.model_copy(update={"columns": {**known.columns, "other": known.columns["kind"]}})
    found = first_batch(spec(preserves=["orientation", "other"]), known, two)
    assert isinstance(found, FirstBatch)
    assert found.label == "other"
    assert list(found.codes) == two["other"][permutation(3, 0, 100)[:16]].tolist()
    assert not found.crossed
    momentum = first_batch(spec(target={"kind": "momentum", "m": 0.9}), known, two)
    assert isinstance(momentum, FirstBatch)
    assert (momentum.label, momentum.crossed) == ("kind", True)


@pytest.mark.parametrize(
    ("space", "reason"),
    [
        ({"objective": {"kind": "regression"}}, "no negatives"),
        ({"sampler": {"kind": "queue", "length": 8}}, "earlier steps"),
        ({"sampler": {"kind": "stratified", "column": "kind"}}, "dealt by class"),
        ({"sampler": 7}, "all contrasted with all"),
        ({"views": {"kind": "multi_crop"}}, "two views"),
        ({"preserves": 3, "target": [1]}, ""),
    ],
)
def test_a_batch_that_is_not_drawn_says_why(space: dict[str, Any], reason: str) -> None:
    found = first_batch(spec(**space), card(), CODES)
    assert reason in found if isinstance(found, str) else reason == ""


@pytest.mark.parametrize("content", [{}, {"space": 3, "training": []}, {**spec(), "training": {"global_batch": "x"}}])
def test_a_damaged_spec_has_no_batch_and_no_error(content: dict[str, Any]) -> None:
    assert isinstance(first_batch(content, card(), CODES), str)


def test_labels_that_do_not_fit_the_card_are_told() -> None:
    assert "do not fit" in str(first_batch(spec(), card(), {"kind": CODES["kind"] + 1}))
    assert "do not fit" in str(first_batch(spec(), card(), {"kind": CODES["kind"][:50]}))
    assert "no label column" in str(first_batch(spec(), card(), {"size": CODES["size"]}))


def test_an_index_is_read_by_its_training_labels_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    file = tmp_path / "index.npz"
    assert class_codes(file) == {}
    np.savez(
        file, **{"train.label.kind": CODES["kind"], "train.offset": CODES["kind"], "test.label.kind": np.arange(2)}
    )
    assert {name: codes.tolist() for name, codes in class_codes(file).items()} == {"kind": CODES["kind"].tolist()}
    for content in (b"", b"not a zip file", file.read_bytes()[:400]):
        file.write_bytes(content)
        with pytest.raises(ValueError, match="not an index"):
            class_codes(file)


def test_the_matrix_has_a_sign_for_every_cell_and_says_in_words_how_many() -> None:
    drawn = relations([0, 0, 1])
    text = str(matrix(drawn))
    assert "6 anchors by 6 candidates: 6 positives, 16 negatives, 8 false negatives" in text
    for name, count in (("self", 6), ("positive", 6), ("false", 8), ("negative", 16)):
        path = text.split(f'class="{name}" d="')[1].split('"')[0]
        assert path.count("M") == count
