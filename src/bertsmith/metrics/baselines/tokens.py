"""What the baselines take for a token: words, Han characters, punctuation marks."""

from __future__ import annotations

import re

WORD = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3400-\u9fff\uf900-\ufaff]+|[^\w\s]")
"""A run of letters and digits; a Han character; a mark."""


def words_of(text: str) -> list[str]:
    """The tokens of a text in lower case."""
    return WORD.findall(text.lower())
