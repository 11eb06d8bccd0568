"""A program of one's own: deletes tokens, looks left only, and pre-trains without touching src."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from toy_corpus import short_recipe, toy_corpus

from bertsmith.corpus.rows import RowsBatch
from bertsmith.folders.read import load_model
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import Causal
from bertsmith.objectives.batch import PretrainBatch, Targets
from bertsmith.objectives.masked_lm import MaskedLMObjective
from bertsmith.objectives.program import PretrainModule, ProgramSettings
from bertsmith.training.pretrain.pretrain import Job, pretrain


class Shortened:
    """Every tenth token or so is deleted; each token that is left predicts the next one."""

    weights: ClassVar = {"next": 1.0}

    def build(self, builder):
        return PretrainModule(self, builder.model(["masked_lm"]))

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> PretrainBatch:
        kept = ~rows.real | (rows.uniforms("delete", np.arange(len(rows.ids))) > 0.1)
        ids = rows.ids[kept]
        lengths = np.bincount(rows.texts[kept], minlength=len(rows.lengths))
        inputs = Inputs.of(ids, tuple(lengths.tolist()), sees=Causal())
        at = np.setdiff1d(np.arange(len(ids) - 1), np.cumsum(lengths) - 1)
        of = torch.from_numpy(ids[at + 1].astype(np.int64))
        return PretrainBatch.of(inputs, {"next": Targets(at=torch.from_numpy(at), of=of)})

    def losses(self, module: PretrainModule, batch: PretrainBatch):
        hidden = module.model(batch.inputs, rows=batch.rows).hidden
        loss, score = MaskedLMObjective().loss(module.model, None, hidden, batch.targets["next"])
        return {"next": loss}, {"next": score}


class ShortenedSettings(ProgramSettings):
    kind: Literal["shortened"] = "shortened"

    def make(self, tokenizer):
        return Shortened()


def test_a_program_that_deletes_tokens_and_looks_left_only_pretrains(tmp_path: Path) -> None:
    base = short_recipe("roberta", "model.variant=bert", "input.max_length=64", steps=40)
    recipe = type(base)(**{**dict(base), "program": ShortenedSettings()})
    job = Job(recipe=recipe, corpus=toy_corpus(tmp_path / "corpus"), out=tmp_path / "model")
    outcome = pretrain(job)
    assert outcome.evaluation.losses["next"] < np.log(load_model(job.out).model.spec.vocab_size) - 1
