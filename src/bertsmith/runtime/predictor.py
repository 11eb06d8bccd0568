"""Predictor: predictions of a fine-tuned model for texts, in order, for input of any size."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from bertsmith.errors import ConfigError, HardwareError, TextError
from bertsmith.labeled.example import Example
from bertsmith.nn.inputs import SEGMENTS
from bertsmith.runtime.engines.batches import RowBatch
from bertsmith.runtime.engines.engine import EagerEngine, Engine, batch_budget
from bertsmith.runtime.host import Host, TorchHost, not_finite
from bertsmith.tasks.batch import (
    TaskBatch,
    channels_of,
    positions_of,
    task_batch,
    visibility_of,
)
from bertsmith.tasks.enrichment.enrichment import Enrichment
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import (
    TaskLogits,
    compute_logits,
    example_batches,
    predict_auxiliary,
    split_logits,
)
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.columns import MetaTables
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.reading import TaskReading
from bertsmith.tasks.task import Logits, Task
from bertsmith.text.blocks import groups
from bertsmith.text.encoding import UnknownTokens

log = logging.getLogger(__name__)

CHUNK = 2_048  # examples in memory at a time
Row = str | Sequence[str] | Example


class Predictor(ABC):
    """Predicts labels, numbers, tags or answers for texts; one model, or an ensemble of several."""

    @property
    @abstractmethod
    def task(self) -> Task:
        """What is predicted."""

    @property
    @abstractmethod
    def meta_columns(self) -> tuple[str, ...]:
        """Columns that are read in addition to the texts."""

    @property
    @abstractmethod
    def texts(self) -> int:
        """The number of texts in each training row; 0: not recorded, or not always the same."""

    @abstractmethod
    def answered(
        self, examples: Sequence[Example], unknown: UnknownTokens | None = None
    ) -> tuple[list[Feature], TaskLogits]:
        """The passages of examples and their logits, not yet decoded; finite, or an error.

        `unknown` counts the unknown tokens.
        """

    @abstractmethod
    def settle(self, tokens: int) -> str:
        """Select the engine for about so many tokens, for good; its name.

        Predictions by one engine are equal to the last bit.
        """

    @abstractmethod
    def auxiliary(self, rows: Iterable[Row]) -> list[dict[str, str | float]]:
        """Predictions of the further columns that were learned, by column."""

    def predict(
        self, rows: Iterable[Row], *, unknown: UnknownTokens | None = None
    ) -> list[Prediction]:
        """A prediction for each text, tuple of fields, or example."""
        return [prediction for _, prediction in self.stream(_examples(rows), unknown=unknown)]

    def predict_with_logits(
        self, rows: Iterable[Row], *, unknown: UnknownTokens | None = None
    ) -> list[tuple[Prediction, Logits]]:
        """A prediction and the logits (C,) of each row, by a task on whole texts."""
        if self.task.reads != "text":
            raise ConfigError(f"{self.task.name} has logits per token, not per text")
        examples = [self._checked(example) for example in _examples(rows)]
        features, answered = self.answered(examples, unknown)
        predictions = self.task.decode(answered.logits, features, examples)
        return list(zip(predictions, answered.logits, strict=True))

    def stream(
        self,
        examples: Iterable[Example],
        *,
        chunk: int = CHUNK,
        unknown: UnknownTokens | None = None,
    ) -> Iterator[tuple[Example, Prediction]]:
        """Examples with their predictions, in order, `chunk` of them in memory at a time.

        `unknown` counts the unknown tokens.
        """
        for some in groups(map(self._checked, examples), chunk):
            features, answered = self.answered(some, unknown)
            yield from zip(some, self.task.decode(answered.logits, features, some), strict=True)

    def _checked(self, example: Example) -> Example:
        """The example; one of another number of texts than the training rows is refused."""
        try:
            self.task.kind.check_texts(len(example.texts), self.texts)
        except ConfigError as fault:
            raise TextError(f"{_place(example)}: {fault}") from fault
        return example


class ModelPredictor(Predictor):
    """The predictor of one fine-tuned model; any number of threads may use it at once."""

    def __init__(
        self,
        host: TorchHost,
        model: TaskModel,
        *,
        lengths: LengthSettings,
        tables: MetaTables,
        texts: int = 0,
        enrichment: Enrichment | None = None,
    ) -> None:
        """`model` holds the model of the host, with the settings that it was trained with."""
        self.host = host
        self._texts = texts
        self.model = model.to(host.device).eval()
        self.tokenizer = host.tokenizer
        self.lengths = lengths
        self._tables = tables
        self.reading = TaskReading(
            tokenizer=host.tokenizer, lengths=lengths, tables=tables, enrichment=enrichment
        )
        # Branches need positions and visibility, tags all rows: the other engines have neither.
        eager = enrichment is not None or not model.reads_last
        self._fast = host if isinstance(host, Host) and not eager else None
        if host.precision == "bf16" and host.device.type == "cpu" and self._fast is None:
            needs = "others" if model.wrapper is None else "inputs that a wrapper changes"
            needs = needs if enrichment is None else f"a {enrichment.key} section, too"
            raise HardwareError(
                f"the bf16 path of a CPU gives the last layer alone, and this model reads {needs}; "
                "use auto or fp32"
            )
        self._lock = threading.Lock()
        self._work = 0.0  # operations so far: much of it pays for a faster engine
        if self._fast is not None:  # an engine that is missing shows now
            log.debug("predictions by %s", self._fast.engines.engine.name)

    @property
    def task(self) -> Task:
        """What is predicted."""
        return self.model.task

    @property
    def meta_columns(self) -> tuple[str, ...]:
        """Columns that the model reads in addition to the texts."""
        more = () if self.reading.enrichment is None else self.reading.enrichment.columns
        return (*self._tables, *more)

    def auxiliary(self, rows: Iterable[Row]) -> list[dict[str, str | float]]:
        """Predictions of the further columns that the model has learned, by column."""
        if not self.model.columns:
            raise ConfigError("the model has learned no further columns; a recipe names them")
        predictions: list[dict[str, str | float]] = []
        for some in groups(_examples(rows), CHUNK):
            predictions += predict_auxiliary(
                self.model, self._features(some), device=self.host.device
            )
        return predictions

    @property
    def texts(self) -> int:
        """The number of texts in each training row; 0: not recorded, or not always the same."""
        return self._texts

    def batch(self, rows: Iterable[Row]) -> TaskBatch:
        """Rows as one batch on the model's device, whatever its size, numbered from 0."""
        features = self._features([self._checked(example) for example in _examples(rows)])
        if not features:
            raise TextError("a batch needs at least one row")
        return task_batch(features).to(self.host.device)

    def token_vectors(self, batch: TaskBatch) -> Tensor:
        """The token embeddings (T, E) of a batch, a copy without gradients.

        `logits(batch.with_vectors(vectors), gradients=True)` can be differentiated by them:
        positions, segments and norms are added as for tokens.
        """
        embeddings = self.model.transformer.encoder.embeddings
        with torch.no_grad():
            return embeddings.token_vectors(batch.ids).clone()

    def logits(self, batch: TaskBatch, *, gradients: bool = False) -> Tensor:
        """The logits of a batch, one row per example, or per `batch.at`: (E, C) or (U, C).

        By torch, without dropout. With `gradients` they can be differentiated by what the batch
        holds and by the weights; else nothing is remembered.
        """
        with self.host.torch_turn(), torch.set_grad_enabled(gradients):
            logits: Tensor = self.model(batch)
        return logits

    def answered(
        self, examples: Sequence[Example], unknown: UnknownTokens | None = None
    ) -> tuple[list[Feature], TaskLogits]:
        """The passages of examples and their logits, not yet decoded; finite, or an error."""
        features = self._features(examples)
        if unknown is not None:
            unknown.add(self.tokenizer.unknown_tokens([one.encoding.ids for one in features]))
        engine = self._engine(features)
        if engine is not None and self._fast is not None:
            answered = answer_on(self._fast, engine, self.model, features)
        else:
            device, turn = self.host.device, self.host.torch_turn
            answered = compute_logits(self.model, features, device=device, precision=turn)
        self._check_finite(answered.logits, features, examples)
        return features, answered

    def _check_finite(
        self, logits: Sequence[Logits], features: Sequence[Feature], examples: Sequence[Example]
    ) -> None:
        if not logits or np.isfinite(np.concatenate([one.ravel() for one in logits])).all():
            return
        bad = next(n for n, one in enumerate(logits) if not np.isfinite(one).all())
        number = features[bad].example if self.task.reads == "rows" else bad
        raise not_finite(_place(examples[number]))

    def settle(self, tokens: int) -> str:
        """Select the engine for about so many tokens, for good; its name."""
        if self._fast is None:
            source = "" if self.reading.enrichment is None else self.reading.enrichment.source
            return f"eager on {self.host.device}{self.host.rounding}{source}"
        engine = self._fast.engines.settle(self._counted(self._fast, tokens, tokens))
        return engine.name + self._fast.rounding

    def _features(self, examples: Sequence[Example]) -> list[Feature]:
        return self.reading.features(self.task, examples)

    def _engine(self, features: Sequence[Feature]) -> Engine | None:
        """The engine for features; None: the model as torch runs it, with all its layers."""
        if self._fast is None:
            return None
        tokens = sum(map(len, features))
        engine = self._fast.engines.prepare(self._counted(self._fast, tokens, len(features)))
        return None if isinstance(engine, EagerEngine) else engine

    def _counted(self, host: Host, tokens: int, texts: int) -> float:
        """Operations of all work up to this, for all of it pays for a faster engine."""
        with self._lock:
            self._work += host.engines.flops(tokens, texts)
            return self._work


