"""Which words of a corpus a vocabulary should know whole, and how many tokens that saves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.corpus.reading import documents_of, read_blocks
from bertsmith.corpus.shards import Corpus
from bertsmith.corpus.sources import CorpusSource, OnError
from bertsmith.corpus.worker import encoder_of
from bertsmith.errors import ConfigError
from bertsmith.folders.vocabulary_growth import grow_tokenizer, source_of
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.tokenizer_json import vocabulary

STEP = 1 << 22  # tokens looked at together
MOST_PIECES = 32
MIN_COUNT = 5

Words = Counter[tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordCounts:
    """How often each word of two or more pieces occurs, and how many tokens there are in all."""

    words: Words
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A word worth a row of its own; `saved` counts the tokens that this word alone saves."""

    word: str
    count: int
    pieces: tuple[str, ...]
    saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Words to add, best first; `after` is the exact number of tokens with all of them added."""

    suggestions: list[Suggestion]
    tokens: int
    after: int

    @property
    def saved(self) -> int:
        """Tokens saved in all."""
        return self.tokens - self.after

    @property
    def share(self) -> float:
        """The part of the tokens that is saved."""
        return self.saved / max(1, self.tokens)


def count_words(corpus: Corpus) -> WordCounts:
    """The words of a corpus on disk, with the tokenizer inside it."""
    continuing = _continuing(corpus.tokenizer())
    words: Words = Counter()
    at, end = 0, len(corpus.tokens)
    while at < end:
        stop = min(end, at + STEP)
        while stop < end and not corpus.starts_word[stop]:
            stop += 1
        _count(corpus.tokens[at:stop], corpus.starts_word[at:stop], continuing, words)
        at = stop
    return WordCounts(words=words, tokens=end)


def count_words_of_files(
    sources: Iterable[CorpusSource], tokenizer: Tokenizer, *, on_error: OnError = "stop"
) -> WordCounts:
    """The words of files of text, as this tokenizer reads them."""
    continuing = _continuing(tokenizer)
    words: Words = Counter()
    tokens = 0
    encoder = encoder_of(tokenizer.files(), "character")
    for source in sources:
        for block in read_blocks(source):
            encoded = encoder.encode(documents_of(block, on_error).sentences)
            _count(encoded.ids, encoded.starts, continuing, words)
            tokens += len(encoded.ids)
    return WordCounts(words=words, tokens=tokens)


def advise(
    counts: WordCounts, tokenizer: Tokenizer, *, top: int = 1000, min_count: int = MIN_COUNT
) -> Advice:
    """The `top` words of letters that save the most tokens, each met at least `min_count` times."""
    if top < 1 or min_count < 1:
        raise ConfigError(f"top is {top} and min_count {min_count}; both must be at least 1")
    prefix = _prefix(tokenizer)
    unknown = tokenizer.special.unk
    suggestions: list[Suggestion] = []
    for ids, count in counts.words.items():
        if count < min_count or unknown in ids:
            continue
        pieces = tuple(tokenizer.id_to_token(number) or "" for number in ids)
        word = _joined(pieces, prefix)
        if word.isalpha() and tokenizer.token_to_id(word) is None:
            saved = count * (len(pieces) - 1)
            suggestions.append(Suggestion(word=word, count=count, pieces=pieces, saved=saved))
    suggestions.sort(key=lambda suggestion: (-suggestion.saved, suggestion.word))
    chosen = suggestions[:top]
    after = counts.tokens - _saved(counts.words, tokenizer, [one.word for one in chosen])
    return Advice(suggestions=chosen, tokens=counts.tokens, after=after)


def _joined(pieces: Sequence[str], prefix: str) -> str:
    return pieces[0] + "".join(piece.removeprefix(prefix) for piece in pieces[1:])


def _saved(words: Words, tokenizer: Tokenizer, chosen: list[str]) -> int:
    """Tokens saved over all words: a new word also shortens longer ones that begin with it."""
    if not chosen:
        return 0
    grown = grow_tokenizer(tokenizer, chosen)
    prefix = _prefix(tokenizer)
    texts = [
        _joined([tokenizer.id_to_token(number) or "" for number in ids], prefix) for ids in words
    ]
    lengths, _ = grown.fast_ids(texts, None)
    saved = 0
    for (ids, count), encoding in zip(words.items(), lengths, strict=True):
        now = len(encoding) - grown.special_count
        if tokenizer.special.unk not in ids:
            saved += count * (len(ids) - now)
    return saved


def _count(
    tokens: NDArray[np.unsignedinteger] | NDArray[np.int32],
    starts: NDArray[np.uint8] | NDArray[np.bool_],
    continuing: NDArray[np.bool_],
    words: Words,
) -> None:
    """Add the words of several pieces; words of whole tokens (Chinese) cannot be joined."""
    firsts = np.flatnonzero(starts)
    lengths = np.diff(np.append(firsts, len(tokens)))
    inner = np.concatenate([[0], np.cumsum(continuing[tokens])])
    joined = inner[firsts + lengths] - inner[firsts] == lengths - 1
    for length in range(2, MOST_PIECES + 1):
        at = firsts[joined & (lengths == length)]
        if len(at):
            rows = np.asarray(tokens)[at[:, None] + np.arange(length)]
            unique, counts = np.unique(rows, axis=0, return_counts=True)
            for row, count in zip(unique.tolist(), counts.tolist(), strict=True):
                words[tuple(row)] += count


def _continuing(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """For each id whether its token continues a word."""
    prefix = _prefix(tokenizer)
    names = (tokenizer.id_to_token(number) or "" for number in range(tokenizer.vocab_size))
    return np.array([name.startswith(prefix) for name in names], dtype=bool)


def _prefix(tokenizer: Tokenizer) -> str:
    state = source_of(tokenizer).state
    if state["model"]["type"] != "WordPiece" or not vocabulary(state):
        raise ConfigError(
            f"advice is for WordPiece vocabularies (BERT); this one is {state['model']['type']}"
        )
    return str(state["model"].get("continuing_subword_prefix", "##"))
