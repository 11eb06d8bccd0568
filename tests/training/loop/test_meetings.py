"""Ranks meet in the same order, whatever each has to do and whenever it looks at the disk."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch
from toy_corpus import short_recipe, toy_corpus
from toy_training import ToyWork, toy_run

from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.loop.step import compute_gradients
from bertsmith.training.pretrain.pretrain import RECIPE, Job, pretrain


class Busier(Ranks):
    """One of two ranks: the other has two micro-batches more, and every pass is a meeting."""

    def __init__(self, events: list[str]) -> None:
        self._events = events

    def passes(self, own: int) -> int:
        self._events.append("agree")
        return own + 2


@dataclass
class Heard(ToyWork):
    events: list[str] = field(default_factory=list)

    def loss(self, model, batch):
        self.events.append("pass")
        return super().loss(model, batch)


def test_ranks_agree_on_their_passes_before_the_first_one(tmp_path) -> None:
    """Sharded weights are gathered in every pass: a rank that agrees later waits for ever."""
    events: list[str] = []
    work = Heard(events=events)
    run = replace(toy_run(tmp_path, workload=work), execution=Execution(ranks=Busier(events)))
    batches = work.micro_batches(0, 0.0)
    compute_gradients(run, batches, step=0, rate=0.1)
    assert events == ["agree", *["pass"] * (len(batches) + 2)]


def test_idle_passes_add_nothing_to_the_gradient(tmp_path) -> None:
    found = []
    for ranks in (Ranks(), Busier([])):
        run = replace(toy_run(tmp_path), execution=Execution(ranks=ranks))
        compute_gradients(run, run.workload.micro_batches(1, 0.0), step=1, rate=0.1)
        found.append([p.grad.clone() for p in run.model.parameters() if p.grad is not None])
    assert found[0]
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


class Counting(Ranks):
    """Counts its meetings about flags, and stops the run before the loop."""

    def __init__(self) -> None:
        self.meetings = 0

    def any(self, flag: bool) -> bool:
        self.meetings += 1
        return flag

    def watched(self):
        raise InterruptedError


def test_a_recipe_that_stands_there_already_changes_no_meeting(tmp_path: Path) -> None:
    """The first rank writes it; another may look for it before or after that."""
    corpus = toy_corpus(tmp_path / "corpus")
    job = Job(recipe=short_recipe("bert"), corpus=corpus, out=tmp_path / "run")
    counted = []
    for written in (False, True):
        assert (job.out / RECIPE).exists() == written
        ranks = Counting()
        with pytest.raises(InterruptedError):
            pretrain(job, execution=Execution(ranks=ranks))
        counted.append(ranks.meetings)
    assert counted[0] == counted[1] > 0
