"""What is learned once of a text's characters and words, so that it need not be asked again."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.text.engine import Engine
from bertsmith.text.rust import rust_errors
from bertsmith.text.segment import BREAK, CHINESE, is_chinese
from bertsmith.text.states import vocabulary

PARTS, GAP, JOINS, UNSURE = range(1, 5)
MOST_WORDS = 400_000  # distinct words that are remembered
MOST_LETTERS = 1 << 25


class WordMemory:
    """Words that were met, numbered, with their pieces; number 0 is the break of sentences."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._unknown = unknown_id(engine.state)
        self._forget()

    def numbers(self, words: list[str]) -> NDArray[np.int32]:
        """The number of each word; new ones are taken apart first."""
        if len(self._known) > MOST_WORDS or self._letters > MOST_LETTERS:
            self._forget()
        known = self._known
        found = np.fromiter(map(known.__getitem__, words), dtype=np.int32, count=len(words))
        if known.new:
            self._learn(known.new)
            known.new = []
        return found

    def _forget(self) -> None:
        self._known = _Numbers({BREAK: 0})
        self._letters = 0
        self.unknown: dict[int, str] = {}
        self.counts = np.zeros(1, dtype=np.int64)
        self.firsts = np.zeros(1, dtype=np.int64)
        self.chinese = np.zeros(1, dtype=bool)
        self.pieces = np.zeros(0, dtype=np.int32)

    def _learn(self, words: list[str]) -> None:
        with rust_errors("the text could not be tokenized"):
            encoded = self._engine.safe.encode_batch_fast(words, add_special_tokens=False)
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
        self._letters += sum(map(len, words))


class _Numbers(dict[str, int]):
    """Gives the next number to a word it has not seen, and notes it."""

    new: list[str]

    def __init__(self, known: dict[str, int]) -> None:
        super().__init__(known)
        self.new = []

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        self.new.append(word)
        return number


class CharacterKinds:
    """What each character does to words, found out once, and the expression that finds words."""

    def __init__(self, engine: Engine) -> None:
        self._normalizer = engine.safe.normalizer
        self._splitter = engine.safe.pre_tokenizer
        self._kinds = np.zeros(0x110000, dtype=np.uint8)
        self._kinds[ord(BREAK)] = PARTS
        self.chinese = np.zeros(0x110000, dtype=bool)
        for first, last in CHINESE:
            self.chinese[first : last + 1] = True
        self.words = re.compile(BREAK)

    def kinds(self, codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """One kind a character."""
        found = self._kinds[codes]
        if not found.all():
            for code in np.unique(codes[found == 0]).tolist():
                self._kinds[code] = self._kind(chr(code))
            self.words = self._expression()
            found = self._kinds[codes]
        return found

    def _kind(self, character: str) -> int:
        if unicodedata.category(character).startswith("M"):
            return UNSURE
        plain = self._normalizer.normalize_str(f"a{character}a")
        words = [word for word, _ in self._splitter.pre_tokenize_str(plain)]
        if len(words) == 1 and words[0].startswith("a") and words[0].endswith("a"):
            return JOINS  # or vanishes: either way it stays inside its word
        if words == ["a", "a"]:
            return GAP
        return PARTS if len(words) == 3 and words[0] == words[2] == "a" else UNSURE

    def _expression(self) -> re.Pattern[str]:
        """Runs of characters that join, and single ones that part."""
        parting = "".join(map(re.escape, map(chr, np.flatnonzero(self._kinds == PARTS))))
        gaps = "".join(map(re.escape, map(chr, np.flatnonzero(self._kinds == GAP))))
        return re.compile(f"[^{parting}{gaps}]+|[{parting}]")


def unknown_id(state: dict[str, Any]) -> int:
    """The id of the unknown token; -1 where a tokenizer has none."""
    model = state["model"]
    if isinstance(number := model.get("unk_id"), int):
        return number
    return vocabulary(state).get(model.get("unk_token") or "", -1)
