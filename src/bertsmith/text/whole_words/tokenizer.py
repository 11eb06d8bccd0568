"""Tokenizers whose tokens are whole words: by their characters, or by their place in a list."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import ConfigError, FolderError, TextError
from bertsmith.files.safe_folder import Folder
from bertsmith.text.encoding import FieldEncoder, Ints, Pieces, UnknownTokens
from bertsmith.text.special_tokens import BARE, Frame, SpecialTokens
from bertsmith.text.whole_words.characters import LENGTH, MARKS, character_table
from bertsmith.text.whole_words.rule import SPLITTER, WordRule

WORDS = "words.txt"
LARGEST_WORDS = 1 << 32  # bytes of words.txt
UNKNOWN = "<unk>"


class WordTokenizer(FieldEncoder):
    """Parts a text into words; there are no special tokens, and one text at a time is read."""

    special = SpecialTokens()
    special_count = 0

    def __init__(self, rule: WordRule) -> None:
        self.rule = rule

    @abstractmethod
    def _ids(self, words: Sequence[str]) -> Ints:
        """An id for each word: (n,)."""

    def _characters(self, words: Sequence[str]) -> NDArray[np.int16] | None:
        """The characters of each word: (n, length)."""
        return None

    def fast_ids(
        self, texts: Sequence[str], max_length: int | None
    ) -> tuple[list[Ints], list[int]]:
        """Only ids, and the number of words cut from the end."""
        every = [self._ids(self._words(text)[0]) for text in texts]
        cuts = [0 if max_length is None else max(0, len(ids) - max_length) for ids in every]
        return [ids[:max_length] for ids in every], cuts

    def files(self) -> dict[str, bytes]:
        """How a text is split."""
        return {SPLITTER: (json.dumps(self.rule.describe(), indent=2) + "\n").encode()}

    def _frame(self, fields: int) -> Frame:
        if fields > 1:
            raise TextError(
                f"an encoder of words reads one text at a time, and a row has {fields}; join the "
                "columns into one, or set encoder.pair = bi-encoder for the likeness of two texts"
            )
        return BARE.single

    def _pieces(
        self, texts: Sequence[str], allow_special: bool, limits: tuple[int, int] | None
    ) -> list[Pieces]:
        return [self._one(text, limits) for text in texts]

    def _one(self, text: str, limits: tuple[int, int] | None) -> Pieces:
        words, spans = self._words(text)
        if not words:  # a row without a word, so that every text has a vector
            words, spans = [""], [(0, 0)]
        total = len(words)
        at = range(total)
        if limits is not None and total > sum(limits):  # spell no word that no setting could keep
            at = [*range(limits[0]), *range(total - limits[1], total)]  # type: ignore[assignment]
        read = [words[number] for number in at]
        return Pieces(
            self._ids(read),
            np.array(at, dtype=np.int32),
            np.array([spans[number] for number in at], dtype=np.int32).reshape(-1, 2),
            total,
            self._characters(read),
        )

    def _words(self, text: str) -> tuple[list[str], list[tuple[int, int]]]:
        spans = self.rule.spans(text)
        words = [text[start:end] for start, end in spans]
        return ([word.lower() for word in words] if self.rule.lower else words), spans


class SpelledWords(WordTokenizer):
    """Words by their characters, so that none is unknown; id 1 is a word that lost its last ones.

    `length` are the characters of a word, its two marks included.
    """

    vocab_size = 2
    _NAMES = ("<word>", "<cut word>")

    def __init__(self, rule: WordRule, length: int = LENGTH) -> None:
        super().__init__(rule)
        self.length = length

    def id_to_token(self, number: int) -> str | None:
        """What an id says of its word."""
        return self._NAMES[number] if 0 <= number < self.vocab_size else None

    def unknown_tokens(self, ids: Sequence[Ints]) -> UnknownTokens:
        """How many words of texts are longer than they are read."""
        joined = np.concatenate(ids) if len(ids) else np.zeros(0, dtype=np.int32)
        most = f"of more than {self.length - MARKS} bytes"
        return UnknownTokens(len(joined), int((joined == 1).sum()), most, "words read in part")

    def _ids(self, words: Sequence[str]) -> Ints:
        most = self.length - MARKS
        cut = [len(word.encode(errors="surrogatepass")) > most for word in words]
        return np.array(cut, dtype=np.int32)

    def _characters(self, words: Sequence[str]) -> NDArray[np.int16]:
        return character_table(words, self.length).astype(np.int16)


class KnownWords(WordTokenizer):
    """Words of a list, counted from 1; id 0 is any other word."""

    def __init__(self, rule: WordRule, words: Sequence[str]) -> None:
        super().__init__(rule)
        self.words = tuple(words)
        self._numbers = {word: number for number, word in enumerate(self.words, start=1)}
        if len(self._numbers) < len(self.words):
            raise ConfigError("a word stands twice in the list of words")

    @property
    def vocab_size(self) -> int:
        """The words, and the unknown one."""
        return len(self.words) + 1

    def id_to_token(self, number: int) -> str | None:
        """The word of an id."""
        if number == 0:
            return UNKNOWN
        return self.words[number - 1] if 0 < number < self.vocab_size else None

    def unknown_tokens(self, ids: Sequence[Ints]) -> UnknownTokens:
        """How many words of texts have no vector."""
        joined = np.concatenate(ids) if len(ids) else np.zeros(0, dtype=np.int32)
        return UnknownTokens(
            len(joined), int((joined == 0).sum()), "no vector, read as 0", "unknown words"
        )

    def files(self) -> dict[str, bytes]:
        """How a text is split, and the words."""
        words = "".join(f"{word}\n" for word in self.words).encode(errors="surrogatepass")
        return {**super().files(), WORDS: words}

    def _ids(self, words: Sequence[str]) -> Ints:
        return np.array([self._numbers.get(word, 0) for word in words], dtype=np.int32)


def read_rule(folder: Folder, usual: WordRule) -> WordRule:
    """How a folder splits texts; `usual` where it does not say."""
    if not folder.has(SPLITTER):
        return usual
    try:
        return WordRule.from_json(folder.json_object(SPLITTER))
    except ConfigError as fault:
        raise FolderError(f"{folder.path / SPLITTER}: {fault}") from fault


def read_words(folder: Folder) -> list[str]:
    """The words of words.txt, one per line."""
    text = folder.read(WORDS, limit=LARGEST_WORDS).decode("utf-8", "surrogatepass")
    return text.split("\n")[:-1]
