"""Learns a vocabulary from text: the same text gives the same bytes, whatever the thread count.

The Rust trainers number "##x" pieces (WordPiece) and words (Unigram) in the order of a hash table,
so two runs differ. Here words are counted and sorted first; WordPiece gets its "##x" pieces as
given, which makes all later ties deterministic; Unigram has a trainer of its own.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from tokenizers import Tokenizer as RustTokenizer
from tokenizers import models, pre_tokenizers, trainers

from bertsmith.errors import ConfigError, TextError, unknown
from bertsmith.text.counting import Progress, count_words
from bertsmith.text.safe_tokenizer import rust_errors
from bertsmith.text.sentencepiece import albert_normalizer, albert_pre_tokenizer
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.tokenizer_files import TokenizerSource
from bertsmith.text.tokenizer_json import (
    added_token,
    byte_bpe_state,
    finish_state,
    vocabulary,
    wordpiece_state,
)
from bertsmith.text.unigram import learn_unigram

logger = logging.getLogger(__name__)

Kind = Literal["wordpiece", "byte-bpe", "unigram", "xlnet"]

ROLES: dict[str, dict[str, str]] = {
    "wordpiece": {
        "pad": "[PAD]",
        "unk": "[UNK]",
        "cls": "[CLS]",
        "sep": "[SEP]",
        "mask": "[MASK]",
    },
    "byte-bpe": {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"},
    "unigram": {"pad": "<pad>", "unk": "<unk>", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "xlnet": {  # a unigram vocabulary, too; the ids are those of the published models
        "unk": "<unk>",
        "bos": "<s>",
        "eos": "</s>",
        "cls": "<cls>",
        "sep": "<sep>",
        "pad": "<pad>",
        "mask": "<mask>",
    },
}
WITHOUT_ROLE = {"xlnet": ("<eod>", "<eop>")}
CASED = ("byte-bpe", "xlnet")  # unless the caller says otherwise
LONGEST_WORD = 100  # longer words become an unknown token
REPEATS = 10_000


def learn_vocabulary(
    lines: Iterable[str],
    *,
    kind: Kind = "wordpiece",
    size: int,
    lowercase: bool | None = None,
    min_count: int = 2,
    max_length: int | None = 512,
    progress: Progress | None = None,
) -> Tokenizer:
    """A tokenizer with a vocabulary of `size` tokens, or fewer if the text holds no more.

    `min_count` is how often two pieces must occur together to be merged; `max_length` is recorded
    as the longest input of the model. `lowercase` is True by default, except for XLNet's kind, and
    for byte BPE, which always keeps case.
    """
    if kind not in ROLES:
        raise unknown("kind of vocabulary", kind, ROLES)
    if kind == "byte-bpe" and lowercase:
        raise ConfigError("a byte BPE vocabulary keeps case; set lowercase=False")
    lowercase = kind not in CASED if lowercase is None else lowercase
    least = len(_specials(kind)) + (256 if kind == "byte-bpe" else 1)
    if size < least:
        raise ConfigError(f"size is {size}; a {kind} vocabulary needs at least {least}")
    state = _empty_state(kind, lowercase)
    words = count_words(lines, kind, state, progress)
    if not words:
        raise TextError("the corpus holds no words, so there is nothing to learn")
    if progress is not None:
        progress("learning", 0, None)
    _learn(state, kind, words, size, min_count, progress)
    finish_state(state, ROLES[kind])
    config = _config(kind, lowercase, max_length)
    controls = frozenset(_specials(kind))
    for token in WITHOUT_ROLE.get(kind, ()):
        number = vocabulary(state)[token]
        state["added_tokens"].append(added_token(token, number, special=True))
    made = Tokenizer(
        TokenizerSource(state=state, config=config, roles=ROLES[kind], controls=controls)
    )
    if made.vocab_size < size:
        logger.warning(
            "the corpus gave %d tokens, fewer than the requested %d", made.vocab_size, size
        )
    return made


def _learn(
    state: dict[str, Any],
    kind: Kind,
    words: dict[str, int],
    size: int,
    min_count: int,
    progress: Progress | None,
) -> None:
    """Fill the empty model of `state`."""
    model = state["model"]
    specials = _specials(kind)
    if kind in ("unigram", "xlnet"):
        pieces = learn_unigram(words, size - len(specials), progress)
        taken = set(specials)
        learned = [[piece, score] for piece, score in pieces if piece not in taken]
        model["vocab"] = [[token, 0.0] for token in specials] + learned
    elif kind == "byte-bpe":
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=min_count,
            special_tokens=specials,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        rust = _train(RustTokenizer(models.BPE()), trainer, words)
        model["vocab"], model["merges"] = rust["vocab"], rust["merges"]
    else:
        model["vocab"] = _wordpieces(words, size, min_count, specials)


def _specials(kind: Kind) -> list[str]:
    """The special tokens in the order of their ids."""
    return [*ROLES[kind].values(), *WITHOUT_ROLE.get(kind, ())]


def _wordpieces(
    words: dict[str, int], size: int, min_count: int, specials: list[str]
) -> dict[str, int]:
    """A WordPiece vocabulary: special tokens, characters, then pieces as they were joined."""
    words = {word: count for word, count in words.items() if len(word) <= LONGEST_WORD}
    if not words:
        raise TextError(
            f"every word has more than {LONGEST_WORD} characters, so there is nothing to learn; "
            "is the text without spaces?"
        )
    letters: Counter[str] = Counter()
    inner: set[str] = set()
    for word, count in words.items():
        for letter in word:
            letters[letter] += count
        inner.update(word[1:])
    alphabet: list[str] = []
    room = size - len(specials)
    for letter in sorted(letters, key=lambda letter: (-letters[letter], letter)):
        room -= 1 + (letter in inner)
        if room < 0:
            break
        alphabet.append(letter)
    if len(alphabet) < len(letters):
        logger.warning(
            "%d rare characters do not fit into the vocabulary", len(letters) - len(alphabet)
        )
        known = set(alphabet)
        words = {word: count for word, count in words.items() if known.issuperset(word)}
    given = sorted(f"##{letter}" for letter in alphabet if letter in inner)
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_count,
        special_tokens=specials + given,
        initial_alphabet=sorted(alphabet),
        show_progress=False,
    )
    rust = _train(RustTokenizer(models.WordPiece(unk_token=specials[1])), trainer, words)
    first = [*specials, *sorted(alphabet), *given]
    rest = sorted(set(rust["vocab"]) - set(first), key=rust["vocab"].__getitem__)
    return {token: number for number, token in enumerate([*first, *rest][:size])}


def _train(rust: RustTokenizer, trainer: Any, words: dict[str, int]) -> dict[str, Any]:
    """The trained model as a tree; trainers take no counts, so words are repeated."""
    rust.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    with rust_errors("the vocabulary could not be learned"):
        rust.train_from_iterator(_repeated(words), trainer)
        model: dict[str, Any] = json.loads(rust.to_str())["model"]
    return model


def _repeated(words: dict[str, int]) -> Iterator[str]:
    for word, count in words.items():
        for done in range(0, count, REPEATS):
            yield " ".join([word] * min(REPEATS, count - done))


def _empty_state(kind: Kind, lowercase: bool) -> dict[str, Any]:
    """The tree of a tokenizer with an empty model."""
    if kind == "wordpiece":
        return wordpiece_state({"[UNK]": 0}, lowercase=lowercase)
    if kind == "byte-bpe":
        return byte_bpe_state({}, [])
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": albert_normalizer(lowercase, keep_accents=not lowercase),
        "pre_tokenizer": albert_pre_tokenizer(),
        "post_processor": None,
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "model": {
            "type": "Unigram",
            "unk_id": _specials(kind).index("<unk>"),
            "vocab": [[token, 0.0] for token in _specials(kind)],
        },
    }


def _config(kind: Kind, lowercase: bool, max_length: int | None) -> dict[str, Any]:
    """The tokenizer_config.json of a learned vocabulary."""
    config: dict[str, Any] = {} if max_length is None else {"model_max_length": max_length}
    if kind in ("unigram", "xlnet"):
        config |= {"do_lower_case": lowercase, "keep_accents": not lowercase}
    if kind == "byte-bpe":
        config |= {"add_prefix_space": False, "bos_token": "<s>", "eos_token": "</s>"}
    return config
