"""Questions with answers in a context: JSON objects, and SQuAD, CMRC 2018 and DRCD as published."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from bertsmith.files.faults import BadRowError
from bertsmith.files.lines import Lines
from bertsmith.files.strict_json import (
    JsonDocument,
    may_hold_surrogates,
    refuse_surrogates,
    type_name,
    wrong_type,
)
from bertsmith.labeled.example import Answers, Example
from bertsmith.labeled.formats.objects import (
    Build,
    Parts,
    Row,
    id_of,
    plain,
    text_of,
    value_of,
)
from bertsmith.labeled.formats.spans import nearest
from bertsmith.labeled.read.reject import Reject, RowAccount, check_texts, reject_of
from bertsmith.labeled.spec import DataSpec
from bertsmith.wording import shown

Given = Sequence[tuple[str, int | None]]
"""Texts of answers with the places that the file gives, if it gives any."""


def placed(context: str, given: Given, account: RowAccount, *, name: str, field: str) -> Answers:
    """The answers where they stand; one that stands nowhere is for scoring only.

    A question none of whose answers stands in the context cannot be used.
    """
    answers: list[tuple[str, int]] = []
    unplaced: list[str] = []
    for number, (text, start) in enumerate(given):
        if not text.strip():
            raise BadRowError("the answer is empty", "write it", column=f"{field}[{number}].text")
        place = nearest(context, text, -1 if start is None else start)
        if place is None:
            unplaced.append(text)
            continue
        if start is not None and place != start:
            account.note("repaired", name)
        answers.append((text, place))
    if given and not answers:
        raise BadRowError(
            f"{shown(given[0][0])} does not occur in the context",
            "write the answer as the context has it, or mark the question as impossible",
            column=f"{field}[0].text",
        )
    for _ in unplaced:
        account.note("unplaced", name)
    return Answers(tuple(answers), tuple(unplaced))


def answer_pair(text: object, start: object, at: str) -> tuple[str, int | None]:
    """An answer's text and place as JSON values, checked."""
    if type(text) is not str:
        raise wrong_type(text, "a string", "write a string", f"{at}.text")
    if start is not None and type(start) is not int:
        advice = "count the characters of the context from 0"
        raise wrong_type(start, "a whole number", advice, f"{at}.answer_start")
    return text, start


def answers_builder(source: str, spec: DataSpec, account: RowAccount) -> Build:
    """Builds the examples of a file of questions; an empty list of answers means none."""
    question, context = (str(field) for field in (spec.text or ("question", "context")))
    field = str(spec.label[0]) if spec.label else None

    group = spec.group if isinstance(spec.group, str) else "title"

    def build(line: int, row: Row) -> Parts:
        texts = text_of(row, question, spec), text_of(row, context, spec)
        extra = {group: plain(row[group])} if group in row else {}
        target: Answers | None = None
        if field is not None:
            given = _given(value_of(row, field), field)
            name = id_of(row, spec.id, line)
            target = placed(texts[1], given, account, name=name, field=field)
        return texts, target, extra, ()

    return build


def _given(value: object, field: str) -> Given:
    if isinstance(value, list):
        return [
            answer_pair(*_text_and_start(item), f"{field}[{number}]")
            for number, item in enumerate(value)
        ]
    if not isinstance(value, dict):
        advice = 'write {"text": [...], "answer_start": [...]}, both empty for no answer'
        raise wrong_type(value, "an object", advice, field)
    texts, starts = (members(value, key, field) for key in ("text", "answer_start"))
    if len(texts) != len(starts):
        raise BadRowError(
            f"{len(texts)} texts and {len(starts)} places", "write as many of each", column=field
        )
    return [
        answer_pair(text, start, f"{field}[{number}]")
        for number, (text, start) in enumerate(zip(texts, starts, strict=True))
    ]


def _text_and_start(item: object) -> tuple[object, object]:
    """An answer as JSON holds it: an object, or its text alone."""
    if isinstance(item, dict):
        return item.get("text"), item.get("answer_start", item.get("text_start"))
    return item, None


Object = Mapping[str, object]


