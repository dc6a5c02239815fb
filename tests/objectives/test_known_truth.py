"""InfoNCE against a truth that is known: correlated Gaussians, their mutual information and their density ratio.

Van den Oord et al. 2018, section 2.3 and appendix A; Poole et al. 2019, arXiv:1905.06922. x and c are standard normal
in d dimensions with correlation r: I(x; c) = -d/2 log(1 - r^2), and the optimal critic is log p(x|c) / p(x).
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from pipeline.contrast import Codes, Contrast, Relation
from pipeline.objectives import info_nce, information_bound
from pipeline.objectives.nt_xent import nt_xent_terms

pytestmark = pytest.mark.usefixtures("one_thread")


def pairs(count: int, dim: int, correlation: float, generator: torch.Generator):
    context = torch.randn(count, dim, generator=generator, dtype=torch.float64)
    noise = torch.randn(count, dim, generator=generator, dtype=torch.float64)
    return context, correlation * context + math.sqrt(1 - correlation**2) * noise


def optimal(context, value, correlation):
    """Queries and keys whose dot product is log p(x|c) / p(x), up to a function of c, which InfoNCE does not see.

    -(x - rc)^2 / 2(1 - r^2) + x^2 / 2 = rcx / (1 - r^2) - r^2 x^2 / 2(1 - r^2) + f(c), summed over dimensions.
    """
    v = 1 - correlation**2
    queries = torch.cat([context * correlation / v, torch.ones(len(context), 1, dtype=context.dtype)], 1)
    keys = torch.cat([value, -(correlation**2) / (2 * v) * value.square().sum(1, keepdim=True)], 1)
    return queries, keys


def anchors(queries, keys):
    row = torch.arange(len(queries))
    relation = Relation(Codes(-1 - row, row), Codes(row, row))
    (term,) = nt_xent_terms(Contrast.of(queries, relation, metric="dot", candidates=keys))
    return term.values


@pytest.mark.parametrize("correlation", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("dim", [1, 4])
def test_the_bound_of_the_optimal_critic_stays_below_the_truth_and_below_log_n(correlation, dim):
    truth = -dim / 2 * math.log(1 - correlation**2)
    generator = torch.Generator().manual_seed(dim)
    estimates = {}
    for count in (8, 64, 256):
        bounds = []
        for _ in range(max(2048 // count, 16)):
            queries, keys = optimal(*pairs(count, dim, correlation, generator), correlation)
            bounds.append(information_bound(float(info_nce(queries, keys, 1.0, metric="dot")), count))
        bounds = torch.tensor(bounds)
        error = 3 * float(bounds.std()) / math.sqrt(len(bounds))
        estimates[count] = float(bounds.mean())
        assert estimates[count] <= min(truth, math.log(count)) + error
    assert estimates[8] <= estimates[64] + 0.05
    assert estimates[64] <= estimates[256] + 0.05
    if truth < math.log(256) - 3:  # enough candidates: the bound is tight
        assert estimates[256] == pytest.approx(truth, abs=0.1)


def test_the_bound_saturates_at_log_n_where_the_truth_is_larger():
    truth = -10 * math.log(1 - 0.95**2)  # 20 dimensions: 23 nats
    generator = torch.Generator().manual_seed(0)
    for count in (4, 16, 64):
        queries, keys = optimal(*pairs(count, 20, 0.95, generator), 0.95)
        bound = information_bound(float(info_nce(queries, keys, 1.0, metric="dot")), count)
        assert truth > 20
        assert math.log(count) - 0.05 < bound <= math.log(count)


def test_a_trained_critic_recovers_the_density_ratio_up_to_a_function_of_the_context():
    """CPC's density ratio: f(x, c) = log p(x|c) / p(x) + constant(c), compared after removing each context's mean."""
    correlation = 0.8
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)

    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.query = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 8))
            self.key = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 8))

    critic = Critic().double()
    optimizer = torch.optim.Adam(critic.parameters(), lr=3e-3)
    steps = 600
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        context, value = pairs(256, 1, correlation, generator)
        optimizer.zero_grad()
        info_nce(critic.query(context), critic.key(value), 1.0, metric="dot").backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        context, value = (
            torch.linspace(-1.5, 1.5, 13)[:, None].double(),
            torch.linspace(-1.5, 1.5, 13)[:, None].double(),
        )
        learned = critic.query(context) @ critic.key(value).T
        queries, keys = optimal(context, value, correlation)
        truth = queries @ keys.T
    seen = truth > truth.max(1, keepdim=True).values - 4  # what is e^4 times less likely is not learned from samples
    assert seen.double().mean() > 0.6
    learned, truth = (f - (f * seen).sum(1, keepdim=True) / seen.sum(1, keepdim=True) for f in (learned, truth))
    assert (learned - truth)[seen].abs().max() < 0.3  # the truth spans 4 nats in each row
    assert torch.corrcoef(torch.stack([learned[seen], truth[seen]]))[0, 1] > 0.995


def test_an_anchors_loss_is_minus_log_of_its_posterior_among_the_candidates():
    """With the optimal critic softmax(logits) is the posterior probability of which candidate belongs to c."""
    generator = torch.Generator().manual_seed(1)
    context, value = pairs(16, 3, 0.7, generator)
    densities = torch.distributions.Normal(0.7 * context[:, None], math.sqrt(1 - 0.49)).log_prob(value[None]).sum(-1)
    prior = torch.distributions.Normal(0.0, 1.0).log_prob(value).sum(-1)
    posterior = (densities - prior).softmax(1).diagonal()
    assert torch.allclose(anchors(*optimal(context, value, 0.7)), -posterior.log())
