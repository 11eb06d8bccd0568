"""Which language texts seem to be in: by script, and English by its commonest words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from bertsmith.text.segment import is_chinese

LOOKED_AT = 20_000  # characters
COMMON = "the of and to a in is it that for was with as on be this are not at by from i you"
ENGLISH = frozenset(COMMON.split())
WORD = re.compile(r"[a-z']+")


def guess_language(texts: Sequence[str]) -> tuple[str, str] | None:
    """A language code, or the name of the script, and why; None without a letter."""
    text = "\n".join(texts)[:LOOKED_AT]
    scripts = Counter(map(_script, (c for c in text if c.isalpha())))
    letters = sum(scripts.values())
    if not letters:
        return None
    han, kana = scripts["han"], scripts["hiragana"] + scripts["katakana"]
    if kana > 0.1 * letters:
        return "ja", f"{_share(kana, letters)} of the letters are kana"
    if han > 0.2 * letters:
        return "zh", f"{_share(han, letters)} of the letters are Chinese characters"
    script, count = scripts.most_common(1)[0]
    if script == "hangul":
        return "ko", f"{_share(count, letters)} of the letters are Hangul"
    if script == "latin":
        words = WORD.findall(text.lower())
        common = sum(word in ENGLISH for word in words)
        if words and common > 0.12 * len(words):
            return "en", f"{_share(common, len(words))} of the words are the, of, and ..."
    return script, f"{_share(count, letters)} of the letters are {script}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %"


def _script(letter: str) -> str:
    if letter.isascii():
        return "latin"
    if is_chinese(letter):
        return "han"
    return unicodedata.name(letter, "other").split()[0].lower()
