"""Wrong versions of the measures, each killed by a law that the right version keeps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import test_clusters  # noqa: E402
import test_directions  # noqa: E402
import test_hubness  # noqa: E402
import test_pairs  # noqa: E402
import test_similarity  # noqa: E402
import test_sphere  # noqa: E402
from mutants import Mutant, Wrong, applied, broken  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
Law = Callable[[], object]


def example(law: Callable[..., object], *arguments: object) -> Law:
    """A law that hypothesis holds, at one example."""
    inner: Callable[..., object] = law.hypothesis.inner_test  # type: ignore[attr-defined]
    return lambda: inner(*arguments)


def overlap() -> None:
    test_pairs.test_the_overlap_of_gaussians_is_its_closed_form(2.0)
    test_pairs.test_the_overlap_is_0_where_a_threshold_tells_every_pair_and_1_where_all_are_equal()


def gradient() -> None:
    test_pairs.test_gradient_mass_is_what_autograd_gives_the_logits(0.2)


def local() -> None:
    with pytest.MonkeyPatch.context() as patch:
        test_directions.test_local_dimensions_are_the_participation_ratio_of_each_neighbourhoods_covariance(40, patch)


def with_patch(law: Callable[[pytest.MonkeyPatch], object]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        law(patch)


WRONG = (
    # the walk
    Wrong(
        "positives are among the negatives",
        "pairs",
        "        values[self.diagonal] = instead\n",
        "",
        test_pairs.test_nearer_negatives_are_0_where_positives_are_nearest_and_half_where_nothing_is_told_apart,
    ),
    Wrong(
        "the diagonal starts anew in each block",
        "pairs",
        "return inside, inside + self.start",
        "return inside, inside",
        lambda: with_patch(test_pairs.test_blocks_change_nothing),
    ),
    Wrong(
        "lengths are not looked at",
        "pairs",
        "abs(lengths[worst] - 1) > 1e-3",
        "False",
        lambda: test_sphere.test_rows_that_are_not_of_length_one_are_a_reason_and_no_infinity(3.0),
    ),
    Wrong(
        "NaN passes for a direction",
        "pairs",
        "if not np.isfinite(lengths).all():",
        "if False:",
        lambda: test_sphere.test_rows_that_are_not_of_length_one_are_a_reason_and_no_infinity(float("nan")),
    ),
    # similarity and separation
    Wrong(
        "negatives are summed as anchors only",
        "similarity",
        "        self.totals += cosines.sum(axis=0)\n",
        "        self.totals[block.anchors] += cosines.sum(axis=1)\n",
        test_similarity.test_the_interval_of_the_negatives_is_that_of_deleting_one_sample_after_the_other,
    ),
    Wrong(
        "the histogram keeps the positives",
        "similarity",
        "        self.counts -= np.bincount(_fine(block.positives), minlength=FINE)\n",
        "",
        example(test_similarity.test_positives_are_the_diagonal_and_negatives_all_else, 30, 4, 0),
    ),
    Wrong(
        "d' is divided by a standard deviation of the positives alone",
        "separation",
        "            spread = spread + (self.squares",
        "            spread = spread + spread - 0 * (self.squares",
        example(test_pairs.test_d_prime_is_the_distance_of_the_means_in_standard_deviations, 30, 4, 0),
    ),
    Wrong(
        "d' takes the sum of the variances for their mean",
        "separation",
        "np.maximum(spread / 2, ROUNDING**2)",
        "np.maximum(spread, ROUNDING**2)",
        lambda: test_pairs.test_d_prime_of_gaussians_is_their_distance(4.0),
    ),
    Wrong(
        "the interval of d' deletes an anchor and leaves the candidate",
        "separation",
        "(self.sums.sum() / 2 - self.sums * left_out) / pairs",
        "(self.sums.sum() / 2 - self.sums / 2 * left_out) / pairs",
        test_pairs.test_the_interval_of_d_prime_deletes_one_sample_after_the_other,
    ),
    Wrong("overlap sums the larger shares", "separation", "value = np.minimum(", "value = np.maximum(", overlap),
    Wrong(
        "no bin lies beyond the positives",
        "separation",
        "np.concatenate([outer[:1], edges[1:-1], outer[1:]])",
        "np.concatenate([[-2], edges[1:-1], [2]])",
        overlap,
    ),
    Wrong(
        "the overlap's interval deletes positives only",
        "separation",
        "(theirs - self.theirs) / ((n - 1) * (n - 2))",
        "theirs / (n * (n - 1)) + 0 * self.theirs",
        test_pairs.test_the_overlap_is_that_of_two_histograms_over_the_same_bins_with_the_error_of_deleting_samples,
    ),
    # false negatives
    Wrong(
        "what is equal is not nearer",
        "nearer",
        "        nearer += 0.5 * (np.abs(beyond) <= ROUNDING)\n",
        "",
        test_pairs.test_nearer_negatives_are_0_where_positives_are_nearest_and_half_where_nothing_is_told_apart,
    ),
    Wrong(
        "farther negatives are counted",
        "nearer",
        "beyond > ROUNDING",
        "beyond < -ROUNDING",
        example(test_pairs.test_nearer_negatives_are_what_is_missing_from_scikit_learns_area, 20, 3, 0),
    ),
    Wrong(
        "the farthest negatives are looked at",
        "false_negatives",
        "np.argpartition(cosines, -self.nearest, axis=1)[:, -self.nearest :]",
        "np.argpartition(cosines, self.nearest, axis=1)[:, : self.nearest]",
        test_pairs.test_false_negatives_are_counted_among_each_anchors_nearest_negatives,
    ),
    Wrong(
        "the positive is among the nearest negatives",
        "false_negatives",
        "block.negatives(block.cosines.copy(), -2)",
        "block.cosines",
        test_pairs.test_false_negatives_are_counted_among_each_anchors_nearest_negatives,
    ),
    Wrong(
        "a row is drawn as its own negative",
        "false_negatives",
        "(counts * (counts - 1)).sum() / (n * (n - 1))",
        "np.square(counts / n).sum()",
        example(test_pairs.test_chance_is_the_share_of_pairs_of_one_label, [0, 1, 1, 2, 2, 2]),
    ),
    # gradient mass and bound
    Wrong("the positive is pushed away too", "gradient", "block.negatives(np.exp(logits))", "np.exp(logits)", gradient),
    Wrong(
        "the positive does not share the weight",
        "gradient",
        "rest / (rest + np.exp(positive))",
        "rest / (rest + 0 * positive)",
        gradient,
    ),
    Wrong(
        "the entropy forgets its normalisation",
        "gradient",
        'entropy = np.log(rest) - np.einsum("rn,rn->r", weights, logits) / rest',
        'entropy = -np.einsum("rn,rn->r", weights, logits) / rest',
        gradient,
    ),
    Wrong(
        "anchors without gradient count like the others",
        "gradient",
        "return _ratio(mass * share, mass).within(0, 1)",
        "return of_mean(share).within(0, 1)",
        gradient,
    ),
    Wrong(
        "the temperature is that of the last row",
        "gradient",
        "logits = beneath / temperature",
        "logits = beneath / self.temperatures[-1]",
        test_pairs.test_a_lower_temperature_leaves_fewer_negatives_and_more_of_the_anchors_own_label,
    ),
    Wrong(
        "the share's error is that of a mean of parts",
        "gradient",
        "np.square(parts - value * wholes)",
        "np.square(parts - parts.mean())",
        test_pairs.test_the_error_of_the_share_is_that_of_drawing_anchors_again,
    ),
    Wrong(
        "the temperature is chosen on the anchors that are measured",
        "info_nce",
        "losses[:, ::2]",
        "losses[:, 1::2]",
        test_pairs.test_the_temperature_is_chosen_on_other_anchors_than_it_is_measured_on,
    ),
    Wrong(
        "the positive is not among the candidates that are counted",
        "info_nce",
        "cap = math.log(n)",
        "cap = math.log(n - 1)",
        lambda: test_pairs.test_the_bound_of_symbols_that_both_views_show_is_their_entropy(5),
    ),
    # ranks
    Wrong(
        "eigenvalues are taken for singular values",
        "rankme",
        "singular = np.sqrt(np.maximum(values, 0))",
        "singular = np.maximum(values, 0)",
        example(test_directions.test_rankme_is_the_papers_formula_on_singular_values, 30, 5, 0, 0.0),
    ),
    Wrong(
        "the slope of the root is forgotten",
        "rankme",
        "(2 * singular[counted] * singular.sum())",
        "(singular[counted] * singular.sum())",
        test_directions.test_the_error_of_rankme_is_that_of_deleting_one_row_after_the_other,
    ),
    Wrong(
        "huge spaces overflow",
        "rankme",
        ".astype(np.float64) / largest",
        ".astype(np.float64)",
        lambda: test_directions.test_the_size_of_the_space_changes_nothing(1e200),
    ),
    Wrong(
        "a row is its own pair",
        "anisotropy",
        "(rows @ total - own) / (n - 1)",
        "(rows @ total + 0 * own) / n",
        test_directions.test_anisotropy_of_a_simplex_is_that_of_its_angles,
    ),
    Wrong(
        "a class is spanned about the origin",
        "classes",
        "centre = rows.mean(axis=0, dtype=np.float64)",
        "centre = 0 * rows.mean(axis=0, dtype=np.float64)",
        lambda: test_directions.test_the_rank_of_a_class_is_that_of_its_own_rows(4),
    ),
    Wrong(
        "the smallest classes are kept",
        "classes",
        "np.argsort(-counts",
        "np.argsort(counts",
        lambda: with_patch(test_directions.test_only_the_largest_classes_are_measured_where_there_are_many),
    ),
    Wrong(
        "a neighbourhood is spanned about the origin",
        "local",
        "near -= near.mean(axis=1, keepdims=True)",
        "pass",
        local,
    ),
    Wrong("the square of the sum is the sum", "local", "total**2 / np.where", "total / np.where", local),
    Wrong(
        "rounding has dimensions",
        "local",
        "spread = total > 1e-12 * k",
        "spread = total >= 0",
        test_directions.test_rows_that_coincide_have_no_dimensions,
    ),
    # hubness and clusters
    Wrong(
        "neighbours are counted by who asks",
        "hubness",
        "np.bincount(neighbours.ravel()",
        "np.bincount(np.repeat(np.arange(len(neighbours)), neighbours.shape[1])",
        test_hubness.test_a_star_has_one_hub_and_its_rest_is_never_found,
    ),
    Wrong(
        "the skewness is not standardised by the cube",
        "hubness",
        "np.where(varies, variance, 1) ** 1.5",
        "np.where(varies, variance, 1)",
        example(test_hubness.test_occurrences_and_their_skewness_are_scikit_learns_and_scipys, 5, 6, 0),
    ),
    Wrong(
        "rare rows are antihubs",
        "hubness",
        "counts == 0",
        "counts <= 1",
        test_hubness.test_a_star_has_one_hub_and_its_rest_is_never_found,
    ),
    Wrong(
        "the squared length of a centre is left out",
        "k_means",
        "2 * (some @ centres.T) - np.square(centres).sum(axis=1)",
        "2 * (some @ centres.T) - 1",
        lambda: test_clusters.test_clusters_are_as_tight_as_scikit_learns(30),
    ),
    Wrong(
        "the loosest run is kept",
        "k_means",
        "if spread < best:",
        "if spread == spread:",
        lambda: test_clusters.test_the_tightest_run_is_kept(),
    ),
    Wrong(
        "lost centres stay lost",
        "k_means",
        "centres[empty] = rows",
        "centres[empty] + rows",
        test_clusters.test_a_centre_that_lost_its_rows_starts_anew,
    ),
    Wrong(
        "ARI is not corrected for chance",
        "clusters",
        "expected = ours * theirs / (n * (n - 1) / 2)",
        "expected = 0 * ours",
        example(test_clusters.test_both_numbers_are_scikit_learns, [(0, 0), (0, 0), (0, 1), (1, 1), (1, 1), (1, 0)]),
    ),
    Wrong(
        "NMI is divided by the sum of the entropies",
        "clusters",
        "2 * information / np.where",
        "information / np.where",
        test_clusters.test_equal_partitions_agree_wholly_and_independent_ones_by_chance,
    ),
    Wrong(
        "deleting a row leaves its class as large as it was",
        "clusters",
        "total - of(part) + of(part - 1)",
        "total - 0 * of(part)",
        lambda: test_clusters.test_the_errors_are_those_of_deleting_one_row_after_the_other(1),
    ),
)


def test_every_measure_has_a_mutant():
    mine = {"pairs", "similarity", "separation", "nearer", "false_negatives", "gradient", "info_nce", "rankme"}
    assert {wrong.module for wrong in WRONG} == mine | {
        "anisotropy",
        "classes",
        "local",
        "hubness",
        "clusters",
        "k_means",
    }
    assert len({wrong.name for wrong in WRONG}) == len(WRONG)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_law_kills_what_the_right_version_passes(wrong: Wrong) -> None:
    assert not broken(wrong.law)
    with applied(Mutant(wrong.name, "audit", f"pipeline.audit.{wrong.module}", wrong.old, wrong.new)):
        assert broken(wrong.law), f"survived: {wrong.name}"
