"""Chinese answers as CMRC 2018 scores them (Cui et al. 2019); DRCD is scored the same way.

A text is a row of Han characters and Latin words. F1 counts the longest run of them that both
texts share (the program calls it a subsequence, but it has no gaps). The program reads Latin words
with NLTK's word tokenizer; the pattern here splits as that does within one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

HAN = re.compile("[\u4e00-\u9fa5]")

# The program's list, where "……" is one entry and so never matches a single character.
_PUNCTUATION = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_PIECES = re.compile("([\u4e00-\u9fa5])")
# Tokens of their own within Latin text: quotes, dots, marks, commas but those in front of digits,
# the last full stop, English endings ('s, n't) and the first half of words like cannot.
_OPENING = r"""(?<![^ (\[{<])"|(?<=^")"|(?<=[ (\[{<])''"""
_ALONE = r"""
      ''|" | \.\.+ | [;@\#$%&?!()\[\]{}<>«»‘„\u2012-\u2015] | ,(?!\d)
    | (?<!\.)\.(?=[\])}>"'» ]*$)
    | (?<=[^'\s])'(?:s|m|d|ll|re|ve)(?!\w) | (?<=[^'\s])n't(?!\w) | (?<=[^'\s])'(?!\w)
    | \b(?:can(?=not\b)|gim(?=me\b)|gon(?=na\b)|got(?=ta\b)|lem(?=me\b)|wan(?=na\b))
    | (?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)
"""
_LATIN = re.compile(f"({_OPENING}) | {_ALONE} | (?:(?!{_OPENING}|{_ALONE})\\S)+", re.VERBOSE)


def cmrc(prediction: str, golds: Sequence[str]) -> tuple[float, float]:
    """(exact, F1) against the best gold answer; without one only an empty prediction is right."""
    if not golds:
        right = float(not bare(prediction))
        return right, right
    given = segments(prediction)
    exact = max(float(bare(gold) == bare(prediction)) for gold in golds)
    return exact, max(_f1(given, segments(gold)) for gold in golds)


def bare(text: str) -> str:
    """Lower case, without outer white space and without the program's punctuation."""
    return text.lower().strip().translate(_PUNCTUATION)


def segments(text: str) -> list[str]:
    """Han characters one by one, Latin words and marks between them."""
    parts: list[str] = []
    for piece in _PIECES.split(bare(text)):
        if HAN.match(piece):
            parts.append(piece)
        else:
            parts += [
                "``" if word[1] else "''" if word[0] == '"' else word[0]
                for word in _LATIN.finditer(piece)
            ]
    return parts


def longest_common_run(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest run of neighbors that both have."""
    places: dict[str, list[int]] = {}
    for place, item in enumerate(second):
        places.setdefault(item, []).append(place)
    longest = 0
    ending: dict[int, int] = {}  # place in second -> length of the run that ends there
    for item in first:
        ending = {place: ending.get(place - 1, 0) + 1 for place in places.get(item, ())}
        longest = max(longest, *ending.values(), 0)
    return longest


def _f1(given: Sequence[str], gold: Sequence[str]) -> float:
    return overlap_f1(longest_common_run(gold, given), len(given), len(gold))


def overlap_f1(common: int, given: int, gold: int) -> float:
    """F1 of counts, as the official programs compute it, to the last bit."""
    if common == 0:
        return 0.0
    precision, recall = common / given, common / gold
    return 2 * precision * recall / (precision + recall)
