"""ELMo as a kind of language model."""

from __future__ import annotations

from pathlib import Path

from bertsmith.classic.elmo.settings import ElmoSettings
from bertsmith.classic.words.stream import WordStream
from bertsmith.config import Settings
from bertsmith.training.loop.progress import Watcher


def train_kind(
    stream: WordStream,
    settings: Settings,
    out: Path,
    *,
    held_out: WordStream | None = None,
    watch: Watcher | None = None,
) -> None:
    """Train an ELMo model into a folder, or resume."""
    from bertsmith.classic.elmo.train import ElmoJob, train_elmo

    if not isinstance(settings, ElmoSettings):
        raise TypeError(f"ELMo has ElmoSettings, not {type(settings)}")
    train_elmo(
        ElmoJob(stream=stream, settings=settings, out=out, held_out=held_out, rule=stream.rule),
        watch=watch,
    )
