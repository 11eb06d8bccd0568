"""The module that is trained: a model, what only training needs, and the questions it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.nn.encoder import Encoded
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.loss import LossSum
from bertsmith.objectives.batch import Asked, Score, TrainBatch, rows_inputs
from bertsmith.objectives.masked_lm import MaskedLM
from bertsmith.objectives.masking.masking import Masking
from bertsmith.objectives.objective import Objective
from bertsmith.objectives.replaced_token import ReplacedToken, baseline, sampled, tie_embeddings

Losses = dict[str, LossSum]
Scores = dict[str, Score]

BASELINE = "rtd_baseline"  # the score of saying "original" to every token


class Learner(nn.Module):
    """A model under training; `forward` takes a TrainBatch and gives every part's loss and score.

    With a `generator`, the masked LM is the generator's, and the model is asked about the text
    as the generator filled it.
    """

    def __init__(
        self,
        model: Model,
        objectives: Sequence[Objective],
        *,
        generator: Model | None = None,
        random: torch.Generator | None = None,
    ) -> None:
        """`random` draws the heads that only training needs."""
        super().__init__()
        self.model = model
        self.generator = generator
        self.objectives = {objective.name: objective for objective in objectives}
        if len(self.objectives) < len(objectives) or not objectives:
            raise ConfigError("an objective must be named once, and at least one")
        detects = "rtd" in self.objectives
        if detects != (generator is not None) or (detects and "mlm" not in self.objectives):
            raise ConfigError("rtd needs a generator and mlm beside it, and only rtd needs one")
        if detects and "sbo" in self.objectives:
            raise ConfigError("sbo asks about hidden spans, but with rtd the model sees none")
        for objective in objectives:
            home = generator if objective.name == "mlm" and generator is not None else model
            if objective.head is not None and objective.head not in home.heads:
                raise ConfigError(
                    f"{objective.name} needs a {objective.head} head; build the model with it"
                )
        if generator is not None:
            tie_embeddings(generator, model)
        heads = {name: one.own_head(model, random) for name, one in self.objectives.items()}
        self.own_heads = nn.ModuleDict({name: head for name, head in heads.items() if head})

    def forward(self, batch: TrainBatch) -> tuple[Losses, Scores]:
        """The loss and the score of each part."""
        if self.generator is not None:
            return self._detect(batch, self.generator)
        hidden = self._encode(self.model, batch.inputs, batch.rows)
        losses: Losses = {}
        scores: Scores = {}
        for name, asked in batch.asked.items():
            losses[name], scores[name] = self._answer(name, self.model, hidden, asked)
        return losses, scores

    def _detect(self, batch: TrainBatch, generator: Model) -> tuple[Losses, Scores]:
        """ELECTRA's two passes; the generator is trained by its masked LM only."""
        asked = batch.asked["mlm"]
        hidden = self._encode(generator, batch.inputs, asked.at)
        own = Asked(at=torch.arange(asked.count, device=hidden.device), targets=asked.targets)
        losses: Losses = {}
        scores: Scores = {}
        losses["mlm"], scores["mlm"] = self._answer("mlm", generator, hidden, own)
        shown = batch.ids.index_copy(0, asked.at, sampled(generator, hidden, asked.more["chance"]))
        hidden = self._encode(self.model, replace(batch.inputs, ids=shown), None)
        for name, asked in batch.asked.items():
            if name == "rtd":
                asked = Asked(at=asked.at, targets=asked.targets, more={"shown": shown[asked.at]})
                scores[BASELINE] = baseline(asked)
            if name != "mlm":
                losses[name], scores[name] = self._answer(name, self.model, hidden, asked)
        return losses, scores

    def _encode(self, model: Model, inputs: Inputs, rows: Tensor | None) -> Tensor:
        encoded: Encoded = model(inputs, rows=rows)
        return encoded.hidden

    def _answer(
        self, name: str, model: Model, hidden: Tensor, asked: Asked
    ) -> tuple[LossSum, Score]:
        own = self.own_heads[name] if name in self.own_heads else None  # noqa: SIM401 - no `get`
        return self.objectives[name].loss(model, own, hidden, asked)


class Asking:
    """Turns rows into a TrainBatch: hides tokens once, then lets every objective ask."""

    def __init__(self, objectives: Sequence[Objective], masking: Masking) -> None:
        self.objectives = tuple(objectives)
        self.masking = masking

    @property
    def weights(self) -> Mapping[str, float]:
        """The weight of each part unless a recipe says otherwise."""
        return {objective.name: objective.weight for objective in self.objectives}

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads the model needs; with rtd, the masked LM's is the generator's."""
        detects = any(isinstance(objective, ReplacedToken) for objective in self.objectives)
        return tuple(
            objective.head
            for objective in self.objectives
            if objective.head is not None and not (detects and isinstance(objective, MaskedLM))
        )

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> TrainBatch:
        """A batch to train on when `share` of training (0 to 1) is done.

        A pure function of its arguments: each text's random numbers come from its own key.
        """
        masked = self.masking(rows, share)
        detects = any(isinstance(objective, ReplacedToken) for objective in self.objectives)
        return TrainBatch.of(
            rows_inputs(rows, masked.ids),
            {objective.name: objective.ask(rows, masked) for objective in self.objectives},
            all_rows=detects,
        )
