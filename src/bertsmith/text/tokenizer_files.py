"""Reads and writes the tokenizer files of a model folder, in all published formats."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.errors import FolderError
from bertsmith.files.atomic_folder import staged_folder, write_file
from bertsmith.files.safe_folder import Folder
from bertsmith.text.sentencepiece import CONTROL, albert_state, parse_sentencepiece
from bertsmith.text.special_tokens import find_roles
from bertsmith.text.tokenizer_json import (
    WORD_END,
    XLNET_CLS,
    added_token,
    byte_bpe_state,
    finish_state,
    vocabulary,
    word_bpe_state,
    wordpiece_state,
)
from bertsmith.text.tokenizer_limits import check_ids, check_limits

logger = logging.getLogger(__name__)

FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
)
_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model")
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerSource:
    """A tokenizer as data: the tokenizer.json tree, its settings file, the token of each role.

    `controls` are the tokens that are never read from a text.
    """

    state: dict[str, Any]
    config: dict[str, Any]
    roles: dict[str, str]
    controls: frozenset[str]


def read_source(files: Mapping[str, bytes]) -> TokenizerSource:
    """The tokenizer that a folder's files describe; `files` maps file names to their contents."""
    for name, data in files.items():
        if len(data) > MAX_BYTES:
            raise FolderError(f"{name} has {len(data):,} bytes; more than {MAX_BYTES:,} is refused")
    config = _table(files, "tokenizer_config.json")
    names = _table(files, "special_tokens_map.json")
    if "tokenizer.json" in files:
        state = _ready_state(files, config)
    elif "vocab.txt" in files:
        state = _wordpiece_state(files, config)
    elif "vocab.json" in files and "merges.txt" in files:
        state = _bpe_state(files, config)
    elif "spiece.model" in files:
        state = _sentencepiece_state(files["spiece.model"], config)
    else:
        raise FolderError(
            "no tokenizer found: expected tokenizer.json, vocab.txt, vocab.json with merges.txt, "
            "or spiece.model"
        )
    source = next(name for name in _VOCABULARIES if name in files)
    vocab = vocabulary(state)
    check_limits(state, source)
    stated = _stated_ids(files, state, config)
    check_ids(vocab, stated, source)
    added = {token["content"] for token in state["added_tokens"]}
    roles = find_roles(
        lambda token: token in vocab or token in added,
        config,
        names,
        unk=state["model"].get("unk_token"),
    )
    controls = set(roles.values())
    if "tokenizer.json" not in files:
        controls |= {token["content"] for token in state["added_tokens"] if token["special"]}
        _finish(state, vocab, roles, config, stated)
    return TokenizerSource(state=state, config=config, roles=roles, controls=frozenset(controls))


def read_files(folder: Folder) -> dict[str, bytes]:
    """The tokenizer files of a folder by name, opened by the rules for folders of other people."""
    return {name: folder.read(name, limit=MAX_BYTES) for name in FILES if folder.has(name)}


def _stated_ids(
    files: Mapping[str, bytes], state: Mapping[str, Any], config: Mapping[str, Any]
) -> list[tuple[str, int]]:
    """The tokens outside of the vocabulary for which a file states an id."""
    if "tokenizer.json" in files:
        return [
            (token["content"], token["id"])
            for token in state["added_tokens"]
            if isinstance(token.get("id"), int)
        ]
    listed = _table(files, "added_tokens.json")
    stated = [(name, number) for name, number in listed.items() if isinstance(number, int)]
    decoder = config.get("added_tokens_decoder")
    for number, token in (decoder if isinstance(decoder, Mapping) else {}).items():
        if isinstance(token, Mapping) and str(number).isdecimal():
            stated.append((str(token.get("content")), int(number)))
    return stated


def _finish(
    state: dict[str, Any],
    vocab: Mapping[str, int],
    roles: Mapping[str, str],
    config: Mapping[str, Any],
    stated: Iterable[tuple[str, int]],
) -> None:
    """Control tokens, template, and the extra tokens that other files list, ordered by id."""
    pieces = state["added_tokens"]
    special = {token["content"] for token in pieces if token["special"]}
    finish_state(state, roles)
    known = {token["content"] for token in state["added_tokens"]}
    extra: dict[str, int] = {token["content"]: token["id"] for token in pieces}
    end = len(vocab)
    for key in ("additional_special_tokens", "extra_special_tokens"):
        for token in config.get(key) or ():
            name = token.get("content") if isinstance(token, Mapping) else token
            if isinstance(name, str):
                extra.setdefault(name, vocab.get(name, end + len(extra)))
    extra.update(stated)
    for name, number in sorted(extra.items(), key=lambda item: item[1]):
        if name and name not in known:
            state["added_tokens"].append(added_token(name, number, special=name in special))


