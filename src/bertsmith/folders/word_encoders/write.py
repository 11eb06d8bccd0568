"""Writing an encoder of words with what a task adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from bertsmith import __version__
from bertsmith.folders.extras import Extras
from bertsmith.folders.opened import CONFIG, OWN
from bertsmith.folders.tensors import SINGLE
from bertsmith.folders.word_encoders.read import word_config
from bertsmith.folders.write import write_folder
from bertsmith.models.word_encoders.word_model import ElmoEncoder, WordModel
from bertsmith.text.whole_words.tokenizer import WordTokenizer


def save_words(model: WordModel, tokenizer: WordTokenizer, path: Path, *, extras: Extras) -> None:
    """A whole folder or nothing: encoder, rule of splitting, words, and `extras`."""
    encoder = model.encoder
    module = encoder.network if isinstance(encoder, ElmoEncoder) else encoder
    tensors = {name: one.detach().float().cpu() for name, one in module.state_dict().items()}
    config = word_config(model, tokenizer)
    own = {"version": __version__, "variant": config["model_type"], **extras.json}
    weights: dict[str, Mapping[str, Tensor]] = {SINGLE: tensors, **extras.tensors}
    files = {CONFIG: config, OWN: own, **extras.files}
    write_folder(path, files, weights, {"": tokenizer})
