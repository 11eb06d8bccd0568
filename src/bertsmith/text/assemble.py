"""Puts the pieces of the fields and the special tokens of a template together as one Encoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bertsmith.text.encoding import Encoding, Ints, Pieces, renumber
from bertsmith.text.segment import Segmenter, check_spans, is_chinese
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


def with_segmenter_words(pieces: Pieces, text: str, segmenter: Segmenter) -> Pieces:
    """The same pieces with Chinese characters numbered by the segmenter's words."""
    if len(pieces.ids) == 0 or text.isascii():
        return pieces
    words = segmenter.words(text)
    check_spans(words, len(text))
    spans = np.array(words, dtype=np.int64).reshape(-1, 2)
    if len(spans) == 0:
        return pieces
    starts = pieces.offsets[:, 0]
    chinese = np.array([s < len(text) and is_chinese(text[s]) for s in starts.tolist()], dtype=bool)
    span = np.searchsorted(spans[:, 0], starts, side="right") - 1
    # Words of the tokenizer keep even keys, words of the segmenter get odd ones: they never mix.
    keys = np.where(chinese, span * 2 + 1, pieces.words * 2)
    return Pieces(pieces.ids, renumber(_int32(keys)), pieces.offsets, pieces.total)


def _int32(values: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Ints:
    return values.astype(np.int32)
