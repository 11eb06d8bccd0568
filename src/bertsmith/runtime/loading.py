"""`bertsmith.load`: from a name to something that turns texts into vectors, or answers."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import torch

from bertsmith.errors import HardwareError, unknown
from bertsmith.folders.read import load_model
from bertsmith.runtime.embedder import Embedder
from bertsmith.runtime.engines.selection import PRECISIONS, Notice, Precision, weights_dtype

if TYPE_CHECKING:
    from bertsmith.runtime.predictor import Predictor, Row
    from bertsmith.tasks.prediction import Prediction

log = logging.getLogger(__name__)


class Computing(TypedDict):
    """What a model is computed with, as `load` was told."""

    device: str
    precision: Precision
    threads: int | None
    notice: Notice


class LoadedModel(Embedder):
    """A model that gives vectors, and answers if its folder was fine-tuned."""

    source: str | Path = ""
    computing: Computing

    @cached_property
    def predictor(self) -> Predictor:
        """What answers, made when it is first asked for; a plain folder has none and says so."""
        from bertsmith.runtime.predictor import load_predictor  # who embeds need not wait

        return load_predictor(self.source, **self.computing)

    def predict(self, rows: Iterable[Row]) -> list[Prediction]:
        """An answer for each text, or tuple of texts, by a fine-tuned folder."""
        return self.predictor.predict(rows)


def load(
    name: str | Path,
    *,
    device: str = "cpu",
    precision: Precision = "auto",
    threads: int | None = None,
    notice: Notice = log.info,
) -> LoadedModel:
    """A model by path or name ("all-MiniLM-L6-v2"), ready for `encode`.

    One that was fine-tuned is also ready for `predict`.

    `precision` "auto" is fp32, or bf16 with float32 sums where a probe has proven it here; "fp32"
    is exact everywhere. `notice` gets a line whenever the engine changes.
    """
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    place = _device(device)
    loaded = load_model(name, device=str(place), dtype=weights_dtype(place, precision))
    if loaded.folder.sentence is None:
        log.info("%s does not say how to pool; using the mean of its rows", loaded.folder.path)
    computing = Computing(device=str(place), precision=precision, threads=threads, notice=notice)
    found = LoadedModel(loaded.model, loaded.tokenizer, loaded.sentence, **computing)
    found.source, found.computing = name, computing
    return found


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise HardwareError(f"{name!r} is not a device; try cpu, cuda or cuda:1") from error
    backends = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "xpu": hasattr(torch, "xpu") and torch.xpu.is_available(),
    }
    if not backends.get(device.type, False):
        there = ", ".join(kind for kind, found in backends.items() if found)
        raise HardwareError(f"there is no {device.type} device here; there is: {there}")
    return device