def _ready_state(files: Mapping[str, bytes], config: Mapping[str, Any]) -> dict[str, Any]:
    """The tree of a tokenizer.json, with the settings that tokenizer_config.json overrides."""
    state = _table(files, "tokenizer.json")
    model = state.get("model")
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict | list):
        raise FolderError("tokenizer.json has no model with a vocabulary")
    if "type" not in model:  # files of old releases leave it out
        kind = "BPE" if "merges" in model else "WordPiece"
        model["type"] = "Unigram" if isinstance(model["vocab"], list) else kind
    added = state.get("added_tokens") or []
    if not isinstance(added, list) or not all(
        isinstance(token, dict) and isinstance(token.get("content"), str) for token in added
    ):
        raise FolderError("added_tokens of tokenizer.json is not a list of tokens")
    state["added_tokens"] = added
    normalizer = state.get("normalizer")
    if isinstance(normalizer, dict) and normalizer.get("type") == "BertNormalizer":
        for ours, theirs in (
            ("lowercase", "do_lower_case"),
            ("strip_accents", "strip_accents"),
            ("handle_chinese_chars", "tokenize_chinese_chars"),
        ):
            wanted = config.get(theirs)
            if isinstance(wanted, bool) and normalizer.get(ours) != wanted:
                if normalizer.get(ours) is not None:
                    logger.warning(
                        "tokenizer_config.json sets %s=%s, different from tokenizer.json; "
                        "the former is used, as in transformers",
                        theirs,
                        wanted,
                    )
                normalizer[ours] = wanted
    return state


def _wordpiece_state(files: Mapping[str, bytes], config: Mapping[str, Any]) -> dict[str, Any]:
    lines = _text(files, "vocab.txt").replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    vocab = {token: number for number, token in enumerate(lines)}
    if len(vocab) < len(lines):
        logger.warning(
            "vocab.txt repeats %d tokens; the last of each counts", len(lines) - len(vocab)
        )
    cased = _looks_cased(lines)
    lowercase = config.get("do_lower_case")
    if not isinstance(lowercase, bool):
        lowercase = not cased if "tokenizer_config.json" not in files else True
        logger.warning(
            "no file states whether this vocabulary is lower-cased; assumed %s%s",
            "lower-cased" if lowercase else "cased",
            ", although it has many capital letters" if lowercase and cased else "",
        )
    state = wordpiece_state(
        vocab,
        lowercase=lowercase,
        accents=_flag(config, "strip_accents", None),
        chinese=bool(_flag(config, "tokenize_chinese_chars", True)),
    )
    unk = find_roles(vocab.__contains__, config, _table(files, "special_tokens_map.json")).get(
        "unk"
    )
    if unk is None:
        raise FolderError("vocab.txt has no [UNK] token, so unknown words could not be encoded")
    state["model"]["unk_token"] = unk
    return state


def _bpe_state(files: Mapping[str, bytes], config: Mapping[str, Any]) -> dict[str, Any]:
    """Byte-level BPE (RoBERTa, GPT-2, BART), or that of words (GPT)."""
    vocab = _table(files, "vocab.json")
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in vocab.values()):
        raise FolderError("vocab.json must map tokens to whole numbers")
    merges: list[list[str]] = []
    lines = _text(files, "merges.txt").replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        pair = line.split(" ")
        if len(pair) != 2:
            raise FolderError(f"merges.txt, line {number}: expected two parts, found {len(pair)}")
        merges.append(pair)
    # Byte-level BPE splits letters from punctuation, so it cannot have "e</w>" as one token.
    if any(len(token) == 1 + len(WORD_END) and token.endswith(WORD_END) for token in vocab):
        if "<unk>" not in vocab:
            raise FolderError(
                "vocab.json has no <unk> token, so unknown words could not be encoded"
            )
        return word_bpe_state(vocab, merges)
    return byte_bpe_state(
        vocab, merges, prefix_space=bool(_flag(config, "add_prefix_space", False))
    )


