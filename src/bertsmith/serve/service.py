"""Service: the models by name, the limits, the keys; what the application answers from."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertsmith import __version__
from bertsmith.errors import BertsmithError, ConfigError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.keys import sentence_key
from bertsmith.search.folder.manifest import read_manifest
from bertsmith.serve.access_log import AccessLog
from bertsmith.serve.dialects import bert_service, infinity, openai, own, tei
from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.http.keys import Keys
from bertsmith.serve.http.visitors import Visitors
from bertsmith.serve.limits import Limits
from bertsmith.serve.metrics import CONTENT_TYPE, Metrics
from bertsmith.serve.openapi import describe
from bertsmith.serve.page import page
from bertsmith.serve.routes import Route, table
from bertsmith.serve.served_model import ServedModel
from bertsmith.serve.shares import Caller, Shares
from bertsmith.serve.worker_process import WorkerSettings

ROUTES: dict[str, dict[str, Route]] = table(
    tei.ROUTES, openai.ROUTES, infinity.ROUTES, bert_service.ROUTES, own.ROUTES
)
READY_TEXT = "ready?"
READY_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """What is served, and how.

    `models` maps names to folders; the first one answers where a request names none. `strict`
    refuses texts that are too long instead of truncating them. `visitors` None: those of a service
    on the loopback.
    """

    models: Mapping[str, Path]
    index: Path | None = None
    index_model: str | None = None
    precision: str = "auto"
    threads: int | None = None
    strict: bool = False
    limits: Limits = field(default_factory=Limits)
    keys: Keys = field(default_factory=lambda: Keys(()))
    visitors: Visitors | None = None


def model_of_index(settings: ServiceSettings) -> str:
    """The name of the model that the index was built with, wherever it stands among the others."""
    first, *others = settings.models
    if settings.index_model is not None or settings.index is None or not others:
        return settings.index_model or first
    try:
        wanted = read_manifest(Folder.at(settings.index, wanted="the folder of an index")).encoder
    except BertsmithError:
        return first  # its worker says what is wrong with the index
    for name, folder in settings.models.items():
        with contextlib.suppress(BertsmithError):  # a model that makes no vectors
            if sentence_key(folder) == wanted.key:
                return name
    raise ConfigError(
        f"{settings.index} was built with {wanted.model}, which is none of the served models: "
        f"{', '.join(settings.models)}; serve that one, too, or build the index again"
    )


class Service:
    """The running service."""

    def __init__(self, settings: ServiceSettings, *, access_log: AccessLog | None = None) -> None:
        if not settings.models:
            raise ConfigError("name at least one model folder to serve")
        self.limits = settings.limits
        self.keys = settings.keys
        self.visitors = settings.visitors or Visitors.at("127.0.0.1", has_keys=bool(self.keys))
        self.bodies = Shares(self.limits.total_bytes)
        self.strict = settings.strict
        self.metrics = Metrics()
        self.access_log = access_log or AccessLog(None)
        self.started = int(time.time())
        self.loaded = False
        self.draining = False
        self.worked = False  # since memory was given back
        self.accepted = 0  # requests that are answered also while draining
        self.models: dict[str, ServedModel] = {}
        indexed = model_of_index(settings)
        for name, folder in settings.models.items():
            worker = WorkerSettings(
                folder=folder,
                precision=settings.precision,
                threads=settings.threads,
                index=settings.index if name == indexed else None,
            )
            self.models[name] = ServedModel(name, worker, self.limits, self.metrics)

    async def start(self) -> None:
        """Start every worker, one after another: loading is bound by disk and memory."""
        try:
            for model in self.models.values():
                await model.start()
        except BaseException:
            await self.stop(patience=1.0)
            raise
        self.loaded = True

    async def stop(self, patience: float) -> None:
        """Answer what was accepted, then end the workers."""
        self.draining = True
        await asyncio.gather(*(model.stop(patience) for model in self.models.values()))

    def find(self, ability: str, name: str | None) -> ServedModel:
        """The model of that name, or the first with the ability."""
        able = [one for one in self.models.values() if ability in one.abilities]
        known = ", ".join(one.name for one in able) or "none"
        if name is None:
            if able:
                return able[0]
            raise RequestError(
                FailureKind.NOT_FOUND, f"no model here can {ability}; see /models for what they can"
            )
        model = self.models.get(name)
        if model is None:
            raise RequestError(
                FailureKind.NOT_FOUND,
                f"no model has this name; models that can {ability}: {known}",
                field="model",
            )
        if model not in able:
            raise RequestError(
                FailureKind.NOT_FOUND,
                f"{model.name} cannot {ability}; models that can: {known}",
                field="model",
            )
        return model

    def check_room(self, route: Route, named: str | None, client: str) -> None:
        """Refuse a client that no model of this route has room for, before its body is read."""
        if route.form is None or route.ability in (None, "tokenize"):
            return  # nothing waits there
        able = [
            one.queue
            for one in self.models.values()
            if route.ability in one.abilities and named in (None, one.name)
        ]
        if able and not any(queue.has_room(client) for queue in able):
            raise able[0].full()

    async def not_ready(self, caller: Caller) -> list[str]:
        """Models that do not answer now; each runs a text."""
        if self.draining:
            return ["the service is ending"]
        deadline = min(caller.deadline, asyncio.get_running_loop().time() + READY_SECONDS)
        probe = Caller(client="health", deadline=deadline)

        async def works(model: ServedModel) -> bool:
            try:
                tokens, skipped = await model.tokenize([READY_TEXT], probe)
                options = {"normalize": None, **({"skipped": skipped} if skipped else {})}
                return len(await model.vectors(tokens, options, probe)) == 1
            except RequestError as error:
                # A full queue is work, not a fault of the model.
                return error.kind is FailureKind.OVERLOADED

        found = await asyncio.gather(*map(works, self.models.values()))
        return [name for name, ok in zip(self.models, found, strict=True) if not ok]

    def info(self, model: ServedModel) -> dict[str, Any]:
        """A model and the limits, in the form of TEI's /info and more."""
        described = model.description
        mask = model.tokenizer.special.mask
        kind: dict[str, Any] = {"embedding": {"pooling": described["pooling"]}}
        if labels := described["labels"]:
            kind = {
                "classifier": {
                    "id2label": {str(n): label for n, label in enumerate(labels)},
                    "label2id": {label: n for n, label in enumerate(labels)},
                }
            }
        return {
            "model_id": model.name,
            "model_sha": None,
            "model_dtype": described["dtype"],
            "served_model_name": model.name,
            "model_type": kind,
            "max_concurrent_requests": self.limits.connections,
            "max_input_length": model.longest,
            "max_batch_tokens": model.batch_tokens,
            "max_batch_requests": None,
            "max_client_batch_size": self.limits.texts,
            "auto_truncate": not self.strict,
            "tokenization_workers": 1,
            "version": __version__,
            "abilities": sorted(model.abilities),
            "dimension": described["dimension"],
            "normalized": described["normalized"],
            "truncatable": described["truncatable"],
            "limits": {
                "body_bytes": self.limits.body_bytes,
                "texts": self.limits.texts,
                "openai_texts": self.limits.openai_texts,
                "text_tokens": model.longest,
                "deadline": self.limits.deadline,
            },
            "engine": described["engine"],
            "prompts": sorted(described["prompts"]),
            "labels": described["labels"],
            "task": described["task"],
            "texts": described["texts"],
            "mask_token": None if mask is None else model.tokenizer.id_to_token(mask),
        }

    def metrics_text(self) -> tuple[bytes, bytes]:
        """All metrics, and their content type."""
        self.metrics.lost_lines(self.access_log.lost)
        for name, model in self.models.items():
            self.metrics.state(name, len(model.queue), model.supervisor.restarts)
        return self.metrics.text(), CONTENT_TYPE

    def openapi(self) -> dict[str, Any]:
        """The API as OpenAPI 3.1."""
        return describe(ROUTES)

    def page(self) -> tuple[bytes, bytes]:
        """The page and its content security policy."""
        return page()
