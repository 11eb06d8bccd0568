"""Limits of what a tokenizer.json may do: how far a text can grow, and one token per id.

A tokenizer.json is a small program that its author wrote. A `Prepend` of ten million characters
makes every text ten million characters long, and twenty `Replace` steps that double a text make a
million of it. Published tokenizers are far below these limits.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from bertsmith.errors import FolderError

MOST_STEPS = 64  # of normalizer, pre-tokenizer, post-processor and decoder together
MOST_ADDED = 64  # characters that one step writes, special tokens around a text
MOST_GROWTH = 64  # times the length of the text, over all steps of a part
LONGEST_PATTERN = 10_000  # characters of a regular expression
MOST_TOKENS = 1 << 20  # four times the largest published vocabulary
HIGHEST_ID = 1 << 22  # ids may have holes, and files that list every id have a line for each hole
LONGEST_WORD = 1_000  # max_input_chars_per_word: WordPiece takes quadratic time in it

PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
_CHARSMAP = "precompiled_charsmap"
_PATTERNS = ("pattern", "Regex", "String")
_ADVICE = "take the tokenizer from where the model was published"


def check_limits(state: Mapping[str, Any], file: str) -> None:
    """Refuse a tokenizer.json tree whose steps could make a text far longer; `file` names it."""
    steps = 0
    for part in PARTS:
        growth = 1
        for step in _steps(state.get(part)):
            steps += 1
            kind = str(step.get("type"))[:MOST_ADDED]
            for key, text in _strings(step):
                longest = LONGEST_PATTERN if key in _PATTERNS else MOST_ADDED
                if len(text) > longest and key != _CHARSMAP:
                    raise _too_much(file, f"{part}, {kind}: {key}", len(text), longest)
            check_special_count(_most_placed(step))
            if (size := _longest_entry(step)) > 4 * MOST_ADDED:
                raise _too_much(file, f"{part}, {kind}: an entry", size, 4 * MOST_ADDED)
            growth *= _growth(step)
            if growth > MOST_GROWTH:
                raise FolderError(
                    f"{file}: {part}: its steps up to {kind} can make a text more than "
                    f"{MOST_GROWTH} times as long, which is refused; {_ADVICE}"
                )
        if steps > MOST_STEPS:
            raise FolderError(
                f"{file}: {', '.join(PARTS)} have more than {MOST_STEPS} steps; {_ADVICE}"
            )
    _check_model(state["model"], file)
    for size in (len(state["model"].get("vocab") or ()), len(state.get("added_tokens") or ())):
        if size > MOST_TOKENS:
            raise FolderError(
                f"{file} has {size:,} tokens; more than {MOST_TOKENS:,} is refused; {_ADVICE}"
            )


def check_special_count(count: int) -> None:
    """Refuse a template that places more special tokens around a text than any published one."""
    if count > MOST_ADDED:
        raise FolderError(
            f"the template of tokenizer.json places {count:,} special tokens around a text; more "
            f"than {MOST_ADDED} is refused; {_ADVICE}"
        )


def check_ids(vocab: Mapping[str, int], added: Iterable[tuple[str, int]], file: str) -> None:
    """Refuse two tokens with one id: a word with the id of [SEP] would end every sentence."""
    tokens: dict[int, str] = {}
    added = list(added)
    highest = max((*vocab.values(), *(number for _, number in added)), default=0)
    if highest > HIGHEST_ID:
        raise FolderError(
            f"{file} gives a token the id {highest:,}; more than {HIGHEST_ID:,} is refused: every "
            f"model has an embedding row for each id up to the highest; {_ADVICE}"
        )
    if len(set(vocab.values())) < len(vocab):
        for token, number in vocab.items():
            _claim(tokens, token, number, file)
    tokens = {number: token for token, number in vocab.items()}
    for token, number in added:
        _claim(tokens, token, number, file)


def _claim(tokens: dict[int, str], token: str, number: int, file: str) -> None:
    other = tokens.setdefault(number, token)
    if other != token:
        raise FolderError(
            f"{file} gives the id {number} to {other[:80]!r} and to {token[:80]!r}; every token "
            f"needs an id of its own: {_ADVICE}"
        )


def _check_model(model: Mapping[str, Any], file: str) -> None:
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        text = model.get(key)
        if isinstance(text, str) and len(text) > MOST_ADDED:
            raise _too_much(file, f"model: {key}", len(text), MOST_ADDED)
    longest = model.get("max_input_chars_per_word")
    if isinstance(longest, int | float) and longest > LONGEST_WORD:
        raise FolderError(
            f"{file}: model: max_input_chars_per_word is {longest:,}; more than {LONGEST_WORD:,} "
            f"is refused, since the time per word grows with its square; {_ADVICE}"
        )


def _too_much(file: str, place: str, size: int, most: int) -> FolderError:
    return FolderError(
        f"{file}: {place} has {size:,} characters; more than {most:,} is refused; {_ADVICE}"
    )


def _steps(part: object) -> Iterator[Mapping[str, Any]]:
    """The steps of a part in order, those of nested sequences too; one more than allowed at most.

    Without recursion: the nesting is the author's choice.
    """

    def walk() -> Iterator[Mapping[str, Any]]:
        waiting = [part]
        while waiting:
            step = waiting.pop()
            if isinstance(step, Mapping):
                yield step
                inner = [value for key, value in step.items() if key in _NESTED]
                waiting += [
                    one for steps in inner if isinstance(steps, list) for one in steps[::-1]
                ]

    return islice(walk(), MOST_STEPS + 1)


_NESTED = ("normalizers", "pretokenizers", "processors", "decoders")


def _strings(step: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The strings of one step with the key that they stand under, without those of inner steps."""
    waiting: list[tuple[str, object]] = [(k, v) for k, v in step.items() if k not in _NESTED]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, Mapping):
            waiting += [(str(inner), one) for inner, one in value.items()]
            yield from ((key, str(inner)) for inner in value)
        elif isinstance(value, list):
            waiting += [(key, one) for one in value]


