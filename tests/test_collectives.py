"""Ranks: gathered rows, sums and gradients of three gloo processes are those of one, to the last digits."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, multiprocessing, nn
from torch import distributed as dist

from pipeline import collectives
from pipeline.contrast import Term, mean_terms
from pipeline.objectives import AlignmentUniformity, NTXent
from pipeline.reduction import reduced
from pipeline.samplers import InBatch

ROWS, WIDTH = 12, 5


def test_on_one_process_everything_is_itself() -> None:
    rows = torch.randn(4, 3, requires_grad=True)
    assert (collectives.world(), collectives.rank()) == (1, 0)
    assert collectives.gather(rows) is rows
    assert torch.equal(collectives.own(rows), rows)
    assert torch.equal(collectives.total(rows), rows)
    assert not collectives.total(rows).requires_grad
    assert torch.equal(collectives.top(rows), rows)


def inputs() -> tuple[Tensor, nn.Module]:
    torch.manual_seed(0)
    x = torch.randn(ROWS, WIDTH, dtype=torch.float64)
    return x, nn.Sequential(nn.Linear(WIDTH, 7), nn.Tanh(), nn.Linear(7, 4)).double()


def weighted(gathered: Tensor, anchors: Tensor, rows: Tensor) -> Tensor:
    """A loss in which every anchor reads every gathered row, each pair with its own weight."""
    weights = torch.sin(torch.arange(len(gathered), dtype=torch.float64) + 3 * rows[:, None])
    return (weights * (anchors @ gathered.T)).square().sum()


def contrast_of(z: Tensor, samples: Tensor, all_z: Tensor | None, everyone: Tensor | None) -> Any:
    def columns(samples: Tensor) -> dict[str, Tensor]:
        return {"sample": samples, "view": torch.arange(len(samples)) % 2}

    return InBatch(kind="in_batch").contrast(
        z, columns(samples), "cosine", 0.3, "l2", all_z, None if everyone is None else columns(everyone)
    )


def masked(terms: tuple[Term, ...], kept: Tensor) -> tuple[Term, ...]:
    """The same terms with anchors taken out: the ranks then have different numbers of valid ones."""
    return tuple(
        Term(each.values, each.counted & kept, each.weight, each.outer) if len(each.values) == len(kept) else each
        for each in terms
    )


KEPT = {
    "all": torch.ones(ROWS, dtype=torch.bool),
    "uneven": torch.arange(ROWS) % 5 > 1,
    "none on rank 0": torch.arange(ROWS) >= ROWS // 2,
    "none at all": torch.zeros(ROWS, dtype=torch.bool),
}
OBJECTIVES = {
    "identity": NTXent(kind="nt_xent"),
    "log_mean_exp": AlignmentUniformity(kind="alignment_uniformity", t=2.0, weight=0.7),
}


def gradients(module: nn.Module) -> list[Tensor]:
    return [weight.grad.clone() for weight in module.parameters() if weight.grad is not None]


def on_rank(rank: int, world: int, port: int, folder: str) -> None:
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    x, module = inputs()
    mine = collectives.own(x)
    rows = collectives.own(torch.arange(ROWS))
    results: dict[str, Any] = {
        "rank": (collectives.rank(), collectives.world()),
        "rows": rows,
        "gathered integers": collectives.gather(rows),
        "total": collectives.total(torch.tensor(rank + 1.0)),
        "top": collectives.top(torch.tensor(float(rank))),
    }

    # DDP by hand: every rank's gradient, averaged, of a loss that was multiplied by the number of ranks
    def averaged(loss: Tensor) -> list[Tensor]:
        module.zero_grad()
        (loss * world).backward()
        found = gradients(module)
        for gradient in found:
            dist.all_reduce(gradient)
            gradient /= world
        return found

    gathered = collectives.gather(module(mine))
    results["gathered"] = gathered.detach()
    results["gather gradient"] = averaged(weighted(gathered, module(mine), rows))
    samples = torch.arange(ROWS) // 2
    for name, objective in OBJECTIVES.items():
        for kept, mask in KEPT.items():
            z = collectives.gather(module(mine))
            contrast = contrast_of(collectives.own(z), collectives.own(samples), z, samples)
            loss, value = reduced(masked(objective.terms(contrast), collectives.own(mask)))
            results[f"{name}, {kept}"] = (value, averaged(loss))
    torch.save(results, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder, world = tmp_path_factory.mktemp("ranks"), 3
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(on_rank, (world, port, str(folder)), nprocs=world)
    return [torch.load(folder / f"{rank}.pt") for rank in range(world)]


def test_rows_are_divided_in_order_and_gathered_in_order(ranks: list[dict[str, Any]]) -> None:
    assert [each["rank"] for each in ranks] == [(rank, len(ranks)) for rank in range(len(ranks))]
    assert torch.cat([each["rows"] for each in ranks]).tolist() == list(range(ROWS))
    x, module = inputs()
    for each in ranks:
        assert each["gathered integers"].tolist() == list(range(ROWS))
        torch.testing.assert_close(each["gathered"], module(x).detach(), rtol=1e-12, atol=1e-12)
        assert float(each["total"]) == sum(range(1, len(ranks) + 1))
        assert float(each["top"]) == len(ranks) - 1


def close(found: list[Tensor], expected: list[Tensor]) -> None:
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


def test_the_gradient_through_gather_is_that_of_one_process(ranks: list[dict[str, Any]]) -> None:
    x, module = inputs()
    z = module(x)
    weighted(z, z, torch.arange(ROWS)).backward()
    for each in ranks:
        close(each["gather gradient"], gradients(module))


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("outer", OBJECTIVES)
def test_loss_and_gradient_are_those_of_one_process_whatever_the_ranks_valid_anchors(
    ranks: list[dict[str, Any]], outer: str, kept: str
) -> None:
    x, module = inputs()
    terms = masked(OBJECTIVES[outer].terms(contrast_of(module(x), torch.arange(ROWS) // 2, None, None)), KEPT[kept])
    loss = mean_terms(terms)
    loss.backward()
    for each in ranks:
        value, found = each[f"{outer}, {kept}"]
        assert value == pytest.approx(float(loss.detach()), abs=1e-12)
        close(found, gradients(module))
