"""Movement and retrieval on spaces of known geometry, and the weighted medians against plain ones."""

import numpy as np
import pytest
import torch

from pipeline.achieved.movement import movement, retrieved, spacing
from pipeline.check.interval import Resampled

N, D = 60, 8


def sphere(n=N, d=D, seed=0):
    rows = torch.from_numpy(np.random.default_rng(seed).normal(size=(n, d)))
    return torch.nn.functional.normalize(rows, dim=1)


def plain_median(values):
    """The lower median."""
    ranked = np.sort(values)
    return ranked[(len(ranked) - 1) // 2]


def test_the_spacing_is_the_median_of_pairs_on_the_rows_of_each_resample():
    rows, resampled = sphere(30), Resampled.of(np.arange(30), 0)
    found = spacing(rows, resampled).numpy()
    distances = torch.cdist(rows, rows).numpy()
    for number in (0, 1, 17):
        drawn = np.repeat(np.arange(30), resampled.weights[number].long().numpy())
        pairs = [distances[i, j] for at, i in enumerate(drawn) for j in drawn[:at] if i != j]
        assert found[number] == pytest.approx(plain_median(pairs), abs=1e-6)


def test_what_does_not_move_has_moved_by_nothing_and_finds_itself():
    rows, resampled = sphere(), Resampled.of(np.arange(N), 0)
    changed = torch.arange(N)
    assert float(movement(rows, rows, changed, spacing(rows, resampled), resampled).max()) == 0
    assert bool(retrieved(rows, rows, changed).all())


def test_what_is_replaced_by_another_sample_has_moved_by_about_one():
    rows, resampled = sphere(200, 64), Resampled.of(np.arange(200), 0)
    moved, changed = rows.roll(1, 0), torch.arange(200)
    drawn = movement(rows, moved, changed, spacing(rows, resampled), resampled)
    assert float(drawn[0]) == pytest.approx(1, abs=0.05)
    assert not bool(retrieved(rows, moved, changed).any())


@pytest.mark.parametrize("angle", [0.1, 0.4, 1.0])
def test_a_turn_by_an_angle_moves_by_its_chord(angle):
    """Along a direction that no row has, cos(angle)·x + sin(angle)·e is 2·sin(angle / 2) away from x."""
    rows = torch.cat([sphere(), torch.zeros(N, 1, dtype=torch.float64)], dim=1)
    away = torch.zeros_like(rows)
    away[:, -1] = 1
    moved, resampled = np.cos(angle) * rows + np.sin(angle) * away, Resampled.of(np.arange(N), 0)
    apart = spacing(rows, resampled)
    drawn = movement(rows, moved, torch.arange(N), apart, resampled)
    assert float(drawn[0]) == pytest.approx(2 * np.sin(angle / 2) / float(apart[0]), rel=1e-6)


def test_only_the_pictures_that_were_changed_count():
    rows, resampled = sphere(), Resampled.of(np.arange(N), 0)
    moved = rows.clone()
    moved[:5] = -rows[:5]
    apart = spacing(rows, resampled)
    few = movement(rows, moved, torch.arange(5), apart, resampled)
    assert float(few[0]) == pytest.approx(2 / float(apart[0]))
    assert float(movement(rows, moved, torch.arange(N), apart, resampled)[0]) == 0


def test_the_interval_covers_the_movement_of_all_pictures():
    """Of 100 samples from one population nearly all intervals hold the population's own figure."""
    rows = sphere(3000, 4, seed=1)
    step = 0.3 * torch.from_numpy(np.random.default_rng(2).normal(size=rows.shape))
    moved = torch.nn.functional.normalize(rows + step, dim=1)
    truth = float((rows - moved).norm(dim=1).median() / torch.pdist(rows).median())
    held = 0
    for trial in range(40):
        some = torch.from_numpy(np.random.default_rng(trial).permutation(3000)[:80])
        resampled = Resampled.of(np.arange(80), trial)
        drawn = movement(rows[some], moved[some], torch.arange(80), spacing(rows[some], resampled), resampled)[
            1:
        ].numpy()
        low, high = np.percentile(drawn, [2.5, 97.5])
        held += low <= truth <= high
    assert held >= 34


def test_a_tie_finds_nothing():
    rows = sphere().clone()
    rows[1] = rows[0]
    hits = retrieved(rows, rows, torch.arange(N))
    assert hits.tolist()[:3] == [False, False, True]


def test_a_mean_over_resamples_is_that_of_the_repeated_rows():
    resampled, rows = Resampled.of(np.arange(40), 3), torch.tensor([3, 7, 21, 39])
    values = torch.randn(4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = resampled.mean(values, rows)
    for resample in (0, 1, 17, 600):
        times = resampled.weights[resample, rows].long()
        drawn = values.repeat_interleave(times)
        assert float(found[resample]) == pytest.approx(float(drawn.mean()) if len(drawn) else 0.0, abs=1e-12)
