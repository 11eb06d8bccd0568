"""Texts that are the same but for case, space and width, as one short key in memory."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence

from bertsmith.text.segment import CHINESE

KEY_BYTES = 16
INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")  # soft hyphen, zero width
# Kana and East Asian signs, too: a space beside any of these is a matter of taste.
WIDE = "".join(f"{chr(low)}-{chr(high)}" for low, high in ((0x3001, 0x30FF), *CHINESE))
BESIDE_WIDE = re.compile(f"(?<=[{WIDE}]) | (?=[{WIDE}])")


def folded(text: str) -> str:
    """A text without differences of case, width (NFKC), white space and invisible signs."""
    if text.isascii():
        return " ".join(text.lower().split())
    # Folding may undo the normal form (and the other way round), so that comes twice.
    plain = unicodedata.normalize("NFKC", INVISIBLE.sub("", text)).casefold()
    plain = " ".join(unicodedata.normalize("NFKC", plain).split())
    return BESIDE_WIDE.sub("", plain)


def text_key(texts: Sequence[str]) -> bytes:
    """Equal for rows whose texts are the same when folded; one field never runs into the next."""
    found = hashlib.blake2b(digest_size=KEY_BYTES)
    for text in texts:
        piece = folded(text).encode("utf-8", "surrogatepass")
        found.update(len(piece).to_bytes(8, "little"))
        found.update(piece)
    return found.digest()
