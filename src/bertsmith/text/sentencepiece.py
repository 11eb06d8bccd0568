"""Reads a sentencepiece model (ALBERT's spiece.model): a few lines of protobuf wire format."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bertsmith.errors import FolderError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM = 1


@dataclass(frozen=True, slots=True)
class ScoredPiece:
    """One entry of the vocabulary: its text, its log probability, its kind."""

    text: str
    score: float
    kind: int


@dataclass(frozen=True, slots=True)
class SentencePieceModel:
    """What bertsmith needs of a sentencepiece model file."""

    pieces: tuple[ScoredPiece, ...]
    model_type: int
    unk_id: int
    charsmap: bytes


def parse_sentencepiece(data: bytes, file: str) -> SentencePieceModel:
    """Parse the bytes of a sentencepiece model."""
    pieces: list[ScoredPiece] = []
    model_type, unk_id, charsmap = UNIGRAM, 0, b""
    try:
        for field, value in _fields(data):
            if field == 1 and isinstance(value, bytes):
                pieces.append(_piece(value))
            elif field == 2 and isinstance(value, bytes):  # trainer settings
                trainer = dict(_fields(value))
                model_type = _integer(trainer.get(3, UNIGRAM))
                unk_id = _integer(trainer.get(40, 0))
            elif field == 3 and isinstance(value, bytes):  # normalizer settings
                stored = dict(_fields(value)).get(2, b"")
                charsmap = stored if isinstance(stored, bytes) else b""
    except (ValueError, struct.error) as error:
        raise FolderError(f"{file} is not a whole sentencepiece model: {error}") from error
    if not pieces:
        raise FolderError(f"{file} is not a sentencepiece model: it holds no pieces")
    if model_type != UNIGRAM:
        raise FolderError(
            f"{file} is a sentencepiece model of type {model_type}; only Unigram is read"
        )
    if not 0 <= unk_id < len(pieces):
        raise FolderError(f"{file} names piece {unk_id} as unknown, but has {len(pieces)} pieces")
    return SentencePieceModel(tuple(pieces), model_type, unk_id, charsmap)


def albert_state(
    model: SentencePieceModel, *, lowercase: bool, keep_accents: bool, add_prefix_space: bool = True
) -> dict[str, Any]:
    """The tokenizer.json tree of an ALBERT tokenizer without special tokens and template.

    Pieces that end in a digit and a comma lose 100, as in the published tokenizer.json files:
    ALBERT splits "2000," into "2000" and ",", and this makes the model do it.
    """
    vocab = [[p.text, p.score - 100 if _number_comma(p.text) else p.score] for p in model.pieces]
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": albert_normalizer(lowercase, keep_accents, model.charsmap),
        "pre_tokenizer": albert_pre_tokenizer(add_prefix_space),
        "post_processor": None,
        "decoder": _metaspace(add_prefix_space),
        "model": {
            "type": "Unigram",
            "unk_id": model.unk_id,
            "vocab": vocab,
            "byte_fallback": False,
        },
    }


def albert_normalizer(lowercase: bool, keep_accents: bool, charsmap: bytes = b"") -> dict[str, Any]:
    """ALBERT's normalizer as a tokenizer.json tree."""
    steps: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
        {"type": "Replace", "pattern": {"String": "''"}, "content": '"'},
    ]
    if not keep_accents:
        steps += [{"type": "NFKD"}, {"type": "StripAccents"}]
    if lowercase:
        steps.append({"type": "Lowercase"})
    if charsmap:
        packed = base64.b64encode(charsmap).decode("ascii")
        steps.append({"type": "Precompiled", "precompiled_charsmap": packed})
    return {"type": "Sequence", "normalizers": steps}


def albert_pre_tokenizer(add_prefix_space: bool = True) -> dict[str, Any]:
    """Words at white space, each with a leading mark."""
    return {
        "type": "Sequence",
        "pretokenizers": [{"type": "WhitespaceSplit"}, _metaspace(add_prefix_space)],
    }


def _metaspace(add_prefix_space: bool) -> dict[str, Any]:
    scheme = "always" if add_prefix_space else "never"
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": True}


def _number_comma(piece: str) -> bool:
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


def _piece(data: bytes) -> ScoredPiece:
    text, score, kind = "", 0.0, NORMAL
    for field, value in _fields(data):
        if field == 1 and isinstance(value, bytes):
            text = value.decode("utf-8")
        elif field == 2 and isinstance(value, bytes):
            score = float(struct.unpack("<f", value)[0])
        elif field == 3:
            kind = _integer(value)
    return ScoredPiece(text, score, kind)


def _integer(value: int | bytes) -> int:
    """A varint as a signed 32-bit number, as protobuf's int32 and enums are."""
    if isinstance(value, bytes):
        raise ValueError("a number was expected")  # noqa: TRY004
    low = value & 0xFFFFFFFF
    return low - (1 << 32) if low >= 1 << 31 else low


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The (field number, value) pairs of one protobuf message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            number, at = _varint(data, at)
            yield field, number
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"unknown wire type {wire} at byte {at}")
        if size > len(data) - at:
            raise ValueError(f"a value at byte {at} runs past the end")
        yield field, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("it ends inside a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError(f"a number at byte {at} is too long")
