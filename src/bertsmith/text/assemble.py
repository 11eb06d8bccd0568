"""Assembles the pieces of the fields and the special tokens of a template into an Encoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bertsmith.text.encoding import Encoding, Ints, Pieces, renumber
from bertsmith.text.segment import Segmenter, is_chinese, word_starts
from bertsmith.text.template import Frame


def assemble(
    kept: Sequence[Pieces], frame: Frame, cut: tuple[int, ...], name_of: Callable[[int], str | None]
) -> Encoding:
    """One Encoding of the kept pieces of each field inside their frame of special tokens."""
    length = frame.specials + sum(len(pieces.ids) for pieces in kept)
    ids = np.zeros(length, dtype=np.int32)
    words = np.full(length, -1, dtype=np.int32)
    offsets = np.zeros((length, 2), dtype=np.int32)
    segments = np.zeros(length, dtype=np.int32)
    fields = np.full(length, -1, dtype=np.int32)
    at = word = 0
    for number, gap in enumerate(frame.gaps):
        for mark, segment in gap:
            ids[at], segments[at] = mark, segment
            at += 1
        if number < len(kept) and len(kept[number].ids):
            pieces = kept[number]
            here = slice(at, at + len(pieces.ids))
            ids[here], offsets[here] = pieces.ids, pieces.offsets
            words[here] = pieces.words + word
            segments[here], fields[here] = frame.segments[number], number
            word = int(words[here][-1]) + 1
            at = here.stop
    return Encoding(
        ids=ids,
        words=words,
        offsets=offsets,
        segments=segments,
        fields=fields,
        cut=cut,
        name_of=name_of,
    )


def with_segmenter_words(
    unsegmented: Sequence[Pieces], texts: Sequence[str], segmenter: Segmenter
) -> list[Pieces]:
    """The same pieces of each text with Chinese characters numbered by the segmenter's words."""
    opens = word_starts(segmenter, texts)
    regrouped = []
    at = 0
    for pieces, text in zip(unsegmented, texts, strict=True):
        regrouped.append(_regrouped(pieces, text, opens[at : at + len(text)].nonzero()[0]))
        at += len(text) + 1
    return regrouped


def _regrouped(pieces: Pieces, text: str, words: NDArray[np.int64]) -> Pieces:
    """Pieces with the numbers of `words` (W,), given by where they start."""
    if len(pieces.ids) == 0 or text.isascii() or len(words) == 0:
        return pieces
    starts = pieces.offsets[:, 0]
    chinese = np.array([s < len(text) and is_chinese(text[s]) for s in starts.tolist()], dtype=bool)
    span = np.searchsorted(words, starts, side="right") - 1
    # Words of the tokenizer keep even keys, words of the segmenter get odd ones: they never mix.
    keys = np.where(chinese, span * 2 + 1, pieces.words * 2)
    return Pieces(pieces.ids, renumber(_int32(keys)), pieces.offsets, pieces.total)


def _int32(values: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Ints:
    return values.astype(np.int32)
