"""Causal language model (GPT, Radford et al. 2018): predict each token from those before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import torch

from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.nn.layout import Causal
from bertsmith.objectives.batch import PretrainBatch, Targets, rows_inputs
from bertsmith.objectives.masked_lm import token_loss
from bertsmith.objectives.program import (
    Losses,
    ModelBuilder,
    PretrainModule,
    ProgramSettings,
    Scores,
)
from bertsmith.text.tokenizer import Tokenizer

NEXT = "next_token"


class CausalProgram:
    """Row t predicts token t + 1; the first token of a text is given."""

    weights: ClassVar[Mapping[str, float]] = {NEXT: 1.0}

    def build(self, builder: ModelBuilder) -> PretrainModule:
        """A model whose rows see only what comes before them."""
        if builder.spec.sees != "before":
            raise ConfigError(
                "the causal program needs a model that reads from left to right, and this one sees "
                'the whole text: set model.sees="before", or take a program for bidirectional '
                "models (masked, unified)"
            )
        return PretrainModule(self, builder.model([builder.vocabulary_head]))

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> PretrainBatch:
        """The texts as they are; every row but the last of a text has a target."""
        at = np.flatnonzero(rows.texts[1:] == rows.texts[:-1])
        targets = Targets(
            at=torch.from_numpy(at), of=torch.from_numpy(rows.ids[at + 1].astype(np.int64))
        )
        inputs = rows_inputs(replace(rows, sees=Causal()))
        # Nearly all rows are read: computing all keeps fused causal attention in the last block.
        return PretrainBatch(inputs=inputs, rows=None, targets={NEXT: targets})

    def losses(self, module: PretrainModule, batch: PretrainBatch) -> tuple[Losses, Scores]:
        """The loss of the next token; the logits of all rows never exist at once."""
        targets = batch.targets[NEXT]
        hidden = module.model(batch.inputs).hidden[targets.at]
        loss, score = token_loss(module.model, hidden, targets.of)
        return {NEXT: loss}, {NEXT: score}


class CausalSettings(ProgramSettings):
    """Predict each token from the tokens before it; the model must have `sees = "before"`."""

    kind: Literal["causal"] = "causal"

    def make(self, tokenizer: Tokenizer) -> CausalProgram:
        """The causal program."""
        return CausalProgram()
