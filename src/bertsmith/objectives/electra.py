"""ELECTRA (Clark et al. 2020, arXiv:2003.10555): a generator fills masks, the model finds them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.models.spec import Spec
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.loss import LossSum, Score, binary_cross_entropy
from bertsmith.objectives.batch import Targets, rows_inputs
from bertsmith.objectives.masked_lm import MaskedLMObjective
from bertsmith.objectives.masking.masking import Masking
from bertsmith.objectives.program import (
    Losses,
    MaskingProgramSettings,
    ModelBuilder,
    PretrainModule,
    Scores,
)
from bertsmith.text.tokenizer import Tokenizer

GENERATOR = "generator"  # the companion, and the folder it is saved in
HEAD = "replaced_token"
MLM, RTD, BASELINE = "mlm", "rtd", "rtd_baseline"  # the parts of the loss
SAMPLED_ROWS = 128  # rows whose distribution over the vocabulary is held at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectraBatch:
    """Masked `inputs`; `masked` is what the generator predicts, `real` (R,) rows of text.

    `originals` (R,) are the tokens that stood in the rows `real`.
    """

    inputs: Inputs
    masked: Targets
    real: Tensor
    originals: Tensor

    @property
    def tokens(self) -> int:
        """T, special tokens included; nothing is padding."""
        return self.inputs.ids.shape[0]

    @property
    def counts(self) -> dict[str, int]:
        """Predictions of generator and discriminator."""
        return {MLM: self.masked.count, RTD: len(self.real), BASELINE: len(self.real)}

    def to(self, device: torch.device | str) -> ElectraBatch:
        """The same batch on a device."""
        return ElectraBatch(
            inputs=self.inputs.to(device),
            masked=self.masked.to(device),
            real=self.real.to(device, non_blocking=True),
            originals=self.originals.to(device, non_blocking=True),
        )


class ElectraProgram:
    """Replaced token detection; the generator is trained by its masked LM only."""

    def __init__(self, masking: Masking, *, mlm: float, rtd: float, width: float) -> None:
        """`width` is the generator's, as a share of the discriminator's."""
        self.masking = masking
        self.weights: Mapping[str, float] = {MLM: mlm, RTD: rtd, BASELINE: 0.0}
        self.width = width
        self.heads = (HEAD,)
        self._mlm = MaskedLMObjective()

    def build(self, builder: ModelBuilder) -> PretrainModule:
        """The discriminator, and a narrow generator that shares its embeddings."""
        model = builder.model(self.heads)
        generator = builder.companion(narrowed(model.spec, self.width), ["masked_lm"])
        return self.module(model, generator)

    def module(self, model: Model, generator: Model) -> PretrainModule:
        """The module of two models that exist already."""
        tie_embeddings(generator, model)
        return PretrainModule(self, model, companions={GENERATOR: generator})

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> ElectraBatch:
        """Masked rows for the generator; the discriminator reads every row of text."""
        masked = self.masking(rows, share)
        real = np.flatnonzero(rows.real)
        return ElectraBatch(
            inputs=rows_inputs(rows, masked.ids),
            masked=self._mlm.targets(rows, masked),
            real=torch.from_numpy(real),
            originals=torch.from_numpy(rows.ids[real].astype(np.int64)),
        )

    def losses(self, module: PretrainModule, batch: ElectraBatch) -> tuple[Losses, Scores]:
        """The generator's masked LM, the detection, and always answering "original"."""
        generator, inputs, masked = module.companions[GENERATOR], batch.inputs, batch.masked
        if not isinstance(generator, Model):
            raise ConfigError("the module was built without a generator")
        hidden = generator(inputs, rows=masked.at).hidden
        own = replace(masked, at=torch.arange(masked.count, device=hidden.device))
        losses: Losses = {}
        scores: Scores = {}
        losses[MLM], scores[MLM] = self._mlm.loss(generator, None, hidden, own)
        drawn = sampled(generator, hidden, masked.more["uniform"])
        shown = inputs.ids.index_copy(0, masked.at, drawn)
        hidden = module.model(replace(inputs, ids=shown)).hidden
        replaced = shown[batch.real] != batch.originals
        logits = module.model.logits(HEAD, hidden[batch.real])
        count = len(batch.real)
        losses[RTD] = binary_cross_entropy(logits, replaced)
        scores[RTD] = Score(((logits.detach() > 0) == replaced).sum(), count)
        scores[BASELINE] = Score((~replaced).sum(), count)
        losses[BASELINE] = constant_loss(scores[BASELINE])
        return losses, scores


