"""Confusions: the characters that each character is mistaken for, from a file, sounds or pairs."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.files.lines import Lines
from bertsmith.text.segment import is_chinese
from bertsmith.wording import counted

log = logging.getLogger(__name__)

Confusions = Mapping[str, str]
"""Character -> the characters it is mistaken for, each once, in order."""
PINYIN = "pinyin"


def read_confusions(path: Path) -> dict[str, str]:
    """A file with a character, a tab or comma, and its similar characters on each line.

    Further columns count, too. A first line whose first column is longer than a character is a
    header.
    """
    found: dict[str, str] = {}
    headless: list[int] = []  # lines of published lists that lost their character
    lines = Lines(path)
    try:
        for line in lines:
            if not isinstance(line, str):
                raise line.error(lines.name, lines.number)
            head, *rest = line.strip("\ufeff").replace(",", "\t", 1).split("\t")
            head = head.strip()
            if not line.strip() or (lines.number == 1 and len(head) != 1):
                continue
            if not head and rest:
                headless.append(lines.number)
                continue
            if len(head) != 1 or not rest:
                raise InputFileError(
                    f"{path}, line {lines.number}: needs one character, a tab, and the characters "
                    f"it is mistaken for, not {line[:40]!r}"
                )
            others = found.get(head, "") + "".join(rest)
            found[head] = _similar(head, others)
    finally:
        lines.close()
    if headless:
        log.warning(
            "%s: %s without a character in front passed over (first: line %d)",
            path,
            counted(len(headless), "line"),
            headless[0],
        )
    found = {head: others for head, others in found.items() if others}
    if not found:
        raise InputFileError(f"{path}: no line has a Chinese character and similar ones")
    return found


def pinyin_confusions(characters: Iterable[str]) -> dict[str, str]:
    """Characters that sound alike, tones aside, among `characters`."""
    try:
        from pypinyin import Style, pinyin
    except ImportError as missing:
        raise ConfigError(
            "errors.confusions = pinyin needs the package pypinyin: pip install "
            "'bertsmith[correct]', or name a file of confusions"
        ) from missing
    sounds: dict[str, list[str]] = defaultdict(list)
    own: dict[str, list[str]] = {}
    for character in sorted({one for one in characters if is_chinese(one)}):
        own[character] = pinyin(character, style=Style.NORMAL, heteronym=True)[0]
        for sound in own[character]:
            sounds[sound].append(character)
    alike = {
        one: _similar(one, "".join("".join(sounds[sound]) for sound in heard))
        for one, heard in own.items()
    }
    return {one: others for one, others in alike.items() if others}


def confusions_of_pairs(rows: Sequence[tuple[str, ...]]) -> dict[str, str]:
    """Which characters of wrong texts stand for which of right ones, by pairs of both."""
    seen: dict[str, dict[str, None]] = defaultdict(dict)
    for wrong, right in rows:
        for one, other in zip(wrong, right, strict=False):
            if one != other and is_chinese(one) and is_chinese(other):
                seen[one][other] = None
    return {one: "".join(others) for one, others in sorted(seen.items())}


def _similar(head: str, others: str) -> str:
    return "".join(one for one in dict.fromkeys(others) if one != head and is_chinese(one))
