"""Predictor: what a fine-tuned folder says of texts, in order, for input of any size."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch

from bertsmith.config import validated
from bertsmith.errors import ConfigError, FolderError, HardwareError, TensorMismatchError, TextError
from bertsmith.folders.extras import HEAD, read_task, read_task_head
from bertsmith.folders.read import LoadedFolder, load_model
from bertsmith.labeled.example import Example
from bertsmith.runtime.engines.engine import EagerEngine, Engine
from bertsmith.runtime.engines.selection import (
    Notice,
    Precision,
    Selection,
    encode_flops,
    weights_dtype,
)
from bertsmith.runtime.feature_batches import answer_on
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import Answered, answer, answer_auxiliary
from bertsmith.tasks.kinds import task_from_json
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.auxiliary import auxiliary_from_json
from bertsmith.tasks.model.head import HeadSettings
from bertsmith.tasks.model.meta import MetaTables, meta_sizes, with_meta
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.model.text_vector import VectorSettings
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import Task
from bertsmith.text.tokenizer import Tokenizer

log = logging.getLogger(__name__)

CHUNK = 2_048  # examples in memory at a time
Row = str | Sequence[str] | Example


class Predictor:
    """A fine-tuned model with its tokenizer and the settings it was trained with."""

    def __init__(
        self,
        model: TaskModel,
        tokenizer: Tokenizer,
        *,
        lengths: LengthSettings,
        tables: MetaTables,
        device: torch.device | None = None,
        precision: Precision = "fp32",
        threads: int | None = None,
        notice: Notice = log.info,
    ) -> None:
        """`precision`, `threads` and `notice` as in `bertsmith.load`, exact by default."""
        self.device = device or torch.device("cpu")
        self.model = model.to(self.device).eval()
        self.tokenizer = tokenizer
        self.lengths = lengths
        self._tables = tables
        self._dtype = weights_dtype(self.device, precision)
        if precision == "bf16" and self.device.type == "cpu" and not model.reads_last:
            raise HardwareError(
                "the bf16 path of a CPU gives the last layer alone, and this model reads others; "
                "use auto or fp32"
            )
        self._selection = Selection(
            model.model,
            device=self.device,
            precision=precision if model.reads_last else "fp32",
            threads=threads,
            notice=notice,
        )
        self._work = 0.0  # operations so far: much of it pays for a faster engine
        self._settled = ""

    @property
    def task(self) -> Task:
        """What the model answers."""
        return self.model.task

    def predict(self, rows: Iterable[Row]) -> list[Prediction]:
        """An answer for each text, tuple of fields, or example."""
        if isinstance(rows, str):
            raise TextError("predict takes a list of texts; for one text, give [text]")
        examples = (_example(row, number) for number, row in zip(count(), rows, strict=False))
        return [said for _, said in self.stream(examples)]

    @property
    def meta_columns(self) -> tuple[str, ...]:
        """Columns beside the texts that the model reads."""
        return tuple(self._tables)

    def stream(
        self, examples: Iterable[Example], *, chunk: int = CHUNK
    ) -> Iterator[tuple[Example, Prediction]]:
        """Examples with their answers, in order, `chunk` of them in memory at a time."""
        for some in _chunks(examples, chunk):
            features, found = self.answered(some)
            yield from zip(some, self.task.decode(found.logits, features, some), strict=True)

    def auxiliary(self, rows: Iterable[Row]) -> list[dict[str, str | float]]:
        """What the model makes of the further columns that it has learned, by column."""
        if not self.model.columns:
            raise ConfigError("the model has learned no further columns; a recipe names them")
        examples = (_example(row, number) for number, row in zip(count(), rows, strict=False))
        found: list[dict[str, str | float]] = []
        for some in _chunks(examples, CHUNK):
            features = self.task.features(some, self.tokenizer, self.lengths)
            features = with_meta(features, some, self._tables)
            found += answer_auxiliary(self.model, features, device=self.device)
        return found

    def answered(self, examples: Sequence[Example]) -> tuple[list[Feature], Answered]:
        """The passages of examples and what the model says of them, not yet put into words."""
        features = self.task.features(examples, self.tokenizer, self.lengths)
        features = with_meta(features, examples, self._tables)
        engine = self._engine(features)
        if engine is not None:
            return features, answer_on(engine, self.model, features)
        return features, answer(self.model, features, device=self.device, precision=self._rounding)

    def settle(self, tokens: int) -> str:
        """Choose how to compute about that many tokens, for good; the name of the way.

        Answers computed the same way are equal to the last bit.
        """
        if not self._settled:
            self._prepare(tokens, tokens)
            rounded = "" if self._dtype == torch.float32 else f" under {self._dtype}"
            self._settled = self._selection.engine.name + rounded
        return self._settled

    def _engine(self, features: Sequence[Feature]) -> Engine | None:
        """What is faster than the model as torch runs it, if something is proven to be."""
        if features and not self._settled:
            self._prepare(sum(map(len, features)), len(features))
        engine = self._selection.engine
        return None if isinstance(engine, EagerEngine) else engine

    def _rounding(self) -> AbstractContextManager[Any]:
        """What torch computes in; on CPUs, other engines round."""
        if self._dtype == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, self._dtype)

    def _prepare(self, tokens: int, texts: int) -> None:
        """Let more work pay for a faster engine, which may be built now."""
        self._work += encode_flops(self.model.model.spec, tokens, tokens / max(1, texts))
        self._selection.prepare(self._work)


def load_predictor(
    name: str | Path,
    *,
    device: str = "cpu",
    precision: Precision = "fp32",
    threads: int | None = None,
    notice: Notice = log.info,
) -> Predictor:
    """The predictor of a fine-tuned folder, exact unless another precision is asked for."""
    loaded = load_model(name, device=device)
    home = loaded.folder.parts.transformer
    section = read_task(home)
    if section is None:
        raise FolderError(
            f"{home.path} was not fine-tuned with bertsmith, so it does not say what it answers; "
            "`bertsmith finetune DATA --model M --out DIR` makes such a folder"
        )
    tables: dict[str, dict[str, int]] = section.get("meta", {})
    model = _task_model(loaded, section, tables)
    head = read_task_head(home, section)
    _fill(model, head, str(home.path / HEAD))
    return Predictor(
        model,
        loaded.tokenizer,
        lengths=_settings(LengthSettings, section, "length", home.path),
        tables=tables,
        device=torch.device(device),
        precision=precision,
        threads=threads,
        notice=notice,
    )


def _task_model(loaded: LoadedFolder, section: dict[str, Any], tables: MetaTables) -> TaskModel:
    path = loaded.folder.path
    try:
        task = task_from_json(section)
    except (KeyError, TypeError, ValueError) as fault:
        raise FolderError(f"{path}: the task section of bertsmith.json is damaged: {fault}") from (
            fault
        )
    return TaskModel(
        loaded.model,
        task,
        vector=_settings(VectorSettings, section, "vector", path),
        head=_settings(HeadSettings, section, "head_settings", path),
        lengths=_settings(LengthSettings, section, "length", path),
        meta_sizes=meta_sizes(tables),
        auxiliary=auxiliary_from_json(section.get("auxiliary", {})),
    )


def _settings(kind: Any, section: dict[str, Any], key: str, path: Path) -> Any:
    return validated(kind, section.get(key, {}), f"{path}, {key} of the task in bertsmith.json")


@torch.no_grad()
def _fill(model: TaskModel, head: dict[str, torch.Tensor], where: str) -> None:
    """The weights of an own head; every tensor must be there and fit."""
    own = {n: t for n, t in model.state_dict().items() if not n.startswith("model.")}
    odd = sorted(set(own) ^ set(head)) + sorted(
        name for name in set(own) & set(head) if own[name].shape != head[name].shape
    )
    if odd:
        raise TensorMismatchError(f"{where} does not fit the task: {odd[0]} ({len(odd)} in all)")
    for name, tensor in head.items():
        own[name].copy_(tensor)


def _example(row: Row, number: int) -> Example:
    if isinstance(row, Example):
        return row
    texts = (row,) if isinstance(row, str) else tuple(row)
    return Example(source="input", line=number + 1, id=str(number + 1), texts=texts)


def _chunks(examples: Iterable[Example], size: int) -> Iterator[list[Example]]:
    rows = iter(examples)
    while chunk := list(islice(rows, size)):
        yield chunk
