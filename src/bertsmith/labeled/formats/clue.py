"""CLUE as published: CLUEWSC (does the pronoun mean this noun?) and C3 (multiple choice)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from bertsmith.files.faults import BadRowError
from bertsmith.files.lines import Lines
from bertsmith.files.strict_json import JsonDocument, wrong_type
from bertsmith.labeled.example import ChoiceIndex, Example
from bertsmith.labeled.formats.objects import (
    Build,
    Parts,
    Row,
    text_of,
    value_of,
)
from bertsmith.labeled.read.reject import Reject, RowAccount, check_texts, reject_of
from bertsmith.labeled.read.targets import json_target, label_reader
from bertsmith.labeled.spec import DataSpec
from bertsmith.wording import shown

FIELD = "target"
MARKS = (("span1", "_", "_"), ("span2", "[", "]"))  # as the benchmark's own baseline sets them


def cluewsc_builder(source: str, spec: DataSpec, account: RowAccount) -> Build:
    """Builds the examples of a CLUEWSC file."""
    field = str(spec.label[0]) if spec.label else None
    read_label = label_reader(spec, field or "", 0)

    def build(line: int, row: Row) -> Parts:
        marked, names = _marked(text_of(row, "text", spec), row)
        target = None
        if field is not None:
            target = json_target(value_of(row, field), read_label, spec, field)
        return (marked,), target, names, ()

    return build


def _marked(text: str, row: Row) -> tuple[str, dict[str, str]]:
    spans = value_of(row, FIELD)
    if not isinstance(spans, dict):
        raise wrong_type(spans, "an object", "write an object with two spans", FIELD)
    names = {}
    cuts: list[tuple[int, int, str]] = []  # place, order, mark
    for name, before, after in MARKS:
        piece, start = spans.get(f"{name}_text"), spans.get(f"{name}_index")
        if type(piece) is not str or type(start) is not int or not piece:
            raise BadRowError(
                "text and index of the span are not a string and a number",
                f'write "{name}_text" and "{name}_index"',
                column=f"{FIELD}.{name}_text",
            )
        if start < 0 or not text.startswith(piece, start):
            raise BadRowError(
                f"{shown(piece)} does not stand at {start}",
                "correct the index: characters are counted from 0",
                column=f"{FIELD}.{name}_index",
            )
        names[f"{name}_text"] = piece
        cuts += [(start, 1, before), (start + len(piece), 0, after)]
    for place, _, mark in sorted(cuts, reverse=True):
        text = text[:place] + mark + text[place:]
    return text, names


SHAPE = "[[sentences], [questions], id]"


def read_c3(
    lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """The questions of a C3 file: the passage, then the question with each of its choices."""
    document = JsonDocument.of(lines)
    labeled = spec.label != ()
    for number, (start, _, entry) in enumerate(document.elements()):
        line, where = document.line_at(start), f"[{number}]"
        try:
            passage, questions, name = _entry(entry, where)
        except BadRowError as fault:
            raw = json.dumps([entry], ensure_ascii=False)
            yield reject_of(fault, lines.name, line, raw, part="field")
            continue
        for count, question in enumerate(questions):
            own = f"{name}-{count}"
            try:
                texts, choice, question_text = _question(
                    question, f"{where}[1][{count}]", labeled=labeled
                )
                yield Example(
                    source=lines.name,
                    line=line,
                    id=own,
                    texts=(passage, *texts),
                    target=choice,
                    extra={"question": question_text, "document": name},
                )
            except BadRowError as fault:
                raw = json.dumps([[entry[0], [question], name]], ensure_ascii=False)  # type: ignore[index]
                yield reject_of(fault, lines.name, line, raw, part="field", id=own)


def _entry(entry: object, where: str) -> tuple[str, list[object], str]:
    if not isinstance(entry, list) or len(entry) != 3:
        raise wrong_type(entry, "a list of three", f"write {SHAPE}", where)
    sentences, questions, name = entry
    if not isinstance(sentences, list) or not all(type(item) is str for item in sentences):
        raise BadRowError("it is no list of strings", f"write {SHAPE}", column=f"{where}[0]")
    if not isinstance(questions, list):
        raise wrong_type(questions, "a list", f"write {SHAPE}", f"{where}[1]")
    passage = "\n".join(sentences)
    check_texts((passage,), (f"{where}[0]",), keep_empty=False)
    return passage, questions, str(name)


def _question(
    question: object, at: str, *, labeled: bool
) -> tuple[tuple[str, ...], ChoiceIndex | None, str]:
    if not isinstance(question, dict):
        raise wrong_type(question, "an object", "write an object", at)
    question_text, choices, answer = (question.get(key) for key in ("question", "choice", "answer"))
    if type(question_text) is not str:
        raise wrong_type(question_text, "a string", "write a string", f"{at}.question")
    listed = isinstance(choices, list) and all(type(item) is str for item in choices)
    if not isinstance(choices, list) or not listed or len(choices) < 2:
        raise BadRowError(
            "the choices are no list of two strings or more",
            "write them all",
            column=f"{at}.choice",
        )
    texts = tuple(f"{question_text} {choice}" for choice in choices)
    if not labeled or answer in (None, ""):
        return texts, None, question_text
    if answer not in choices:
        raise BadRowError(
            f"the answer {shown(answer)} is not one of the choices",
            "write it as the choice is written",
            column=f"{at}.answer",
        )
    return texts, ChoiceIndex(choices.index(answer)), question_text
