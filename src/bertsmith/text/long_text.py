"""Cuts very long texts into chunks where a cut cannot change a token: bounded memory and time.

For BERT's WordPiece every cut follows from the classes of the characters (`character_classes`). A
run without a character that splits is one word; beyond the model's limit of characters such a word
is one unknown token, so its middle is left out. Byte-level BPE and Unigram are cut before a single
space after plain text. For any other tokenizer the text is one chunk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from tokenizers import Tokenizer as RustTokenizer

from bertsmith.text.character_classes import JOINS, SPACE, SPLITS, UNSURE, CharacterClasses
from bertsmith.text.encoding import Ints

LONG_TEXT = 1 << 16  # characters; a longer text is cut into chunks
CHUNK = 1 << 14
GROUP = 32  # chunks passed to Rust at once
BLOCK = 1 << 20

# Characters after which a space is a safe cut for models that look at neighboring characters.
PLAIN = (
    "0-9A-Za-z.,;:!?)\u0410-\u044f\u4e00-\u9fff\u3041-\u3096\u30a1-\u30fa\uac00-\ud7a3，。；：！？"
)
AFTER_PLAIN = re.compile(rf"(?<=[{PLAIN}]) (?=\S)")
LOCAL_NORMALIZERS = {"NFD", "NFC", "NFKD", "NFKC", "StripAccents", "Lowercase", "Precompiled"}

OffsetMap = Callable[[Ints], Ints]
"""Offsets (L, 2) in a chunk -> offsets in the whole text."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Text for the Rust tokenizer, and how its offsets map back into the whole text."""

    text: str
    to_text: OffsetMap


class Chunker(Protocol):
    """Cuts the input of one kind of tokenizer."""

    def groups(self, text: str) -> Iterator[list[Chunk]]:
        """The text as chunks, some at a time, in order."""


def chunker_for(
    state: dict[str, Any], rust: RustTokenizer, extra: list[dict[str, Any]], chunk: int = CHUNK
) -> Chunker:
    """The chunker that leaves the tokens of this tokenizer unchanged."""
    kind = state["model"]["type"]
    normalizer = state.get("normalizer") or {}
    splitter = (state.get("pre_tokenizer") or {}).get("type")
    flags = ("normalized", "lstrip", "rstrip", "single_word")
    literal = not any(token.get(flag) for token in extra for flag in flags)
    bert = splitter == "BertPreTokenizer" and normalizer.get("type") in ("BertNormalizer", None)
    if kind == "WordPiece" and bert and literal:
        limit = int(state["model"].get("max_input_chars_per_word", 100))
        return WordPieceChunker(rust, [t["content"] for t in extra], limit, chunk)
    if kind == "BPE" and splitter == "ByteLevel" and not normalizer and not extra:
        first = state["pre_tokenizer"].get("add_prefix_space", True)
        return SpaceChunker(chunk, trims=bool(first) and _trims(state.get("post_processor")))
    if kind == "Unigram" and not extra and _is_local(normalizer) and _marks_words(state):
        return SpaceChunker(chunk, trims=False)
    return NoChunker()


class NoChunker:
    """No cutting."""

    def groups(self, text: str) -> Iterator[list[Chunk]]:
        """The whole text as one chunk."""
        yield [Chunk(text, _identity)]


class SpaceChunker:
    """Cuts before a single space after plain text (byte-level BPE, Unigram with word marks)."""

    def __init__(self, chunk: int, *, trims: bool) -> None:
        self._chunk = chunk
        self._trims = trims

    def groups(self, text: str) -> Iterator[list[Chunk]]:
        """The text as chunks, each but the first starting with a space."""
        group: list[Chunk] = []
        start = 0
        while start < len(text):
            end = self._end(text, start)
            group.append(Chunk(text[start:end], _shift(start, trim=self._trims and start > 0)))
            if len(group) == GROUP:
                yield group
                group = []
            start = end
        if group:
            yield group

    def _end(self, text: str, start: int) -> int:
        if start + self._chunk >= len(text):
            return len(text)
        at = start + self._chunk
        while (at := text.rfind(" ", start + 1, at)) > 0:
            if AFTER_PLAIN.match(text, at):
                return at
        match = AFTER_PLAIN.search(text, start + self._chunk)
        return match.start() if match else len(text)


