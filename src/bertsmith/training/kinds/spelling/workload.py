"""The workload of correction: batches of texts, losses of correction and detection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torch import nn
from torch.nn import functional as F

from bertsmith.errors import ConfigError
from bertsmith.nn.loss import LossSum, Score
from bertsmith.nn.packing import pack
from bertsmith.objectives.masked_lm import token_loss
from bertsmith.tasks.spelling.features import UNKNOWN, CorrectionBatch, CorrectionFeature
from bertsmith.tasks.spelling.model import SoftMasked
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.loop.epochs import EpochRows
from bertsmith.training.loop.workload import Losses, Workload
from bertsmith.training.recipe import RowPlan

CORRECTION, DETECTION = "correction", "detection"


class CorrectionWorkload(Workload):
    """Micro-batches of passages, each read once per epoch; the same on any number of ranks."""

    def __init__(
        self,
        train: Sequence[CorrectionFeature],
        dev: Sequence[CorrectionFeature],
        *,
        plan: RowPlan,
        detection: float,
        seed: int,
        ranks: Ranks,
    ) -> None:
        if not train:
            raise ConfigError("no training text has a Chinese character that the model knows")
        self._train, self._dev = train, dev
        self._micro_tokens = plan.micro_tokens
        self._detection = detection
        self._ranks = ranks
        self._rows = EpochRows(len(train), batch=plan.batch, seed=seed, ranks=ranks)

    @property
    def weights(self) -> Mapping[str, float]:
        """Of correction and, with a detector, of detection."""
        if not self._detection:
            return {CORRECTION: 1.0}
        return {CORRECTION: 1.0 - self._detection, DETECTION: self._detection}

    def micro_batches(self, step: int, share: float) -> list[CorrectionBatch]:
        """This rank's micro-batches of a step."""
        own = self._rows.of(self._rows.own(step))
        return self._batches([self._train[row] for row in own.tolist()])

    def counts(self, batch: CorrectionBatch) -> dict[str, int]:
        """The characters that are predicted, and those that are judged."""
        known = int((batch.wanted != UNKNOWN).sum())
        every = {CORRECTION: known, DETECTION: len(batch.wanted)}
        return {name: every[name] for name in self.weights}

    def loss(self, model: nn.Module, batch: CorrectionBatch) -> Losses:
        """The loss of the right characters, and of what is wrong."""
        module = soft_masked(model)
        hidden, wrong = module(batch)
        known = batch.wanted != UNKNOWN
        loss, score = token_loss(module.model, hidden[known], batch.wanted[known])
        losses, scores = {CORRECTION: loss}, {CORRECTION: score}
        if wrong is not None and self._detection:
            target = batch.wrong.to(wrong.dtype)
            summed = F.binary_cross_entropy_with_logits(wrong, target, reduction="sum")
            losses[DETECTION] = LossSum(summed, len(target))
            scores[DETECTION] = Score(((wrong > 0) == batch.wrong).sum(), len(target))
        return losses, scores

    def tokens(self, batch: CorrectionBatch) -> int:
        """The tokens of a micro-batch."""
        return batch.inputs.layout.rows

    def examples(self, step: int) -> str:
        """Which passages a step reads, in words."""
        return self._rows.words(step, "training passages")

    def held_out(self) -> Iterator[CorrectionBatch]:
        """This rank's share of the dev passages."""
        yield from self._batches(self._dev[self._ranks.rank :: self._ranks.world])

    def _batches(self, features: Sequence[CorrectionFeature]) -> list[CorrectionBatch]:
        parts = pack([len(one.ids) for one in features], self._micro_tokens) if features else []
        return [CorrectionBatch.of([features[number] for number in part]) for part in parts]


def soft_masked(model: nn.Module) -> SoftMasked:
    """The model that a loop was given."""
    if not isinstance(model, SoftMasked):
        raise TypeError(f"correction trains a SoftMasked model, not {type(model)}")
    return model
