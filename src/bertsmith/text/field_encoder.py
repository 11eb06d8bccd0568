"""Fields of text -> Encodings, whatever a token is: truncation, windows, special tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from bertsmith.errors import TextError
from bertsmith.text.encoding import Encoding, Ints, Pieces, UnknownTokens, assemble
from bertsmith.text.special_tokens import Frame, SpecialTokens
from bertsmith.text.truncation import FieldBudgets, Truncation, Windows, allot, ends


class FieldEncoder(ABC):
    """Turns texts into Encodings; immutable, safe to share between threads."""

    special: SpecialTokens

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """The largest id plus one."""

    @property
    @abstractmethod
    def special_count(self) -> int:
        """Special tokens around a single text."""

    @abstractmethod
    def id_to_token(self, number: int) -> str | None:
        """The token of an id, if there is one."""

    @abstractmethod
    def fast_ids(
        self, texts: Sequence[str], max_length: int | None
    ) -> tuple[list[Ints], list[int]]:
        """Only ids with special tokens, and the number of tokens cut from the end."""

    @abstractmethod
    def unknown_tokens(self, ids: Sequence[Ints]) -> UnknownTokens:
        """How many of the tokens of texts are unknown; `ids` is an array (L,) for each text."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """What a folder holds of it, by file name; the same object always gives the same bytes."""

    @abstractmethod
    def _pieces(
        self, texts: Sequence[str], allow_special: bool, limits: tuple[int, int] | None
    ) -> list[Pieces]:
        """The tokens of each text; of long ones at least as many of both ends as `limits` says."""

    @abstractmethod
    def _frame(self, fields: int) -> Frame:
        """The special tokens around so many fields."""

    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        truncation: Truncation | None = None,
        allow_special: bool = False,
    ) -> Encoding:
        """One text, or a pair of texts, with its special tokens."""
        fields = [text] if pair is None else [text, pair]
        return self.encode_fields(fields, truncation=truncation, allow_special=allow_special)

    def encode_batch(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        *,
        truncation: Truncation | None = None,
        allow_special: bool = False,
    ) -> list[Encoding]:
        """Many texts, or pairs of texts; the same as one by one, but faster."""
        if isinstance(texts, str) or isinstance(pairs, str):
            raise TextError("a single str was given where a sequence of texts is expected")
        if pairs is not None and len(pairs) != len(texts):
            raise TextError(f"{len(texts)} texts and {len(pairs)} pairs were given; give as many")
        limits = _limits(truncation)
        columns = [self._pieces(texts, allow_special, limits)]
        if pairs is not None:
            columns.append(self._pieces(pairs, allow_special, limits))
        return [self._fit(list(row), truncation) for row in zip(*columns, strict=True)]

    def encode_fields(
        self,
        fields: Sequence[str],
        *,
        truncation: Truncation | None = None,
        allow_special: bool = False,
    ) -> Encoding:
        """Several fields in one Encoding, separated as a pair is; each may have its own budget."""
        if isinstance(fields, str) or not fields:
            raise TextError("encode_fields needs a sequence of one or more texts")
        return self._fit(self._pieces(fields, allow_special, _limits(truncation)), truncation)

    def windows(
        self, text: str, pair: str | None = None, *, windows: Windows, allow_special: bool = False
    ) -> list[Encoding]:
        """Every part of a long text: windows over it, or over `pair` with `text` whole in each.

        Nothing is lost over all windows, so their `cut` is 0.
        """
        fields = [text] if pair is None else [text, pair]
        *fixed, moving = self._pieces(fields, allow_special, None)
        frame = self._frame(len(fields))
        room = windows.length - frame.specials - sum(pieces.total for pieces in fixed)
        encodings = []
        for start in windows.starts(moving.total, room):
            window = moving.at(slice(start, start + room))
            encodings.append(
                assemble([*fixed, window], frame, (0,) * len(fields), self.id_to_token)
            )
        return encodings

    def _fit(self, fields: list[Pieces], setting: Truncation | None) -> Encoding:
        """Fields truncated by the setting, between their special tokens."""
        frame = self._frame(len(fields))
        totals = [pieces.total for pieces in fields]
        counts = allot(totals, frame.specials, setting)
        if setting is not None:
            fields = [
                pieces.pick(*ends(setting.keep, setting.head, count)) if count < total else pieces
                for pieces, count, total in zip(fields, counts, totals, strict=True)
            ]
        cut = tuple(total - count for total, count in zip(totals, counts, strict=True))
        return assemble(fields, frame, cut, self.id_to_token)


def _limits(setting: Truncation | None) -> tuple[int, int] | None:
    """The most tokens a setting could keep of the two ends of a field; None if unbounded."""
    if setting is None:
        return None
    most = setting.max_length
    if isinstance(setting, FieldBudgets) and None not in setting.budgets:
        most = max(budget for budget in setting.budgets if budget is not None)
    return None if most is None else (most, 0 if setting.keep == "head" else most)
