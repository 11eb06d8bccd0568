"""Writing a model folder that bertsmith, transformers and sentence-transformers read alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from bertsmith import __version__
from bertsmith.errors import TensorMismatchError
from bertsmith.files.atomic_folder import staged_folder, write_file
from bertsmith.files.folder_hashes import write_hashes
from bertsmith.files.safe_folder import MEGABYTE
from bertsmith.folders.extras import HEAD, NOTHING, Extras
from bertsmith.folders.opened import OWN
from bertsmith.folders.sentence_files import sentence_files
from bertsmith.folders.tensor_file import STORED, data_size, file_blocks
from bertsmith.folders.tensors import SINGLE
from bertsmith.models.config.keys import config_from_spec
from bertsmith.models.config.labels import NO_LABELS, Labels
from bertsmith.models.names import published_state, to_published
from bertsmith.models.sentence_spec import SentenceSettings

if TYPE_CHECKING:
    from torch import Tensor

    from bertsmith.models.build import Model
    from bertsmith.text.encoding import FieldEncoder
    from bertsmith.text.tokenizer import Tokenizer


CLASSIFIERS = ("sequence", "token", "span")
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
    if HEAD in extras.tensors and not model.head_specs:
        tensors |= _refusal(model)
    config = config_from_spec(
        model.variant, model.spec, heads=model.head_specs, labels=labels, model_type=model_type
    )
    config["dtype"] = config["torch_dtype"] = _dtype_name(tensors)
    files: dict[str, Any] = {"config.json": config}
    files[OWN] = {"version": __version__, "variant": model.variant.name, **extras.json}
    files |= extras.files
    weights: dict[str, Mapping[str, Tensor]] = {SINGLE: tensors, **extras.tensors}
    if sentence is not None:
        stored = sentence_files(sentence, hidden=model.spec.hidden, layers=model.spec.layers)
        files |= stored.json
        weights |= stored.tensors
        if sentence.layer_mix is not None:
            config["output_hidden_states"] = True  # else sentence-transformers ignores the mix
    tokenizers = {} if tokenizer is None else {"": tokenizer}
    write_folder(Path(path), files, weights, tokenizers, overwrite=overwrite)


def write_folder(
    path: Path,
    files: Mapping[str, Any],
    weights: Mapping[str, Mapping[str, Tensor]],
    tokenizers: Mapping[str, FieldEncoder],
    *,
    overwrite: bool = False,
) -> None:
    """A whole folder or nothing: JSON and tensors by path, tokenizers by the folder they are in."""
    for part in weights.values():
        _check_finite(part)
    needed = sum(data_size(part) for part in weights.values()) + _OTHER_FILES
    with staged_folder(path, needed=needed, overwrite=overwrite) as staging:
        for place, tokenizer in tokenizers.items():
            (staging / place).mkdir(exist_ok=True)
            for name, data in tokenizer.files().items():
                write_file(staging / place / name, data)
        for name, content in files.items():
            (staging / name).parent.mkdir(exist_ok=True)
            write_file(staging / name, (json.dumps(content, indent=2) + "\n").encode())
        for name, part in weights.items():
            (staging / name).parent.mkdir(exist_ok=True)
            write_tensors(staging / name, part)
        write_hashes(staging)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """A new safetensors file of these tensors."""
    write_file(path, *file_blocks(tensors, _METADATA))


def _refusal(model: Model) -> dict[str, Tensor]:
    """Empty tensors in the place of published heads.

    transformers would draw a random head for a folder whose head it does not have, and load it. A
    tensor of the wrong shape is an error there; as an encoder, the folder still loads.
    """
    heads = [f"heads.{kind}.output.weight" for kind in CLASSIFIERS if kind in model.variant.heads]
    return {to_published(model.variant, name): torch.empty(0) for name in heads}


def _check_finite(tensors: Mapping[str, Tensor]) -> None:
    """A broken model must not replace a good one."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or tensor.dtype not in STORED:
            raise TensorMismatchError(f"{name} is {tensor.dtype}; only floats are stored")
        if tensor.is_meta or not bool(torch.isfinite(tensor).all()):
            raise TensorMismatchError(f"{name} holds values that are not finite; nothing was saved")


def _dtype_name(tensors: Mapping[str, Tensor]) -> str:
    return str(next(iter(tensors.values())).dtype).removeprefix("torch.")