def _most_placed(step: Mapping[str, Any]) -> int:
    """How many special tokens a template names or places, before anything is built of it."""
    marks = step.get("special_tokens")
    tables = [marks]
    if isinstance(marks, Mapping) and len(marks) <= MOST_ADDED:
        tables += [one.get("ids") for one in marks.values() if isinstance(one, Mapping)]
    counts = [len(table) if isinstance(table, list | Mapping) else 0 for table in tables]
    for name in ("single", "pair"):
        parts = step.get(name)
        counts.append(
            sum(isinstance(one, Mapping) and "SpecialToken" in one for one in parts)
            if isinstance(parts, list)
            else 0
        )
    return max(counts)


def _growth(step: Mapping[str, Any]) -> int:
    """How many times as long one step can make a text, by what its author chose.

    The Unicode forms grow a text by a bounded factor, however often they are applied.
    """
    kind = step.get("type")
    if kind == "ByteLevel":  # writes two bytes for most of those beyond ASCII
        return 2
    content, pattern = step.get("content"), step.get("pattern")
    if kind != "Replace" or not isinstance(content, str):
        return 1
    text = pattern.get("String") if isinstance(pattern, Mapping) else pattern
    if isinstance(text, str) and text:
        return max(1, -(-len(content) // len(text)))
    return 1 + len(content)  # a regular expression may match between any two characters


def _longest_entry(step: Mapping[str, Any]) -> int:
    """The longest replacement in a sentencepiece table, in bytes: a trie, then texts and NULs."""
    table = step.get(_CHARSMAP)
    if not isinstance(table, str):
        return 0
    try:
        raw = base64.b64decode(table)
    except (binascii.Error, ValueError):
        return 0  # the Rust library names what is wrong with it
    texts = raw[4 + int.from_bytes(raw[:4], "little") :]
    return max(map(len, texts.split(b"\0")))
