"""Views of a split: functions of (seed, epoch, sample, view), whatever the batch, the threads and the sizes."""

from __future__ import annotations

import io
import tarfile

import numpy as np
import pytest
import torch
from mutants import Mutant, applied
from PIL import Image
from small import sharded, space
from torch import Tensor

from pipeline.keys import Keys
from pipeline.loading import ViewLoader
from pipeline.shards import Shards
from pipeline.views import ResizedCrop, draw_view, roles

SIZES = [(16, 16), (40, 30), (7, 90), (1, 1), (25, 25), (200, 3), (33, 64), (16, 15)]
CUT = {"kind": "resized_crop", "area": [0.2, 1.0]}
LIGHT = {"kind": "brightness", "amount": 0.4}
MULTI = {
    "kind": "multi_crop",
    "global_crop": {"kind": "resized_crop", "area": [0.4, 1.0]},
    "local_crop": {"kind": "resized_crop", "area": [0.05, 0.3]},
    "local_views": 3,
    "local_scale": 0.5,
}
PLANS = {
    "pair": space(invariances=[CUT, LIGHT]),
    "asymmetric": space(
        invariances=[CUT], views={"kind": "asymmetric", "first": [LIGHT], "second": [{"kind": "solarize"}]}
    ),
    "multi-crop": space(invariances=[LIGHT], views=MULTI),
    "no cut first": space(invariances=[LIGHT, CUT]),
    "cut in one role": space(invariances=[], views={"kind": "asymmetric", "first": [CUT], "second": [LIGHT]}),
}


@pytest.fixture(scope="module", params=["resize", "cover", "pad"])
def mixed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shards:
    """Pictures of many sizes on a canvas of 16 x 16."""
    raw = tmp_path_factory.mktemp("raw")
    random = np.random.default_rng(1)
    for name, repeats in (("train", 4), ("test", 1)):
        with tarfile.open(raw / f"{name}.tar", "w") as archive:
            for number, size in enumerate(SIZES * repeats):
                buffer = io.BytesIO()
                Image.fromarray(random.integers(0, 256, (*size, 3), dtype=np.uint8)).save(buffer, "PNG")
                info = tarfile.TarInfo(f"{'ab'[number % 2]}/{number:03}.png")
                info.size = len(buffer.getvalue())
                archive.addfile(info, io.BytesIO(buffer.getvalue()))
    return sharded(
        tmp_path_factory.mktemp("mixed") / "shards",
        raw=raw,
        source={"kind": "archive", "train": "train.tar", "test": "test.tar", "classes": "folder"},
        split=None,
        labels=["label"],
        input={"height": 16, "width": 16, "channels": 3, "fit": request.param, "background": 9},
    )


def loaded(shards: Shards, plan: str, epoch: int, samples: list[int], **settings: int) -> tuple[Tensor, ...]:
    return ViewLoader(shards, "train", PLANS[plan].roles(), 3, **settings).views(epoch, np.array(samples))


@pytest.mark.parametrize("plan", PLANS)
def test_a_view_does_not_depend_on_its_batch_nor_on_threads(mixed: Shards, plan: str) -> None:
    samples = [5, 3, 30, 11, 0, 1, 2, 4, 6, 7, 8, 9]
    together = loaded(mixed, plan, 2, samples, workers=3)
    for place, sample in enumerate(samples):
        for many, one in zip(together, loaded(mixed, plan, 2, [sample]), strict=True):
            each = len(many) // len(samples)
            torch.testing.assert_close(many[each * place : each * (place + 1)], one, rtol=0, atol=2e-5)
    for first, again in zip(together, loaded(mixed, plan, 2, samples, workers=1), strict=True):
        assert torch.equal(first, again)
    assert not torch.equal(together[0], loaded(mixed, plan, 3, samples)[0])
    assert not torch.equal(together[0][0::2], together[0][1::2])


@pytest.mark.parametrize("plan", PLANS)
def test_views_are_those_of_each_picture_alone(mixed: Shards, plan: str) -> None:
    """The oracle: each sample and view by itself, from the file's pixels where the view begins with a cut."""
    samples = [5, 2, 9, 3]
    passes = loaded(mixed, plan, 1, samples)
    seen = [0] * len(passes)
    canvas = mixed.card.input
    for sample in samples:
        for role in PLANS[plan].roles():
            place = 1 if role.name == "local" else 0
            size = (8, 8) if role.name == "local" else (16, 16)
            from_file = isinstance(role.invariances[0], ResizedCrop) and canvas.fit != "pad"
            picture = mixed.original("train", sample) if from_file else mixed.image("train", sample)
            for view in role.views:
                keys = Keys.of(3, 1, [sample], view)
                expected = (
                    draw_view([torch.from_numpy(picture)], role.invariances, keys, size)
                    if (isinstance(role.invariances[0], ResizedCrop))
                    else draw_view(torch.from_numpy(picture)[None], role.invariances, keys)
                )
                torch.testing.assert_close(
                    passes[place][seen[place]], expected[0], rtol=0, atol=2e-2 if not from_file else 2e-5
                )
                seen[place] += 1
    assert seen == [len(views) for views in passes]


