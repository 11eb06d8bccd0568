"""Cached gradients: those of one large batch, with dropout, in chunks and over ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_sentences import tiny_job
from torch import Tensor

from bertsmith.sentences.train.learner import sentence_learner
from bertsmith.training.execution.execution import Execution
from bertsmith.training.learner import Prepared, loop_run
from bertsmith.training.loop.run import Run
from bertsmith.training.loop.state import step_seed
from bertsmith.training.loop.step import compute_gradients

SMALL = {"plan": {"steps": 4, "batch": 16, "micro_tokens": 40}}


def prepared(model: str, kind: str, data: Any, **sections: Any) -> Run:
    job = tiny_job(model, kind, data, sections={**SMALL, **sections})
    execution = Execution()
    prepared = sentence_learner().prepare(job, execution, None)
    assert isinstance(prepared, Prepared)
    run = loop_run(job, prepared.inputs, {}, execution, None)
    run.model.train()
    return replace(run, optimizer=run.optimizer.model_copy(update={"clip": None}))


def gradients(run: Run) -> dict[str, Tensor]:
    return {n: p.grad.clone() for n, p in run.model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize(
    ("objective", "data"),
    [("contrastive", "triplets"), ("simcse", "texts"), ("cosent", "scores")],
)
def test_chunks_give_the_gradients_of_one_large_batch(tiny: str, objective: str, data: Any) -> None:
    run = prepared(tiny, objective, data)
    (batch,) = run.workload.micro_batches(2, 0.5)
    assert len(batch.chunks) > 3
    sums = compute_gradients(run, [batch], step=2, rate=1e-3)
    found = gradients(run)
    run.model.zero_grad()
    # All chunks with gradients at once, the same masks drawn in the same order.
    torch.manual_seed(step_seed(run.seed, 2, 0))
    parts, _ = run.workload.loss(run.model, batch)
    (parts["loss"].sum / parts["loss"].count).backward()
    assert sums.values["sum:loss"] == pytest.approx(parts["loss"].sum.item(), rel=1e-6)
    wanted = gradients(run)
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        scale = gradient.abs().max()
        torch.testing.assert_close(
            found[name], gradient, rtol=1e-6, atol=float(1e-6 * scale), msg=name
        )
    assert any(gradient.abs().max() > 0 for gradient in wanted.values())


def test_dropout_masks_differ_between_steps_and_columns(tiny: str) -> None:
    run = prepared(tiny, "simcse", "texts", objective={"kind": "simcse", "head": "none"})
    (batch,) = run.workload.micro_batches(0, 0.0)
    torch.manual_seed(1)
    with torch.no_grad():
        vectors = torch.cat([run.model(chunk) for chunk in batch.chunks])[batch.place]
    assert (vectors[:, 0] - vectors[:, 1]).abs().max() > 1e-3


def test_a_small_batch_is_passed_once(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = prepared(tiny, "contrastive", "pairs", plan={"steps": 2, "batch": 4})
    run = replace(run, workload=run.workload)
    passes = []
    inner = run.model.forward
    monkeypatch.setattr(run.model, "forward", lambda chunk: passes.append(1) or inner(chunk))
    for micro_tokens, expected in ((4_096, 1), (20, None)):
        passes.clear()
        run.workload._micro_tokens = micro_tokens
        batches = run.workload.micro_batches(0, 0.0)
        compute_gradients(run, batches, step=0, rate=1e-3)
        chunks = len(batches[0].chunks)
        assert len(passes) == (expected or 2 * chunks)
        assert expected or chunks > 1


def test_objectives_of_single_rows_are_accumulated(tiny: str) -> None:
    run = prepared(tiny, "cosine", "scores")
    batches = run.workload.micro_batches(0, 0.0)
    assert len(batches) > 1
    assert sum(batch.rows for batch in batches) == 16
    assert all(len(batch.chunks) == 1 for batch in batches)
