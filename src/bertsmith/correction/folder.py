"""A corrector in a model folder: a masked LM with its detector, threshold and lengths."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from bertsmith.config import validated
from bertsmith.correction.corrector import Corrector
from bertsmith.errors import FolderError
from bertsmith.folders.extras import (
    Extras,
    correction_extras,
    read_correction,
    read_detector,
)
from bertsmith.folders.read import load_model, read_folder
from bertsmith.hardware.devices import torch_device
from bertsmith.tasks.spelling.features import CharacterTokens
from bertsmith.tasks.spelling.model import SoftMasked
from bertsmith.tasks.spelling.settings import DetectorSettings


def corrector_extras(module: SoftMasked, *, threshold: float, max_length: int) -> Extras:
    """What a folder holds of a corrector besides its masked LM."""
    tensors = {} if module.detector is None else dict(module.detector.state_dict())
    section = {
        "threshold": threshold,
        "max_length": max_length,
        "detector": module.settings.model_dump(mode="json"),
    }
    return correction_extras(section, tensors)


def is_corrector(path: str | Path) -> bool:
    """Whether a folder was trained to correct."""
    return read_correction(read_folder(path).parts.transformer) is not None


def load_corrector(path: str | Path, *, device: str = "cpu") -> Corrector:
    """The corrector of a folder that `finetune --task correct` has written."""
    where = torch_device(device)
    home = read_folder(path).parts.transformer
    section = read_correction(home)
    if section is None:
        raise FolderError(
            f"{path} was not trained to correct texts; train one with `bertsmith finetune "
            "pairs.tsv --task correct`"
        )
    loaded = load_model(path, device=str(where))
    settings = validated(DetectorSettings, section["detector"], f"{path}: detector of correction")
    mask = loaded.tokenizer.special.mask
    if mask is None or "masked_lm" not in loaded.model.heads:
        raise FolderError(f"{path} has no masked-LM head or no mask token, so it cannot correct")
    module = SoftMasked(loaded.model, settings, mask)
    if module.detector is not None:
        _fill(module.detector, read_detector(home), path)
    tokens = CharacterTokens(loaded.tokenizer, max_length=section["max_length"], where=str(path))
    return Corrector(module, tokens, threshold=section["threshold"], device=where)


def _fill(detector: torch.nn.Module, tensors: Mapping[str, Any], path: str | Path) -> None:
    wanted = {name: tuple(weight.shape) for name, weight in detector.state_dict().items()}
    stored = {name: tuple(weight.shape) for name, weight in tensors.items()}
    if wanted != stored:
        odd = sorted(set(wanted.items()) ^ set(stored.items()))[0][0]
        raise FolderError(
            f"{path}: the tensor {odd!r} of the detector is missing or has another shape than "
            "bertsmith.json says"
        )
    detector.load_state_dict(dict(tensors))
