"""Calls into the Rust tokenizers library, with its failures turned into our own errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tokenizers import Tokenizer as RustTokenizer

from bertsmith.errors import BertsmithError, FolderError, TextError


@contextmanager
def rust_errors(doing: str, kind: type[BertsmithError] = TextError) -> Iterator[None]:
    """Turn any failure of the Rust side, panics included, into one error of `kind`."""
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
