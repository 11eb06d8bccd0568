"""Any encoder that tasks are put on, by path or name: a model of tokens, or one of words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bertsmith.folders.read import LoadedFolder, load_model, load_tokenizer, read_folder
from bertsmith.folders.word_encoders.read import (
    WordFolder,
    is_words,
    load_word_folder,
    load_word_tokenizer,
)

if TYPE_CHECKING:
    from bertsmith.text.encoding import FieldEncoder

LoadedEncoder = LoadedFolder | WordFolder


def load_encoder(name: str | Path, *, device: str = "cpu") -> LoadedEncoder:
    """The encoder in memory with its tokenizer, in float32."""
    return (
        load_word_folder(name, device=device) if is_words(name) else load_model(name, device=device)
    )


def check_encoder(name: str | Path) -> None:
    """Refuse what is no encoder, before time goes into it; weights are not read."""
    if not is_words(name):
        read_folder(name)


def encoder_tokenizer(name: str | Path) -> FieldEncoder:
    """What turns texts into the tokens of an encoder."""
    return load_word_tokenizer(name) if is_words(name) else load_tokenizer(name)