def _sentencepiece_state(data: bytes, config: Mapping[str, Any]) -> dict[str, Any]:
    """ALBERT's tokenizer, or XLNet's, which keeps case where no file says otherwise."""
    model = parse_sentencepiece(data, "spiece.model")
    xlnet = any(piece.text == XLNET_CLS for piece in model.pieces)
    state = albert_state(
        model,
        lowercase=bool(_flag(config, "do_lower_case", not xlnet)),
        keep_accents=bool(_flag(config, "keep_accents", False)),
        add_prefix_space=bool(_flag(config, "add_prefix_space", True)),
    )
    # Pieces declared by the user stay in the model, where their score of 0 beats all others, as in
    # sentencepiece and the published tokenizer.json files; as added tokens they would split words.
    state["added_tokens"] = [
        added_token(piece.text, number, special=True)
        for number, piece in enumerate(model.pieces)
        if piece.kind == CONTROL
    ]
    return state


def _looks_cased(tokens: list[str]) -> bool:
    """Whether over 1 in 100 tokens with Latin letters have capitals, [UNK] and the like aside."""
    latin = [t for t in tokens if re.search("[A-Za-z]", t) and not re.match(r"[\[<].+[\]>]$", t)]
    return sum(t != t.lower() for t in latin) * 100 > len(latin)


def _flag(config: Mapping[str, Any], key: str, default: bool | None) -> bool | None:
    value = config.get(key)
    return value if isinstance(value, bool) else default


def _text(files: Mapping[str, bytes], name: str) -> str:
    try:
        return files[name].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FolderError(f"{name} is not UTF-8 at byte {error.start}") from error


def _table(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    """A JSON object of the folder; an empty one when the file is not there."""
    if name not in files:
        return {}
    try:
        value = json.loads(_text(files, name))
    except (ValueError, RecursionError) as error:
        raise FolderError(f"{name} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise FolderError(f"{name} must hold a JSON object")
    return value


# Keys of settings files that point at code or at local paths.
DROPPED = ("auto_map", "name_or_path", "tokenizer_file", "vocab_file", "special_tokens_map_file")
CLASSES = {"WordPiece": "BertTokenizer", "Unigram": "AlbertTokenizer"}


def _class_of(source: TokenizerSource) -> str | None:
    """The class of transformers for a tokenizer whose files name none."""
    model = source.state["model"]
    if model["type"] == "Unigram" and source.roles.get("cls") == XLNET_CLS:
        return "XLNetTokenizer"
    if model["type"] != "BPE":
        return CLASSES.get(model["type"])
    if model.get("end_of_word_suffix"):
        return "OpenAIGPTTokenizer"
    return "RobertaTokenizer" if "cls" in source.roles else "GPT2Tokenizer"


def tokenizer_files(source: TokenizerSource) -> dict[str, bytes]:
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
    """Write a folder of these files, as a whole; one that holds a tokenizer alone is replaced."""
    needed = sum(map(len, files.values()))
    with staged_folder(path, needed=needed, overwrite=True, only=FILES) as staging:
        for name, data in files.items():
            write_file(staging / name, data)


def _settings(source: TokenizerSource, names: dict[str, str]) -> dict[str, Any]:
    """tokenizer_config.json: the original keys, with the values that the tokenizer really uses."""
    settings = {key: value for key, value in source.config.items() if key not in DROPPED}
    settings.setdefault("tokenizer_class", _class_of(source))
    settings.pop("added_tokens_decoder", None)
    normalizer = source.state.get("normalizer") or {}
    if normalizer.get("type") == "BertNormalizer":
        settings["do_lower_case"] = normalizer["lowercase"]
        settings["strip_accents"] = normalizer["strip_accents"]
        settings["tokenize_chinese_chars"] = normalizer["handle_chinese_chars"]
    settings["added_tokens_decoder"] = {
        str(token["id"]): {key: value for key, value in token.items() if key != "id"}
        for token in source.state["added_tokens"]
    }
    return dict(sorted({**settings, **names}.items()))


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
