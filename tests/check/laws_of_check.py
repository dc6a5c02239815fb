"""Laws of the check, as plain functions, so that wrong versions can be held against them as well."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from known import COUNT, Pictures, Projection, blobs, ground
from known import found as findings_of

from pipeline.check.collisions import collisions
from pipeline.check.ground import Ground
from pipeline.check.interval import Resampled, figure, kept
from pipeline.check.moving import always, moved
from pipeline.check.partners import shortcut
from pipeline.check.reading import FOLDS, STRENGTHS, ridge
from pipeline.check.retrieval import match
from pipeline.views import Brightness, Compose, Grayscale, HorizontalFlip, Noise, Shift, VerticalFlip

SIZE = 8  # pixels a side of pictures that are one level


@cache
def base() -> Ground:
    return ground(Pictures(*blobs()))


def an_identity_keeps_everything() -> None:
    for finding in findings_of(base(), Shift(pixels=0)).values():
        assert (finding.figure, finding.low, finding.high) == (1.0, 1.0, 1.0)


def a_label_dealt_out_at_random_was_never_readable() -> None:
    images, _ = blobs()
    labels = {"luck": np.random.default_rng(5).integers(0, 2, COUNT)}
    luck = ground(Pictures(images, labels))
    found = findings_of(luck, Grayscale(probability=1.0), preserves=("luck",))
    assert {each.verdict for each in found.values()} == {"inconclusive"}
    assert all("never readable" in each.sentence for each in found.values())


def grayscale_erases_a_colour_of_equal_grey() -> None:
    found = findings_of(base(), Grayscale(probability=1.0), preserves=("paint", "side"))
    erased = found["erased", "paint"]
    assert erased.verdict == "fail"
    assert erased.figure is not None
    assert erased.figure < 0.35
    assert found["erased", "side"].verdict == "pass"


def a_mirror_merges_left_and_right_and_erases_nothing() -> None:
    for probability in (0.5, 1.0):
        found = findings_of(base(), HorizontalFlip(probability=probability), preserves=("side", "height"))
        assert found["merged", "side"].verdict == "fail"
        assert found["merged", "side"].figure is not None
        assert found["merged", "side"].figure < 0.35
        assert found["merged", "height"].verdict == "pass"
        assert found["erased", "side"].verdict == "pass"  # a bijection


def turning_over_changes_the_meaning_of_up_and_down() -> None:
    found = findings_of(base(), VerticalFlip(probability=0.5), preserves=("height", "side"))
    assert found["transported", "height"].verdict == "fail"
    assert len(found["transported", "height"].details["changes"]) == 2
    assert "changes the meaning" in found["transported", "height"].sentence
    assert found["transported", "side"].verdict == "pass"


def a_probability_is_judged_as_declared_and_beside_it_as_always() -> None:
    rare, sure = (findings_of(base(), Grayscale(probability=p))["erased", "paint"] for p in (0.2, 1.0))
    assert rare.figure is not None
    assert sure.figure is not None
    assert rare.figure > sure.figure + 0.4
    assert rare.details["beside"]["mode"] == "always"
    assert rare.details["beside"]["figure"] == sure.figure
    assert sure.details["beside"] is None


def parts_are_applied_always_as_well() -> None:
    inner = always(Compose(of=(HorizontalFlip(probability=0.3), Grayscale(probability=0.2))))
    assert [part.probability for part in inner.of] == [1.0, 1.0]
    assert always(Shift(pixels=2)) == Shift(pixels=2)


def inputs_that_collide_are_reported() -> None:
    vectors = torch.rand(30, 4, 1, 1, generator=torch.Generator().manual_seed(0))
    vectors[7] = vectors[3]
    vectors[7, 2] = 0.5 * vectors[3, 2]  # differ in the third number alone
    vectors[9] = vectors[4]  # equal inputs are no collision
    assert collisions(vectors, Projection(), 0) == [(3, 7)]
    assert collisions(torch.rand(30, 3, 6, 6), HorizontalFlip(probability=0.5), 0) == []


def a_corner_of_its_own_is_a_shortcut() -> None:
    random = np.random.default_rng(1)
    images = random.integers(60, 100, (900, 3, 24, 24)).astype(np.uint8)
    noise = [[Noise(std=(0.12, 0.12))]] * 2
    plain, _ = shortcut(ground(Pictures(images)), noise, None, lambda _: "")
    images[:, :, -4:-1, -4:-1] = random.integers(0, 256, (len(images), 3, 3, 3))
    marked, pairs = shortcut(ground(Pictures(images)), noise, None, lambda _: "")
    assert plain.verdict == "pass"
    assert marked.verdict == "warn"
    assert marked.details["statistic"] == "the lower right corner"
    assert "resized_crop" in marked.sentence
    assert int(pairs.hits.sum()) > len(pairs.hits) / 2


def partners_are_found_at_chance_where_views_say_nothing() -> None:
    random = torch.Generator().manual_seed(0)
    one, other = (torch.randn(1024, 8, generator=random) for _ in range(2))
    matched = match(one, other)
    assert abs(matched.accuracy - matched.chance) < 0.01
    assert match(one, one).accuracy == 1.0
    assert match(torch.zeros(1024, 8), torch.zeros(1024, 8)).accuracy == 0.0  # ties are no match


def an_interval_is_paired() -> None:
    random = torch.Generator().manual_seed(0)
    values = (torch.rand(300, generator=random) < 0.8).float()
    rows = torch.arange(300)
    resampled = Resampled.of(np.arange(300), 0)
    same = kept(resampled.mean(values, rows), resampled.mean(values, rows), 0.1)
    assert same is not None
    assert figure(same) == (1.0, 1.0, 1.0)
    value, low, high = figure(resampled.mean(values, rows))
    error = 1.96 * (value * (1 - value) / 300) ** 0.5
    assert abs((high - low) / 2 - error) < 0.2 * error
    clustered = (rows // 30 % 2).float()  # ten groups of equal values: ten things are known, not 300
    value, low, high = figure(Resampled.of(np.arange(300) // 30, 0).mean(clustered, rows))
    assert abs((high - low) / 2 - 1.96 * (value * (1 - value) / 10) ** 0.5) < 0.1


def folds_predict_what_they_have_not_seen() -> None:
    random = torch.Generator().manual_seed(0)
    rows, targets = torch.randn(80, 5, generator=random), torch.randn(80, 2, generator=random)
    folds = torch.arange(80) % FOLDS
    fit = ridge(rows, targets, folds)
    for strength, penalty in enumerate(STRENGTHS):
        scaled = (rows - rows.mean(0)) / rows.std(0, correction=0)
        centred = targets - targets.mean(0)
        whole = torch.linalg.solve(scaled.T @ scaled + penalty * 80 * torch.eye(5), scaled.T @ centred)
        torch.testing.assert_close(fit.scores(rows, strength), scaled @ whole + targets.mean(0), rtol=1e-4, atol=1e-4)
        seen = folds != 1
        part = torch.linalg.solve(
            scaled[seen].T @ scaled[seen] + penalty * 80 * torch.eye(5), scaled[seen].T @ centred[seen]
        )
        torch.testing.assert_close(
            fit.folded[strength][~seen], scaled[~seen] @ part + targets.mean(0), rtol=1e-4, atol=1e-4
        )


def numbers_are_read_by_their_variance() -> None:
    random = np.random.default_rng(0)
    level = random.uniform(60, 200, COUNT)
    images = (level[:, None, None, None] + random.normal(0, 4, (COUNT, 1, SIZE, SIZE))).clip(0, 255).astype(np.uint8)
    level[::9] = np.nan
    levels = ground(Pictures(images, {"level": level}))
    assert levels.readable(levels.columns[0])
    assert float(levels.values["level"].mean()) > 0.95
    dimmed = findings_of(levels, Brightness(amount=0.9), preserves=("level",))["erased", "level"]
    assert dimmed.verdict == "fail"
    assert findings_of(levels, HorizontalFlip(), preserves=("level",))["erased", "level"].verdict == "pass"


def groups_stay_on_one_side() -> None:
    images, labels = blobs()
    patient = np.arange(COUNT) // 8
    apart = ground(Pictures(images, {**labels, "patient": patient}), group="patient")
    one, other = set(apart.train.labels["patient"].tolist()), set(apart.test.labels["patient"].tolist())
    assert not one & other
    assert len(one | other) == COUNT // 8
    for fold in range(FOLDS):
        inside = set(apart.train.labels["patient"][(apart.folds == fold).numpy()].tolist())
        outside = set(apart.train.labels["patient"][(apart.folds != fold).numpy()].tolist())
        assert not inside & outside


def what_cannot_be_read_says_why() -> None:
    images, _ = blobs()
    labels = {
        "one": np.zeros(COUNT, np.int64),
        "each": np.arange(COUNT),
        "unknown": np.full(COUNT, np.nan),
        "constant": np.full(COUNT, 2.5),
    }
    told = ground(Pictures(images, labels)).faults
    assert "one class" in told["one"]
    assert "two training pictures" in told["each"]
    assert "0 training and 0 test pictures have a number" in told["unknown"]
    assert "one number" in told["constant"]


def views_do_not_depend_on_the_other_pictures() -> None:
    base_ = base()
    whole = moved(base_.test, [Noise(std=(0.1, 0.3))], 0, count=1).first
    assert torch.equal(whole, moved(base_.test, [Noise(std=(0.1, 0.3))], 0, count=2).first)


LAWS = {
    name: law
    for name, law in list(globals().items())
    if callable(law) and getattr(law, "__module__", "") == __name__ and name not in ("base",)
}
