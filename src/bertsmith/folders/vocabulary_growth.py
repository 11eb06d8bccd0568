"""New words for an old model: rows for them, set from the mean of the pieces they were before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.errors import ConfigError, TextError
from bertsmith.files.atomic_folder import check_target
from bertsmith.text.safe_tokenizer import build_rust
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.tokenizer_files import TokenizerSource, read_source
from bertsmith.text.tokenizer_json import vocabulary

if TYPE_CHECKING:
    from torch import Tensor

    from bertsmith.models.build import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What was added: `words` in the order of their ids, from `first` on."""

    words: tuple[str, ...]
    first: int
    rows: int


def source_of(tokenizer: Tokenizer) -> TokenizerSource:
    """The tree and the settings of a tokenizer, as its files would hold them."""
    return read_source(tokenizer.files())


def grow_tokenizer(tokenizer: Tokenizer, words: Sequence[str]) -> Tokenizer:
    """A tokenizer whose WordPiece vocabulary knows these words, with ids after the last one.

    Unlike tokens added beside the vocabulary they match whole words only, in any case the
    tokenizer folds, and the beginnings of longer words. Words it knows already are passed over.
    """
    source = source_of(tokenizer)
    state = source.state
    if state["model"]["type"] != "WordPiece":
        raise ConfigError(
            f"words can be added to a WordPiece vocabulary; this one is {state['model']['type']}"
        )
    vocab = dict(vocabulary(state))
    for word in _plain_words(words, state):
        if word not in vocab:
            vocab[word] = max(tokenizer.vocab_size, max(vocab.values()) + 1)
    model = {**state["model"], "vocab": vocab}
    grown = Tokenizer(replace(source, state={**state, "model": model}))
    moved = [t for t, n in vocabulary(state).items() if grown.token_to_id(t) != n]
    moved += [
        t["content"] for t in state["added_tokens"] if grown.token_to_id(t["content"]) != t["id"]
    ]
    if moved:
        raise TextError(
            f"the id of {moved[0]!r} would change: tokens were added beside this vocabulary, so it "
            "cannot grow; use the vocabulary the model was published with"
        )
    return grown


def grow_model(model: Model, old: Tokenizer, new: Tokenizer) -> Model:
    """The same model with a row for each word `new` has and `old` has not.

    The row of the embedding, and the bias of the head over the vocabulary, are the mean of those of
    the pieces that `old` makes of the word.
    """
    import torch

    from bertsmith.models.build import build

    spec = model.spec
    grown = build(
        model.variant,
        replace(spec, vocab_size=max(spec.vocab_size, new.vocab_size)),
        heads=model.head_specs,
        dtype=next(model.parameters()).dtype,
    )
    added = {
        number: _pieces(old, word)
        for number in range(old.vocab_size, new.vocab_size)
        if (word := new.id_to_token(number))
    }
    before = model.state_dict()
    with torch.no_grad():
        for name, tensor in grown.state_dict().items():
            _fill(tensor, before[name], added if name in _BY_TOKEN else {})
    return grown


_BY_TOKEN = (
    "encoder.embeddings.tokens.weight",
    "heads.masked_lm.bias",
    "heads.language_model.bias",
)


def extend_model(model: str | Path, words: Sequence[str], out: Path) -> Growth:
    """Read a model folder, add words to it, write the grown one as a new folder."""
    from bertsmith.folders.generation import all_extras
    from bertsmith.folders.read import load_model
    from bertsmith.folders.write import save_model

    check_target(out.absolute(), overwrite=False)  # before the work, not after it
    loaded = load_model(model)
    old = loaded.tokenizer
    new = grow_tokenizer(old, words)
    if new.vocab_size == old.vocab_size:
        raise ConfigError(f"the vocabulary of {model} has all of these words already")
    grown = grow_model(loaded.model, old, new)
    folder = loaded.folder
    save_model(
        grown,
        new,
        out,
        sentence=loaded.sentence if folder.sentence is not None else None,
        labels=folder.reading.labels,
        model_type=folder.reading.model_type,
        extras=all_extras(folder),
    )
    names = [new.id_to_token(number) or "" for number in range(old.vocab_size, new.vocab_size)]
    return Growth(words=tuple(names), first=old.vocab_size, rows=grown.spec.vocab_size)


def _fill(target: Tensor, before: Tensor, added: dict[int, list[int]]) -> None:
    """Old rows as they were, new ones from the mean of the rows of their pieces."""
    target[: len(before)].copy_(before) if target.dim() else target.copy_(before)
    for number, pieces in added.items():
        target[number] = before[pieces].mean(dim=0)


def _pieces(tokenizer: Tokenizer, word: str) -> list[int]:
    encoding = tokenizer.encode(word)
    return [int(number) for number in encoding.ids[encoding.words >= 0]]


def _plain_words(words: Sequence[str], state: dict[str, Any]) -> list[str]:
    """The words as the tokenizer sees them; refuses what it could never match as one."""
    rust = build_rust(state)
    limit = int(state["model"].get("max_input_chars_per_word", 100))
    found: dict[str, None] = {}
    for word in words:
        plain = rust.normalizer.normalize_str(word) if rust.normalizer is not None else word
        parts = [part for part, _ in rust.pre_tokenizer.pre_tokenize_str(plain)]
        if len(parts) != 1 or not 0 < len(parts[0]) <= limit:
            raise ConfigError(
                f"{word!r} cannot be one token: the tokenizer takes it for "
                f"{', '.join(map(repr, parts)) or 'nothing'}; give single words"
            )
        found[parts[0]] = None
    return list(found)
