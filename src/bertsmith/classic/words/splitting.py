"""How a text becomes words: a rule for plain text, a segmenter for Chinese, or any tokenizer.

The rule is stored with every stream and every model, so that a text that is scored later is split
as the text that was trained on.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertsmith.corpus.worker import encoder_of
from bertsmith.errors import ConfigError, FolderError, unknown
from bertsmith.files.safe_folder import Folder
from bertsmith.files.strict_json import write_json
from bertsmith.text.segment import BREAK, CHINESE, segmenter, word_starts
from bertsmith.text.tokenizer import Tokenizer

Split = Literal["words", "letters", "spaces"]
SPLITS: tuple[str, ...] = get_args(Split)
SPLITTER, TOKENIZER = "splitter.json", "tokenizer"
UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
RESERVED = (UNKNOWN, BEGIN, END)  # a text that holds them holds an unknown word
_LAST = 0x10FFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRule:
    """What decides the words of a text.

    `split`: "words" parts punctuation from words and keeps it; "letters" leaves punctuation out;
    "spaces" is for text that is tokenized already. `segmenter` finds Chinese words in the first
    two. With a `tokenizer` the words are its pieces and `split` and `segmenter` are not asked.
    """

    split: Split = "words"
    lower: bool = False
    segmenter: str = "character"
    tokenizer: Tokenizer | None = None

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise unknown("split", self.split, SPLITS)

    def describe(self) -> dict[str, Any]:
        """The rule without its tokenizer, as JSON."""
        return {
            "split": self.split,
            "lower": self.lower,
            "segmenter": self.segmenter,
            "pieces": self.tokenizer is not None,
        }

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
        self._numbers = _Numbers(known)
        self._pattern = _pattern(rule.split, whole=rule.segmenter != "character")
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
            return SplitLines(self._numbers.of(words), lengths, self._numbers.taken())
        text = BREAK.join(lines)
        if self.rule.lower:
            text = text.lower()
        if self._segmenter is not None and not text.isascii():
            opens = word_starts(self._segmenter, text.split(BREAK))
            text = _parted(text, opens)
        numbers = self._numbers.of(self._pattern.findall(text))
        breaks = np.flatnonzero(numbers == 0)
        ends = np.append(breaks - np.arange(len(breaks)), len(numbers) - len(breaks))
        return SplitLines(
            numbers[numbers != 0], np.diff(ends, prepend=0).astype(np.int64), self._numbers.taken()
        )

    def names(self, numbers: NDArray[np.int32]) -> list[str]:
        """The words of numbers that `split` gave."""
        return [self._numbers.listed[number - 1] for number in numbers.tolist()]

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


class _Numbers(dict[str, int]):
    """The number of each word; 0 is the end of a line."""

    def __init__(self, known: Sequence[str]) -> None:
        super().__init__({word: number for number, word in enumerate(known, start=1)})
        self[BREAK] = 0
        self.listed = list(known)
        self._new: list[str] = []

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        self.listed.append(word)
        self._new.append(word)
        return number

    def of(self, words: list[str]) -> NDArray[np.int32]:
        return np.fromiter(map(self.__getitem__, words), dtype=np.int32, count=len(words))

    def taken(self) -> list[str]:
        new, self._new = self._new, []
        return new


def _parted(text: str, opens: NDArray[np.bool_]) -> str:
    """The text with a blank between Chinese words that touch."""
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    chinese = np.zeros(len(codes), dtype=bool)
    for first, last in CHINESE:
        chinese |= (codes >= first) & (codes <= last)
    follows = np.zeros(len(codes), dtype=bool)
    follows[1:] = chinese[:-1]
    places = np.flatnonzero(chinese & follows & opens)
    return np.insert(codes, places, ord(" ")).tobytes().decode("utf-32-le")


@cache
def _pattern(split: str, *, whole: bool) -> re.Pattern[str]:
    """Matches one word, or the break between lines; `whole`: Chinese runs are words already."""
    if split == "spaces":  # the white space of kenlm: of ASCII alone
        return re.compile("[^\x00 \t\n\r\x0b\x0c]+|\n")
    ideographs = "".join(f"{chr(first)}-{chr(last)}" for first, last in CHINESE)
    letter = f"[^\\W_{ideographs}]"
    run = f"{letter}+(?:[{_marks()}]{letter}*)*"
    word = f"{run}(?:['\u2019]{run})*"
    chinese = f"[{ideographs}]" + ("+" if whole else "")
    rest = "" if split == "letters" else "|[^\\s\x00]"
    return re.compile(f"{word}|{chinese}|\n{rest}")


@cache
def _marks() -> str:
    """Unicode's combining marks as ranges of a character class: they belong to their letter."""
    ranges: list[list[int]] = []
    for code in range(0x300, _LAST):
        if unicodedata.category(chr(code))[0] == "M":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
