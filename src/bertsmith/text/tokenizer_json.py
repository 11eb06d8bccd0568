"""Tokenizers of the published kinds as tokenizer.json trees, built from their vocabularies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertsmith.errors import FolderError
from bertsmith.text.special_tokens import template_state

WORD_END = "</w>"  # of the last piece of a word in GPT's vocabulary


def added_token(
    content: str, number: int, *, special: bool, lstrip: bool = False
) -> dict[str, Any]:
    """One entry of the added_tokens list of a tokenizer.json."""
    return {
        "id": number,
        "content": content,
        "single_word": False,
        "lstrip": lstrip,
        "rstrip": False,
        "normalized": False,
        "special": special,
    }


def wordpiece_state(
    vocab: dict[str, int], *, lowercase: bool, accents: bool | None = None, chinese: bool = True
) -> dict[str, Any]:
    """The tokenizer.json tree of a BERT tokenizer without special tokens and template.

    `accents` is strip_accents of the published settings: None follows `lowercase`.
    """
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": chinese,
            "strip_accents": accents,
            "lowercase": lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        },
    }


def byte_bpe_state(
    vocab: dict[str, int], merges: list[list[str]], *, prefix_space: bool = False
) -> dict[str, Any]:
    """The tokenizer.json tree of a RoBERTa tokenizer without special tokens and template."""
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": prefix_space,
            "trim_offsets": True,
            "use_regex": True,
        },
        "post_processor": None,
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocab,
            "merges": merges,
        },
    }


def word_bpe_state(vocab: dict[str, int], merges: list[list[str]]) -> dict[str, Any]:
    """The tokenizer.json tree of a GPT tokenizer: BPE in lower-cased words that end in `</w>`."""
    state = wordpiece_state(vocab, lowercase=True)
    state["decoder"] = {"type": "BPEDecoder", "suffix": WORD_END}
    state["model"] = {
        **byte_bpe_state(vocab, merges)["model"],
        "unk_token": "<unk>",
        "end_of_word_suffix": WORD_END,
    }
    return state


XLNET_CLS = "<cls>"  # stands at the end of a text


def finish_state(state: dict[str, Any], roles: Mapping[str, str]) -> None:
    """Add the control tokens and the template to a new tree."""
    vocab = vocabulary(state)
    controls = {roles[role]: vocab[roles[role]] for role in roles if roles[role] in vocab}
    mask = roles.get("mask") if state["model"]["type"] != "WordPiece" else None
    state["added_tokens"] = [
        added_token(token, number, special=True, lstrip=token == mask)
        for token, number in sorted(controls.items(), key=lambda item: item[1])
    ]
    if "cls" not in roles or "sep" not in roles:
        return
    cls, sep = ((roles[role], vocab[roles[role]]) for role in ("cls", "sep"))
    if state["model"]["type"] == "BPE":
        state["post_processor"] = {
            "type": "RobertaProcessing",
            "sep": list(sep),
            "cls": list(cls),
            "trim_offsets": True,
            "add_prefix_space": state["pre_tokenizer"]["add_prefix_space"],
        }
    else:
        state["post_processor"] = template_state(cls, sep, cls_last=cls[0] == XLNET_CLS)


def vocabulary(state: Mapping[str, Any]) -> dict[str, int]:
    """Token to id of the model alone, whatever the model's kind."""
    vocab = state["model"]["vocab"]
    if isinstance(vocab, dict):
        if not all(isinstance(n, int) and not isinstance(n, bool) for n in vocab.values()):
            raise FolderError("the vocabulary of tokenizer.json must map tokens to whole numbers")
        return vocab
    try:
        return {piece[0]: number for number, piece in enumerate(vocab)}
    except (TypeError, IndexError, KeyError) as error:
        raise FolderError("the vocabulary of tokenizer.json is not a list of pieces") from error
