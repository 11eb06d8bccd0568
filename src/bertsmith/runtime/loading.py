"""`bertsmith.load`: from a name to something that turns texts into vectors, or answers."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from bertsmith.errors import HardwareError, unknown
from bertsmith.folders.read import load_model
from bertsmith.runtime.embedder import Embedder
from bertsmith.runtime.selection import PRECISIONS, Notice, Precision

if TYPE_CHECKING:
    from bertsmith.runtime.predictor import Predictor, Row
    from bertsmith.tasks.prediction import Prediction

log = logging.getLogger(__name__)


class LoadedModel(Embedder):
    """A model that gives vectors, and answers if its folder was fine-tuned."""

    source: str | Path = ""
    device: str = "cpu"
    _predictor: Predictor | None = None

    @property
    def predictor(self) -> Predictor:
        """What answers, made when it is first asked for; a plain folder has none and says so."""
        if self._predictor is None:
            from bertsmith.runtime.predictor import load_predictor  # who embeds need not wait

            self._predictor = load_predictor(self.source, device=self.device)
        return self._predictor

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
    loaded = load_model(name, device=str(place), dtype=_dtype(place, precision))
    if loaded.folder.sentence is None:
        log.info("%s does not say how to pool; using the mean of its rows", loaded.folder.path)
    found = LoadedModel(
        loaded.model,
        loaded.tokenizer,
        loaded.sentence,
        device=place,
        precision=precision,
        threads=threads,
        notice=notice,
    )
    found.source, found.device = name, str(place)
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


def _dtype(device: torch.device, precision: Precision) -> torch.dtype:
    """The dtype of the weights; on a CPU they stay fp32 and the engine does its own rounding."""
    if device.type == "cpu":
        if precision == "fp16":
            raise HardwareError("fp16 is for GPUs; on a CPU use auto, bf16 or fp32")
        return torch.float32
    if precision == "auto":
        half = device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if half else torch.float32
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
