"""Tokenizes the sentences of a corpus: exactly the tokenizer's tokens, at several times its speed.

Running text repeats its words, so with BERT's WordPiece each distinct word is tokenized once and
cached. Word boundaries come from the classes of characters (`character_classes`). A sentence with a
character whose effect depends on its neighbors (combining marks) is tokenized as a whole, and so is
every sentence of other tokenizers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertsmith.text.blocks import groups
from bertsmith.text.character_classes import CODE_POINTS, UNSURE, CharacterClasses
from bertsmith.text.encoding import with_segmenter_words
from bertsmith.text.letter_case import CaseCache, case_of
from bertsmith.text.safe_tokenizer import SafeTokenizer, clean_texts, rust_errors
from bertsmith.text.segment import (
    BREAK,
    CHINESE,
    CharacterSegmenter,
    Segmenter,
    is_chinese,
    word_starts,
)
from bertsmith.text.tokenizer_json import vocabulary

MAX_CACHED_WORDS = 400_000
MAX_CACHED_CHARACTERS = 1 << 25
GROUP = 1 << 20  # characters that are encoded together


class WordCache:
    """The pieces of each distinct word, numbered in order; 0 is the break between sentences."""

    def __init__(self, tokenizer: SafeTokenizer) -> None:
        self._tokenizer = tokenizer
        self._unknown = unknown_id(tokenizer.state)
        self._clear()

    def numbers(self, words: list[str]) -> NDArray[np.int32]:
        """The number of each word; new words are tokenized first."""
        if len(self._known) > MAX_CACHED_WORDS or self._characters_cached > MAX_CACHED_CHARACTERS:
            self._clear()
        known = self._known
        numbers = known.of(words)
        if known.new:
            self._tokenize(known.new)
            known.taken()  # only now: what could not be tokenized stays new
        return numbers

    def _clear(self) -> None:
        self._known = WordNumbers()
        self._characters_cached = 0
        self.unknown: dict[int, str] = {}
        self.counts = np.zeros(1, dtype=np.int64)
        self.firsts = np.zeros(1, dtype=np.int64)
        self.chinese = np.zeros(1, dtype=bool)
        self.cases = np.zeros(1, dtype=np.uint8)
        self.pieces = np.zeros(0, dtype=np.int32)

    def _tokenize(self, words: list[str]) -> None:
        with rust_errors("the text could not be tokenized"):
            encoded = self._tokenizer.safe.encode_batch_fast(words, add_special_tokens=False)
        ids = [one.ids for one in encoded]
        first = len(self.counts)
        for number, (word, pieces) in enumerate(zip(words, ids, strict=True), start=first):
            if self._unknown in pieces:
                self.unknown[number] = word
        counts = np.array([len(pieces) for pieces in ids], dtype=np.int64)
        flat = np.array([piece for pieces in ids for piece in pieces], dtype=np.int32)
        self.firsts = np.append(self.firsts, len(self.pieces) + np.cumsum(counts) - counts)
        self.counts = np.append(self.counts, counts)
        self.pieces = np.append(self.pieces, flat)
        chinese = [len(word) == 1 and is_chinese(word) for word in words]
        self.chinese = np.append(self.chinese, chinese)
        cases = np.array([case_of(word) for word in words], dtype=np.uint8)
        self.cases = np.append(self.cases, cases)
        self._characters_cached += sum(map(len, words))


class WordNumbers(dict[str, int]):
    """Gives the next number to a word at its first occurrence; a line break has number 0."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        """`known` are the words that have the numbers from 1."""
        super().__init__({word: number for number, word in enumerate(known, start=1)})
        self[BREAK] = 0
        self.new: list[str] = []

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        self.new.append(word)
        return number

    def of(self, words: Sequence[str]) -> NDArray[np.int32]:
        """(N,) the number of each word."""
        return np.fromiter(map(self.__getitem__, words), dtype=np.int32, count=len(words))

    def taken(self) -> list[str]:
        """The words that are new since the last call, in order."""
        new, self.new = self.new, []
        return new


def unknown_id(state: dict[str, Any]) -> int:
    """The id of the unknown token; -1 where a tokenizer has none."""
    model = state["model"]
    if isinstance(number := model.get("unk_id"), int):
        return number
    return vocabulary(state).get(model.get("unk_token") or "", -1)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedSentences:
    """Tokens of sentences, one after another, without special tokens.

    `ids` (T,); `starts` (T,) True where a word begins, `cases` (T,) its case there as `case_of`
    numbers it; `lengths` (S,) tokens of each sentence; `unknown` counts the words that became an
    unknown token.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.bool_]
    cases: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    unknown: Counter[str]


class SentenceEncoder(Protocol):
    """Turns sentences into tokens with word boundaries."""

    def encode(self, sentences: Sequence[str]) -> EncodedSentences:
        """The tokens of all sentences, in order."""


def sentence_encoder(tokenizer: SafeTokenizer, segmenter: Segmenter | None) -> SentenceEncoder:
    """The fastest exact encoder for a tokenizer; `segmenter` finds the words of Chinese text."""
    plain = PlainEncoder(tokenizer, segmenter or CharacterSegmenter())
    return WordPieceEncoder(tokenizer, segmenter, plain) if is_bert(tokenizer) else plain


