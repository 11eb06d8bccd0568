"""Windows over the context of each question, and the tokens of its answer in each of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bertsmith.errors import ConfigError, TextError, TooLongError
from bertsmith.labeled.example import Answers, Example, shown_target
from bertsmith.tasks.feature import Feature, Numbers
from bertsmith.tasks.length import LengthSettings
from bertsmith.text.encoding import Encoding, FieldEncoder, Ints
from bertsmith.text.truncation import Windows, room_for_text

STRIDE = 128  # Devlin et al. 2018, for SQuAD
AT_ONCE = 256  # questions encoded together; their whole contexts are in memory until then
NAMED = 5

QUESTION, CONTEXT = 0, 1  # the fields


@dataclass(frozen=True, slots=True)
class AnswerAccount:
    """Ids of questions that were truncated or whose answer cannot be learned."""

    cut: list[str] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)
    divided: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """A sentence for each kind that occurs."""
        kinds = (
            (self.cut, "questions truncated to task.question_limit"),
            (
                self.uncovered,
                "answers trained as 'no answer', because no token covers any of their characters",
            ),
            (self.divided, "answers trained as 'no answer', because no window holds them whole"),
        )
        return [f"{what}: {len(ids)} ({_named(ids)})" for ids, what in kinds if ids]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRule:
    """How a question and its context become windows.

    A window has `length` tokens, `specials` of them special ones. A question may have `question`
    tokens. `stride` None: STRIDE, or half of what the question leaves if that is less, so that
    neighboring windows overlap enough for one of them to hold an answer whole.
    """

    length: int
    specials: int
    question: int
    stride: int | None
    strict: bool

    @classmethod
    def of(cls, tokenizer: FieldEncoder, lengths: LengthSettings, question: int) -> WindowRule:
        """The rule of these settings; a question never gets more than half of the room."""
        if lengths.keep != "head" or lengths.budgets is not None:
            raise ConfigError(
                "answer reads the question, then the whole context in windows: leave out "
                "length.keep and length.budgets"
            )
        specials = len(tokenizer.encode("", ""))
        room = room_for_text(lengths.max_length, specials)
        most = min(question, room // 2)
        if most < 1:
            raise ConfigError(
                f"length.max_length {lengths.max_length} leaves no room for a question and a "
                f"context next to {specials} special tokens; make it at least {specials + 2}"
            )
        if lengths.step is not None and lengths.step > room - most:
            raise ConfigError(
                f"length.stride {lengths.step} would skip tokens: after a question of {most} "
                f"tokens a window of {lengths.max_length} holds {room - most} of the context; make "
                f"the stride at most {room - most}, or length.max_length larger"
            )
        return cls(
            length=lengths.max_length,
            specials=specials,
            question=most,
            stride=lengths.step,
            strict=lengths.strict,
        )

    def starts(self, total: int, question: int) -> tuple[int, list[int]]:
        """Context tokens per window, and the first of each window."""
        room = self.length - self.specials - min(question, self.question)
        stride = min(STRIDE, max(room // 2, 1)) if self.stride is None else self.stride
        return room, Windows(length=self.length, stride=stride).starts(total, room)


def answer_features(
    examples: Sequence[Example], tokenizer: FieldEncoder, rule: WindowRule
) -> tuple[list[Feature], AnswerAccount]:
    """The windows of each (question, context).

    `at` is every token; `units` is the number of each token in the context, -1 outside of it.
    `target` (2,) is the first and the last token of the first answer that has tokens, if both are
    in the window, else (0, 0), the first token.
    """
    features: list[Feature] = []
    account = AnswerAccount()
    for first in range(0, len(examples), AT_ONCE):
        some = examples[first : first + AT_ONCE]
        questions, contexts = zip(*(_fields(example) for example in some), strict=True)
        for number, whole in enumerate(tokenizer.encode_batch(questions, contexts), start=first):
            features += _features(examples[number], number, whole, rule, account)
    return features, account


def _features(
    example: Example, number: int, whole: Encoding, rule: WindowRule, account: AnswerAccount
) -> list[Feature]:
    question = np.flatnonzero(whole.fields == QUESTION)
    context = np.flatnonzero(whole.fields == CONTEXT)
    over = len(question) - rule.question
    if over > 0:
        if rule.strict:
            raise TooLongError(
                f"{_place(example)}: the question has {len(question)} tokens and may have "
                f"{rule.question}; shorten it, raise the limit, or allow cutting"
            )
        account.cut.append(example.id)
    gold = _gold(example, whole.offsets[context], rule, account)
    repeated = whole.fields != CONTEXT
    repeated[question[rule.question :]] = False
    frame = np.flatnonzero(repeated)  # rows of every window
    before = int(np.searchsorted(frame, context[0])) if len(context) else len(frame)
    room, starts = rule.starts(len(context), len(question))
    windows = []
    for start in starts:
        seen = context[start : start + room]
        rows = np.concatenate([frame[:before], seen, frame[before:]])
        units = np.full(len(rows), -1, dtype=np.int32)
        units[before : before + len(seen)] = np.arange(start, start + len(seen))
        windows.append(
            Feature(
                encoding=_picked(whole, rows, cut=(max(over, 0), 0)),
                example=number,
                target=None if example.target is None else _target(gold, units),
                at=np.arange(len(rows), dtype=np.int32),
                units=units,
            )
        )
    if gold is not None and not any(np.any(one.target) for one in windows):
        account.divided.append(example.id)
    return windows


def _gold(
    example: Example, offsets: Ints, rule: WindowRule, account: AnswerAccount
) -> tuple[int, int] | None:
    """The tokens of the context, first and last, that hold the answer."""
    if example.target is None:
        return None
    target = answers_of(example)
    for text, start in target.placed:
        tokens = tokens_at(example.texts[1], offsets, start, start + len(text))
        if tokens is not None:
            return tokens
    if target.placed:
        if rule.strict:
            text, start = target.placed[0]
            raise TextError(
                f"{_place(example)}: no token covers a character of the answer {text!r} at "
                f"{start}; the tokenizer drops them: remove the answer or use another vocabulary"
            )
        account.uncovered.append(example.id)
    return None


def _target(gold: tuple[int, int] | None, units: Ints) -> Numbers:
    if gold is None:
        return np.zeros(2, dtype=np.int64)
    rows = [np.flatnonzero(units == token) for token in gold]
    inside = all(len(row) for row in rows)
    return np.array([int(row[0]) for row in rows] if inside else [0, 0], dtype=np.int64)


def _picked(whole: Encoding, rows: Numbers, *, cut: tuple[int, ...]) -> Encoding:
    return replace(
        whole,
        ids=whole.ids[rows],
        words=whole.words[rows],
        offsets=whole.offsets[rows],
        segments=whole.segments[rows],
        fields=whole.fields[rows],
        cut=cut,
    )


def tokens_at(text: str, offsets: Ints, start: int, end: int) -> tuple[int, int] | None:
    """The first and the last token with a character of text[start:end]: (N, 2) offsets.

    None if the tokenizer drops these characters, or all of them but white space.
    """
    begins, ends = offsets[:, 0], offsets[:, 1]
    touched = np.flatnonzero((ends > start) & (begins < end) & (begins < ends))
    if not len(touched):
        return None
    first, last = int(touched[0]), int(touched[-1])
    place = characters_of(text, offsets, first, last)
    return (first, last) if place[0] < place[1] else None


def characters_of(text: str, offsets: Ints, first: int, last: int) -> tuple[int, int]:
    """The characters of the tokens `first` to `last`, without white space around them.

    Some tokenizers put the space before a word into its first token. Some drop accents, which then
    belong to no token: the combining marks of the last letter are included.
    """
    start, end = int(offsets[first, 0]), int(offsets[last, 1])
    while end < len(text) and not text[end].isascii() and _is_mark(text[end]):
        end += 1
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


def answers_of(example: Example) -> Answers:
    """The answers of a labeled example."""
    if not isinstance(example.target, Answers):
        raise TextError(
            f"{_place(example)}: the target is {shown_target(example.target)}, not answers"
        )
    return example.target


def _fields(example: Example) -> tuple[str, str]:
    if len(example.texts) != 2:
        raise TextError(
            f"{_place(example)}: a question and its context are two texts, not {len(example.texts)}"
        )
    return example.texts[0], example.texts[1]


def _place(example: Example) -> str:
    return f"{example.place}, id {example.id}"


def _named(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return f"{', '.join(ids[:NAMED])}{more}"
