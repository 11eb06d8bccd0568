"""WKLM (Xiong et al. 2019, arXiv:1912.09637): which mentions of entities were replaced.

Masked LM goes along outside of the mentions, and entity alignment if it has a weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from bertsmith.corpus.rows import Flags, Longs, RowsBatch, spread
from bertsmith.errors import ConfigError
from bertsmith.files.word_vectors.rows import Matrix
from bertsmith.models.build import Model, initialize
from bertsmith.nn.feed_forward import find_activation
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.loss import LossSum, Score, binary_cross_entropy
from bertsmith.objectives.batch import PretrainBatch, Targets, rows_inputs
from bertsmith.objectives.entities.alignment import (
    AlignmentHead,
    alignment_loss,
    alignment_targets,
    candidates_of,
    given_vectors,
)
from bertsmith.objectives.entities.entity_list import FORMAT, read_entities
from bertsmith.objectives.entities.mentions import Entities
from bertsmith.objectives.entities.replaced import (
    ReplacedTexts,
    entity_remarks,
    replace_mentions,
    text_remarks,
)
from bertsmith.objectives.masked_lm import MaskedLMObjective
from bertsmith.objectives.masking.masking import Masking, MaskSettings
from bertsmith.objectives.program import (
    Losses,
    MaskingProgramSettings,
    ModelBuilder,
    PretrainModule,
    Scores,
)
from bertsmith.text.tokenizer import Tokenizer

MLM, REPLACED, ALIGNED = "mlm", "replaced", "aligned"  # the parts of the loss
Weight = Annotated[float, Field(ge=0)]


class ReplacedHead(nn.Module):
    """Whether a mention was replaced, from the rows just before and after it."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.dense = nn.Linear(2 * hidden, hidden)
        self.activation = find_activation("gelu")
        self.norm = nn.LayerNorm(hidden)
        self.score = nn.Linear(hidden, 1)
        initialize(self)

    def forward(self, before: Tensor, after: Tensor) -> Tensor:
        """(P, D), (P, D) -> (P,), above 0 for replaced."""
        rows = self.norm(self.activation(self.dense(torch.cat([before, after], dim=-1))))
        scores: Tensor = self.score(rows).squeeze(-1)
        return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityBatch:
    """Texts after replacement and masking, their targets, and the entities to align with (C,)."""

    texts: PretrainBatch
    candidates: Tensor

    @property
    def inputs(self) -> Inputs:
        """What the model reads."""
        return self.texts.inputs

    @property
    def tokens(self) -> int:
        """T, special tokens included; nothing is padding."""
        return self.texts.tokens

    @property
    def counts(self) -> dict[str, int]:
        """The predictions of each part."""
        return self.texts.counts

    def to(self, device: torch.device | str) -> EntityBatch:
        """The same batch on a device."""
        return EntityBatch(
            texts=self.texts.to(device), candidates=self.candidates.to(device, non_blocking=True)
        )


class WklmProgram:
    """Replaces mentions, masks outside of them, and predicts both; aligns mentions with entities.

    `masking` is None without a masked LM, `rate` 0 without replacement. `known` (N,) are the
    entities that have a vector.
    """

    def __init__(
        self,
        entities: Entities,
        masking: Masking | None,
        *,
        rate: float,
        weights: Mapping[str, float],
        width: int = 100,
        vectors: tuple[Matrix, Flags] | None = None,
    ) -> None:
        """`weights` are those of the parts that are learned, `vectors` given instead of learned."""
        self.entities = entities
        self.masking = masking
        self.rate = rate
        self.weights = weights
        self._vectors = None if vectors is None else vectors[0]
        self._width = width if vectors is None else vectors[0].shape[1]
        self.known = np.ones(len(entities.names), bool) if vectors is None else vectors[1]
        self._candidates: Longs | None = None
        self._mlm = MaskedLMObjective()

    @property
    def reads_batch(self) -> bool:
        """Entities are distinguished from all others of the batch."""
        return ALIGNED in self.weights

    def within(self, batch: Sequence[RowsBatch]) -> WklmProgram:
        """The program whose candidates are the entities that these rows mention."""
        bound = copy(self)
        bound._candidates = self._mentioned(batch)
        return bound

    def build(self, builder: ModelBuilder) -> PretrainModule:
        """The model with a head over the vocabulary, and heads of its own for the mentions."""
        model = builder.model(["masked_lm"] if MLM in self.weights else [])
        return PretrainModule(self, model, own_heads=builder.own_heads(lambda: self._heads(model)))

    def _heads(self, model: Model) -> dict[str, nn.Module]:
        hidden, heads = model.spec.hidden, dict[str, nn.Module]()
        if REPLACED in self.weights:
            heads[REPLACED] = ReplacedHead(hidden)
        if ALIGNED in self.weights:
            names = self.entities.names
            heads[ALIGNED] = AlignmentHead(hidden, self._width, names, self._vectors)
        return heads

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> EntityBatch:
        """Texts with replaced mentions, masked elsewhere."""
        texts = replace_mentions(rows, self.entities, self.rate)
        ids, targets = texts.rows.ids, dict[str, Targets]()
        if self.masking is not None:
            outside = outside_mentions(texts)
            masked = self.masking(outside, share)
            ids, targets[MLM] = masked.ids, self._mlm.targets(outside, masked)
        if REPLACED in self.weights:
            targets[REPLACED] = replaced_targets(texts, self.entities)
        candidates = np.zeros(0, dtype=np.int64)
        if ALIGNED in self.weights:
            candidates = self._mentioned([rows]) if self._candidates is None else self._candidates
            targets[ALIGNED] = alignment_targets(texts, candidates)
        return EntityBatch(
            texts=PretrainBatch.of(rows_inputs(texts.rows, ids), targets),
            candidates=torch.from_numpy(candidates),
        )

    def losses(self, module: PretrainModule, batch: EntityBatch) -> tuple[Losses, Scores]:
        """The loss and the accuracy of each part."""
        hidden = module.model(batch.inputs, rows=batch.texts.rows).hidden
        losses, scores = Losses(), Scores()
        for name, targets in batch.texts.targets.items():
            if name == MLM:
                found = self._mlm.loss(module.model, None, hidden, targets)
            elif name == REPLACED:
                found = _replaced_loss(module, hidden, targets)
            else:
                head = module.own_heads[ALIGNED]
                if not isinstance(head, AlignmentHead):
                    raise ConfigError("the model was built without the head of entity alignment")
                found = alignment_loss(head, hidden, targets, batch.candidates)
            losses[name], scores[name] = found
        return losses, scores

    def _mentioned(self, batch: Sequence[RowsBatch]) -> Longs:
        every = np.concatenate([self.entities.find(rows).entities for rows in batch])
        return candidates_of(every, self.known)

    def account(self, samples: Iterable[RowsBatch]) -> list[str]:
        """What the list holds, and what of it the texts mention."""
        known = self.known if self._vectors is not None and ALIGNED in self.weights else None
        found = (replace_mentions(rows, self.entities, self.rate) for rows in samples)
        return [*entity_remarks(self.entities, known), *text_remarks(self.entities, found)]


