"""Program: one family of pre-training, from rows of a corpus to losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import torch
from torch import nn

from bertsmith.config import Settings
from bertsmith.corpus.examples import ChosenDocuments, CorpusExamples, ExampleSource
from bertsmith.corpus.plans import PairTask
from bertsmith.corpus.rows import RowsBatch
from bertsmith.models.build import Model
from bertsmith.models.spec import Spec
from bertsmith.nn.loss import LossSum, Score
from bertsmith.objectives.masking.masking import MaskSettings
from bertsmith.objectives.objective import Objective
from bertsmith.text.tokenizer import Tokenizer

Losses = dict[str, LossSum]
Scores = dict[str, Score]


class ProgramBatch(Protocol):
    """A micro-batch of a program; what else it holds only the program knows."""

    @property
    def tokens(self) -> int:
        """Tokens that the model reads; nothing is padding."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Predictions of each part of the loss, known before the forward pass."""

    def to(self, device: torch.device | str) -> Self:
        """The same batch on a device."""


class ModelBuilder(Protocol):
    """Builds the modules of a program, fresh or from a model folder; the same for the same seed."""

    @property
    def spec(self) -> Spec:
        """The shape of the model to pre-train."""

    @property
    def vocabulary_head(self) -> str:
        """The kind of head over the vocabulary that this variant has."""

    def model(self, heads: Sequence[str], *, pooler: bool = False) -> Model:
        """The model to pre-train, with these heads, and a pooler if one of them needs it."""

    def companion(self, spec: Spec, heads: Sequence[str]) -> Model:
        """A further model of the same variant, always fresh."""

    def own_heads(self, make: Callable[[], Mapping[str, nn.Module]]) -> dict[str, nn.Module]:
        """Heads that published models do not have, drawn or from the folder."""


class Program(Protocol):
    """What pre-training learns: how examples are corrupted, and what is predicted of them.

    `prepare` runs in another thread and must be a pure function of its arguments. It may mask,
    reorder, insert or delete tokens and arrange who sees whom (`nn.Layout.sees`).
    """

    @property
    def weights(self) -> Mapping[str, float]:
        """The weight of each part of the loss; a part of weight 0 is only reported."""

    def build(self, builder: ModelBuilder) -> PretrainModule:
        """The module to train."""

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> Any:
        """A `ProgramBatch` of these examples when `share` of training (0 to 1) is done."""

    def losses(self, module: PretrainModule, batch: Any) -> tuple[Losses, Scores]:
        """The loss and the accuracy of each part."""


@runtime_checkable
class BatchWide(Protocol):
    """A program whose micro-batches may have to know something of the whole batch of a step.

    Then losses are the same however ranks and micro-batches divide it.
    """

    @property
    def reads_batch(self) -> bool:
        """Whether `within` is needed, with these settings."""

    def within(self, batch: Sequence[RowsBatch]) -> Program:
        """The program for micro-batches of this batch, which is that of all ranks."""


@runtime_checkable
class Accounted(Protocol):
    """A program that reports at the start of a run what it finds in the texts."""

    def account(self, samples: Iterable[RowsBatch]) -> list[str]:
        """Remarks for people, from some of the examples."""


class ProgramSettings(Settings):
    """The settings of a program: the section `program` of a recipe."""

    kind: str

    @property
    def pair(self) -> PairTask | None:
        """The kind of sentence pairs that its examples need."""
        return None

    @property
    def paired(self) -> bool:
        """Whether its examples must be pairs of texts, of whatever kind."""
        return self.pair is not None

    def make(self, tokenizer: Tokenizer) -> Program:
        """The program for a vocabulary."""
        raise TypeError(f"{type(self).__name__} has no `make`")

    @property
    def token_objective(self) -> Objective | None:
        """The objective that predicts masked tokens from their rows, if there is one."""
        return None

    def draw_of(self, epoch: int) -> int:
        """The number that examples and masks of an epoch are drawn from."""
        return epoch

    @property
    def mixes_documents(self) -> bool:
        """Whether its examples need a second document to take sentences from."""
        return self.pair == "next_sentence"

    @property
    def uniform(self) -> bool:
        """Whether every micro-batch trains the same weights, as sharded ranks must."""
        return True

    def sources(self, chosen: ChosenDocuments) -> Mapping[str, ExampleSource]:
        """The kinds of examples by name; rows of examples carry the name as their `source`."""
        examples = CorpusExamples(chosen.corpus, chosen.documents, chosen.inputs, seed=chosen.seed)
        return {"": examples}

    def allotted(self, texts: int, share: float) -> Mapping[str, int]:
        """How many texts of a step each source gives when `share` of training (0 to 1) is done."""
        return {"": texts}

    @property
    def stages(self) -> Mapping[float, str]:
        """The share of training at which each stage ends, and what is learned in it.

        Each stage ends with an evaluation. Empty where all of training is one stage.
        """
        return {}

    @property
    def files(self) -> tuple[Path, ...]:
        """Files besides the corpus that decide what is learned."""
        return ()


class PretrainModule(nn.Module):
    """The model under training with all that only training needs; `forward` computes losses.

    `companions` are models of their own (ELECTRA's generator), `own_heads` heads that published
    models do not have (SpanBERT's boundary head). `record` goes into bertsmith.json of the result.
    """

    record: Mapping[str, Any]

    def __init__(
        self,
        program: Program,
        model: Model,
        *,
        companions: Mapping[str, Model] | None = None,
        own_heads: Mapping[str, nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.program = program
        self.model = model
        self.companions = nn.ModuleDict(dict(companions or {}))
        self.own_heads = nn.ModuleDict(dict(own_heads or {}))
        self.record = {}

    def forward(self, batch: Any) -> tuple[Losses, Scores]:
        """A batch of the program -> the loss and the accuracy of each part."""
        return self.program.losses(self, batch)


class MaskingProgramSettings(ProgramSettings):
    """Of a program that masks tokens."""

    mask: MaskSettings = MaskSettings()

    def draw_of(self, epoch: int) -> int:
        """Static masking repeats its masks, and whatever else is drawn for an example."""
        return self.mask.copy_of(epoch)
