"""Text lengths in tokens, and the share of rows that each maximum length truncates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import unknown
from bertsmith.labeled.example import Answers, ChoiceIndex, Example
from bertsmith.labeled.split.splits import Splits
from bertsmith.labeled.split.stratify import SPLITS
from bertsmith.text.encoding import FieldEncoder, UnknownTokens

Counts = NDArray[np.int64]
LIMITS = (64, 128, 256, 512)
PERCENTILES = (50, 95, 99)
WHOLE = 0.99  # the share of rows that a suggested limit leaves as they are
AT_ONCE = 1_024  # rows tokenized together; a text that comes again among them is counted once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthTable:
    """Tokens of each row by split, special tokens included, before anything is cut.

    A row of a question with choices is as long as its longest choice with the context. With
    `windows`, longer rows are not cut but read in several windows. `unknown` counts the tokens of
    distinct texts that the vocabulary does not have.
    """

    tokens: dict[str, Counts]
    limits: tuple[int, ...]
    windows: bool = False
    unknown: UnknownTokens = field(default_factory=UnknownTokens)

    def percentile(self, share: float, split: str | None = None) -> int:
        """The length that this percentage of the rows does not exceed; 0 without rows."""
        rows = self._rows(split)
        return int(np.percentile(rows, share, method="inverted_cdf")) if len(rows) else 0

    def cut(self, limit: int, split: str | None = None) -> float:
        """The share of rows that are longer than `limit` tokens."""
        rows = self._rows(split)
        return float((rows > limit).mean()) if len(rows) else 0.0

    def lost(self, limit: int, split: str | None = None) -> float:
        """The share of tokens beyond `limit`."""
        rows = self._rows(split)
        return float(np.maximum(rows - limit, 0).sum() / rows.sum()) if len(rows) else 0.0

    @property
    def suggested(self) -> int:
        """The smallest limit that leaves nearly all rows whole, else the largest."""
        fits = (limit for limit in self.limits if self.cut(limit) <= 1 - WHOLE)
        return next(fits, self.limits[-1])

    def lines(self, chosen: int | None = None) -> list[str]:
        """A text table; the effect of `chosen`, a maximum length, is the last line."""
        what = "longer than" if self.windows else "cut at"
        heads = ["tokens", *(f"p{share}" for share in PERCENTILES), "max"]
        heads += [f"{what} {limit}" for limit in self.limits]
        body = [
            [
                split,
                *(f"{self.percentile(share, split):,}" for share in PERCENTILES),
                f"{self.percentile(100, split):,}",
                *(_share(self.cut(limit, split)) for limit in self.limits),
            ]
            for split in self.tokens
        ]
        widths = [max(map(len, column)) for column in zip(heads, *body, strict=True)]
        lines = []
        for cells in (heads, *body):
            first = cells[0].ljust(widths[0])
            rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
            lines.append("  ".join([first, *rest]))
        lines.append(str(self.unknown))
        return lines if chosen is None else [*lines, self._meaning(chosen)]

    def to_json(self, chosen: int | None = None) -> dict[str, Any]:
        """JSON values; shares are 0 to 1."""
        splits = {split: self._figures(split) for split in self.tokens}
        values = {"limits": list(self.limits), "windows": self.windows, "splits": splits}
        values["all"] = self._figures(None)
        values["unknown"] = self.unknown.share
        if chosen is not None:
            values["chosen"] = {
                "max_length": chosen,
                "cut": {split: self.cut(chosen, split) for split in self.tokens},
                "lost": {split: self.lost(chosen, split) for split in self.tokens},
            }
        return values

    def _figures(self, split: str | None) -> dict[str, Any]:
        return {
            "rows": len(self._rows(split)),
            **{f"p{share}": self.percentile(share, split) for share in PERCENTILES},
            "max": self.percentile(100, split),
            "cut": {str(limit): self.cut(limit, split) for limit in self.limits},
        }

    def _meaning(self, chosen: int) -> str:
        share = self.cut(chosen)
        if share == 0:
            return f"max length {chosen}: every row fits"
        if self.windows:
            return f"max length {chosen}: {_share(share)} of the rows are read in several windows"
        lost = _share(self.lost(chosen))
        return f"max length {chosen}: {_share(share)} of the rows are cut, {lost} of all tokens"

    def _rows(self, split: str | None) -> Counts:
        if split is None:
            return np.concatenate([np.zeros(0, dtype=np.int64), *self.tokens.values()])
        if split not in self.tokens:
            raise unknown("split", split, self.tokens)
        return self.tokens[split]


def length_table(
    rows: Splits | Mapping[str, Sequence[Example]],
    tokenizer: FieldEncoder,
    limits: Sequence[int] = LIMITS,
    *,
    windows: bool = False,
) -> LengthTable:
    """Count the tokens of every row; splits without rows are left out.

    `windows`: longer rows will be read in windows and not be cut, as those of questions always are.
    """
    given = {name: getattr(rows, name) for name in SPLITS} if isinstance(rows, Splits) else rows
    parts = {name: examples for name, examples in given.items() if examples}
    # Test rows without labels are read like the others.
    targets = [example.target for examples in parts.values() for example in examples[:1]]
    choices = any(isinstance(target, ChoiceIndex) for target in targets)
    count = UnknownTokens()
    return LengthTable(
        unknown=count,
        tokens={
            name: row_lengths(examples, tokenizer, choices=choices, count=count)
            for name, examples in parts.items()
        },
        limits=tuple(sorted(limits)),
        windows=windows or any(isinstance(target, Answers) for target in targets),
    )


def row_lengths(
    examples: Sequence[Example],
    tokenizer: FieldEncoder,
    *,
    choices: bool = False,
    count: UnknownTokens | None = None,
) -> Counts:
    """(N,) tokens of each example as a model would read it whole, special tokens included.

    `choices`: the texts are a context and its choices, each read with it. `count` is filled with
    the unknown tokens.
    """
    specials: dict[int, int] = {}
    lengths = []
    for start in range(0, len(examples), AT_ONCE):
        some = examples[start : start + AT_ONCE]
        texts = list(dict.fromkeys(text for example in some for text in example.texts))
        ids, _ = tokenizer.fast_ids(texts, None)
        if count is not None:
            count.add(tokenizer.unknown_tokens(ids))
        counts = {
            text: len(one) - tokenizer.special_count for text, one in zip(texts, ids, strict=True)
        }
        for example in some:
            sizes = [counts[text] for text in example.texts]
            if choices:
                sizes = [sizes[0], max(sizes[1:], default=0)]
            fields = len(sizes)
            if fields not in specials:
                specials[fields] = len(tokenizer.encode_fields([""] * fields))
            lengths.append(sum(sizes) + specials[fields])
    return np.array(lengths, dtype=np.int64)


def _share(share: float) -> str:
    """A percentage that is 0 or 100 only when it is."""
    if 0 < share < 0.001:
        return "<0.1 %"
    if 0.999 < share < 1:
        return ">99.9 %"
    return f"{100 * share:.1f} %"
