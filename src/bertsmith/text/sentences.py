"""Splits running text into sentences, English and Chinese, by rules on one regular expression."""

from __future__ import annotations

import re

# One class of first characters lets the expression skip through text at full speed.
_STOPS = ".!?…。！？；｡"
_CLOSING = "\"'”’»)\\]」』）】》〉"
_BOUNDARY = re.compile(rf"[{_STOPS}]+[{_CLOSING}]*\s*")
_CHINESE_STOPS = frozenset("。！？；｡")
_OPENING = "\"'“‘«([<-–—*#"
_LAST_WORD = re.compile(r"[\w.&]+$")
_ACRONYM = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]")
_LIST_NUMBER = re.compile(r"[(\[]?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})")
_REACH = 24  # characters before a stop that the rules use

# Before a name or a title, never at the end of a sentence.
ABBREVIATIONS = frozenset(
    (
        *("mr", "mrs", "ms", "mx", "dr", "prof", "sr", "jr", "st", "mt", "ft", "messrs"),
        *("gen", "col", "maj", "capt", "cpt", "lt", "sgt", "cmdr", "adm", "supt"),
        *("rep", "reps", "sen", "gov", "rev", "hon", "pres"),
        *("vs", "viz", "cf", "approx", "ca", "dept", "est", "e.g", "i.e", "al", "ed", "eds"),
    )
)
# Before a number only: "No. 5", "Fig. 2", "Jan. 3".
BEFORE_NUMBERS = frozenset(
    (
        *("no", "nos", "vol", "vols", "p", "pp", "fig", "figs", "art", "sec", "ch", "eq", "op"),
        *("jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"),
    )
)
# After "U.S." and other acronyms these begin a new sentence; other capitals rather continue a name.
STARTERS = frozenset(
    (
        *("The", "A", "An", "It", "He", "She", "They", "We", "I", "You", "Its", "His", "Her"),
        *("This", "That", "These", "Those", "There", "Their", "Our", "My", "In", "On", "At"),
        *("But", "And", "So", "If", "When", "As", "However", "For", "After", "Before", "While"),
        *("What", "Who", "Why", "How", "Where"),
    )
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text in order, without the space between them; nothing else is lost."""
    sentences: list[str] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        end = match.end()
        if end >= len(text):
            break
        stop = match.start()
        if not _always_ends(text, stop) and not _ends_here(text, start, stop, end):
            continue
        if sentence := text[start:end].strip():
            sentences.append(sentence)
        start = end
    if sentence := text[start:].strip():
        sentences.append(sentence)
    return sentences


def _always_ends(text: str, stop: int) -> bool:
    """Whether a stop ends a sentence whatever follows: Chinese ones and their long ellipsis."""
    return text[stop] in _CHINESE_STOPS or text.startswith("……", stop)


def _ends_here(text: str, start: int, stop: int, end: int) -> bool:
    """Whether a sentence that began at `start` ends with the Western stop at `stop`."""
    if not text[end - 1].isspace() and not _closes(text, stop, end):
        return False
    follower = text[end]
    at = end
    while follower in _OPENING and at + 1 < len(text):
        at += 1
        follower = text[at]
    if follower.islower() and text[end] != "<":
        return False
    if text[stop] != "." or text.startswith("..", stop):
        return True
    word = _LAST_WORD.search(text, max(start, stop - _REACH), stop)
    if word is None:
        return True
    before = word[0]
    if len(before) == 1 and before.isalpha() and before.isupper() and before != "I":
        return False
    folded = before.lower()
    if folded in ABBREVIATIONS or (follower.isdecimal() and folded in BEFORE_NUMBERS):
        return False
    if _ACRONYM.fullmatch(before):
        return _next_word(text, at) in STARTERS
    return not (stop - start <= 5 and _LIST_NUMBER.fullmatch(text[start:stop].strip()))


def _closes(text: str, stop: int, end: int) -> bool:
    """Whether a stop without a gap behind it ends a sentence: before a tag, or ! ? in Chinese."""
    if text[end] == "<":
        return True
    return text[stop] in "!?" and "\u3400" <= text[end] <= "\u9fff"


def _next_word(text: str, at: int) -> str:
    end = at
    while end < len(text) and end - at < _REACH and text[end].isalpha():
        end += 1
    return text[at:end]
