"""The similarity loss equals plain loops; chunks of a batch give the gradients of one pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from tiny_writing import alike, writing_job
from torch import Tensor

from bertsmith.errors import ConfigError
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.write.learner import WriteJob, prepare_writing, write_learner
from bertsmith.training.kinds.write.similarity import (
    SIMILARITY,
    BothDirections,
    SimilarWorkload,
    candidates,
    similarity_losses,
)
from bertsmith.training.learner import run_job
from bertsmith.training.loop.workload import StepGradients

KEYS = torch.tensor([[0, 1], [2, 3], [0, 4], [5, 6]])  # pairs 0 and 2 share a text


def looped(vectors: Tensor, keys: Tensor, scale: float) -> list[float]:
    """Row by row: cosines to every row that is no own row and shares no text."""
    losses = []
    rows = len(vectors)
    unit = [one / one.norm() for one in vectors]
    for i in range(rows):
        mine = set(keys[i // 2].tolist())
        neighbor = i + 1 if i % 2 == 0 else i - 1
        logits = {}
        for j in range(rows):
            theirs = set(keys[j // 2].tolist())
            if j == neighbor or (j != i and not mine & theirs):
                logits[j] = float(unit[i] @ unit[j]) * scale
        total = sum(math.exp(value) for value in logits.values())
        losses.append(math.log(total) - logits[neighbor])
    return losses


def test_losses_equal_loops() -> None:
    vectors = torch.randn(8, 5, generator=torch.Generator().manual_seed(2))
    found = similarity_losses(vectors, KEYS, 30.0)
    assert found.tolist() == pytest.approx(looped(vectors, KEYS, 30.0), abs=1e-4)
    found = similarity_losses(vectors, KEYS, 1.0)
    apart = similarity_losses(vectors, torch.arange(8).view(4, 2), 1.0)
    assert float(apart[0]) > float(found[0])  # the pair that shares its text was a negative


def test_rows_that_share_a_text_are_no_candidates() -> None:
    found = candidates(KEYS)
    assert found.sum(dim=1).tolist() == [5, 5, 7, 7, 5, 5, 7, 7]
    assert not found.diagonal().any()
    assert found[0, 1]
    assert not found[0, 4]
    assert not found[0, 5]


def test_both_directions_and_texts_that_are_equal_as_sources() -> None:
    sources = [np.array(ids, dtype=np.int32) for ids in ([1], [2], [1])]
    targets = [np.array(ids, dtype=np.int32) for ids in ([7], [8], [9])]
    both = BothDirections.of(sources, targets, np.array([[0, 1], [2, 1]]))
    assert [one.tolist() for one in both.rows.sources] == [[1], [2], [1], [2]]
    assert [one.tolist() for one in both.rows.targets] == [[8], [7], [8], [9]]
    assert both.keys.tolist() == [[0, 1], [0, 1]]


def gradients(job: WriteJob, micro_tokens: int) -> tuple[dict[str, Tensor], list[Any]]:
    execution = Execution()
    plan = {**job.recipe.plan.model_dump(), "micro_tokens": micro_tokens}
    sections = {**job.recipe.model_dump(), "plan": plan}
    prepared = prepare_writing(
        WriteJob(
            recipe=type(job.recipe).model_validate(sections),
            task=job.task,
            model=job.model,
            rows=job.rows,
        ),
        execution,
    )
    workload = prepared.inputs.workload
    batches = workload.micro_batches(0, 0.0)
    assert isinstance(workload, SimilarWorkload)
    model = prepared.inputs.model.train()
    torch.manual_seed(5)
    step = StepGradients(
        workload,
        model,
        totals=dict(workload.counts(batches[0])),
        idle=0,
        execution=execution,
    )
    workload.backward(batches, step)
    found = {
        name: weight.grad.clone()
        for name, weight in model.named_parameters()
        if weight.grad is not None
    }
    return found, [len(batches[0].chunks), step.sums, step.counts]


def test_chunks_give_the_gradients_of_one_pass(tiny: str) -> None:
    job = writing_job(tiny, "similar", sections={"plan": {"steps": 1, "batch": 12}})
    whole, (one, sums, counts) = gradients(job, 100_000)
    parts, (several, more_sums, more_counts) = gradients(job, 60)
    assert (one, several > 2) == (1, True)
    assert counts == more_counts
    for name in ("writing", SIMILARITY):
        left, right = (
            sum(float(part[name]) for part in some if name in part) for some in (sums, more_sums)
        )
        assert left == pytest.approx(right, rel=1e-5)
    assert whole.keys() == parts.keys()
    for name, gradient in whole.items():
        torch.testing.assert_close(parts[name], gradient, rtol=1e-4, atol=1e-6, msg=name)


def test_both_losses_fall_below_those_of_guessing(tiny: str) -> None:
    sections = {
        "plan": {"steps": 150, "batch": 24, "evaluations": 1},
        "optimizer": {"lr": 3e-3},
        "writing": {"smoothing": 0.0},
    }
    result = run_job(write_learner(), writing_job(tiny, "similar", sections=sections, rows=400))
    best = result.outcome.best
    assert best is not None
    assert best.losses["writing"] < result.finished.writing.usual["writing"] - 0.3
    assert best.losses[SIMILARITY] < result.finished.writing.usual[SIMILARITY] - 1.0
    assert best.figures["neighbor_accuracy"] > 0.6


def test_a_single_pair_is_refused(tiny: str) -> None:
    job = writing_job(tiny, "similar", sections={"plan": {"steps": 1}}, rows=9)
    with pytest.raises(ConfigError, match="one pair has no negatives"):
        run_job(write_learner(), job)


def test_pairs_share_texts() -> None:
    assert len({one for pair in alike(40) for one in pair}) < 80
