"""The predictor of a fine-tuned folder: its task, its head and its settings read from disk."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from bertsmith.config import validated
from bertsmith.errors import ConfigError, FolderError, TensorMismatchError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.extras import HEAD, KNOWLEDGE, read_data, read_task, read_task_head
from bertsmith.folders.generation import read_writes
from bertsmith.folders.kinds import MODEL, kind_at, need, refusal
from bertsmith.folders.opened import OpenFolder
from bertsmith.folders.read import ModelFolder, load_model
from bertsmith.folders.word_encoders.read import load_word_folder
from bertsmith.hardware.devices import torch_device
from bertsmith.labeled.triples import read_triples
from bertsmith.models.text_model import TextModel
from bertsmith.runtime.host import Host, TorchHost
from bertsmith.runtime.predictor import ModelPredictor
from bertsmith.runtime.selection import Notice, Precision
from bertsmith.tasks.enrichment.branches import Knowledge
from bertsmith.tasks.enrichment.enrichment import Enrichment
from bertsmith.tasks.enrichment.tags import Channel
from bertsmith.tasks.kinds import task_from_json
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.columns import MetaTables, auxiliary_from_json, meta_sizes
from bertsmith.tasks.model.from_settings import task_model
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.tasks.model.published import published_task
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.model.text_vector import VectorSettings
from bertsmith.tasks.reading import TaskReading

log = logging.getLogger(__name__)


def load_predictor(
    name: str | Path,
    *,
    device: str = "cpu",
    precision: Precision = "fp32",
    threads: int | None = None,
    notice: Notice = log.info,
    knowledge: str | Path | None = None,
) -> ModelPredictor:
    """The predictor of a fine-tuned folder, exact unless another precision is given.

    `knowledge` is a file of triples to read instead of the graph of training.
    """
    where = torch_device(device)
    kind, place = kind_at(name)
    if isinstance(place, Path):
        raise refusal(place, kind, "predict")
    if kind is not MODEL and "words" in kind.abilities(place):
        predictor = _words_predictor(place, device=str(where), precision=precision)
    else:
        loaded = load_model(place, device=str(where))
        host = Host(
            loaded.model,
            loaded.tokenizer,
            device=where,
            precision=precision,
            threads=threads,
            notice=notice,
        )
        predictor = predictor_of(host, loaded.folder)
    if knowledge is not None:
        predictor.reading = _with_graph(predictor.reading, Path(knowledge), str(name), notice)
    return predictor


def _with_graph(reading: TaskReading, path: Path, model: str, notice: Notice) -> TaskReading:
    """The reading of a model with another graph, whose hash is named."""
    trained = reading.enrichment
    if not isinstance(trained, Knowledge):
        raise ConfigError(
            f"--knowledge {path}: the model in {model} was trained without a graph and reads none; "
            "leave it out, or train with `bertsmith finetune DATA --knowledge FILE`"
        )
    graph = read_triples(path, match_case=trained.settings.match_case)
    if graph.digest == trained.graph.digest:
        notice(f"{path} is the graph of training (hash {graph.digest[:12]})")
        return reading
    notice(
        f"{path} (hash {graph.digest[:12]}, {len(graph):,} triples) is read instead of the graph "
        f"of training (hash {trained.graph.digest[:12]}, {len(trained.graph):,} triples): the "
        "figures of the folder are not those of this graph"
    )
    return replace(reading, enrichment=trained.with_graph(graph))


def _words_predictor(place: OpenFolder, *, device: str, precision: Precision) -> ModelPredictor:
    """The predictor of a fine-tuned folder whose encoder reads words."""
    need(place, "predict")
    home = place.root
    section = read_task(home) or {}
    loaded = load_word_folder(place, device=device)
    host = TorchHost(loaded.model, loaded.tokenizer, device=device, precision=precision)
    return _own_predictor(host, home, section)


def predictor_of(host: Host, folder: ModelFolder) -> ModelPredictor:
    """The predictor of a model in memory that was loaded from a fine-tuned folder."""
    home = folder.parts.transformer
    section = read_task(home)
    if section is None:
        return _published_predictor(host, folder)
    return _own_predictor(host, home, section)


def _own_predictor(host: TorchHost, home: Folder, section: dict[str, Any]) -> ModelPredictor:
    """The predictor of a folder that was fine-tuned here."""
    tables: dict[str, dict[str, int]] = section.get("meta", {})
    model = _task_model(host.model, home.path, section, tables)
    _fill(model, read_task_head(home, section), str(home.path / HEAD))
    lengths = _settings(LengthSettings, section, "length", home.path)
    return ModelPredictor(
        host,
        model,
        lengths=lengths,
        tables=tables,
        texts=_text_count(section, home),
        enrichment=_enrichment(section, home, str(host.device)),
    )


def _enrichment(section: dict[str, Any], home: Folder, device: str) -> Enrichment | None:
    """The graph or the tags that a model was trained with."""
    place = str(home.path)
    for key in (Knowledge.key, Channel.key):
        if key in section and not isinstance(section[key], dict):
            raise FolderError(f"{place}: {key} of the task in bertsmith.json must be a table")
    if Knowledge.key in section:
        return Knowledge.from_json(section[Knowledge.key], home.json_object(KNOWLEDGE), place)
    if Channel.key not in section:
        return None
    stored = section[Channel.key]
    model = stored.get("model")
    tagger = None
    if isinstance(model, dict):
        from bertsmith.runtime.tagging import stored_tagger  # loads predictors itself

        tagger = stored_tagger(model, place, device=device)
    return Channel.from_json(stored, place, tagger)


def _text_count(section: dict[str, Any], home: Folder) -> int:
    """The number of texts per training row: recorded, or that of the columns; 0: not known."""
    columns = (read_data(home) or {}).get("text") or ()
    count = section.get("texts", len(columns) if isinstance(columns, list | tuple) else 0)
    return count if type(count) is int else 0


def _published_predictor(host: Host, folder: ModelFolder) -> ModelPredictor:
    """The predictor of a folder that transformers fine-tuned: its head and labels name the task."""
    task = published_task(host.model, folder.reading.labels)
    if task is None and read_writes(folder.parts.transformer) is not None:
        raise FolderError(
            f"{folder.path} was trained to write text, not to predict labels: use "
            f"`bertsmith generate {folder.path}` with a text or a file"
        )
    if task is None:
        raise FolderError(
            f"{folder.path} was not fine-tuned: it has no head for a task; "
            "`bertsmith finetune DATA --model M --out DIR` makes a folder that has"
        )
    lengths = LengthSettings(max_length=folder.longest() or LengthSettings().max_length)
    model = task_model(
        host.model,
        task,
        vector=VectorSettings(),
        head=HeadSettings(),
        lengths=lengths,
        meta_sizes={},
    )
    return ModelPredictor(host, model, lengths=lengths, tables={})


def _task_model(
    model: TextModel, path: Path, section: dict[str, Any], tables: MetaTables
) -> TaskModel:
    try:
        task = task_from_json(section)
    except (KeyError, TypeError, ValueError) as fault:
        raise FolderError(f"{path}: the task section of bertsmith.json is damaged: {fault}") from (
            fault
        )
    return task_model(
        model,
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
    """The weights of head and wrapper; every tensor must be there and fit."""
    own = model.stored()
    odd = sorted(set(own) ^ set(head)) + sorted(
        name for name in set(own) & set(head) if own[name].shape != head[name].shape
    )
    if odd:
        raise TensorMismatchError(f"{where} does not fit the task: {odd[0]} ({len(odd)} in all)")
    for name, tensor in head.items():
        own[name].copy_(tensor)
