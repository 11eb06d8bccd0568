"""What parts a text into words: a pattern for plain text, a segmenter for Chinese.

The rule is stored with every model of words, so that a text is split later as it was in training.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import ConfigError, unknown
from bertsmith.text.segment import CHINESE, Segmenter, segmenter, word_starts

Split = Literal["words", "letters", "spaces"]
SPLITS: tuple[str, ...] = get_args(Split)
SPLITTER = "splitter.json"
Places = NDArray[np.int64]
_LAST = 0x10FFFF
_LONE = "surrogatepass"  # halves of a pair that stand alone


@dataclass(frozen=True, slots=True, kw_only=True)
class WordRule:
    """What decides the words of a text.

    `split`: "words" parts punctuation from words and keeps it; "letters" leaves punctuation out;
    "spaces" is for text that is tokenized already. `segmenter` finds Chinese words in the first
    two.
    """

    split: Split = "words"
    lower: bool = False
    segmenter: str = "character"

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise unknown("split", self.split, SPLITS)

    def describe(self) -> dict[str, Any]:
        """The rule as JSON."""
        return {
            "split": self.split,
            "lower": self.lower,
            "segmenter": self.segmenter,
            "pieces": False,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> WordRule:
        """The rule that `describe` gave; one whose words are the pieces of a tokenizer is none."""
        if stored.get("pieces"):
            raise ConfigError("its words are the pieces of a tokenizer, and whole words are needed")
        try:
            rule = cls(split=stored["split"], lower=stored["lower"], segmenter=stored["segmenter"])
        except (KeyError, TypeError) as fault:
            raise ConfigError(f"it is damaged: {fault}; copy it from where it was") from fault
        if not isinstance(rule.lower, bool) or not isinstance(rule.segmenter, str):
            raise ConfigError("its entries are not as written; copy it from where it was")
        return rule

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) of each word of a text, in order."""
        segments = self.split != "spaces" and self.segmenter != "character"
        pattern = word_pattern(self.split, whole=segments)
        if not segments or not has_chinese(text):
            return [found.span() for found in pattern.finditer(text) if found[0] != "\n"]
        opens = word_starts(_segmenter(self.segmenter), [text.replace("\n", " ")])
        places = chinese_borders(text, opens)
        spans = (found.span() for found in pattern.finditer(parted(text, places)))
        # A blank stands in front of each border: what follows it lies so many places further on.
        shifted = places + np.arange(1, len(places) + 1)
        return [
            (start - _before(shifted, start), end - _before(shifted, end - 1))
            for start, end in spans
            if text[start - _before(shifted, start)] != "\n"
        ]


@cache
def _segmenter(name: str) -> Segmenter:
    return segmenter(name)


def _before(shifted: Places, place: int) -> int:
    return int(np.searchsorted(shifted, place, side="right"))


def has_chinese(text: str) -> bool:
    """Whether a text has an ideograph."""
    return not text.isascii() and _ideographs().search(text) is not None


@cache
def _ideographs() -> re.Pattern[str]:
    return re.compile(f"[{_ideograph_ranges()}]")


def _ideograph_ranges() -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in CHINESE)


def chinese_borders(text: str, opens: NDArray[np.bool_]) -> Places:
    """Where a Chinese word begins that touches the one before it: `opens` (N,) -> (n,)."""
    codes = np.frombuffer(text.encode("utf-32-le", _LONE), dtype=np.uint32)
    chinese = np.zeros(len(codes), dtype=bool)
    for first, last in CHINESE:
        chinese |= (codes >= first) & (codes <= last)
    follows = np.zeros(len(codes), dtype=bool)
    follows[1:] = chinese[:-1]
    return np.flatnonzero(chinese & follows & opens)


def parted(text: str, places: Places) -> str:
    """The text with a blank in front of each place."""
    codes = np.frombuffer(text.encode("utf-32-le", _LONE), dtype=np.uint32)
    return np.insert(codes, places, ord(" ")).tobytes().decode("utf-32-le", _LONE)


@cache
def word_pattern(split: str, *, whole: bool) -> re.Pattern[str]:
    """Matches one word, or the break between lines; `whole`: Chinese runs are words already."""
    if split == "spaces":  # the white space of kenlm: of ASCII alone
        return re.compile("[^\x00 \t\n\r\x0b\x0c]+|\n")
    ideographs = _ideograph_ranges()
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
