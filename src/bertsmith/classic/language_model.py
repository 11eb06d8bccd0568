"""What every language model answers, whatever its kind: probabilities of words and of line ends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertsmith.text.blocks import groups

Floats = NDArray[np.float64]
Ids = NDArray[np.integer[Any]]
LINES_TOGETHER = 4096
UNKNOWN_ID = 0


class LanguageModel(Protocol):
    """A left-to-right model of lines of words; logarithms are natural."""

    @property
    def kind(self) -> str:
        """The name in `LM_KINDS`."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words by id; number 0 is "<unk>"."""

    def log_probabilities(self, lines: Sequence[Ids]) -> list[Floats]:
        """For each line (n,) of ids: (n + 1,), one per word, then that of the end of the line."""

    def next_log_probabilities(self, contexts: Sequence[Ids]) -> Floats:
        """(B, V + 1) of every next word after the words since a line began; the end comes last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LmScore:
    """Sums over a text: nats of known words (line ends among them) and of unknown ones."""

    nats: float = 0.0
    unknown_nats: float = 0.0
    words: int = 0
    lines: int = 0
    unknown: int = 0
    characters: int | None = None

    def perplexity(self) -> float:
        """Per word, line ends and unknown words counted as words."""
        return _exp((self.nats + self.unknown_nats) / max(1, self.words + self.lines))

    def perplexity_known(self) -> float:
        """The same without unknown words."""
        return _exp(self.nats / max(1, self.words + self.lines - self.unknown))

    def bits_per_character(self) -> float | None:
        """Bits per character of the text, each line end counted as one; None if not counted."""
        if self.characters is None:
            return None
        total = self.nats + self.unknown_nats
        return total / math.log(2) / max(1, self.characters + self.lines)

    def as_dict(self) -> dict[str, float | int | None]:
        """All figures for JSON."""
        return {
            "perplexity": self.perplexity(),
            "perplexity_without_unknown": self.perplexity_known(),
            "bits_per_character": self.bits_per_character(),
            "nats": self.nats + self.unknown_nats,
            "words": self.words,
            "lines": self.lines,
            "unknown": self.unknown,
        }


def score_lines(
    model: LanguageModel, lines: Iterable[Ids], *, characters: int | None = None
) -> LmScore:
    """The score of a text; `characters` are those of its lines, for bits per character."""
    nats = unknown_nats = 0.0
    words = count = unknown = 0
    for group in groups(lines, LINES_TOGETHER):
        for line, found in zip(group, model.log_probabilities(group), strict=True):
            is_unknown = np.append(np.asarray(line) == UNKNOWN_ID, False)
            nats -= float(found[~is_unknown].sum())
            unknown_nats -= float(found[is_unknown].sum())
            words += len(line)
            unknown += int(is_unknown.sum())
        count += len(group)
    return LmScore(
        nats=nats,
        unknown_nats=unknown_nats,
        words=words,
        lines=count,
        unknown=unknown,
        characters=characters,
    )


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
