"""Predictor: what a fine-tuned folder says of texts, in order, for input of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch

from bertsmith.config import validated
from bertsmith.data.examples.example import Example
from bertsmith.errors import FolderError, TensorMismatchError, TextError
from bertsmith.folders.read import LoadedFolder, load_model
from bertsmith.folders.task_files import HEAD, read_task, read_task_head
from bertsmith.tasks.answering import answer, predictions
from bertsmith.tasks.head import HeadSettings
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.meta import MetaTables, meta_sizes, with_meta
from bertsmith.tasks.model import TaskModel
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.table import task_from_json
from bertsmith.tasks.task import Task
from bertsmith.tasks.vector import VectorSettings
from bertsmith.text.tokenizer import Tokenizer

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
    ) -> None:
        self.device = device or torch.device("cpu")
        self.model = model.to(self.device).eval()
        self.tokenizer = tokenizer
        self.lengths = lengths
        self._tables = tables

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

    def stream(self, examples: Iterable[Example]) -> Iterator[tuple[Example, Prediction]]:
        """Examples with their answers, in order, a bounded number in memory."""
        for chunk in _chunks(examples, CHUNK):
            features = self.task.features(chunk, self.tokenizer, self.lengths)
            features = with_meta(features, chunk, self._tables)
            found = answer(self.model, features, device=self.device)
            yield from zip(chunk, predictions(self.model, found, features, chunk), strict=True)


def load_predictor(name: str | Path, *, device: str = "cpu") -> Predictor:
    """The predictor of a fine-tuned folder."""
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
        pool=_settings(LengthSettings, section, "length", path).pool,
        meta_sizes=meta_sizes(tables),
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
