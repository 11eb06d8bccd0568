"""Writes a tokenizer as the files that transformers and other tools read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import write_staged
from bertsmith.text.sources import Source

# What a settings file may carry that points at code or at somebody's disk.
DROPPED = ("auto_map", "name_or_path", "tokenizer_file", "vocab_file", "special_tokens_map_file")
CLASSES = {"WordPiece": "BertTokenizer", "BPE": "RobertaTokenizer", "Unigram": "AlbertTokenizer"}


def tokenizer_files(source: Source) -> dict[str, bytes]:
    """The files of a tokenizer, by name."""
    state = {**source.state, "truncation": None, "padding": None}
    names = {f"{role}_token": token for role, token in source.roles.items()}
    files = {
        "tokenizer.json": _json(state),
        "tokenizer_config.json": _json(_settings(source, names)),
        "special_tokens_map.json": _json(names),
    }
    model = source.state["model"]
    if model["type"] == "WordPiece":
        tokens = dict.fromkeys(range(max(model["vocab"].values(), default=-1) + 1), "")
        tokens |= {number: token for token, number in model["vocab"].items()}
        files["vocab.txt"] = "".join(f"{token}\n" for token in tokens.values()).encode()
    return files


def save_files(files: Mapping[str, bytes], path: Path) -> None:
    """Write the files of a tokenizer into a folder, each one whole or not at all."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            write_staged(path / name, data)
    except OSError as error:
        raise WriteError(f"the tokenizer could not be written to {path}: {error}") from error


def _settings(source: Source, names: dict[str, str]) -> dict[str, Any]:
    """tokenizer_config.json: what was read, corrected by what the tokenizer really does."""
    kept = {key: value for key, value in source.config.items() if key not in DROPPED}
    kept.setdefault("tokenizer_class", CLASSES.get(source.state["model"]["type"]))
    kept.pop("added_tokens_decoder", None)
    normalizer = source.state.get("normalizer") or {}
    if normalizer.get("type") == "BertNormalizer":
        kept["do_lower_case"] = normalizer["lowercase"]
        kept["strip_accents"] = normalizer["strip_accents"]
        kept["tokenize_chinese_chars"] = normalizer["handle_chinese_chars"]
    kept["added_tokens_decoder"] = {
        str(token["id"]): {key: value for key, value in token.items() if key != "id"}
        for token in source.state["added_tokens"]
    }
    return dict(sorted({**kept, **names}.items()))


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
