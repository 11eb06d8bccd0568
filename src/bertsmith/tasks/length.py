"""Maximum length, truncation and windows, the same in training and inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertsmith.config import Count, Settings
from bertsmith.errors import ConfigError
from bertsmith.text.encoding import Encoding, FieldEncoder
from bertsmith.text.truncation import FieldBudgets, Keep, Truncation, Windows


class LengthSettings(Settings):
    """At most `max_length` tokens pass through the model at once.

    `keep` selects the end of a longer text that is read; `budgets` truncates every field to its own
    length instead (title 50, body 200). With `stride`, nothing is truncated: the text is read in
    windows of `max_length`, `stride` tokens or half a window apart, and `pool` joins their vectors.
    """

    max_length: Count = 128
    keep: Keep = "head"
    head: Annotated[int, Field(ge=0)] | None = None  # tokens from the front, with head+tail
    budgets: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(strict=False)] | None = None
    stride: Count | Literal["half"] | None = None
    pool: Literal["mean", "max"] = "mean"
    strict: bool = False  # a text that is too long is an error

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.head is not None and self.keep != "head+tail":
            raise ValueError("head is a setting of keep = 'head+tail' alone")
        if self.stride is not None and (self.keep != "head" or self.budgets is not None):
            raise ValueError("with stride nothing is truncated, so keep and budgets have no effect")
        if self.stride is None and self.pool != "mean":
            raise ValueError(
                f"pool = '{self.pool}' joins windows, and there are none without stride: give "
                "stride, or leave pool out"
            )
        return self

    @property
    def step(self) -> int | None:
        """How many tokens windows are apart; None if there are none."""
        return max(1, self.max_length // 2 - 1) if self.stride == "half" else self.stride

    @property
    def truncation(self) -> Truncation:
        """The setting as the tokenizer takes it."""
        if self.budgets is None:
            return Truncation(
                max_length=self.max_length, keep=self.keep, head=self.head, strict=self.strict
            )
        return FieldBudgets(
            budgets=self.budgets,
            keep=self.keep,
            head=self.head,
            strict=self.strict,
            max_length=self.max_length,
        )


def encodings(
    texts: Sequence[tuple[str, ...]], tokenizer: FieldEncoder, lengths: LengthSettings
) -> list[list[Encoding]]:
    """Each text, or tuple of fields, as one Encoding or as several windows."""
    if lengths.step is not None:
        windows = Windows(length=lengths.max_length, stride=lengths.step)
        return [_windows(fields, tokenizer, windows) for fields in texts]
    if not texts:
        return []
    setting = lengths.truncation
    widths = {len(fields) for fields in texts}
    if widths == {1}:
        encoded = tokenizer.encode_batch([fields[0] for fields in texts], truncation=setting)
    elif widths == {2}:
        first, second = ([fields[number] for fields in texts] for number in (0, 1))
        encoded = tokenizer.encode_batch(first, second, truncation=setting)
    else:
        encoded = [tokenizer.encode_fields(fields, truncation=setting) for fields in texts]
    return [[encoding] for encoding in encoded]


def pair_encodings(
    texts: Sequence[tuple[str, ...]], tokenizer: FieldEncoder, lengths: LengthSettings
) -> list[list[Encoding]]:
    """Each of the two texts of a pair by itself, as a bi-encoder reads them."""
    if lengths.stride is not None or lengths.budgets is not None:
        raise ConfigError(
            "a bi-encoder reads at most length.max_length tokens of each text: length.stride and "
            "length.budgets are for encoder.pair = cross-encoder"
        )
    odd = next((fields for fields in texts if len(fields) != 2), None)
    if odd is not None:
        raise ConfigError(
            f"encoder.pair = bi-encoder is for pairs of texts, and a row has {len(odd)}; leave it "
            "out, or name two columns of text"
        )
    if not texts:
        return []
    flat = [text for fields in texts for text in fields]
    encoded = tokenizer.encode_batch(flat, truncation=lengths.truncation)
    return [encoded[at : at + 2] for at in range(0, len(encoded), 2)]


def _windows(fields: tuple[str, ...], tokenizer: FieldEncoder, windows: Windows) -> list[Encoding]:
    if len(fields) > 2:
        raise ConfigError(
            f"windows move over one text or the second of a pair, not over {len(fields)} fields; "
            "join the fields, or give each a budget"
        )
    return tokenizer.windows(*fields, windows=windows)
