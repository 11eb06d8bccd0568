"""Sources and targets as token ids: how much of a source is read, and where targets end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bertsmith.errors import ConfigError, FolderError
from bertsmith.labeled.pairs.pairs import SentenceData
from bertsmith.models.spec import Spec
from bertsmith.text.encoding import Ints
from bertsmith.text.tokenizer import Tokenizer

LEAST_SOURCE = 8  # tokens; with fewer a source says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingLengths:
    """How many tokens of a source are read, and how many a target may have, its end included."""

    source: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedPairs:
    """N sources with their special tokens, and N targets with the token that ends them.

    `cut` (N,) is how many tokens of each source were left out.
    """

    sources: Sequence[Ints]
    targets: Sequence[Ints]
    cut: Sequence[int] = field(default=())

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def cut_rows(self) -> int:
        """How many sources were cut."""
        return sum(one > 0 for one in self.cut)


class PairEncoder:
    """Token ids of sources and targets for one model.

    A source has the special tokens of a single text, but for a closing one where a causal model
    continues it; a target ends with the token that ends a text. A decoder writes the whole frame.
    """

    def __init__(self, tokenizer: Tokenizer, spec: Spec) -> None:
        self._tokenizer = tokenizer
        self._bare = tokenizer.bare()
        self._spec = spec
        frame = tokenizer.framed([-1]).tolist()
        # A closing token would end a text before it is continued.
        self._closing = len(frame) - 1 - frame.index(-1) if spec.sees == "before" else 0
        end = tokenizer.end_id
        if end is None:
            raise FolderError(
                "the tokenizer has no token that ends a text ([SEP], </s>), so a model could never "
                "stop writing; give a model whose tokenizer has one"
            )
        self.end = end

    @property
    def together(self) -> bool:
        """Whether source and target stand in one text, and share its positions."""
        return self._spec.decoder is None

    def targets(self, texts: Sequence[str]) -> list[Ints]:
        """Targets as they are predicted: every token, then the end."""
        bodies, _ = self._bare.fast_ids(texts, None)
        if self.together:
            return [np.append(body, self.end).astype(np.int32) for body in bodies]
        return [self._tokenizer.framed(body.tolist()) for body in bodies]

    def sources(self, texts: Sequence[str], limit: int) -> tuple[list[Ints], list[int]]:
        """Sources of at most `limit` tokens, and how many of each were cut."""
        ids, cut = self._tokenizer.fast_ids(texts, limit + self._closing)
        return [one[: len(one) - self._closing] for one in ids], cut

    def lengths(self, data: Sequence[SentenceData], wanted: int) -> WritingLengths:
        """The lengths for these rows: no target is ever cut, sources get what they leave.

        `wanted` is the most for source and target together; a decoder has as much for each.
        """
        longest = self._spec.longest
        most = wanted if longest is None else min(wanted, longest)
        target, where = self._longest_target(data)
        room = most - target if self.together else most
        if room < LEAST_SOURCE or target > most:
            limit = f"--max-length {wanted}" if most == wanted else f"the {most} positions"
            raise ConfigError(
                f"{where}: the target has {target} tokens, and {limit} of the model leave "
                f"{max(room, 0)} for its source; targets are never cut: remove the row, or raise "
                "--max-length if the model has more positions"
            )
        return WritingLengths(source=room, target=target)

    def encode(self, data: SentenceData, lengths: WritingLengths) -> EncodedPairs:
        """The rows of a file as token ids."""
        sources, cut = self.sources([row[0] for row in data.rows], lengths.source)
        return EncodedPairs(
            sources=sources, targets=self.targets([row[1] for row in data.rows]), cut=cut
        )

    def _longest_target(self, data: Sequence[SentenceData]) -> tuple[int, str]:
        best, where = 0, "the data"
        for part in data:
            for number, ids in enumerate(self.targets([row[1] for row in part.rows])):
                if len(ids) > best:
                    best, where = len(ids), part.place(number)
        return best, where


def unigram_entropy(targets: Sequence[Ints]) -> float:
    """What a model without any text to look at could reach: nats per token of the targets."""
    joined = np.concatenate(targets)
    counts = np.unique(joined, return_counts=True)[1]
    chances = counts / counts.sum()
    return float(-(chances * np.log(chances)).sum())