class ElectraSettings(MaskingProgramSettings):
    """A small generator replaces masked tokens, the model detects them."""

    kind: Literal["electra"] = "electra"
    mlm: Annotated[float, Field(gt=0)] = 1.0  # weight of the generator's masked LM
    rtd: Annotated[float, Field(gt=0)] = 50.0  # weight of replaced token detection
    generator_width: Annotated[float, Field(gt=0, le=1)] = 0.25  # share of the model's width

    def make(self, tokenizer: Tokenizer) -> ElectraProgram:
        """The program for a vocabulary."""
        masking = Masking.of(self.mask, tokenizer)
        return ElectraProgram(masking, mlm=self.mlm, rtd=self.rtd, width=self.generator_width)


def narrowed(spec: Spec, share: float) -> Spec:
    """A spec with a share of the width, and the embedding of the whole."""
    hidden = max(64, round(spec.hidden * share / 64) * 64)
    return replace(
        spec, hidden=hidden, heads=max(1, hidden // 64), feed_forward=4 * hidden, projected=False
    )


def tie_embeddings(generator: Model, discriminator: Model) -> None:
    """Let two models use one token, position and segment embedding; projections stay their own."""
    ours, theirs = generator.encoder.embeddings, discriminator.encoder.embeddings
    shapes = [
        (spec.vocab_size, spec.embedding, spec.positions, spec.segments)
        for spec in (generator.spec, discriminator.spec)
    ]
    if shapes[0] != shapes[1]:
        raise ConfigError(
            "a generator must have the vocabulary, embedding width, positions and segments of its "
            f"discriminator: {shapes[0]} is not {shapes[1]}"
        )
    ours.tokens, ours.positions, ours.segments = theirs.tokens, theirs.positions, theirs.segments
    ours.norm = theirs.norm


@torch.no_grad()
def sampled(generator: Model, hidden: Tensor, uniform: Tensor) -> Tensor:
    """A token for each row of the generator: (P, D), (P,) random numbers in [0, 1) -> (P,).

    The token at which the summed probabilities pass the row's number: an exact draw, with one
    number per row that does not depend on the batch.
    """
    head, weight = generator.vocabulary_head, generator.encoder.embeddings.tokens.weight
    rows = head.project(hidden.to(weight.dtype))
    tokens = []
    for start in range(0, len(rows), SAMPLED_ROWS):
        here = slice(start, start + SAMPLED_ROWS)
        logits = F.linear(rows[here], weight, head.bias).float()
        sums = logits.softmax(-1).cumsum(-1)  # (p, V)
        wanted = uniform[here].to(sums.dtype)[:, None] * sums[:, -1:]
        tokens.append(torch.searchsorted(sums, wanted, right=True).flatten())
    if not tokens:
        return torch.zeros(0, dtype=torch.long, device=hidden.device)
    return torch.cat(tokens).clamp_(max=weight.shape[0] - 1)


def constant_loss(score: Score) -> LossSum:
    """The loss of the best constant answer: the entropy of the share of original tokens."""
    right = float(score.correct) / max(score.count, 1)
    parts = [p * math.log(p) for p in (right, 1.0 - right) if p > 0.0]
    return LossSum(torch.tensor(-sum(parts) * score.count), score.count)
