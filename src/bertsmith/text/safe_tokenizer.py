"""The Rust tokenizer, with control tokens written in a text read as plain characters."""

from __future__ import annotations

import copy
import json
import logging
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from tokenizers import Encoding as RustEncoding
from tokenizers import Tokenizer as RustTokenizer

from bertsmith.errors import BertsmithError, FolderError, TextError, check_type
from bertsmith.text.blocks import groups
from bertsmith.text.encoding import Pieces, renumber
from bertsmith.text.long_text import CHUNK, LONG_TEXT, OffsetMap, chunker_for
from bertsmith.text.tokenizer_json import vocabulary

logger = logging.getLogger(__name__)


@contextmanager
def rust_errors(doing: str, kind: type[BertsmithError] = TextError) -> Iterator[None]:
    """Turn any failure of the Rust library, panics included, into one error of `kind`."""
    try:
        yield
    except BertsmithError:
        raise
    except Exception as error:
        raise kind(f"{doing}: {error}") from error
    except BaseException as error:
        # A Rust panic is a PanicException, which is no Exception and cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        raise kind(f"{doing}: the tokenizers library failed inside ({error})") from error


def build_rust(state: dict[str, Any], file: str = "tokenizer.json") -> RustTokenizer:
    """The Rust tokenizer of a tokenizer.json tree, without truncation and padding."""
    plain = {**state, "truncation": None, "padding": None}
    with rust_errors(f"{file} does not describe a tokenizer", FolderError):
        return RustTokenizer.from_str(json.dumps(plain, ensure_ascii=False))


SURROGATE = re.compile("[\ud800-\udfff]")
BATCH_TEXTS = 512  # measured: smaller batches keep both threads busy and memory small
BATCH_CHARACTERS = 1 << 20


class SafeTokenizer:
    """Turns fields of text into Pieces; no special tokens, no truncation.

    `state` is a tokenizer.json tree; `controls` are the tokens that a text cannot contain.
    Uses two Rust tokenizers: `safe`, which reads control tokens as plain characters, and
    `literal`, as in the file, for ids, decoding, and texts that may contain them.
    """

    def __init__(
        self,
        state: dict[str, Any],
        controls: frozenset[str],
        *,
        long_text: int = LONG_TEXT,
        chunk: int = CHUNK,
    ) -> None:
        self.state = state
        self.controls = controls
        self._safe_state = _with_flags(state, controls)
        self.safe = _safe(self._safe_state)
        self.renamed = False
        if forged := _forgeable(self.safe, state, controls):
            self._safe_state = _with_hidden_pieces(self._safe_state, forged)
            self.safe = _safe(self._safe_state)
            self.renamed = True
            if left := _forgeable(self.safe, state, controls):
                raise FolderError(
                    f"this tokenizer reads {min(left)!r} in a text as a control token, and that "
                    "cannot be switched off safely"
                )
        self.long_text = long_text
        normalizer = state.get("normalizer") or {}
        steps = normalizer.get("normalizers", [normalizer])
        self._loses_lead = any(step.get("type") == "Precompiled" for step in steps)
        extra = [t for t in self._safe_state["added_tokens"] if t["content"] not in controls]
        self._chunker = chunker_for(self._safe_state, self.safe, extra, chunk)

    @cached_property
    def literal(self) -> RustTokenizer:
        """The tokenizer as its file describes it: control tokens in a text are control tokens."""
        return build_rust(self.state)

    @property
    def names(self) -> RustTokenizer:
        """The tokenizer whose ids and names are those of the file."""
        return self.literal if self.renamed else self.safe

    def pieces(
        self,
        texts: Sequence[str],
        *,
        allow_special: bool = False,
        limits: tuple[int, int] | None = None,
    ) -> list[Pieces]:
        """Pieces of each text; of a long one, at least the first and last `limits` tokens."""
        rust = self.literal if allow_special else self.safe
        result: list[Pieces] = []
        clean = clean_texts(texts)
        lost = [self._leading_loss(text) for text in clean] if self._loses_lead else []
        clean = [text[count:] for text, count in zip(clean, lost, strict=True)] if lost else clean
        for batch in batches(clean, self.long_text):
            if len(batch) == 1 and len(batch[0]) > self.long_text and not allow_special:
                result.append(self._chunked_pieces(batch[0], limits))
                continue
            with rust_errors("the text could not be tokenized"):
                encoded = rust.encode_batch(batch, add_special_tokens=False)
            result += [_pieces(one) for one in encoded]
        for pieces, count in zip(result, lost, strict=False):
            pieces.offsets[:] += count
        return result

    def _leading_loss(self, text: str) -> int:
        """Characters at the start that vanish, which Rust's sentencepiece normalizer forgets.

        It would count every later offset from the first character that stays.
        """
        count = 0
        while count < len(text) and not text[count].isprintable():
            if self.safe.normalizer.normalize_str(text[count]):
                break
            count += 1
        return count

    def _chunked_pieces(self, text: str, limits: tuple[int, int] | None) -> Pieces:
        """The pieces of a long text, tokenized in chunks."""
        parts = _Parts(limits)
        with rust_errors("the text could not be tokenized"):
            for chunks in self._chunker.groups(text):
                # Once only a count is needed, offsets are not worth their time.
                encode = self.safe.encode_batch_fast if parts.full else self.safe.encode_batch
                encoded = encode([chunk.text for chunk in chunks], add_special_tokens=False)
                for chunk, one in zip(chunks, encoded, strict=True):
                    parts.add(one, chunk.to_text)
        return parts.joined()


