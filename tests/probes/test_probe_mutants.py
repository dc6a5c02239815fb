"""Wrong versions of the probes, each killed by a law that the right version keeps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import test_intervals as intervals  # noqa: E402
import test_knn as knn  # noqa: E402
import test_linear as linear  # noqa: E402
import test_probing as probing  # noqa: E402
import test_ridge as ridge  # noqa: E402
import test_strata as strata  # noqa: E402
import test_unchanged as unchanged  # noqa: E402
from mutants import Mutant, Wrong, applied, broken_in  # noqa: E402

Law = Callable[[Path, pytest.MonkeyPatch], object]


def blocks(_: Path, patch: pytest.MonkeyPatch) -> None:
    for k in (1, 5, 60):
        knn.test_blocks_of_any_size_find_the_same_neighbours(k, 7, 32, 4, 64, patch)


def orders(_: Path, patch: pytest.MonkeyPatch) -> None:
    for order in ("nearer and nearer", "by class", "all alike"):
        knn.test_no_order_of_the_gallery_misleads_the_search(order, patch)


def stage(test: Callable[[Path], object]) -> Law:
    """A test of the stage, in its own folder with its usual space."""

    def law(folder: Path, patch: pytest.MonkeyPatch) -> None:
        patch.chdir(folder)
        (folder / "specs").mkdir()
        probing.write_spec()
        probing.write_space()
        test(folder)

    return law


def alone(test: Callable[[], object]) -> Law:
    return lambda _, __: test()


NEAR, FOUND, PROBES = "pipeline.neighbours", "pipeline.candidates", "pipeline.probes."
WRONG = (
    Wrong("a short query is not searched again", NEAR, "if estimated and len(short):", "if False:", orders),
    Wrong("places of a later block are those of the first", FOUND, "= places[row]", "= row", blocks),
    Wrong("a merged block has the places of the first", FOUND, "places[np.maximum(best - self.k, 0)]", "best", blocks),
    Wrong("the sample is searched twice", NEAR, "others[sample.places] = False", "pass", blocks),
    Wrong("the sample is not searched", NEAR, "yield sample.places", "yield sample.places[:1]", blocks),
    Wrong("a full query is not cut back", FOUND, "self.cut()  # which raises the floors", "pass", blocks),
    Wrong(
        "a merged block may lie below the floor",
        FOUND,
        "np.where(above, scores, -np.inf), places",
        "scores, places",
        lambda _, patch: knn.test_a_sample_that_promises_too_much_is_searched_again(patch),
    ),
    Wrong(
        "of equal ones at the border all are kept",
        FOUND,
        "level[tied] &= ",
        "level[tied] | ",
        alone(knn.test_many_equal_similarities_are_no_trouble),
    ),
    Wrong("the floor is the best of k", FOUND, "values.min(axis=1))", "values.max(axis=1))", blocks),
    Wrong("lengths are not taken out", NEAR, "scaled /= np.where(lengths > 0, lengths, 1)", "pass", blocks),
    Wrong(
        "every neighbour has one vote",
        PROBES + "knn",
        "- largest) / temperature",
        "- largest) * 0",
        alone(knn.test_the_weighted_vote_is_that_of_scikit_learn),
    ),
    Wrong(
        "votes of later parts go to the first",
        PROBES + "knn",
        "labels[some]",
        "labels[: len(weight)]",
        lambda _, patch: knn.test_votes_counted_in_parts_are_the_same(patch),
    ),
    Wrong(
        "the penalty counts whole",
        PROBES + "softmax",
        "value += regularization / 2 *",
        "value += regularization *",
        alone(linear.test_the_regularization_is_the_declared_one_against_the_mean_loss),
    ),
    Wrong(
        "the penalty's gradient is lost",
        PROBES + "softmax",
        "np.float32(regularization) * weights",
        "0 * weights",
        alone(linear.test_the_regularization_is_the_declared_one_against_the_mean_loss),
    ),
    Wrong(
        "the loss is summed",
        PROBES + "softmax",
        "return value / len(rows), slope / len(rows), lean / len(rows)",
        "return value, slope, lean",
        alone(linear.test_the_gradient_is_that_of_differences),
    ),
    Wrong(
        "offsets have no gradient",
        PROBES + "softmax",
        "lean += scores.sum(axis=1, dtype=np.float64)",
        "pass",
        alone(linear.test_the_gradient_is_that_of_differences),
    ),
    Wrong(
        "features are not whitened",
        PROBES + "whitening",
        "inside = (CURVATURE * self.variances + regularization) ** power",
        "inside = (CURVATURE * self.variances * 0 + 1) ** power",
        alone(linear.test_whitening_makes_the_covariance_that_of_the_identity),
    ),
    Wrong(
        "the regularization is chosen by the rows that it was fitted to",
        PROBES + "linear",
        "rows[fitted], rows[tried], codes[tried]",
        "rows[fitted], rows[fitted], codes[fitted]",
        alone(linear.test_the_regularization_is_that_of_most_right_answers_on_the_held_out_rows),
    ),
    Wrong(
        "what is chosen is fitted to four fifths",
        PROBES + "linear",
        "best = solve(rows, codes, len(classes), regularization, white, each, start, iterations=iterations)",
        "best = start or solve(rows, codes, len(classes), regularization, white, each, start, iterations=iterations)",
        alone(linear.test_what_is_chosen_is_fitted_to_all_rows),
    ),
    Wrong(
        "a constant dimension is scaled by its rounding",
        PROBES + "standard",
        "np.where(spread > CONSTANT * np.abs(centre), spread, np.inf)",
        "spread",
        lambda _, __: linear.test_a_constant_dimension_is_ignored(1e4),
    ),
    Wrong(
        "answers are places among the classes, not their codes",
        PROBES + "linear",
        "self.classes[self.standard.scores(features, self.weights, self.offsets).argmax(axis=1)]",
        "self.standard.scores(features, self.weights, self.offsets).argmax(axis=1)",
        alone(linear.test_a_class_that_no_training_row_has_is_never_answered),
    ),
    Wrong(
        "the ridge's penalty grows with the rows",
        PROBES + "ridge",
        "+= regularization\n",
        "+= regularization * count\n",
        lambda _, __: ridge.test_the_probe_is_scikit_learns_ridge(300, 10, 1e-2),
    ),
    Wrong(
        "the ridge's regularization is chosen by the rows that it was fitted to",
        PROBES + "ridge",
        "rows[tried] - centre, aim[tried] - mean",
        "rows[fitted] - centre, aim[fitted] - mean",
        alone(ridge.test_the_regularization_is_that_of_the_least_error_on_the_held_out_rows),
    ),
    Wrong(
        "a column has the coefficients of the first",
        PROBES + "ridge",
        "solved[strength][:, [at]]",
        "solved[strength][:, [0]]",
        alone(ridge.test_columns_are_fitted_as_if_each_were_alone),
    ),
    Wrong(
        "draws do not differ",
        PROBES + "strata",
        "(SEED, percent, draw)",
        "(SEED, percent)",
        alone(strata.test_draws_differ_and_come_back),
    ),
    Wrong(
        "draws are not by class",
        PROBES + "strata",
        "rank < (size * percent + 50) // 100",
        "rank < (len(codes) * percent + 50) // 100",
        alone(strata.test_a_draw_has_its_share_of_each_class_rounded_half_up),
    ),
    Wrong(
        "the interval forgets the draws",
        PROBES + "intervals",
        "drawn = float(right.mean(axis=1).var(ddof=1)) / draws",
        "drawn = 0.0",
        lambda _, __: intervals.test_intervals_over_draws_cover_as_often_as_they_say(0.3, 1.0),
    ),
    Wrong(
        "the interval forgets the test rows",
        PROBES + "intervals",
        "tested = float(right.mean(axis=0).var(ddof=1)) / rows",
        "tested = 0.0",
        lambda _, __: intervals.test_intervals_over_draws_cover_as_often_as_they_say(0.0, 3.0),
    ),
    Wrong(
        "the error of R² forgets what it is relative to",
        PROBES + "intervals",
        "left - ratio * whole",
        "left",
        lambda _, __: intervals.test_intervals_of_r2_and_of_the_mean_error_are_those_of_a_bootstrap(2.0),
    ),
    Wrong(
        "shuffled labels are not shuffled",
        "pipeline.probing.classes",
        "known if control is None else np.random.default_rng(SEED).permutation(known)",
        "known",
        stage(probing.test_good_layers_are_told_from_controls),
    ),
    Wrong(
        "shuffled numbers are not shuffled",
        "pipeline.probing.numbers",
        "known if control is None else {label: random.permutation(known[label]) for label in labels}",
        "known",
        stage(probing.test_good_layers_are_told_from_controls),
    ),
    Wrong(
        "a split is read in the place of another",
        "pipeline.probing.numbers",
        "fitted[label].predict(layer.asked[split])",
        'fitted[label].predict(layer.asked["test"])',
        stage(probing.test_each_regression_figure_is_scikit_learns_at_the_regularization_that_it_states),
    ),
    Wrong(
        "chance says the mean of the test rows",
        "pipeline.probing.numbers",
        "explained(truth - mean, truth - truth.mean())",
        "explained(truth - truth.mean(), truth - truth.mean())",
        stage(probing.test_each_regression_figure_is_scikit_learns_at_the_regularization_that_it_states),
    ),
    Wrong(
        "what is proved counts as training",
        "pipeline.network",
        "    return network.eval()\n",
        "    return network.train()\n",
        unchanged.assert_unchanged,
    ),
)


def test_names_are_told_apart() -> None:
    assert len({wrong.name for wrong in WRONG}) == len(WRONG)


def failing(law: Law, folder: Path) -> bool:
    """Whether a law fails, in a folder of its own, with patches that end with it."""
    with pytest.MonkeyPatch.context() as patch:
        return broken_in(folder, law, patch)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_law_kills_what_the_right_version_passes(tmp_path: Path, wrong: Wrong) -> None:
    assert not failing(wrong.law, tmp_path / "right")
    with applied(Mutant(wrong.name, "probes", wrong.module, wrong.old, wrong.new)):
        assert failing(wrong.law, tmp_path / "wrong"), f"survived: {wrong.name}"
