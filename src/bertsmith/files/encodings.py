"""The encoding of a file: byte order marks, and guesses for when decoding fails."""

from __future__ import annotations

import codecs
import unicodedata

from bertsmith.errors import InputFileError

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: it starts with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
STATEFUL = ("utf-7", "utf_7", "hz", "iso2022")
CANDIDATES = ("utf-8", "gb18030", "utf-16-le", "utf-16-be", "big5", "latin-1")


def check_encoding(name: str) -> str:
    """The canonical name of a text encoding Python knows, or an error that suggests some."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError) as error:
        raise InputFileError(
            f"no encoding is called {name!r}; common ones: {', '.join(CANDIDATES)}"
        ) from error
    if not getattr(codec, "_is_text_encoding", True) or codec.incrementaldecoder is None:
        raise InputFileError(f"{name!r} does not turn bytes into text; common: utf-8, gb18030")
    return codec.name


def byte_order_mark(start: bytes) -> tuple[str, int] | None:
    """The encoding that the first bytes of a file declare and the length of that mark."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if start.startswith(mark):
            return encoding, len(mark)
    return None


def unmarked_utf16(start: bytes) -> str | None:
    """The UTF-16 that a file without a mark seems to be in; as UTF-8 it would be full of NULs."""
    if len(start) < 4:
        return None
    even, odd = start[0::2].count(0), start[1::2].count(0)
    most, least = max(even, odd), min(even, odd)
    # ASCII in UTF-16 has every second byte zero; plain text with a few NULs has them anywhere.
    enough = 0.9 if len(start) < 64 else 0.3
    if most < enough * (len(start) // 2) or least > 0.05 * most:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def settle_encoding(name: str, start: bytes, declared: str) -> tuple[str, int]:
    """The encoding in use and the length of the byte order mark, which overrides `declared`."""
    marked = byte_order_mark(start)
    if marked is not None:
        return marked
    if declared == "utf-8" and (guess := unmarked_utf16(start)) is not None:
        raise InputFileError(
            f"{name}, line 1, byte 0: every second byte is NUL and there is no byte order mark: "
            f"it looks like {guess}; read it with --encoding {guess}"
        )
    return declared, 0


def splits_at_line_feeds(encoding: str) -> bool:
    """Whether the byte 0x0A is always, and only, a line feed."""
    return "\n".encode(encoding) == b"\n" and not encoding.startswith(STATEFUL)


def undecodable(
    error: UnicodeDecodeError, offset: int, encoding: str, sample: bytes
) -> tuple[str, str]:
    """The reason and the advice for bytes that do not decode; `offset` is where they begin."""
    bad = error.object[error.start : error.start + 1].hex()
    reason = f"byte 0x{bad} at byte {offset + error.start} is not valid {encoding} ({error.reason})"
    wide = encoding.startswith("utf-16") or b"\0" in sample
    likely = [
        name
        for name in likely_encodings(sample)
        if name != encoding and (wide or not name.startswith("utf-16"))
    ]
    if not likely:
        return reason, "no common encoding fits: restore the text from its origin"
    return reason, (
        f"it decodes as {', '.join(likely)}: try --encoding {likely[0]} if all of the file is in "
        f"it, or save it as {encoding}"
    )


def likely_encodings(sample: bytes) -> list[str]:
    """The candidates that decode the sample without an error, most plausible first."""
    scored = []
    for name in CANDIDATES:
        try:
            text = codecs.getincrementaldecoder(name)("strict").decode(sample, final=False)
        except UnicodeDecodeError:
            continue
        scored.append((-_plausibility(text), CANDIDATES.index(name), name))
    return [name for _, _, name in sorted(scored)]


def _plausibility(text: str) -> float:
    """The share of characters beyond ASCII that ordinary text is made of."""
    beyond = [c for c in text[:20_000] if c >= "\x80"]
    if not beyond:
        return 0.0 if "\0" in text else 1.0
    common = sum(_ordinary(c) for c in beyond)
    # Western text has few letters beyond ASCII; runs of them are another script misread.
    crowded = len(beyond) / max(1, len(text)) > 0.5 and max(beyond) < "\u0100"
    return common / len(beyond) * (0.3 if crowded else 1.0)


def _ordinary(character: str) -> bool:
    if "\u4e00" <= character <= "\u9fff":
        # The frequent characters cover running text; rare ones hint at a misreading.
        # Level 1 of GB 2312 has the 3,755 most frequent ones, that of Big5 5,401.
        return _below(character, "gb2312", 0xD8) or _below(character, "big5", 0xC9)
    if "\u3000" <= character <= "\u303f" or "\uff00" <= character <= "\uffef":
        return True
    if "\u2010" <= character <= "\u2026":
        return True
    return character < "\u0250" and unicodedata.category(character) in ("Ll", "Lu")


def _below(character: str, encoding: str, lead: int) -> bool:
    """Whether the first byte of a character in an encoding is below `lead`."""
    try:
        return character.encode(encoding)[0] < lead
    except UnicodeEncodeError:
        return False
