"""Sentences to tokens for a corpus: exactly what the tokenizer gives, at several times its speed.

Running text repeats its words, so BERT's WordPiece asks the Rust side about each distinct word only
once. Where words part is not assumed: the Rust normalizer and pre-tokenizer are asked what every
distinct character does between two letters. A sentence with a character whose effect depends on
its neighbors (combining marks) goes over whole, and so does every sentence of other tokenizers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertsmith.data.word_memory import UNSURE, CharacterKinds, WordMemory, unknown_id
from bertsmith.text.assemble import with_segmenter_words
from bertsmith.text.engine import Engine, clean_texts
from bertsmith.text.segment import BREAK, CharacterSegmenter, Segmenter, word_starts

GROUP = 1 << 20  # characters that are looked at together


@dataclass(frozen=True, slots=True, eq=False)
class EncodedSentences:
    """Tokens of sentences, one after another, without special tokens.

    `ids` (T,); `starts` (T,) True where a word begins; `lengths` (S,) tokens of each sentence;
    `unknown` counts the words that became an unknown token.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.bool_]
    lengths: NDArray[np.int64]
    unknown: Counter[str]


class SentenceEncoder(Protocol):
    """Turns sentences into tokens with word boundaries."""

    def encode(self, sentences: Sequence[str]) -> EncodedSentences:
        """The tokens of all sentences, in order."""


def sentence_encoder(engine: Engine, segmenter: Segmenter | None) -> SentenceEncoder:
    """The fastest exact encoder for a tokenizer; `segmenter` finds the words of Chinese text."""
    plain = PlainEncoder(engine, segmenter or CharacterSegmenter())
    return WordPieceEncoder(engine, segmenter, plain) if is_bert(engine) else plain


