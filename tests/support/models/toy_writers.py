"""A writer for tests of searches: a table of random logits."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bertsmith.runtime.generation.writer import Ids, State, add_tokens, first_state, keep_rows
from bertsmith.text.tokenizer import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def letter_tokenizer(size: int) -> Tokenizer:
    """A vocabulary of `size` tokens: control tokens, then w5, w6, ... as words."""
    words = [*SPECIAL, *(f"w{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(size - 5))]
    files = {"vocab.txt": "\n".join(words).encode()}
    return Tokenizer.from_files(files | {"tokenizer_config.json": b'{"do_lower_case": false}'})


class TableWriter:
    """Logits that are a random function of source and written tokens."""

    def __init__(
        self,
        vocab_size: int,
        *,
        seed: int = 0,
        spread: float = 2.0,
        longest: int | None = None,
        start: int | None = None,
        causal: bool = False,
    ) -> None:
        self.vocab_size = vocab_size
        self.seed, self.spread, self.longest = seed, spread, longest
        self.start, self.causal = start, causal
        self._table: dict[tuple[int, ...], Tensor] = {}
        self.batches: list[int] = []  # live rows at each step

    def logits(self, tokens: Sequence[int]) -> Tensor:
        """(V,) after all of these tokens."""
        key = tuple(tokens)
        if key not in self._table:
            number = zlib.crc32(np.array([self.seed, *key], dtype=np.int64).tobytes())
            numbers = np.random.default_rng(number).standard_normal(self.vocab_size)
            self._table[key] = torch.from_numpy(numbers * self.spread).float()
        return self._table[key]

    def begun(self, source: Ids) -> tuple[int, ...]:
        """The prompt, the start token of a decoder, or nothing."""
        if self.causal:
            return tuple(source.tolist())
        return () if self.start is None else (self.start,)

    def positions_left(self, source: Ids, steps: int = 0) -> int | None:
        """One position per token."""
        return None if self.longest is None else self.longest - len(source) - steps

    def begin(self, sources: Sequence[Ids]) -> State:
        """One row per source."""
        return first_state(sources, torch.stack([self.logits(one.tolist()) for one in sources]))

    def step(self, state: State, tokens: Tensor) -> Tensor:
        """The table at the longer texts."""
        self.batches.append(len(tokens))
        add_tokens(state, tokens)
        rows = zip(state.texts.tolist(), state.written.tolist(), strict=True)
        state.logits = torch.stack(
            [self.logits([*state.sources[text].tolist(), *new]) for text, new in rows]
        )
        return state.logits

    def keep(self, state: State, rows: Tensor) -> None:
        """Any rows in any order."""
        keep_rows(state, rows)