def outside_mentions(texts: ReplacedTexts) -> RowsBatch:
    """The rows with mentions as special tokens: they are not masked."""
    words = texts.rows.words.copy()
    words[spread(texts.mentions.starts, texts.mentions.sizes)] = -1
    return replace(texts.rows, words=words)


def replaced_targets(texts: ReplacedTexts, entities: Entities) -> Targets:
    """The rows before and after each mention, and whether it was replaced.

    Mentions without a row on both sides are left out, and those of a type of one entity: nothing
    can replace them, so their answer is no question.
    """
    rows, mentions = texts.rows, texts.mentions
    number = rows.texts[mentions.starts]
    first, end = rows.starts[number], (rows.starts + rows.sizes)[number]
    asked = (mentions.starts > first) & (mentions.stops < end)
    asked &= entities.replaceable[mentions.entities]
    sides = np.stack([mentions.starts - 1, mentions.stops], axis=1)
    return Targets(
        at=torch.from_numpy(sides[asked]),
        of=torch.from_numpy(texts.replaced[asked].astype(np.int64)),
    )


def _replaced_loss(
    module: PretrainModule, hidden: Tensor, targets: Targets
) -> tuple[LossSum, Score]:
    logits = module.own_heads[REPLACED](hidden[targets.at[:, 0]], hidden[targets.at[:, 1]])
    correct = ((logits.detach() > 0) == (targets.of > 0)).sum()
    return binary_cross_entropy(logits, targets.of), Score(correct, targets.count)


class WklmSettings(MaskingProgramSettings):
    """Mentions of entities replaced by others of their type are detected; a weight of 0 leaves out.

    `entities` is a file of `entity TAB type` lines. `rate` is the share of mentions that are
    replaced, at most every second one. `mask` applies outside of mentions.
    """

    kind: Literal["wklm"] = "wklm"
    entities: Path | None = Field(default=None, strict=False)
    rate: Annotated[float, Field(gt=0, le=0.5)] = 0.3
    mask: MaskSettings = MaskSettings(rate=0.05)
    mlm: Weight = 1.0
    replaced: Weight = 1.0
    aligned: Weight = 0.0
    vectors: Path | None = Field(default=None, strict=False)  # given to align with, not learned
    width: Annotated[int, Field(ge=1)] = 100  # of learned vectors

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not (self.mlm or self.replaced or self.aligned):
            raise ValueError("give mlm, replaced or aligned a weight above 0")
        if self.vectors is not None and not self.aligned:
            raise ValueError("vectors are for entity alignment; set program.aligned=1")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """The list of entities and the vectors."""
        return tuple(path for path in (self.entities, self.vectors) if path is not None)

    def make(self, tokenizer: Tokenizer) -> WklmProgram:
        """The program for a vocabulary."""
        if self.entities is None:
            raise ConfigError(
                f"the program wklm needs a list of entities, a file of {FORMAT}: set "
                "program.entities=FILE"
            )
        entities = Entities(read_entities(self.entities), tokenizer)
        weights = {MLM: self.mlm, REPLACED: self.replaced, ALIGNED: self.aligned}
        if self.replaced and not entities.replaceable.any():
            raise ConfigError(
                f"{self.entities}: no type has two entities of this vocabulary, so none can be "
                "replaced; give entities of one type the same type, or set program.replaced=0"
            )
        return WklmProgram(
            entities,
            Masking.of(self.mask, tokenizer) if self.mlm else None,
            rate=self.rate if self.replaced else 0.0,
            weights={name: weight for name, weight in weights.items() if weight},
            width=self.width,
            vectors=given_vectors(self.vectors, entities.names) if self.vectors else None,
        )