class _Parts:
    """Collects the tokens of a text chunk by chunk; tokens beyond the limits are only counted."""

    def __init__(self, limits: tuple[int, int] | None) -> None:
        self._head_limit = None if limits is None else limits[0]
        self._tail_limit = 0 if limits is None else limits[1]
        self._head: list[Pieces] = []
        self._tail: deque[tuple[RustEncoding, OffsetMap, int]] = deque()
        self._head_size = self._tail_size = 0
        self._total = self._words = 0

    @property
    def full(self) -> bool:
        """Whether all further tokens are only counted."""
        return self._tail_limit == 0 and self._head_full

    @property
    def _head_full(self) -> bool:
        return self._head_limit is not None and self._head_size >= self._head_limit

    def add(self, encoded: RustEncoding, to_text: OffsetMap) -> None:
        """Add the tokens of the next chunk; `to_text` maps its offsets into the text."""
        count = len(encoded)
        if count == 0:
            return
        self._total += count
        if self.full:
            return
        if self._head_full:
            self._tail.append((encoded, to_text, self._words))
            self._tail_size += count
            while self._tail_size - len(self._tail[0][0]) >= self._tail_limit:
                self._tail_size -= len(self._tail.popleft()[0])
        else:
            self._head.append(_in_text(encoded, to_text, self._words))
            self._head_size += count
        self._words += (encoded.token_to_word(count - 1) or 0) + 1

    def joined(self) -> Pieces:
        """The tokens within the limits, and the count of all."""
        parts = self._head + [_in_text(*part) for part in self._tail]
        if not parts:
            none = np.zeros(0, dtype=np.int32)
            return Pieces(none, none, np.zeros((0, 2), dtype=np.int32), 0)
        return Pieces(
            np.concatenate([p.ids for p in parts]),
            renumber(np.concatenate([p.words for p in parts])),
            np.concatenate([p.offsets for p in parts]),
            self._total,
        )


def _in_text(encoded: RustEncoding, to_text: OffsetMap, words: int) -> Pieces:
    """The tokens of one chunk with offsets in the whole text."""
    piece = _pieces(encoded)
    return Pieces(piece.ids, piece.words + np.int32(words), to_text(piece.offsets), len(encoded))


def clean_texts(texts: Sequence[str]) -> list[str]:
    """Texts for the Rust tokenizer: lone surrogates become U+FFFD, one for one, and are counted."""
    check_type("texts", texts, Iterable)
    clean: list[str] = []
    replaced = 0
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TextError(f"text {number} is of type {type(text).__name__}; texts must be str")
        if not text.isascii() and SURROGATE.search(text):
            text, count = SURROGATE.subn("\ufffd", text)
            replaced += count
        clean.append(text)
    if replaced:
        logger.warning("replaced %d lone surrogates by U+FFFD", replaced)
    return clean


def batches(texts: list[str], long_text: int = LONG_TEXT) -> Iterator[list[str]]:
    """Batches of bounded size; a text of more than `long_text` characters is alone in its batch."""

    def size(text: str) -> int:
        return BATCH_CHARACTERS + 1 if len(text) > long_text else len(text)

    return groups(texts, BATCH_TEXTS, size=size, most_size=BATCH_CHARACTERS)


def _pieces(encoded: RustEncoding) -> Pieces:
    ids = np.array(encoded.ids, dtype=np.int32)
    words = renumber(np.array([-1 if w is None else w for w in encoded.word_ids], dtype=np.int32))
    offsets = np.array(encoded.offsets, dtype=np.int32).reshape(-1, 2)
    return Pieces(ids, words, offsets, len(ids))


def _with_flags(state: dict[str, Any], controls: frozenset[str]) -> dict[str, Any]:
    """A copy in which exactly the control tokens are special, so extra tokens still match."""
    added = [{**token, "special": token["content"] in controls} for token in state["added_tokens"]]
    return {**state, "added_tokens": added}


def _safe(state: dict[str, Any]) -> RustTokenizer:
    rust = build_rust(state)
    rust.encode_special_tokens = True
    return rust


def _forgeable(rust: RustTokenizer, state: dict[str, Any], controls: frozenset[str]) -> set[str]:
    """Control tokens that plain text would still turn into their ids."""
    vocab = vocabulary(state)
    model = state["model"]
    unknown = model.get("unk_id", vocab.get(model.get("unk_token")))  # any odd character gives it
    if model["type"] == "Unigram" and not _hidden(rust, controls, vocab):
        # A piece can hide behind a better segmentation in a probe, so never trust one.
        return {token for token in controls if token in vocab}
    forgeable: set[str] = set()
    for token in controls:
        number = vocab.get(token)
        if number is None or number == unknown:
            continue
        for probe in (token, f"a{token}a", f"a {token} a", f"[{token}]"):
            with rust_errors("the tokenizer could not be tried", FolderError):
                if number in rust.encode(probe, add_special_tokens=False).ids:
                    forgeable.add(token)
    return forgeable


def _hidden(rust: RustTokenizer, controls: frozenset[str], vocab: dict[str, int]) -> bool:
    """Whether no control token has its own id in the model any more."""
    return all(rust.token_to_id(token) != vocab[token] for token in controls if token in vocab)


def _with_hidden_pieces(state: dict[str, Any], forged: set[str]) -> dict[str, Any]:
    """A copy whose model knows the forged tokens only under names with a space in them.

    The pre-tokenizers in use split at spaces or replace them, so no word can hold one. The hidden
    tokens move to the end of the added tokens, where the id they get there disturbs no other.
    """
    model = copy.copy(state["model"])
    if isinstance(model["vocab"], dict):
        model["vocab"] = {f" {t} " if t in forged else t: n for t, n in model["vocab"].items()}
    else:
        model["vocab"] = [[f" {t} " if t in forged else t, s] for t, s in model["vocab"]]
    added = sorted(state["added_tokens"], key=lambda token: token["content"] in forged)
    return {**state, "model": model, "added_tokens": added}
