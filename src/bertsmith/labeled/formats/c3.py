"""C3 as published: [[[sentences], [{"question", "choice": [...], "answer"}], id], ...]."""

from __future__ import annotations

import json
from collections.abc import Iterator

from bertsmith.files.faults import BadRowError, shown
from bertsmith.files.json_documents import LARGEST_DOCUMENT, JsonDocument
from bertsmith.files.lines import Lines
from bertsmith.files.strict_json import type_name
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import ChoiceIndex, Example
from bertsmith.labeled.read.reject import Reject, check_texts, reject_of
from bertsmith.labeled.spec import DataSpec

SHAPE = "[[sentences], [questions], id]"


def read(
    lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """The questions of a C3 file: the passage, then the question with each of its choices."""
    document = JsonDocument(lines.whole(LARGEST_DOCUMENT), lines.name, lines.number + 1)
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
        raise BadRowError(f"it is {type_name(entry)}", f"write {SHAPE}", column=where)
    sentences, questions, name = entry
    if not isinstance(sentences, list) or not all(type(item) is str for item in sentences):
        raise BadRowError("it is no list of strings", f"write {SHAPE}", column=f"{where}[0]")
    if not isinstance(questions, list):
        raise BadRowError(f"it is {type_name(questions)}", f"write {SHAPE}", column=f"{where}[1]")
    passage = "\n".join(sentences)
    check_texts((passage,), (f"{where}[0]",), keep_empty=False)
    return passage, questions, str(name)


def _question(
    question: object, at: str, *, labeled: bool
) -> tuple[tuple[str, ...], ChoiceIndex | None, str]:
    if not isinstance(question, dict):
        raise BadRowError(f"it is {type_name(question)}", "write an object", column=at)
    question_text, choices, answer = (question.get(key) for key in ("question", "choice", "answer"))
    if type(question_text) is not str:
        raise BadRowError(
            f"the question is {type_name(question_text)}", "write a string", column=f"{at}.question"
        )
    if (
        not isinstance(choices, list)
        or len(choices) < 2
        or not all(type(item) is str for item in choices)
    ):
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
