"""What each character does to words, as the normalizer and pre-tokenizer of BERT treat it.

Nothing is assumed about Unicode: every distinct character is put between two letters once, and the
Rust tokenizer shows what becomes of it.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as RustTokenizer

SPLITS, SPACE, JOINS, VANISHES, UNSURE = range(1, 6)
CODE_POINTS = 0x110000


class CharacterClasses:
    """The class of each character, determined at its first occurrence.

    SPLITS: a word of its own; SPACE: ends a word and disappears; JOINS: part of a word; VANISHES:
    disappears, and the word continues; UNSURE: depends on the neighbors. `is_mark` (code points,)
    is True for the Unicode marks among the characters seen.
    """

    def __init__(self, rust: RustTokenizer, separator: str = "") -> None:
        """`separator` separates texts; `words` matches it as a word."""
        self._normalizer = rust.normalizer
        self._pre_tokenizer = rust.pre_tokenizer
        self._classes = np.zeros(CODE_POINTS, dtype=np.uint8)  # 0: not seen yet
        self.is_mark = np.zeros(CODE_POINTS, dtype=bool)
        self._separator = re.escape(separator)
        self._words: re.Pattern[str] | None = None

    def of(self, codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """(N,) code points -> (N,) classes."""
        classes = self._classes[codes]
        if not classes.all():
            for code in np.unique(codes[classes == 0]).tolist():
                self._classes[code] = self._class_of(chr(code))
                self.is_mark[code] = unicodedata.category(chr(code)).startswith("M")
            self._words = None
            classes = self._classes[codes]
        return classes

    @property
    def words(self) -> re.Pattern[str]:
        """Matches the words of texts whose classes were determined; none may be UNSURE."""
        if self._words is None:
            splits = self._escaped(SPLITS) + self._separator
            self._words = re.compile(f"[^{splits}{self._escaped(SPACE)}]+|[{splits}]")
        return self._words

    def _escaped(self, which: int) -> str:
        return "".join(map(re.escape, map(chr, np.flatnonzero(self._classes == which))))

    def _class_of(self, character: str) -> int:
        probe = f"a{character}a"
        plain = probe if self._normalizer is None else self._normalizer.normalize_str(probe)
        words = [word for word, _ in self._pre_tokenizer.pre_tokenize_str(plain)]
        if words == ["aa"]:
            return VANISHES
        if words == ["a", "a"]:
            return SPACE
        if len(words) == 3 and words[0] == words[2] == "a":
            return SPLITS
        if len(words) == 1 and len(words[0]) > 2 and words[0][0] == words[0][-1] == "a":
            # Normalizing may move a combining character past its neighbors, and its offset too.
            return UNSURE if unicodedata.combining(character) else JOINS
        return UNSURE