def _examples(rows: Iterable[Row]) -> Iterator[Example]:
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise TextError(
            f"predict takes a list of texts, not {type(rows).__name__}; for one text, give [text]"
        )
    return (_example(row, number) for number, row in enumerate(rows))


def _example(row: Row, number: int) -> Example:
    if isinstance(row, Example):
        return row
    texts = (row,) if isinstance(row, str) else row
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise TextError(f"row {number + 1} is {row!r:.60}; a row is a text or a tuple of texts")
    return Example(source="input", line=number + 1, id=str(number + 1), texts=tuple(texts))


def _place(example: Example) -> str:
    return f"{example.source}, line {example.line:,}"


@torch.no_grad()
def answer_on(
    host: Host, engine: Engine, model: TaskModel, features: Sequence[Feature]
) -> TaskLogits:
    """`tasks.inference.compute_logits` by an engine that encodes the last layer; no loss."""
    budget = batch_budget(engine, sum(map(len, features)))
    segments = model.transformer.spec.reads_segments
    by_number: dict[int, Logits] = {}

    def read(batch: RowBatch, hidden: Tensor) -> Tensor:
        chosen = [features[number] for number in batch.texts]
        passages = task_batch(chosen)
        logits = model.read_layers((hidden,), passages).float()
        by_rows = model.task.reads == "rows"
        by_number.update(split_logits(logits.numpy(), passages, chosen, batch.texts, by_rows))
        return logits

    for _ in host.run(engine, _batches(features, budget, segments), read):
        pass
    return TaskLogits(logits=[by_number[key] for key in sorted(by_number)], loss=None)


def _batches(features: Sequence[Feature], budget: int, segments: bool) -> Iterator[RowBatch]:
    """Whole examples together; segments only for a model that reads them."""
    for numbers in example_batches(features, budget):
        chosen = [features[number] for number in numbers]
        starts = np.cumsum([0, *map(len, chosen)], dtype=np.int32)
        channels = channels_of(chosen)
        if not segments:
            del channels[SEGMENTS]
        yield RowBatch(
            tuple(numbers),
            _joined([one.encoding.ids for one in chosen]),
            starts,
            channels=channels,
            positions=positions_of(chosen),
            sees=visibility_of(chosen),
        )


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.concatenate(parts).astype(np.int32, copy=False)
