"""The masked family (BERT, SpanBERT, ALBERT): mask tokens once, then predict for each objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from torch import nn

from bertsmith.config import Settings
from bertsmith.corpus.plans import PairTask
from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.objectives.batch import PretrainBatch, rows_inputs
from bertsmith.objectives.masked_lm import MaskedLMObjective
from bertsmith.objectives.masking.masking import Masking
from bertsmith.objectives.objective import Objective
from bertsmith.objectives.program import (
    Losses,
    MaskingProgramSettings,
    ModelBuilder,
    PretrainModule,
    Scores,
)
from bertsmith.objectives.sentence_pair import NextSentence, SentenceOrder
from bertsmith.objectives.span_boundary import SpanBoundary
from bertsmith.text.tokenizer import Tokenizer


class MaskedProgram:
    """One masking, any number of objectives on the masked text."""

    def __init__(self, objectives: Sequence[Objective], masking: Masking) -> None:
        self.objectives = {objective.name: objective for objective in objectives}
        if len(self.objectives) < len(objectives) or not objectives:
            raise ConfigError("an objective must be named once, and at least one")
        self.masking = masking

    @property
    def weights(self) -> Mapping[str, float]:
        """The weight of each objective."""
        return {name: objective.weight for name, objective in self.objectives.items()}

    @property
    def heads(self) -> tuple[str, ...]:
        """The published heads that the objectives need."""
        return tuple(one.head for one in self.objectives.values() if one.head is not None)

    def build(self, builder: ModelBuilder) -> PretrainModule:
        """The model with the heads of all objectives."""
        model = builder.model(self.heads)

        def own_heads() -> dict[str, nn.Module]:
            heads = {name: one.own_head(model) for name, one in self.objectives.items()}
            return {name: head for name, head in heads.items() if head is not None}

        return PretrainModule(self, model, own_heads=builder.own_heads(own_heads))

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> PretrainBatch:
        """Masked rows; only those that an objective reads leave the last block."""
        masked = self.masking(rows, share)
        targets = {name: one.targets(rows, masked) for name, one in self.objectives.items()}
        return PretrainBatch.of(rows_inputs(rows, masked.ids), targets)

    def losses(self, module: PretrainModule, batch: PretrainBatch) -> tuple[Losses, Scores]:
        """The loss and the accuracy of each objective."""
        hidden = module.model(batch.inputs, rows=batch.rows).hidden
        losses: Losses = {}
        scores: Scores = {}
        for name, targets in batch.targets.items():
            own = module.own_heads[name] if name in module.own_heads else None  # noqa: SIM401
            losses[name], scores[name] = self.objectives[name].loss(
                module.model, own, hidden, targets
            )
        return losses, scores


def _weighted(value: object) -> object:
    """`mlm = 1.0` stands for `mlm = { weight = 1.0 }`; a weight of 0 leaves an objective out."""
    table = value if isinstance(value, dict) else {"weight": value}
    if isinstance(value, bool) or not isinstance(value, int | float | dict):
        return value
    weight = table.get("weight")
    return None if weight == 0 and not isinstance(weight, bool) else table


ByWeight = BeforeValidator(_weighted)


class ObjectiveTable(Settings):
    """The objectives of a recipe, each a weight or a table of settings; one line per objective."""

    mlm: Annotated[MaskedLMObjective | None, ByWeight] = None
    sbo: Annotated[SpanBoundary | None, ByWeight] = None
    nsp: Annotated[NextSentence | None, ByWeight] = None
    sop: Annotated[SentenceOrder | None, ByWeight] = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.chosen:
            raise ValueError(f"name at least one objective: {', '.join(type(self).model_fields)}")
        if len([one for one in self.chosen if one.pair is not None]) > 1:
            raise ValueError("nsp and sop make pairs in different ways; give one a weight of 0")
        return self

    @property
    def chosen(self) -> tuple[Objective, ...]:
        """The objectives that have a weight."""
        named: list[Any] = [getattr(self, name) for name in type(self).model_fields]
        return tuple(objective for objective in named if objective is not None)


class MaskedSettings(MaskingProgramSettings):
    """Masked language modeling and what is predicted besides."""

    kind: Literal["masked"] = "masked"
    objectives: ObjectiveTable = Field(default_factory=lambda: ObjectiveTable(mlm=1.0))  # type: ignore[arg-type]

    @property
    def pair(self) -> PairTask | None:
        """The pairs that one of the objectives needs."""
        return next((one.pair for one in self.objectives.chosen if one.pair is not None), None)

    @property
    def token_objective(self) -> Objective | None:
        """The masked LM, unless it has no weight."""
        return self.objectives.mlm

    def make(self, tokenizer: Tokenizer) -> MaskedProgram:
        """The masked program for a vocabulary."""
        return MaskedProgram(self.objectives.chosen, Masking.of(self.mask, tokenizer))
