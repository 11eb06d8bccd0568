"""How a text becomes words: a rule for plain text, a segmenter for Chinese, or any tokenizer.

The rule is stored with every stream and every model, so that a text that is scored later is split
as the text that was trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.corpus.worker import encoder_of
from bertsmith.errors import ConfigError, FolderError
from bertsmith.files.safe_folder import Folder
from bertsmith.files.strict_json import write_json
from bertsmith.text.fast_wordpiece import WordNumbers
from bertsmith.text.segment import BREAK, segmenter, word_starts
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.whole_words.rule import SPLITTER as SPLITTER
from bertsmith.text.whole_words.rule import WordRule, chinese_borders, parted, word_pattern

TOKENIZER = "tokenizer"
UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
RESERVED = (UNKNOWN, BEGIN, END)  # a text that holds them holds an unknown word


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRule(WordRule):
    """What decides the words of a text: a rule, or a `tokenizer`, whose pieces are the words then.

    `split` and `segmenter` are not asked with a tokenizer.
    """

    tokenizer: Tokenizer | None = None

    def describe(self) -> dict[str, Any]:
        """The rule without its tokenizer, as JSON."""
        return {**WordRule.describe(self), "pieces": self.tokenizer is not None}

    def save(self, folder: Path) -> None:
        """Write the rule into an existing folder: splitter.json and, if there is one, tokenizer/"""
        if self.tokenizer is not None:
            (folder / TOKENIZER).mkdir(exist_ok=True)
            self.tokenizer.save(folder / TOKENIZER)
        write_json(folder / SPLITTER, self.describe())

    @classmethod
    def open(cls, path: Path) -> SplitRule:
        """The rule of a folder of words or of a model."""
        folder = Folder.at(path, wanted="a folder of words or of a language model")
        if not folder.has(SPLITTER):
            raise FolderError(
                f"{path} has no {SPLITTER}, so it is unknown how its text was split into words"
            )
        known = folder.json_object(SPLITTER)
        where = folder.path / SPLITTER
        try:
            pieces = known["pieces"]
            rule = cls(
                split=known["split"],
                lower=known["lower"],
                segmenter=known["segmenter"],
                tokenizer=Tokenizer.from_folder(path / TOKENIZER) if pieces else None,
            )
        except (KeyError, TypeError, ConfigError) as error:
            raise FolderError(f"{where} is damaged: {error}; copy it from where it was") from error
        if not isinstance(rule.lower, bool) or not isinstance(rule.segmenter, str):
            raise FolderError(f"{where} is damaged: its entries are not as written")
        return rule


@dataclass(frozen=True, slots=True, eq=False)
class SplitLines:
    """Words of lines as numbers (N,), how many each line has (L,), and the words that are new."""

    numbers: NDArray[np.int32]
    lengths: NDArray[np.int64]
    new: list[str]


class WordSplitter:
    """Splits lines into words and numbers the words in the order of their first occurrence."""

    def __init__(self, rule: SplitRule, known: Sequence[str] = ()) -> None:
        """`known` are the words numbered by an earlier run, in order."""
        self.rule = rule
        self._numbers = WordNumbers(known)
        self._listed = list(known)
        self._pattern = word_pattern(rule.split, whole=rule.segmenter != "character")
        self._segmenter = None
        self._encoder = None
        if rule.tokenizer is not None:
            self._encoder = encoder_of(rule.tokenizer.files(), "character")
            self._names: dict[int, str] = {}
        elif rule.split != "spaces" and rule.segmenter != "character":
            self._segmenter = segmenter(rule.segmenter)

    def split(self, lines: Sequence[str]) -> SplitLines:
        """The words of lines that hold no line break."""
        if not lines:
            return SplitLines(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64), [])
        if self._encoder is not None:
            words, lengths = self._pieces(lines)
            return SplitLines(self._numbers.of(words), lengths, self._taken())
        text = BREAK.join(lines)
        if self.rule.lower:
            text = text.lower()
        if self._segmenter is not None and not text.isascii():
            opens = word_starts(self._segmenter, text.split(BREAK))
            text = parted(text, chinese_borders(text, opens))
        numbers = self._numbers.of(self._pattern.findall(text))
        breaks = np.flatnonzero(numbers == 0)
        ends = np.append(breaks - np.arange(len(breaks)), len(numbers) - len(breaks))
        return SplitLines(
            numbers[numbers != 0], np.diff(ends, prepend=0).astype(np.int64), self._taken()
        )

    def names(self, numbers: NDArray[np.int32]) -> list[str]:
        """The words of numbers that `split` gave."""
        return [self._listed[number - 1] for number in numbers.tolist()]

    def _taken(self) -> list[str]:
        new = self._numbers.taken()
        self._listed += new
        return new

    def _pieces(self, lines: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
        if self._encoder is None or self.rule.tokenizer is None:
            raise TypeError("there is no tokenizer")
        given = [line.lower() for line in lines] if self.rule.lower else lines
        encoded = self._encoder.encode(given)
        names = self._names
        tokenizer = self.rule.tokenizer
        for number in np.unique(encoded.ids).tolist():
            if number not in names:
                unknown_piece = number == tokenizer.special.unk
                names[number] = UNKNOWN if unknown_piece else tokenizer.id_to_token(number) or ""
        return [names[number] for number in encoded.ids.tolist()], encoded.lengths
