"""What a road is asked for, and how large its tests are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertsmith.corpus.sources import CorpusSettings
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.training.pretrain.recipe import Size

WHOLE = 1_800.0  # seconds from which on tests have their full size
BY_STEPS = 0.3  # of the full size, where runs are limited by steps
SHORTEST = 20.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadSizes:
    """How much text is tested on, so that testing stays a small part of the time."""

    scored_words: int  # of the held-out text, for perplexities
    validation_words: int  # for early stopping
    pseudo_words: int  # for the pseudo-perplexity of BERT
    sentences: int  # of the held-out text, for the vectors of words in context
    rows: int  # of the probe, for training and again for testing
    text_words: int = 100  # of a text of the probe: the first ones

    @classmethod
    def of(cls, budget: float | None) -> RoadSizes:
        """For a time in seconds, or None for runs by steps."""
        share = BY_STEPS if budget is None else min(1.0, budget / WHOLE)
        return cls(
            scored_words=max(400, round(30_000 * share)),
            validation_words=max(200, round(10_000 * share)),
            pseudo_words=max(60, round(2_000 * share)),
            sentences=max(60, round(2_500 * share)),
            rows=max(40, round(600 * share)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadRequest:
    """Files of documents, how long all models together are trained, and further tests.

    Exactly one of `budget` (seconds, testing included) and `steps` (of each neural model). `size`
    is that of GPT and BERT. `settings` change those of one kind, as "lstm.hidden=100".
    """

    files: Sequence[Path]
    out: Path
    budget: float | None = None
    steps: int | None = None
    reading: CorpusSettings = field(default_factory=CorpusSettings)
    lower: bool = True
    vocab_size: int = 8_192
    size: Size = "tiny"
    labels: Path | None = None
    similarity: Sequence[Path] = ()
    analogies: Sequence[Path] = ()
    settings: Sequence[str] = ()
    seed: int = 0

    def check(self) -> None:
        """Refuse what cannot become a road, before anything is written."""
        if (self.budget is None) == (self.steps is None):
            raise ConfigError("give either a budget (30m) or a number of steps, not both")
        if self.budget is not None and self.budget < SHORTEST:
            raise ConfigError(
                f"a budget of {self.budget:g} s is too short for seven models; give at least "
                f"{SHORTEST:g} s"
            )
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"{self.steps} steps train nothing; give 1 or more")
        if not self.files:
            raise InputFileError("no files were given; name files of texts, or folders of them")
        further = [self.labels] if self.labels else []
        for path in (*self.files, *self.similarity, *self.analogies, *further):
            if not path.exists():
                raise InputFileError(f"there is no file {path}")

    @property
    def sizes(self) -> RoadSizes:
        """How much is tested on."""
        return RoadSizes.of(self.budget)

    def record(self) -> dict[str, Any]:
        """All that decides the table, as JSON."""
        return {
            "files": [str(path) for path in self.files],
            "budget": self.budget,
            "steps": self.steps,
            "form": self.reading.form,
            "reading": self.reading.reading.model_dump(mode="json"),
            "segmenter": self.reading.segmenter,
            "lower": self.lower,
            "vocab_size": self.vocab_size,
            "size": self.size,
            "labels": None if self.labels is None else str(self.labels),
            "similarity": [str(path) for path in self.similarity],
            "analogies": [str(path) for path in self.analogies],
            "settings": list(self.settings),
            "seed": self.seed,
        }
