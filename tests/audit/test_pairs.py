"""Measures of pairs against the whole matrix: definitions, scipy, scikit-learn, autograd, and closed forms."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy, norm
from sklearn.metrics import roc_auc_score

from pipeline.audit import pairs
from pipeline.audit.estimate import NotComputable, of_quantile
from pipeline.audit.false_negatives import FalseNegatives, chance
from pipeline.audit.gradient import GradientMass
from pipeline.audit.info_nce import info_nce_bound
from pipeline.audit.nearer import Nearer
from pipeline.audit.pairs import Block, walk
from pipeline.audit.separation import Overlap, Sensitivity
from pipeline.audit.similarity import positives_of
from pipeline.neighbours import unit

pytestmark = pytest.mark.usefixtures("one_thread")


def views(n, d, seed=0, noise=0.5):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d))
    return unit(x + noise * random.normal(size=(n, d))), unit(x + noise * random.normal(size=(n, d)))


def clusters(n, classes, noise, seed=0):
    """Two views of samples around orthogonal centres, and their labels."""
    random = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    x = np.eye(classes)[labels] + noise * random.normal(size=(n, classes))
    a, b = (unit(x + 0.2 * noise * random.normal(size=x.shape)) for _ in range(2))
    return a, b, labels


def matrix_of(a, b):
    return np.clip((a @ b.T).astype(np.float64), -1, 1)


def seen(a, b, reader):
    walk(a, b, reader)
    return reader


def shown(matrix, make):
    """A reader that was shown a matrix of cosines in blocks of seven anchors."""
    reader = make(np.diag(matrix).copy())
    for start in range(0, len(matrix), 7):
        reader.read(Block(start, matrix[start : start + 7]))
    return reader


def jackknifed(value_of, n):
    """The error of deleting one sample after the other, naively."""
    kept = [np.delete(np.arange(n), i) for i in range(n)]
    without = np.array([value_of(index) for index in kept])
    return np.sqrt((n - 1) / n * np.square(without - without.mean()).sum())


def error_of(estimate):
    return (estimate.high - estimate.low) / 2 / norm.ppf(0.975)


def gaussian(n, distance, seed=0):
    """Cosines whose positives lie ``distance`` standard deviations above the negatives."""
    random = np.random.default_rng(seed)
    matrix = 0.05 * random.normal(size=(n, n))
    matrix[np.diag_indices(n)] += 0.05 * distance
    return matrix


# d' and overlap


def naive_d_prime(matrix):
    positive, negative = np.diag(matrix), matrix[~np.eye(len(matrix), dtype=bool)]
    return (positive.mean() - negative.mean()) / np.sqrt((positive.var() + negative.var()) / 2)


@given(st.integers(4, 40), st.integers(2, 6), st.integers(0, 999))
def test_d_prime_is_the_distance_of_the_means_in_standard_deviations(n, d, seed):
    a, b = views(n, d, seed)
    assert seen(a, b, Sensitivity(positives_of(a, b))).d_prime().value == pytest.approx(
        naive_d_prime(matrix_of(a, b)), rel=1e-4
    )


@pytest.mark.parametrize("distance", [0.0, 1.0, 4.0])
def test_d_prime_of_gaussians_is_their_distance(distance):
    found = shown(gaussian(800, distance), Sensitivity).d_prime()
    assert found.low - 0.02 <= distance <= found.high + 0.02


def test_the_interval_of_d_prime_deletes_one_sample_after_the_other():
    a, b = views(30, 3)
    matrix = matrix_of(a, b)
    found = seen(a, b, Sensitivity(positives_of(a, b))).d_prime()
    expected = jackknifed(lambda kept: naive_d_prime(matrix[np.ix_(kept, kept)]), 30)
    assert error_of(found) == pytest.approx(expected, rel=1e-3)


def test_d_prime_of_cosines_that_do_not_vary_is_a_reason():
    with pytest.raises(NotComputable, match="do not vary"):
        shown(np.full((10, 10), 0.5), Sensitivity).d_prime()


@pytest.mark.parametrize("distance", [0.0, 1.0, 2.0, 4.0])
def test_the_overlap_of_gaussians_is_its_closed_form(distance):
    n = 1500
    found = shown(gaussian(n, distance), Overlap).overlap().value
    assert found == pytest.approx(2 * norm.cdf(-distance / 2), abs=0.02 + 0.4 * np.sqrt(15 / n))


@pytest.mark.parametrize("width", [1.0, 1e-3])
def test_the_width_of_a_space_moves_neither(width):
    matrix = gaussian(300, 2)
    for make, name in ((Overlap, "overlap"), (Sensitivity, "d_prime")):
        narrow = getattr(shown(1 - width * (1 - matrix), make), name)().value
        assert narrow == pytest.approx(getattr(shown(matrix, make), name)().value, rel=0.01)


def test_the_overlap_is_0_where_a_threshold_tells_every_pair_and_1_where_all_are_equal():
    apart = np.full((40, 40), 0.1) + 0.9 * np.eye(40)
    assert shown(apart, Overlap).overlap().value == 0
    assert shown(np.full((40, 40), 0.7), Overlap).overlap().value == 1


def naive_overlap(matrix, edges):
    off = ~np.eye(len(matrix), dtype=bool)
    counted = [np.histogram(values, bins=edges)[0] / values.size for values in (np.diag(matrix), matrix[off])]
    return np.minimum(*counted).sum()


def test_the_overlap_is_that_of_two_histograms_over_the_same_bins_with_the_error_of_deleting_samples():
    a, b = views(40, 4, noise=1.5)
    matrix = matrix_of(a, b)
    reader = seen(a, b, Overlap(positives_of(a, b)))
    edges = np.concatenate([[-2], reader.edges, [2]])
    assert len(reader.edges) == 6  # ceil(80^(1/3)) = 5 bins of positives
    found = reader.overlap()
    assert 0.2 < found.value < 0.9
    assert found.value == pytest.approx(naive_overlap(matrix, edges))
    expected = jackknifed(lambda kept: naive_overlap(matrix[np.ix_(kept, kept)], edges), 40)
    assert error_of(found) == pytest.approx(expected, rel=1e-6)


# false negatives


@given(st.integers(4, 25), st.integers(2, 5), st.integers(0, 999))
def test_nearer_negatives_are_what_is_missing_from_scikit_learns_area(n, d, seed):
    a, b = views(n, d, seed, noise=1.5)
    matrix = matrix_of(a, b)
    areas = [roc_auc_score(np.arange(n) == i, matrix[i]) for i in range(n)]
    assert seen(a, b, Nearer(n)).share().value == pytest.approx(1 - np.mean(areas), abs=1e-9)


def test_nearer_negatives_are_0_where_positives_are_nearest_and_half_where_nothing_is_told_apart():
    x = np.eye(12, dtype=np.float32)
    assert seen(x, x, Nearer(12)).share().value == 0
    assert seen(x, -x, Nearer(12)).share().value == 1
    same = unit(np.ones((12, 4)))
    assert seen(same, same, Nearer(12)).share().value == 0.5
    random = views(400, 6)[0], views(400, 6, seed=1)[0]
    found = seen(*random, Nearer(400)).share()
    assert found.low < 0.5 < found.high


def test_the_interval_of_nearer_negatives_deletes_one_sample_after_the_other():
    a, b = views(30, 3, noise=1.5)
    matrix = matrix_of(a, b)

    def naive(kept):
        part = matrix[np.ix_(kept, kept)]
        return (part > np.diag(part)[:, None]).sum() / (len(kept) * (len(kept) - 1))

    assert error_of(seen(a, b, Nearer(30)).share()) == pytest.approx(jackknifed(naive, 30), rel=1e-6)


def test_false_negatives_are_counted_among_each_anchors_nearest_negatives():
    a, b, labels = clusters(310, 4, noise=0.8)
    matrix = matrix_of(a, b)
    np.fill_diagonal(matrix, -2)
    near = np.argsort(-matrix, axis=1)[:, :3]  # one in a hundred of 309
    found = seen(a, b, FalseNegatives(310, {"label": labels})).rate("label")
    assert found.value == pytest.approx((labels[near] == labels[:, None]).mean())
    assert found.count == 310


def test_false_negatives_of_separate_classes_are_all_and_of_random_labels_what_chance_gives():
    a, b, labels = clusters(300, 3, noise=0.05)
    random = np.random.default_rng(0).integers(0, 3, 300)
    reader = seen(a, b, FalseNegatives(300, {"own": labels, "random": random}))
    assert reader.rate("own").value == 1
    found = reader.rate("random")
    assert found.low < chance(random) < found.high


@given(st.lists(st.integers(0, 3), min_size=2, max_size=30))
def test_chance_is_the_share_of_pairs_of_one_label(codes):
    labels = np.asarray(codes)
    same = labels[:, None] == labels
    assert chance(labels) == pytest.approx(same[~np.eye(len(labels), dtype=bool)].mean())


def test_nineteen_of_twenty_intervals_of_d_prime_and_of_nearer_negatives_hold_the_true_number():
    def measured(n, seed):
        random = np.random.default_rng(seed)
        x = random.normal(size=(n, 3)) + 0.7 * np.eye(3)[0]
        a, b = (unit(x + 0.8 * random.normal(size=(n, 3))) for _ in range(2))
        nearer, sensitivity = Nearer(n), Sensitivity(positives_of(a, b))
        walk(a, b, nearer, sensitivity)
        return nearer.share(), sensitivity.d_prime()

    truth = np.mean([[each.value for each in measured(1500, 5000 + seed)] for seed in range(6)], axis=0)
    found = [measured(150, seed) for seed in range(200)]
    for at in (0, 1):
        assert 0.9 <= np.mean([each[at].low <= truth[at] <= each[at].high for each in found]) <= 0.985


# gradient mass and the bound


@pytest.mark.parametrize("temperature", [0.05, 0.2, 1.0])
def test_gradient_mass_is_what_autograd_gives_the_logits(temperature):
    a, b, labels = clusters(60, 3, noise=0.7)
    mass = seen(a, b, GradientMass(60, {"label": labels}, [0.5, temperature]))
    logits = (torch.from_numpy(matrix_of(a, b)) / temperature).requires_grad_()
    losses = torch.nn.functional.cross_entropy(logits, torch.arange(60), reduction="none")
    losses.sum().backward()
    weights = logits.grad.numpy() * ~np.eye(60, dtype=bool)  # what pushes each negative away
    np.testing.assert_allclose(mass.losses[1], losses.detach().numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mass.repulsion[1], weights.sum(1), rtol=1e-9)
    expected = [np.exp(entropy(row[row > 0])) for row in weights]
    np.testing.assert_allclose(mass.effective[1], expected, rtol=1e-9)
    same = (weights * (labels[:, None] == labels)).sum() / weights.sum()
    assert mass.same_label(1, "label").value == pytest.approx(same)
    assert mass.mean_repulsion(1).value == pytest.approx(weights.sum(1).mean())
    assert mass.effective_negatives(1).value == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_orthogonal_samples_are_all_felt_alike_at_every_temperature(temperature):
    x, labels = np.eye(12, dtype=np.float32), np.arange(12) % 3
    mass = seen(x, x, GradientMass(12, {"label": labels}, [temperature]))
    assert mass.effective_negatives(0).value == pytest.approx(11)
    assert mass.mean_repulsion(0).value == pytest.approx(11 / (11 + np.exp(1 / temperature)))
    assert mass.same_label(0, "label").value == pytest.approx(3 / 11)


def test_a_lower_temperature_leaves_fewer_negatives_and_more_of_the_anchors_own_label():
    a, b, labels = clusters(200, 4, noise=0.2)
    mass = seen(a, b, GradientMass(200, {"label": labels}))
    shares = [mass.same_label(at, "label").value for at in range(len(mass.temperatures))]
    felt = [mass.effective_negatives(at).value for at in range(len(mass.temperatures))]
    assert shares == sorted(shares, reverse=True)
    assert felt == sorted(felt)
    assert shares[0] > 0.9 > 0.5 > shares[-1] > chance(labels)


def test_the_error_of_the_share_is_that_of_drawing_anchors_again():
    a, b = views(400, 8)
    labels = np.random.default_rng(1).integers(0, 2, 400)
    mass = seen(a, b, GradientMass(400, {"label": labels}, [0.1]))
    whole, part = mass.repulsion[0], mass.repulsion[0] * mass.same["label"][0]
    drawn = np.random.default_rng(0).integers(0, 400, (2000, 400))
    spread = (part[drawn].sum(1) / whole[drawn].sum(1)).std()
    assert error_of(mass.same_label(0, "label")) == pytest.approx(spread, rel=0.07)


def test_no_gradient_is_a_reason():
    mass = GradientMass(4, {"label": np.zeros(4, dtype=np.int64)}, [0.1])
    with pytest.raises(NotComputable, match="the positives take all"):
        mass.same_label(0, "label")


def test_a_temperature_at_which_weights_leave_float64_is_refused():
    with pytest.raises(ValueError, match=r"at least 0\.01"):
        GradientMass(4, {}, [0.001])


def bound_of(a, b, temperatures=(0.05, 0.2, 1.0)):
    return info_nce_bound(seen(a, b, GradientMass(len(a), {}, temperatures)).losses, temperatures)


@pytest.mark.parametrize("symbols", [2, 5])
def test_the_bound_of_symbols_that_both_views_show_is_their_entropy(symbols):
    x = np.eye(symbols, dtype=np.float32)[np.arange(100) % symbols]
    found = bound_of(x, x)
    assert found.value == pytest.approx(np.log(symbols), abs=1e-6)
    assert "at most log(100) = 4.61" in found.note
    assert "temperature 0.05" in found.note


def test_the_bound_of_distinct_samples_is_its_cap_and_of_independent_views_not_above_0():
    x = np.eye(50, dtype=np.float32)
    assert bound_of(x, x).value == pytest.approx(np.log(50), abs=1e-6)
    found = bound_of(views(500, 5)[0], views(500, 5, seed=1)[0])
    assert found.value > -0.2
    assert found.high < 0.02


@pytest.mark.parametrize("error", [0.1, 0.3])
def test_the_bound_does_not_exceed_the_information_of_a_noisy_channel(error):
    random, symbols, n = np.random.default_rng(0), 8, 2000
    sent = random.integers(0, symbols, n)
    received = np.where(random.random(n) < error, random.integers(0, symbols, n), sent)
    kept = 1 - error + error / symbols
    wrong = error / symbols
    truth = np.log(symbols) + kept * np.log(kept) + (symbols - 1) * wrong * np.log(wrong)
    found = bound_of(np.eye(symbols, dtype=np.float32)[sent], np.eye(symbols, dtype=np.float32)[received], (0.1, 0.3))
    assert 0.6 * truth < found.value
    assert found.low <= truth


def test_the_temperature_is_chosen_on_other_anchors_than_it_is_measured_on():
    losses = np.array([[1.0, 0.5, 1.0, 0.6], [2.0, 0.1, 2.0, 0.2]])
    found = info_nce_bound(losses, (0.1, 0.2))
    assert found.value == pytest.approx(np.log(4) - 0.55)
    assert found.count == 2
    with pytest.raises(NotComputable, match="3 rows; at least 4"):
        info_nce_bound(losses[:, :3], (0.1, 0.2))


# the walk


def test_blocks_change_nothing(monkeypatch):
    a, b, labels = clusters(50, 3, noise=0.7)

    def numbers():
        positives = positives_of(a, b)
        readers = Nearer(50), Overlap(positives), Sensitivity(positives)
        readers += FalseNegatives(50, {"label": labels}), GradientMass(50, {"label": labels})
        walk(a, b, *readers)
        found = readers[0].share(), readers[1].overlap(), readers[2].d_prime(), readers[3].rate("label")
        return [each.value for each in (*found, readers[4].same_label(0, "label"), readers[4].mean_repulsion(3))]

    whole = numbers()
    monkeypatch.setattr(pairs, "ENTRIES", 7 * 50)
    assert numbers() == pytest.approx(whole, rel=1e-6)


def test_blocks_are_bounded_whatever_the_number_of_samples(monkeypatch):
    monkeypatch.setattr(pairs, "ENTRIES", 100)
    sizes = []

    class Sizes:
        def read(self, block):
            sizes.append(block.cosines.size)

    walk(*views(60, 3), Sizes())
    assert len(sizes) == 60
    assert max(sizes) <= 100


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda x: x[:2], "2 rows; at least 3"),
        (lambda x: 2 * x, "row 0 has length 2; only rows of length one"),
        (lambda x: x * np.float32(np.nan), "rows hold NaN or infinity"),
    ],
)
def test_rows_without_directions_are_a_reason(change, reason):
    x = change(np.eye(6, dtype=np.float32))
    with pytest.raises(NotComputable, match=reason):
        walk(x, x)


def test_the_interval_of_a_quantile_holds_the_true_one_nineteen_times_of_twenty():
    random = np.random.default_rng(0)
    found = [of_quantile(random.normal(size=400), 0.05) for _ in range(400)]
    assert 0.91 <= np.mean([each.low <= norm.ppf(0.05) <= each.high for each in found]) <= 0.98
    with pytest.raises(NotComputable, match="1 rows"):
        of_quantile(np.zeros(1), 0.5)
