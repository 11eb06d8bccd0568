"""Training an n-gram model from a stream of words to a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bertsmith.classic.ngram.estimation import NgramSettings, estimate
from bertsmith.classic.ngram.folder import CONFIG, write_ngram
from bertsmith.classic.ngram.model import KIND
from bertsmith.classic.stream.stream import WordStream
from bertsmith.config import Settings
from bertsmith.errors import ConfigError, TargetExistsError
from bertsmith.files.digest import json_digest
from bertsmith.files.safe_folder import Folder
from bertsmith.training.loop.progress import Watcher

FEWEST_WORDS = 3


def run_key(text: object, settings: Settings) -> str:
    """What tells a finished model from one of another text or other settings."""
    return json_digest([text, settings.model_dump(mode="json")])


def is_trained(out: Path, text: str, settings: Settings) -> bool:
    """Whether the model of this text and these settings is there; another one is refused."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    known = {}
    if (out / CONFIG).is_file():
        known = Folder.at(out).json_object(CONFIG)
    if known.get("model_type") == KIND and known.get("made_from") == run_key(text, settings):
        return True
    raise TargetExistsError(
        f"{out} exists and is not the n-gram model of this text with these settings; give another "
        "name or remove it first"
    )


def train_ngram(
    stream: WordStream,
    settings: Settings,
    out: Path,
    *,
    held_out: WordStream | None = None,
    watch: Watcher | None = None,
) -> None:
    """Estimate a model and write its folder; no held-out text is needed, and it is not read."""
    if not isinstance(settings, NgramSettings):
        raise TypeError(f"n-gram models have NgramSettings, not {type(settings)}")
    if not stream.lines or not len(stream.ids):
        raise ConfigError("the text has no word to count; give more text")
    longest = int(np.diff(stream.starts).max()) + 2  # with beginning and end
    if settings.order > longest:
        raise ConfigError(
            f"order {settings.order} is above the longest line, which has {longest - 2:,} words "
            f"and two ends; set order to {longest} or less"
        )
    if stream.vocab_size < FEWEST_WORDS:
        raise ConfigError(
            f"the vocabulary has {stream.vocab_size} words, the unknown one included, so there is "
            "nothing to choose from; lower the minimum count or give more text"
        )
    about = {
        "settings": settings.model_dump(mode="json"),
        "lines": stream.lines,
        "made_from": run_key(stream.account.get("made_from"), settings),
    }
    write_ngram(stream.words, estimate(stream, settings), out, about=about, rule=stream.rule)