def test_what_is_too_much_to_keep_is_decoded_when_due_and_gives_the_same(mixed: Shards) -> None:
    for plan in PLANS:
        kept, due = (loaded(mixed, plan, 0, [4, 1, 7], resident=size) for size in (2**30, 0))
        assert all(torch.allclose(one, other, atol=2e-5) for one, other in zip(kept, due, strict=True))


def test_batches_come_in_order_however_far_ahead_they_are_made(mixed: Shards) -> None:
    order = [(epoch, np.array([epoch, 5])) for epoch in range(5)]
    loader = ViewLoader(mixed, "train", PLANS["pair"].roles(), 3, workers=2, resident=0)
    for (epoch, samples), (views,) in zip(order, loader.batches(iter(order)), strict=True):
        assert torch.equal(views, loader.views(epoch, samples)[0])


def test_the_index_knows_every_pictures_own_size(mixed: Shards) -> None:
    for split in ("train", "test"):
        shapes = mixed.shapes(split)
        assert shapes.tolist() == [list(mixed.original(split, i).shape[1:]) for i in range(len(shapes))]
    assert sorted(map(tuple, mixed.shapes("test").tolist())) == sorted(SIZES)


def partners_of_uneven_groups() -> None:
    codes = np.array([0, 1, 1, 2, 0, 1, 2, 2, 2, 5])
    for epoch in range(20):
        chosen = roles.PartnerTable(codes).of(np.arange(9), 0, epoch)
        assert (codes[chosen] == codes[:9]).all()
        assert (chosen != np.arange(9)).all()


@pytest.mark.parametrize(
    ("name", "module", "old", "new"),
    [
        (
            "all views are the first",
            "loading",
            "np.tile(role.views, len(samples))",
            "np.tile([0] * len(role.views), len(samples))",
        ),
        ("views are ordered by view first", "loading", "np.repeat(samples, len(role.views))", "np.tile(samples, 2)"),
        ("every epoch is the first", "loading", "Keys.of(self.seed, epoch, np", "Keys.of(self.seed, 0, np"),
        (
            "a batch ahead is given out at once",
            "loading",
            "started.popleft())\n        while",
            "started.pop())\n        while",
        ),
        (
            "roles of one size are not interleaved",
            "loading",
            "torch.cat(each, dim=1).flatten(0, 1)",
            "torch.cat(parts)",
        ),
        ("cuts are of the canvas", "loading", "self.at_own_size = canvas", "self.at_own_size = not canvas"),
        ("all roles cut if one does", "loading", "[self._cuts(role)][row]", "[True in self.needed][row]"),
        ("a partner may be the row itself", "views.roles", "step = 1 + np", "step = 0 + np"),
        (
            "partners of partners come round",
            "views.roles",
            "self.place[rows] - first + step",
            "self.place[rows] + step",
        ),
        (
            "the partner's view is of the row",
            "loading",
            "return {} if self.partners is None else {1:",
            "return {} if True else {1:",
        ),
    ],
    ids=lambda value: value if " " in value else "",
)
@pytest.mark.parametrize("mixed", ["resize"], indirect=True)
def test_a_law_kills(mixed: Shards, name: str, module: str, old: str, new: str) -> None:
    laws = [
        *(lambda plan=plan: test_views_are_those_of_each_picture_alone(mixed, plan) for plan in PLANS),
        lambda: test_batches_come_in_order_however_far_ahead_they_are_made(mixed),
        lambda: test_partners_are_other_rows_of_the_same_value(mixed),
        partners_of_uneven_groups,
    ]
    with applied(Mutant(name, "", f"pipeline.{module}", old, new)):
        for law in laws:
            try:
                law()
            except (AssertionError, ValueError, IndexError, StopIteration, RuntimeError):
                return
    pytest.fail(f"survived: {name}")


def test_partners_are_other_rows_of_the_same_value(mixed: Shards) -> None:
    codes = mixed.labels("train")["label"]
    alone = space(invariances=[], views={"kind": "partners", "column": "shape"})
    loader = ViewLoader(mixed, "train", alone.roles(), 3, codes=codes)
    samples = np.arange(20)
    (views,) = loader.views(0, samples)
    canvas = torch.from_numpy(mixed.images("train")).float() / 255
    assert torch.equal(views[0::2], canvas[samples])
    for place, sample in enumerate(samples):
        same = [row for row in range(len(codes)) if codes[row] == codes[sample] and row != sample]
        assert any(torch.equal(views[2 * place + 1], canvas[row]) for row in same)