def is_bert(engine: Engine) -> bool:
    """Whether this is BERT's WordPiece, with nothing in it that sees more than one word."""
    state = engine.state
    normalizer = state.get("normalizer") or {}
    extra = {token["content"] for token in state["added_tokens"]} - engine.controls
    return (
        state["model"]["type"] == "WordPiece"
        and (state.get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer"
        and normalizer.get("type") == "BertNormalizer"
        and bool(normalizer.get("handle_chinese_chars"))
        and not extra
    )


class PlainEncoder:
    """Every sentence through the Rust side: right for any tokenizer."""

    def __init__(self, engine: Engine, segmenter: Segmenter) -> None:
        self._engine = engine
        self._segmenter = segmenter
        self._unknown = unknown_id(engine.state)

    def encode(self, sentences: Sequence[str]) -> EncodedSentences:
        """The tokens of all sentences, in order."""
        found = self._engine.pieces(sentences)
        unknown: Counter[str] = Counter()
        starts: list[NDArray[np.bool_]] = []
        found = with_segmenter_words(found, sentences, self._segmenter)
        for pieces, text in zip(found, sentences, strict=True):
            starts.append(np.diff(pieces.words, prepend=np.int32(-1)) != 0)
            for begin, end in pieces.offsets[pieces.ids == self._unknown].tolist():
                unknown[text[begin:end]] += 1
        return EncodedSentences(
            _joined([pieces.ids for pieces in found], np.int32),
            _joined(starts, np.bool_),
            np.array([len(pieces.ids) for pieces in found], dtype=np.int64),
            unknown,
        )


class WordPieceEncoder:
    """BERT's WordPiece with a memory for words."""

    def __init__(self, engine: Engine, segmenter: Segmenter | None, plain: PlainEncoder) -> None:
        self._engine = engine
        self._segmenter = segmenter
        self._plain = plain
        self._characters = CharacterKinds(engine)
        self._words = WordMemory(engine)

    def encode(self, sentences: Sequence[str]) -> EncodedSentences:
        """The tokens of all sentences, in order."""
        clean = clean_texts(sentences)
        return _merged([self._group(group) for group in _groups(clean)])

    def _group(self, sentences: list[str]) -> EncodedSentences:
        """A group as runs of sentences that can be taken apart and of those that cannot."""
        text = BREAK.join(sentences)
        codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        kinds = self._characters.kinds(codes)
        ends = np.cumsum([len(sentence) + 1 for sentence in sentences])
        whole = np.zeros(len(sentences), dtype=bool)
        whole[np.searchsorted(ends, np.flatnonzero(kinds == UNSURE), side="right")] = True
        whole |= np.diff(ends, prepend=0) > self._engine.giant
        if not whole.any():
            return self._apart(sentences, text, codes)
        borders = np.flatnonzero(np.diff(whole)) + 1
        parts = []
        for run in np.split(np.arange(len(sentences)), borders):
            chosen = sentences[run[0] : run[-1] + 1]
            if whole[run[0]]:
                parts.append(self._plain.encode(chosen))
            else:
                again = BREAK.join(chosen)
                points = np.frombuffer(again.encode("utf-32-le"), dtype=np.uint32)
                parts.append(self._apart(chosen, again, points))
        return _merged(parts)

    def _apart(
        self, sentences: list[str], text: str, codes: NDArray[np.uint32]
    ) -> EncodedSentences:
        """Sentences, joined by breaks in `text`, word by word."""
        words = self._words
        numbers = words.numbers(self._characters.words.findall(text))
        counts = words.counts[numbers]
        ends = np.cumsum(counts)  # (W,) tokens up to and with each word
        total = int(ends[-1]) if len(ends) else 0
        begins = ends - counts
        ids = words.pieces[
            np.repeat(words.firsts[numbers] - begins, counts) + np.arange(total, dtype=np.int64)
        ]
        starts = np.zeros(total, dtype=bool)
        real = counts > 0
        starts[begins[real]] = True
        breaks = ends[numbers == 0]  # the tokens before each break
        lengths = np.diff(np.concatenate([[0], breaks, [total]]))
        if self._segmenter is not None:
            opens = word_starts(self._segmenter, sentences)
            self._mark_chinese(opens, codes, starts, words.chinese[numbers[real]], begins[real])
        return EncodedSentences(ids, starts, lengths, self._unknown_words(numbers))

    def _mark_chinese(
        self,
        opens: NDArray[np.bool_],
        codes: NDArray[np.uint32],
        starts: NDArray[np.bool_],
        chinese: NDArray[np.bool_],
        begins: NDArray[np.int64],
    ) -> None:
        """Take the start off each ideograph that goes on with a word of the segmenter.

        `opens`, `codes` (N,) are of characters, `starts` (T,) of tokens, the others of words.
        """
        places = np.flatnonzero(self._characters.chinese[codes])  # one token each, in order
        follows = np.zeros(len(chinese), dtype=bool)
        follows[1:] = chinese[:-1]
        inner = follows[chinese] & ~opens[places]
        starts[begins[chinese][inner]] = False

    def _unknown_words(self, numbers: NDArray[np.int32]) -> Counter[str]:
        odd = self._words.unknown
        if not odd:
            return Counter()
        counts = np.bincount(numbers, minlength=len(self._words.counts))
        return Counter({word: int(counts[n]) for n, word in odd.items() if counts[n]})


def _groups(sentences: list[str]) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for sentence in sentences:
        group.append(sentence)
        size += len(sentence)
        if size >= GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _merged(parts: list[EncodedSentences]) -> EncodedSentences:
    unknown: Counter[str] = Counter()
    for part in parts:
        unknown.update(part.unknown)
    return EncodedSentences(
        _joined([part.ids for part in parts], np.int32),
        _joined([part.starts for part in parts], np.bool_),
        _joined([part.lengths for part in parts], np.int64),
        unknown,
    )


def _joined(parts: list[Any], kind: Any) -> NDArray[Any]:
    return np.concatenate(parts).astype(kind, copy=False) if parts else np.zeros(0, dtype=kind)