def read_squad(
    lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """The questions of a file, each with its context; `extra` holds the article's title."""
    document = JsonDocument.of(lines)
    reader = _QuestionReader(document, spec, account)
    key = "data" if lines.first_character() == "{" else None
    for number, (start, _, article) in enumerate(document.elements(key)):
        reader.at = start
        yield from reader.article(as_article(article), f"data[{number}]")


def as_article(value: object) -> object:
    """An article; CMRC 2018 was also published as a list of contexts with other key names."""
    if not isinstance(value, dict) or "context_text" not in value:
        return value
    questions = value.get("qas")
    return {
        "title": value.get("context_id"),
        "paragraphs": [
            {
                "context": value["context_text"],
                "qas": [_as_question(item) for item in questions]
                if isinstance(questions, list)
                else questions,
            }
        ],
    }


def _as_question(value: object) -> object:
    if not isinstance(value, dict):
        return value
    renamed = {"query_id": "id", "query_text": "question"}
    question = {renamed.get(key, key): item for key, item in value.items()}
    if isinstance(answers := question.get("answers"), list):
        question["answers"] = [{"text": item} for item in answers]
    return question


class _QuestionReader:
    """Walks through articles; `at` is the place in the text that was reached."""

    def __init__(self, document: JsonDocument, spec: DataSpec, account: RowAccount) -> None:
        self.at = 0
        self._document = document
        self._labeled = spec.label != ()
        self._keep_empty = spec.empty == "keep"
        self._account = account
        self._seen: dict[str, int] = {}
        self._halves = may_hold_surrogates(document.text)

    def article(self, article: object, where: str) -> Iterator[Example | Reject]:
        """The questions of one article."""
        try:
            paragraphs = members(article, "paragraphs", where)
        except BadRowError as fault:
            yield self._reject(fault, {"data": [article]})
            return
        title = article.get("title", article.get("id")) if isinstance(article, dict) else None
        name = title if isinstance(title, str) else where
        for number, paragraph in enumerate(paragraphs):
            yield from self._paragraph(paragraph, name, f"{where}.paragraphs[{number}]")

    def _paragraph(self, paragraph: object, title: str, where: str) -> Iterator[Example | Reject]:
        try:
            questions = members(paragraph, "qas", where)
        except BadRowError as fault:
            yield self._reject(fault, {"data": [{"title": title, "paragraphs": [paragraph]}]})
            return
        context = paragraph.get("context") if isinstance(paragraph, dict) else None
        for number, question in enumerate(questions):
            at = f"{where}.qas[{number}]"
            try:
                yield self._question(question, context, title, (where, at))
            except BadRowError as fault:
                piece = {"title": title, "paragraphs": [{"context": context, "qas": [question]}]}
                yield self._reject(fault, {"data": [piece]}, question)

    def _question(
        self, question: object, context: object, title: str, where: tuple[str, str]
    ) -> Example:
        above, at = where
        if not isinstance(question, dict):
            raise wrong_type(question, "an object", "write an object", at)
        name = question.get("id")
        if not isinstance(name, str | int) or name == "":
            what = "is missing" if name is None else f"is {type_name(name)}"
            raise BadRowError(f"the id {what}", "write a string", column=f"{at}.id")
        line = self._line_of(name)
        if str(name) in self._seen:
            raise BadRowError(
                f"the id {shown(name)} stands twice, first on line {self._seen[str(name)]}",
                "give each question its own",
                column=f"{at}.id",
            )
        self._seen[str(name)] = line
        texts = (
            self._text(question.get("question"), f"{at}.question"),
            self._text(context, f"{above}.context"),
        )
        if self._halves:
            refuse_surrogates(texts[0], f"{at}.question")
            refuse_surrogates(texts[1], f"{above}.context")
        target = self._answers(question, texts[1], str(name), at) if self._labeled else None
        return Example(
            source=self._document.name,
            line=line,
            id=str(name),
            texts=texts,
            target=target,
            extra={"title": title},
        )

    def _text(self, value: object, field: str) -> str:
        if type(value) is not str:
            if value is None:
                raise BadRowError("it is missing", "write a string", column=field)
            raise wrong_type(value, "a string", "write a string", field)
        check_texts((value,), (field,), keep_empty=self._keep_empty)
        return value

    def _answers(self, question: Object, context: str, name: str, at: str) -> Answers | None:
        impossible = question.get("is_impossible", False)
        if type(impossible) is not bool:
            advice = "write true or false"
            raise wrong_type(impossible, "true or false", advice, f"{at}.is_impossible")
        if "answers" not in question:
            self._account.unlabeled += 1
            return None
        given = members(question, "answers", at)
        field = f"{at}.answers"
        if impossible and given:
            raise BadRowError(
                f"the question is impossible but has {len(given)} answers",
                "remove the answers, or write false",
                column=f"{at}.is_impossible",
            )
        if not given and not impossible:
            raise BadRowError(
                "the list of answers is empty",
                'write the answer, or "is_impossible": true',
                column=field,
            )
        pairs = []
        for number, item in enumerate(given):
            if not isinstance(item, dict):
                advice = 'write {"text": ..., "answer_start": ...}'
                raise wrong_type(item, "an object", advice, f"{field}[{number}]")
            pairs.append(answer_pair(*_text_and_start(item), f"{field}[{number}]"))
        return placed(context, pairs, self._account, name=name, field=field)

    def _line_of(self, name: str | int) -> int:
        """The line where a question's id stands, looked for from where we are."""
        text = self._document.text
        for ascii_only in (False, True):
            spelled = json.dumps(name, ensure_ascii=ascii_only)
            if (place := text.find(spelled, self.at)) >= 0:
                self.at = place + 1
                break
        return self._document.line_at(self.at)

    def _reject(self, fault: BadRowError, raw: object, question: object = None) -> Reject:
        name = question.get("id") if isinstance(question, dict) else None
        return reject_of(
            fault,
            self._document.name,
            self._document.line_at(self.at),
            json.dumps(raw, ensure_ascii=False),
            part="field",
            id=str(name) if isinstance(name, str | int) else None,
        )


def members(value: object, key: str, where: str) -> list[object]:
    """The list under a key of an object."""
    if not isinstance(value, dict):
        raise wrong_type(value, "an object", "write an object", where)
    items = value.get(key)
    if isinstance(items, list):
        return items
    what = "is missing" if key not in value else f"is {type_name(items)}, not a list"
    raise BadRowError(f"{shown(key)} {what}", "write a list", column=f"{where}.{key}")
