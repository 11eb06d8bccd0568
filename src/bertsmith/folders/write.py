"""Writing a model folder that bertsmith, transformers and sentence-transformers read alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from bertsmith import __version__
from bertsmith.errors import ConfigError, TensorMismatchError
from bertsmith.files.atomic_folder import staged_folder, write_file
from bertsmith.files.safe_folder import MEGABYTE
from bertsmith.folders.extras import NOTHING, OWN, Extras
from bertsmith.folders.sentence_files import sentence_files
from bertsmith.folders.tensor_file import STORED, data_size, file_blocks
from bertsmith.folders.tensors import SINGLE
from bertsmith.models.config.keys import config_from_spec
from bertsmith.models.config.labels import NO_LABELS, Labels
from bertsmith.models.names import published_state
from bertsmith.models.sentence_spec import SentenceSettings

if TYPE_CHECKING:
    from torch import Tensor

    from bertsmith.models.build import Model
    from bertsmith.text.tokenizer import Tokenizer


_METADATA = {"format": "pt"}  # some readers refuse a file without it
_OTHER_FILES = 8 * MEGABYTE  # a generous guess at tokenizer and settings, for the room check


def save_model(
    model: Model,
    tokenizer: Tokenizer | None,
    path: Path | str,
    *,
    sentence: SentenceSettings | None = None,
    labels: Labels = NO_LABELS,
    model_type: str | None = None,
    extras: Extras = NOTHING,
    overwrite: bool = False,
) -> None:
    """Write a whole folder or nothing; an existing folder is replaced only with `overwrite`.

    `sentence` adds the files of sentence-transformers; `model_type` keeps an alias of the variant
    (xlm-roberta of roberta); `extras` is what training adds to a published model.
    """
    tensors = published_state(model)
    _check_finite(tensors)
    config = config_from_spec(
        model.variant, model.spec, heads=model.head_specs, labels=labels, model_type=model_type
    )
    config["dtype"] = config["torch_dtype"] = _dtype_name(tensors)
    files: dict[str, Any] = {"config.json": config}
    files[OWN] = {"version": __version__, "variant": model.variant.name, **extras.json}
    weights = {SINGLE: tensors}
    for name, part in extras.tensors.items():
        _check_finite(part)
        weights[name] = dict(part)
    if sentence is not None:
        files |= sentence_files(sentence, hidden=model.spec.hidden)
        weights |= _dense_weights(sentence)
    needed = sum(data_size(part) for part in weights.values()) + _OTHER_FILES
    with staged_folder(Path(path), needed=needed, overwrite=overwrite) as staging:
        if tokenizer is not None:
            tokenizer.save(staging)
        for name, content in files.items():
            (staging / name).parent.mkdir(exist_ok=True)
            write_file(staging / name, (json.dumps(content, indent=2) + "\n").encode())
        for name, part in weights.items():
            write_tensors(staging / name, part)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """A new safetensors file of these tensors."""
    write_file(path, *file_blocks(tensors, _METADATA))


def _check_finite(tensors: Mapping[str, Tensor]) -> None:
    """A broken model must not replace a good one."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or tensor.dtype not in STORED:
            raise TensorMismatchError(f"{name} is {tensor.dtype}; only floats are stored")
        if tensor.is_meta or not bool(torch.isfinite(tensor).all()):
            raise TensorMismatchError(f"{name} holds values that are not finite; nothing was saved")


def _dense_weights(sentence: SentenceSettings) -> dict[str, dict[str, Tensor]]:
    found: dict[str, dict[str, Tensor]] = {}
    for number, layer in enumerate(sentence.dense, start=2):
        if layer.weight is None or (layer.bias is None) == layer.has_bias:
            raise ConfigError(f"dense layer {number} has no weights; load the folder to get them")
        tensors = {"linear.weight": layer.weight}
        if layer.bias is not None:
            tensors["linear.bias"] = layer.bias
        _check_finite(tensors)
        found[f"{number}_Dense/{SINGLE}"] = tensors
    return found


def _dtype_name(tensors: Mapping[str, Tensor]) -> str:
    return str(next(iter(tensors.values())).dtype).removeprefix("torch.")
