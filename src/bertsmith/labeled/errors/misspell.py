"""Errors planted into clean text: which, and where, is a function of seed, text and place."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from bertsmith.config import Settings
from bertsmith.labeled.errors.confusions import Confusions
from bertsmith.random_keys import key_of, uniforms
from bertsmith.text.segment import is_chinese

Rate = Annotated[float, Field(ge=0, le=1)]


class ErrorSettings(Settings):
    """Errors in clean text; without `confusions` the rows are pairs, and nothing is planted."""

    confusions: str | None = None  # a file, or "pinyin": characters that sound alike
    rate: Annotated[float, Field(gt=0, le=1)] = 0.1  # of the characters of a text
    random: Rate = 0.2  # of the errors: any character instead of a similar one
    clean: Rate = 0.3  # of the texts stay as they are
    seed: int = 0


def misspelled(text: str, confusions: Confusions, settings: ErrorSettings) -> str:
    """The text with errors, as long as before; characters without confusions stay."""
    key = key_of("misspell", zlib.crc32(text.encode("utf-8", "replace")), seed=settings.seed)
    draws = uniforms(key, np.arange(4 * (len(text) + 1)))
    if draws[0] < settings.clean:
        return text
    pool = _pool(confusions)
    written = []
    for place, character in enumerate(text, start=1):
        hit, kind, choice = draws[4 * place : 4 * place + 3]
        similar = confusions.get(character, "")
        if hit >= settings.rate or not similar or not is_chinese(character):
            written.append(character)
            continue
        among: Sequence[str] = pool if kind < settings.random else similar
        written.append(among[int(choice * len(among))])
    return "".join(written)


def _pool(confusions: Confusions) -> tuple[str, ...]:
    return tuple(confusions)