def is_bert(tokenizer: SafeTokenizer) -> bool:
    """Whether this is BERT's WordPiece, with nothing in it that sees more than one word."""
    state = tokenizer.state
    normalizer = state.get("normalizer") or {}
    extra = {token["content"] for token in state["added_tokens"]} - tokenizer.controls
    return (
        state["model"]["type"] == "WordPiece"
        and (state.get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer"
        and normalizer.get("type") == "BertNormalizer"
        and bool(normalizer.get("handle_chinese_chars"))
        and not extra
    )


class PlainEncoder:
    """Every sentence through the Rust tokenizer: exact for any tokenizer."""

    def __init__(self, tokenizer: SafeTokenizer, segmenter: Segmenter) -> None:
        self._tokenizer = tokenizer
        self._segmenter = segmenter
        self._unknown = unknown_id(tokenizer.state)
        self._cases = CaseCache()

    def encode(self, sentences: Sequence[str]) -> EncodedSentences:
        """The tokens of all sentences, in order."""
        fields = with_segmenter_words(self._tokenizer.pieces(sentences), sentences, self._segmenter)
        unknown: Counter[str] = Counter()
        starts: list[NDArray[np.bool_]] = []
        cases: list[NDArray[np.uint8]] = []
        for pieces, text in zip(fields, sentences, strict=True):
            starts.append(np.diff(pieces.words, prepend=np.int32(-1)) != 0)
            cases.append(self._cases.of_tokens(text, pieces.offsets, starts[-1]))
            for begin, end in pieces.offsets[pieces.ids == self._unknown].tolist():
                unknown[text[begin:end]] += 1
        return EncodedSentences(
            _joined([pieces.ids for pieces in fields], np.int32),
            _joined(starts, np.bool_),
            _joined(cases, np.uint8),
            np.array([len(pieces.ids) for pieces in fields], dtype=np.int64),
            unknown,
        )


class WordPieceEncoder:
    """BERT's WordPiece with a cache of words."""

    def __init__(
        self, tokenizer: SafeTokenizer, segmenter: Segmenter | None, plain: PlainEncoder
    ) -> None:
        self._tokenizer = tokenizer
        self._segmenter = segmenter
        self._plain = plain
        self._characters = CharacterClasses(tokenizer.safe, separator=BREAK)
        self._words = WordCache(tokenizer)
        self._chinese = np.zeros(CODE_POINTS, dtype=bool)
        for first, last in CHINESE:
            self._chinese[first : last + 1] = True

    def encode(self, sentences: Sequence[str]) -> EncodedSentences:
        """The tokens of all sentences, in order."""
        clean = clean_texts(sentences)
        joint = groups(clean, len(clean), size=len, most_size=GROUP)
        return _merged([self._group(group) for group in joint])

    def _group(self, sentences: list[str]) -> EncodedSentences:
        """A group in runs: sentences whose words can be cached, sentences as a whole."""
        text = BREAK.join(sentences)
        codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        unsure = (self._characters.of(codes) == UNSURE) | self._characters.is_mark[codes]
        ends = np.cumsum([len(sentence) + 1 for sentence in sentences])
        whole = np.zeros(len(sentences), dtype=bool)
        whole[np.searchsorted(ends, np.flatnonzero(unsure), side="right")] = True
        whole |= np.diff(ends, prepend=0) > self._tokenizer.long_text
        if not whole.any():
            return self._by_words(sentences, text, codes)
        borders = np.flatnonzero(np.diff(whole)) + 1
        parts = []
        for run in np.split(np.arange(len(sentences)), borders):
            chosen = sentences[run[0] : run[-1] + 1]
            if whole[run[0]]:
                parts.append(self._plain.encode(chosen))
            else:
                again = BREAK.join(chosen)
                points = np.frombuffer(again.encode("utf-32-le"), dtype=np.uint32)
                parts.append(self._by_words(chosen, again, points))
        return _merged(parts)

    def _by_words(
        self, sentences: list[str], text: str, codes: NDArray[np.uint32]
    ) -> EncodedSentences:
        """Sentences, joined by breaks in `text`, from cached words."""
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
        cases = np.zeros(total, dtype=np.uint8)
        cases[begins[real]] = words.cases[numbers[real]]
        breaks = ends[numbers == 0]  # the tokens before each break
        lengths = np.diff(np.concatenate([[0], breaks, [total]]))
        if self._segmenter is not None:
            opens = word_starts(self._segmenter, sentences)
            self._mark_chinese(opens, codes, starts, words.chinese[numbers[real]], begins[real])
        return EncodedSentences(ids, starts, cases, lengths, self._unknown_words(numbers))

    def _mark_chinese(
        self,
        opens: NDArray[np.bool_],
        codes: NDArray[np.uint32],
        starts: NDArray[np.bool_],
        chinese: NDArray[np.bool_],
        begins: NDArray[np.int64],
    ) -> None:
        """Clear the word start of each ideograph inside a word of the segmenter.

        `opens`, `codes` (N,) are of characters, `starts` (T,) of tokens, the others of words.
        """
        places = np.flatnonzero(self._chinese[codes])  # one token each, in order
        follows = np.zeros(len(chinese), dtype=bool)
        follows[1:] = chinese[:-1]
        inner = follows[chinese] & ~opens[places]
        starts[begins[chinese][inner]] = False

    def _unknown_words(self, numbers: NDArray[np.int32]) -> Counter[str]:
        unknown = self._words.unknown
        if not unknown:
            return Counter()
        counts = np.bincount(numbers, minlength=len(self._words.counts))
        return Counter({word: int(counts[n]) for n, word in unknown.items() if counts[n]})


def _merged(parts: list[EncodedSentences]) -> EncodedSentences:
    unknown: Counter[str] = Counter()
    for part in parts:
        unknown.update(part.unknown)
    return EncodedSentences(
        _joined([part.ids for part in parts], np.int32),
        _joined([part.starts for part in parts], np.bool_),
        _joined([part.cases for part in parts], np.uint8),
        _joined([part.lengths for part in parts], np.int64),
        unknown,
    )


def _joined(parts: list[Any], kind: Any) -> NDArray[Any]:
    return np.concatenate(parts).astype(kind, copy=False) if parts else np.zeros(0, dtype=kind)