class WordPieceChunker:
    """Cuts BERT's input where words are split; leaves out the middle of endless words."""

    def __init__(self, rust: RustTokenizer, extra: list[str], limit: int, chunk: int) -> None:
        self._limit = limit
        self._chunk = chunk
        self._characters = CharacterClasses(rust)
        longest_first = sorted(extra, key=len, reverse=True)
        self._extra = re.compile("|".join(map(re.escape, longest_first))) if extra else None

    def groups(self, text: str) -> Iterator[list[Chunk]]:
        """The text as chunks that tokenize on their own exactly as they do in the whole."""
        classes = self._classify(text)
        group: list[Chunk] = []
        for start, end in self._between_extra(text):
            while start < end:
                chunk, start = self._next(text, classes, start, end)
                group.append(chunk)
                if len(group) == GROUP:
                    yield group
                    group = []
        if group:
            yield group

    def _between_extra(self, text: str) -> Iterator[tuple[int, int]]:
        """Stretches of text and extra tokens in turn: the Rust side treats each separately."""
        start = 0
        for match in self._extra.finditer(text) if self._extra else ():
            yield start, match.start()
            yield match.span()
            start = match.end()
        yield start, len(text)

    def _next(self, text: str, classes: bytes, start: int, end: int) -> tuple[Chunk, int]:
        """The next chunk and where the one after it starts."""
        if end - start <= self._chunk:
            return Chunk(text[start:end], _shift(start)), end
        cut = classes.rfind(SPLITS, start + 1, start + self._chunk + 1)
        if cut > 0:
            return Chunk(text[start:cut], _shift(start)), cut
        cut = classes.find(SPLITS, start + self._chunk + 1, end)
        cut = end if cut < 0 else cut
        if classes.find(UNSURE, start, cut) >= 0:
            return Chunk(text[start:cut], _shift(start)), cut
        positions = self._skeleton(classes, start, cut)
        shrunk = "".join([text[i] for i in positions])
        if self._extra and self._extra.search(shrunk):  # leaving the middle out made a token
            return Chunk(text[start:cut], _shift(start)), cut
        return Chunk(shrunk, _scatter(np.array(positions, dtype=np.int32))), cut

    def _skeleton(self, classes: bytes, start: int, end: int) -> list[int]:
        """Positions that decide the tokens of one endless word: its first ones and its last."""
        positions = [start] if classes[start] == SPLITS else []
        at = start - 1
        for _ in range(self._limit):
            at = classes.find(JOINS, at + 1, end)
            if at < 0:
                return positions
            positions.append(at)
        last = classes.rfind(JOINS, at + 1, end)
        return positions if last < 0 else [*positions, last]

    def _classify(self, text: str) -> bytes:
        """The class of each character as one byte, SPACE as SPLITS: a cut may be at either."""
        result = bytearray()
        for start in range(0, len(text), BLOCK):
            codes = np.frombuffer(text[start : start + BLOCK].encode("utf-32-le"), dtype=np.uint32)
            classes = self._characters.of(codes)
            classes[classes == SPACE] = SPLITS
            result += classes.tobytes()
        return bytes(result)


def _identity(offsets: Ints) -> Ints:
    return offsets


def _shift(start: int, *, trim: bool = False) -> OffsetMap:
    """Offsets of a chunk from `start` on; `trim` drops the space before its first token."""

    def to_text(offsets: Ints) -> Ints:
        moved = offsets + np.int32(start)
        if trim and len(moved):
            moved[0, 0] += 1
            moved[0, 1] = max(moved[0])
        return moved

    return to_text


def _scatter(positions: Ints) -> OffsetMap:
    """Offsets of a chunk that holds only the characters at the positions `positions`."""

    def to_text(offsets: Ints) -> Ints:
        starts, stops = offsets[:, 0], offsets[:, 1]
        return np.stack([positions[starts], positions[stops - 1] + 1], axis=1).astype(np.int32)

    return to_text


def _trims(processor: dict[str, Any] | None) -> bool:
    """Whether the post-processor takes spaces out of the offsets."""
    if processor is None:
        return False
    parts = processor.get("processors", [processor])
    return any(part.get("trim_offsets") for part in parts)


def _is_local(normalizer: dict[str, Any]) -> bool:
    """Whether every normalizing step looks no further than one cluster of characters."""
    steps = normalizer.get("normalizers", [normalizer] if normalizer else [])
    for step in steps:
        quotes = step.get("type") == "Replace" and step["pattern"].get("String") in ("``", "''")
        if not quotes and step.get("type") not in LOCAL_NORMALIZERS:
            return False
    return True


def _marks_words(state: dict[str, Any]) -> bool:
    """Whether words start at spaces: Metaspace, alone or after a split at white space."""
    splitter = state.get("pre_tokenizer") or {}
    parts = splitter.get("pretokenizers", [splitter])
    classes = [part.get("type") for part in parts]
    if classes not in (["Metaspace"], ["WhitespaceSplit", "Metaspace"]):
        return False
    mark = parts[-1]
    return bool(mark.get("split", True)) and mark.get("prepend_scheme", "always") != "never"
