"""The ridge probe against scikit-learn, its choice of strength, and what a skill is."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge, RidgeCV

from pipeline.achieved.reading import PENALTIES, Question, Smoother, dealt, question, read, skill
from pipeline.achieved.targets import Target
from pipeline.check.interval import Resampled

RANDOM = np.random.default_rng(0)


def gaussian(n, d):
    return torch.from_numpy(RANDOM.normal(size=(n, d)))


def all_rows(values):
    return torch.ones(len(values), dtype=torch.bool)


@pytest.mark.parametrize(("n", "d"), [(200, 20), (40, 90)])
def test_the_weights_are_those_of_scikit_learn_at_the_chosen_strength(n, d):
    rows = gaussian(n, d) * torch.linspace(0.5, 3, d)
    targets = rows @ gaussian(d, 2) + gaussian(n, 2)
    smoother = Smoother(rows)
    weights, offset = smoother.fit(targets, torch.tensor([0, 1]))
    scaled = ((rows - rows.mean(0)) / rows.std(0, correction=0)).numpy()
    for column in range(2):
        fits = [Ridge(alpha=penalty * n).fit(scaled, targets[:, column].numpy()) for penalty in PENALTIES]
        nearest = min(fits, key=lambda fit: np.abs(fit.coef_ - weights[:, column].numpy()).max())
        np.testing.assert_allclose(nearest.coef_, weights[:, column].numpy(), atol=1e-8)
        np.testing.assert_allclose(nearest.intercept_, offset[column].item(), atol=1e-8)


@pytest.mark.parametrize(("n", "d"), [(200, 20), (60, 90)])
def test_the_strength_is_that_of_least_generalised_cross_validation(n, d):
    rows = gaussian(n, d)
    targets = (rows[:, :3].sum(1, keepdim=True) + 2 * gaussian(n, 1)).double()
    smoother = Smoother(rows)
    weights, _ = smoother.fit(targets, torch.tensor([0]))
    x, y = smoother.rows.numpy(), (targets - targets.mean()).numpy()
    losses = []
    for penalty in PENALTIES:
        hat = x @ np.linalg.solve(x.T @ x + n * penalty * np.eye(d), x.T)
        losses.append(np.square(y - hat @ y).sum() / max(n - 1 - np.trace(hat), 1.0) ** 2)
    best = PENALTIES[int(np.argmin(losses))]
    expected = Ridge(alpha=best * n).fit(x, targets[:, 0].numpy()).coef_
    np.testing.assert_allclose(weights[:, 0].numpy(), expected, atol=1e-8)


def test_it_chooses_about_as_well_as_leaving_one_out():
    rows = gaussian(300, 40)
    targets = rows[:, :1] + 0.5 * gaussian(300, 1)
    unseen = gaussian(1000, 40)
    truth = unseen[:, :1]
    weights, offset = Smoother(rows).fit(targets, torch.tensor([0]))
    own = (Smoother(rows).scores(unseen, weights, offset) - truth).square().mean()
    oracle = RidgeCV(alphas=[penalty * 300 for penalty in PENALTIES]).fit(rows.numpy(), targets[:, 0].numpy())
    theirs = np.square(oracle.predict(unseen.numpy()) - truth[:, 0].numpy()).mean()
    assert own < 1.2 * theirs


def number(name, values):
    return Target(name, "number", values, all_rows(values))


def code(name, values):
    return Target(name, "class", values, all_rows(values))


def test_a_number_that_is_there_is_read_and_one_that_is_not_is_none():
    train, test = gaussian(400, 10), gaussian(300, 10)
    asked = [question(number("there", train[:, :2]), number("there", test[:, :2]))]
    asked.append(question(number("not there", gaussian(400, 1)), number("not there", gaussian(300, 1))))
    resampled = Resampled.of(np.arange(300), 0)
    there, missing = (
        skill(worth, each, resampled) for worth, each in zip(read(train, test, asked), asked, strict=True)
    )
    assert float(there[0]) > 0.999
    assert abs(float(missing[0])) < 0.1


def test_a_class_is_read_above_chance_and_dealt_out_labels_are_not():
    codes = torch.from_numpy(RANDOM.integers(0, 3, 600))
    rows = torch.nn.functional.one_hot(codes, 3) + 0.3 * gaussian(600, 3)
    asked = question(code("label", codes[:300]), code("label", codes[300:]))
    assert isinstance(asked, Question)
    assert asked.chance == pytest.approx(np.bincount(codes[300:]).max() / 300)
    resampled = Resampled.of(np.arange(300), 0)
    good = skill(read(rows[:300], rows[300:], [asked])[0], asked, resampled)
    shuffled = skill(read(rows[:300], rows[300:], [dealt(asked)])[0], asked, resampled)
    assert float(good[0]) > 0.8
    assert abs(float(shuffled[0])) < 0.2
    truth = (float(good[0]) * (1 - asked.chance)) + asked.chance  # back to an accuracy
    assert 0.9 < truth <= 1


def test_questions_about_some_rows_only_are_asked_of_these():
    train, test = gaussian(200, 4), gaussian(200, 4)
    half = torch.arange(200) < 100
    made = question(Target("x", "number", train[:, :1], half), Target("x", "number", test[:, :1], half))
    (worth,) = read(train, test, [made])
    assert len(worth) == 100
    assert int(made.test_rows.max()) == 99


@pytest.mark.parametrize(
    ("train", "test", "reason"),
    [
        (torch.zeros(50, dtype=torch.int64), torch.arange(50) % 2, "one class"),
        (torch.arange(50) % 2, torch.zeros(50, dtype=torch.int64), "one class"),
        (torch.arange(50) % 2, torch.arange(10) % 2, "20 of each"),
    ],
)
def test_what_cannot_be_asked_says_why(train, test, reason):
    assert reason in question(code("x", train), code("x", test))


def test_a_class_that_only_the_test_rows_have_is_never_right():
    train, test = torch.arange(60) % 2, torch.arange(60) % 3
    made = question(code("x", train), code("x", test))
    (worth,) = read(gaussian(60, 3), gaussian(60, 3), [made])
    assert float(worth[test == 2].max()) < 0


def test_no_scale_of_the_features_makes_them_constant():
    train, test = gaussian(100, 4), gaussian(80, 4)
    asked = [question(number("there", train[:, :2]), number("there", test[:, :2]))]
    (plain,) = read(train, test, asked)
    for scale in (1e-30, 1e30):
        (scaled,) = read((scale * train).float(), (scale * test).float(), asked)
        torch.testing.assert_close(scaled, plain, rtol=1e-3, atol=1e-4)
