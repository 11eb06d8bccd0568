"""Any encoder that tasks are put on, by path or name: a model of tokens, or one of words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bertsmith.folders.kinds import MODEL, kind_at
from bertsmith.folders.opened import OpenFolder
from bertsmith.folders.read import LoadedFolder, load_model, load_tokenizer, read_folder
from bertsmith.folders.word_encoders.read import WordFolder, load_word_folder

if TYPE_CHECKING:
    from bertsmith.text.encoding import FieldEncoder

LoadedEncoder = LoadedFolder | WordFolder


def load_encoder(name: str | Path, *, device: str = "cpu") -> LoadedEncoder:
    """The encoder in memory with its tokenizer, in float32."""
    words, place = _found(name)
    if words:
        return load_word_folder(place, device=device)
    return load_model(place, device=device)


def check_encoder(name: str | Path) -> None:
    """Refuse what is no encoder, before time goes into it; weights are not read."""
    words, place = _found(name)
    if not words:
        read_folder(place)


def encoder_tokenizer(name: str | Path) -> FieldEncoder:
    """What turns texts into the tokens of an encoder."""
    words, place = _found(name)
    return load_word_folder(place).tokenizer if words else load_tokenizer(place)


def _found(name: str | Path) -> tuple[bool, Path | OpenFolder]:
    """Whether the encoder of a path or name reads words, and where it lies."""
    kind, place = kind_at(name)
    if isinstance(place, Path) or kind is MODEL:
        return kind is not MODEL, place
    return "words" in kind.abilities(place), place
