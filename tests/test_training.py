"""The training loop: a pure function of spec, data and seed; its first loss is the formula; ranks change nothing."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from small import SPACE, TRAINING, sharded, space, trained, training
from torch import Tensor

from pipeline.batches import row_columns
from pipeline.contrast import Term, mean_terms
from pipeline.keys import Keys, permutation
from pipeline.pictures import role_pictures, sheet, to_rgb, views_picture
from pipeline.reduction import pair_similarities, reduced
from pipeline.shards import Shards
from pipeline.space import LatentSpace
from pipeline.spec import Refusal
from pipeline.training import Trained, start_network
from pipeline.training_section import unfit
from pipeline.views import draw_view
from pipeline.views.roles import PartnerTable


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return sharded(tmp_path_factory.mktemp("shards") / "small")


@pytest.fixture(scope="module")
def once(shards: Shards) -> Trained:
    return trained(shards, space(), training())


def two_views(images: Tensor, samples: np.ndarray, space: LatentSpace, seed: int, epoch: int) -> Tensor:
    """Both views of some samples in pair order, written out: (2n, C, H, W) in [0, 1]."""
    keys = Keys.of(seed, epoch, np.repeat(samples, 2), np.tile([0, 1], len(samples)))
    return draw_view(images[torch.from_numpy(samples)].repeat_interleave(2, 0).float() / 255.0, space.invariances, keys)


def weights(run: Trained) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in run.network.state_dict().items()}


def equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_two_runs_are_bitwise_equal(shards: Shards, once: Trained) -> None:
    torch.manual_seed(99)  # the global generator has no say
    again = trained(shards, space(), training())
    assert again.curve == once.curve
    assert equal(weights(again), weights(once))
    assert torch.equal(again.views, once.views)


def test_a_process_may_train_again_in_another_precision(shards: Shards, once: Trained) -> None:
    half = trained(shards, space(), training(precision="bf16"))
    assert half.curve[0].loss == pytest.approx(once.curve[0].loss, rel=0.02)
    assert half.curve != once.curve
    assert trained(shards, space(), training()).curve == once.curve


def test_another_seed_is_another_run(shards: Shards, once: Trained) -> None:
    other = trained(shards, space(), training(seed=1))
    assert other.curve[0].loss != once.curve[0].loss
    assert not equal(weights(other), weights(once))


def test_what_a_space_preserves_does_not_reach_training(shards: Shards, once: Trained) -> None:
    assert trained(shards, space(preserves=[]), training()).curve == once.curve


def test_an_epoch_is_every_batch_that_is_full(shards: Shards, once: Trained) -> None:
    count = shards.card.splits["train"]
    assert [row.epoch for row in once.curve] == [epoch for epoch in (0, 1) for _ in range(count // 16)]
    assert [row.step for row in once.curve] == list(range(len(once.curve)))
    assert {row.starts_at for row in once.curve} == {math.log(31)}
    assert once.candidates == 31
    assert {row.temperature for row in once.curve} == {0.2}


def test_the_loss_falls_below_log_k(shards: Shards) -> None:
    run = trained(shards, space(temperature=0.5), training(epochs=25))
    first, last = run.curve[:4], run.curve[-4:]
    below = [row.starts_at - row.loss for row in last]
    assert min(below) > 0.3
    assert np.mean([row.loss for row in last]) < np.mean([row.loss for row in first])
    assert all(row.positive_similarity > row.negative_similarity + 0.1 for row in last)


def first_batch(shards: Shards) -> tuple[Tensor, np.ndarray]:
    """z (2B, D) float64 of the untouched network on the first batch, and the samples of that batch."""
    spec = training()
    samples = permutation(spec.seed, 0, shards.card.splits["train"])[: spec.global_batch]
    views = two_views(torch.from_numpy(shards.images("train")), samples, space(), spec.seed, 0)
    net = start_network(space(), spec, shards.card.mean, shards.card.std).double()
    with torch.no_grad():
        return net(views.double())[1], samples


def test_the_first_loss_is_nt_xent_of_the_untouched_network_in_a_double_loop(shards: Shards, once: Trained) -> None:
    z, _ = first_batch(shards)
    z = z / z.norm(dim=1, keepdim=True)
    losses = []
    for i in range(len(z)):
        logits = [float(z[i] @ z[j]) / 0.2 for j in range(len(z)) if j != i]
        positive = float(z[i] @ z[i ^ 1]) / 0.2
        losses.append(math.log(sum(math.exp(logit) for logit in logits)) - positive)
    assert once.curve[0].loss == pytest.approx(sum(losses) / len(losses), abs=2e-6)


def test_the_first_loss_of_supervised_training_is_that_of_a_double_loop_over_labels(shards: Shards) -> None:
    """Khosla et al. 2020, equation 2: the mean over the positives of log p, outside the logarithm."""
    declared = space(objective={"kind": "supervised"}, sampler={"kind": "same_label", "column": "shape"})
    run = trained(shards, declared, training(epochs=2))
    z, samples = first_batch(shards)
    z = z / z.norm(dim=1, keepdim=True)
    label = np.repeat(shards.labels("train")["shape"][samples], 2)
    losses = []
    for i in range(len(z)):
        others = [j for j in range(len(z)) if j != i]
        bottom = math.log(sum(math.exp(float(z[i] @ z[j]) / 0.2) for j in others))
        positives = [float(z[i] @ z[j]) / 0.2 - bottom for j in others if label[j] == label[i]]
        losses.append(-sum(positives) / len(positives))
    assert run.curve[0].loss == pytest.approx(sum(losses) / len(losses), abs=2e-6)


def test_the_whole_curve_is_that_of_a_loop_written_out_plainly(shards: Shards, once: Trained) -> None:
    spec, images = training(), torch.from_numpy(shards.images("train"))
    net = start_network(space(), spec, shards.card.mean, shards.card.std).double()
    vectors = [weight for weight in net.parameters() if weight.ndim < 2]
    matrices = [weight for weight in net.parameters() if weight.ndim >= 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 1e-4}, {"params": vectors, "weight_decay": 0.0}]
    )
    losses, rates = [], []
    for epoch in (0, 1):
        order = permutation(0, epoch, len(images))
        for batch in range(4):
            step = 4 * epoch + batch
            rates.append(3e-3 * ((step + 1) / 4 if epoch == 0 else (1 + math.cos(math.pi * (step - 4) / 4)) / 2))
            views = two_views(images, order[16 * batch : 16 * batch + 16], space(), 0, epoch)
            z = torch.nn.functional.normalize(net(views.double())[1], dim=1)
            logits = (z @ z.T / 0.2).masked_fill(torch.eye(32, dtype=torch.bool), -math.inf)
            loss = torch.nn.functional.cross_entropy(logits, torch.arange(32) ^ 1)
            optimizer.zero_grad()
            loss.backward()
            for group in optimizer.param_groups:
                group["lr"] = rates[-1]
            optimizer.step()
            losses.append(loss.item())
    assert [row.learning_rate for row in once.curve] == pytest.approx(rates, abs=1e-15)
    assert [row.loss for row in once.curve] == pytest.approx(losses, abs=1e-4)  # float32 against float64


def test_the_first_row_measures_similarities_of_the_first_batch(shards: Shards, once: Trained) -> None:
    z, _ = first_batch(shards)
    positive, negative = pair_similarities(z)
    assert once.curve[0].positive_similarity == pytest.approx(positive, abs=1e-6)
    assert once.curve[0].negative_similarity == pytest.approx(negative, abs=1e-6)


def test_the_pictured_views_are_the_first_that_the_network_saw(shards: Shards, once: Trained) -> None:
    samples = permutation(0, 0, shards.card.splits["train"])[:8]
    expected = two_views(torch.from_numpy(shards.images("train")), samples, space(), 0, 0)
    assert torch.equal(once.views, expected)
    assert list(once.seen) == ["sample", "view 1", "view 2"]
    assert torch.equal(once.seen["sample"], torch.from_numpy(shards.canvases("train", samples)) / 255.0)
    assert torch.equal(once.seen["view 1"], expected[0::2])
    assert torch.equal(once.seen["view 2"], expected[1::2])


def test_columns_are_in_pair_order_and_bring_the_labels_asked_for() -> None:
    columns = row_columns(np.array([4, 2]), (0, 1), {"shape": np.array([7, 7, 9, 7, 5])}, "cpu")
    assert {name: column.tolist() for name, column in columns.items()} == {
        "sample": [4, 4, 2, 2],
        "view": [0, 1, 0, 1],
        "shape": [5, 5, 9, 9],
    }


MULTI_CROP = {
    "kind": "multi_crop",
    "global_crop": {"kind": "resized_crop", "area": [0.4, 1.0]},
    "local_crop": {"kind": "resized_crop", "area": [0.05, 0.3]},
    "local_views": 3,
    "local_scale": 0.5,
}


def test_multi_crop_contrasts_every_view_with_the_global_ones_alone(shards: Shards) -> None:
    """A double loop: anchors are all views, candidates the global ones; a positive each, or two for a local view."""
    declared, spec = space(views=MULTI_CROP), training(epochs=2)
    samples = permutation(spec.seed, 0, shards.card.splits["train"])[: spec.global_batch]
    net = start_network(declared, spec, shards.card.mean, shards.card.std).double()
    images = [torch.from_numpy(shards.original("train", sample)) for sample in samples]  # cut from their own 32 pixels
    seen = [
        (place, role.name, draw_view(images, role.invariances, Keys.of(spec.seed, 0, samples, view), role.size(16, 16)))
        for role in declared.roles()
        for place, view in enumerate(role.views)
    ]
    with torch.no_grad():
        rows = [
            (sample, name, place, z / z.norm())
            for place, name, views in seen
            for sample, z in enumerate(net(views.double())[1])
        ]
    losses = []
    for sample, name, place, z in rows:
        positives, negatives = [], []
        for other, theirs, number, key in rows:
            if theirs == "global" and (other, theirs, number) != (sample, name, place):
                (positives if other == sample else negatives).append(float(z @ key) / 0.2)
        assert (len(positives), len(negatives)) == (1 if name == "global" else 2, 30)
        positive = sum(positives) / len(positives)
        losses.append(math.log1p(sum(math.exp(logit - positive) for logit in negatives)))
    assert len(losses) == 16 * 5
    run = trained(shards, declared, spec)
    assert run.curve[0].loss == pytest.approx(sum(losses) / len(losses), abs=2e-6)
    assert run.candidates == 31
    assert run.views.shape == (16, 3, 16, 16)
    assert list(run.seen) == ["sample", "global 1", "global 2", "local 1", "local 2", "local 3"]
    for place, name, views in seen:
        assert torch.allclose(run.seen[f"{name} {place + 1}"], views[:8], atol=1e-6), (name, place)


def test_partners_are_positive_and_others_of_their_group_are_no_candidates(shards: Shards) -> None:
    declared, spec = space(views={"kind": "partners", "column": "shape"}), training(epochs=2)
    codes, images = shards.labels("train")["shape"], torch.from_numpy(shards.images("train"))
    samples = permutation(spec.seed, 0, len(codes))[: spec.global_batch]
    other = PartnerTable(codes).of(samples, spec.seed, 0)
    net = start_network(declared, spec, shards.card.mean, shards.card.std).double()
    with torch.no_grad():
        z = [
            net(draw_view(images[rows], declared.invariances, Keys.of(spec.seed, 0, samples, view)).double())[1]
            for view, rows in ((0, samples), (1, other))
        ]
    first, second = (each / each.norm(dim=1, keepdim=True) for each in z)
    losses = []
    for anchors, keys in ((first, second), (second, first)):
        for i, anchor in enumerate(anchors):
            positive = float(anchor @ keys[i]) / 0.2
            outside = [j for j in range(len(anchors)) if codes[samples[j]] != codes[samples[i]]]
            negatives = [float(anchor @ view[j]) / 0.2 for view in (first, second) for j in outside]
            losses.append(math.log1p(sum(math.exp(logit - positive) for logit in negatives)))
    assert trained(shards, declared, spec).curve[0].loss == pytest.approx(sum(losses) / len(losses), abs=2e-6)


WIDE = {"kind": "learned", "start": 0.2, "low": 0.002, "high": 20.0}
LEARNED = {"kind": "learned", "start": 0.2, "low": 0.19, "high": 0.22}


def test_a_learned_temperature_moves_and_stays_in_its_bounds(shards: Shards) -> None:
    fast = {"kind": "adamw", "learning_rate": 1.0, "weight_decay": 0.0}
    run = trained(shards, space(temperature=LEARNED), training(optimizer=fast, epochs=3, schedule={"kind": "constant"}))
    path = [row.temperature for row in run.curve]
    assert path[0] == pytest.approx(0.2, abs=1e-6)
    assert len({round(value, 6) for value in path}) > 3
    assert all(0.19 < value < 0.22 for value in path)


def test_a_scheduled_temperature_follows_its_line(shards: Shards) -> None:
    line = {"kind": "scheduled", "start": 0.4, "end": 0.2, "shape": "linear"}
    run = trained(shards, space(temperature=line), training())
    steps = len(run.curve)
    assert [row.temperature for row in run.curve] == pytest.approx([0.4 - 0.2 * step / steps for step in range(steps)])


def test_an_objective_without_a_temperature_says_so_in_its_curve(shards: Shards) -> None:
    declared = space(objective={"kind": "triplet", "margin": 0.5}, metric="squared_euclidean", temperature=None)
    assert all(math.isnan(row.temperature) for row in trained(shards, declared, training()).curve)


def test_a_loss_that_is_no_number_stops_with_one_line(shards: Shards) -> None:
    wild = {"kind": "sgd", "learning_rate": 1e30, "momentum": 0.0, "weight_decay": 0.0}
    with pytest.raises(Refusal) as caught:
        trained(shards, space(), training(optimizer=wild, epochs=8, schedule={"kind": "constant"}))
    (line,) = str(caught.value).splitlines()
    assert "step " in line
    assert "of train)" in line


def test_a_batch_larger_than_the_data_names_the_largest_that_fits(shards: Shards) -> None:
    count = shards.card.splits["train"]
    with pytest.raises(Refusal) as caught:
        trained(shards, space(), training(global_batch=count + 1))
    assert str(caught.value) == (
        f"training.global_batch = {count + 1}: larger than the training split; at most {count}"
    )
    assert unfit(training(global_batch=count), count) is None


def test_ranks_that_do_not_divide_the_batch_are_told_what_fits() -> None:
    assert unfit(training(global_batch=16), 100, 4) is None
    assert unfit(training(global_batch=16), 100, 3) == (
        "training.global_batch = 16: 3 ranks do not divide it; take 15, or another number of processes in machine.yaml"
    )


def test_batch_statistics_over_ranks_are_refused_where_they_cannot_be_joined() -> None:
    normed = training(encoder={"kind": "torchvision", "name": "resnet18", "small_stem": True}, norm_group=16)
    assert unfit(normed, 100, 1, "cpu") is None
    assert unfit(normed, 100, 2, "cuda") is None
    assert unfit(training(), 100, 2, "cpu") is None
    assert unfit(normed, 100, 2, "cpu") == (
        "training.norm_group = 16: 2 ranks on a CPU cannot share statistics; set processes = 1 in machine.yaml"
    )


# -- the reduction over ranks, on one process --------------------------------------------------------------------------


def term(outer: str, count: int, generator: torch.Generator, none: bool = False) -> Term:
    values = torch.randn(count, generator=generator, dtype=torch.float64, requires_grad=True)
    counted = torch.rand(count, generator=generator) < (0.0 if none else 0.6)
    return Term(values, counted, weight=float(torch.rand((), generator=generator)) + 0.5, outer=outer)  # type: ignore[arg-type]


@given(seed=st.integers(0, 2**31), count=st.integers(1, 9))
@pytest.mark.parametrize("none", [False, True])
def test_reduced_is_mean_terms_on_one_process_in_value_and_gradient(none: bool, seed: int, count: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    terms = tuple(term(outer, count, generator, none) for outer in ("identity", "log_mean_exp"))
    inputs = [each.values for each in terms]
    loss, value = reduced(terms)
    assert value == pytest.approx(float(mean_terms(terms).detach()), abs=1e-12)
    mine = torch.autograd.grad(loss, inputs, retain_graph=True)
    theirs = torch.autograd.grad(mean_terms(terms), inputs)
    for first, second in zip(mine, theirs, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-10, atol=1e-12)
    if none:
        assert value == 0.0
        assert all(float(gradient.abs().max()) == 0.0 for gradient in mine)


@given(batch=st.integers(2, 7), dim=st.integers(1, 5), seed=st.integers(0, 2**31))
def test_pair_similarities_are_those_of_a_dense_double_loop(batch: int, dim: int, seed: int) -> None:
    z = torch.randn(2 * batch, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    positives, negatives = [], []
    for i in range(2 * batch):
        for j in range(2 * batch):
            if i != j:
                cosine = float(z[i] @ z[j] / (z[i].norm() * z[j].norm()))
                (positives if j == i ^ 1 else negatives).append(cosine)
    assert pair_similarities(z) == pytest.approx((np.mean(positives), np.mean(negatives)), abs=1e-10)


# -- two ranks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", [{"kind": "pair"}, MULTI_CROP, {"kind": "partners", "column": "shape"}], ids=str)
def test_two_ranks_give_the_curve_of_one(tmp_path: Path, plan: dict[str, Any]) -> None:
    shards = sharded(tmp_path / "work" / "shard" / "small")
    (tmp_path / "specs").mkdir()
    plain = {
        "kind": "sgd",
        "learning_rate": 0.3,
        "momentum": 0.5,
        "weight_decay": 1e-4,
    }  # its steps scale with the loss
    content = {
        "data": "small",
        "space": {**SPACE, "temperature": WIDE, "views": plan},
        "training": {**TRAINING, "optimizer": plain},
    }
    with (tmp_path / "specs" / "x.yaml").open("w") as stream:
        YAML(typ="safe").dump(content, stream)
    (tmp_path / "work" / "check" / "x").mkdir(parents=True)
    (tmp_path / "work" / "check" / "x" / "gate.json").write_text('{"gate": "pass"}')
    environment = {**os.environ, "LATENT_PROCESSES": "2", "LATENT_DEVICE": "cpu", "LATENT_THREADS": "1"}
    command = [sys.executable, "-m", "stages.pretrain", "x"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "work" / "pretrain" / "x"
    assert json.loads((folder / "summary.json").read_text())["candidates"] == 31
    logs = sorted(path.name for path in (tmp_path / "work" / "logs" / "x").iterdir())
    assert logs == ["declared.jsonl", "pretrain-0.jsonl", "pretrain-1.jsonl", "ranks"]
    two = np.genfromtxt(folder / "curve.csv", delimiter=",", names=True)
    one = trained(shards, space(temperature=WIDE, views=plan), training(optimizer=plain)).curve
    assert abs(one[-1].temperature - 0.2) > 1e-3
    assert len(two) == len(one)
    for name in two.dtype.names:  # float32 sums in another order, through eight steps of SGD
        expected = [getattr(row, name) for row in one]
        np.testing.assert_allclose(two[name], expected, rtol=2e-4, atol=2e-5, err_msg=name)


# -- pictures ----------------------------------------------------------------------------------------------------------


def test_a_sheet_is_laid_out_row_by_row_with_white_gaps() -> None:
    images = torch.rand(5, 3, 2, 3, generator=torch.Generator().manual_seed(0))
    page = sheet(images, columns=2, scale=3, gap=2).numpy()
    assert page.shape == (3 * 6 + 2 * 2, 2 * 9 + 2, 3)
    covered = np.zeros(page.shape[:2], bool)
    for number, image in enumerate(images):
        top, left = (number // 2) * 8, (number % 2) * 11
        for y in range(6):
            for x in range(9):
                expected = np.rint(image[:, y // 3, x // 3].numpy() * 255)
                assert np.abs(page[top + y, left + x] - expected).max() <= 1
                covered[top + y, left + x] = True
    assert (page[~covered] == 255).all()
    assert covered.sum() == 5 * 54


def test_any_number_of_channels_becomes_a_picture() -> None:
    images = torch.rand(2, 5, 4, 4)
    assert torch.equal(to_rgb(images), images[:, :3])
    for channels in (1, 2):
        grey = to_rgb(images[:, :channels])
        assert grey.shape == (2, 3, 4, 4)
        assert all(torch.equal(grey[:, c], images[:, 0]) for c in range(3))
    assert torch.equal(to_rgb(images[:, :3]), images[:, :3])


def test_the_two_views_of_a_sample_stand_one_above_the_other(tmp_path: Path) -> None:
    from PIL import Image

    views = torch.zeros(6, 1, 64, 64)
    levels = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    for view, level in zip(views, levels, strict=True):
        view += level
    views_picture(views, tmp_path / "v.png")
    views_picture(views, tmp_path / "w.png")
    assert (tmp_path / "v.png").read_bytes() == (tmp_path / "w.png").read_bytes()
    page = np.asarray(Image.open(tmp_path / "v.png"))
    assert page.shape == (130, 196, 3)
    for sample in range(3):
        for view in range(2):
            level = round(levels[2 * sample + view] * 255)
            assert (page[66 * view : 66 * view + 64, 66 * sample : 66 * sample + 64] == level).all()


def test_roles_are_a_file_each_in_order_a_row_of_samples_at_one_scale(tmp_path: Path) -> None:
    from PIL import Image

    seen = {
        "sample": torch.zeros(3, 1, 32, 32),
        "global 1": torch.ones(3, 1, 32, 32),
        "local 1": torch.rand(3, 1, 8, 8),
    }
    role_pictures(seen, tmp_path)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["view-00-sample.png", "view-01-global_1.png", "view-02-local_1.png"]
    pictures = [np.asarray(Image.open(file)) for file in files]
    assert [picture.shape[:2] for picture in pictures] == [(64, 196), (64, 196), (16, 52)]
    shown = pictures[2][:16, :16, 0]
    assert np.array_equal(shown[::2, ::2], (seen["local 1"][0, 0] * 255).round().to(torch.uint8).numpy())
