"""SQuAD 1.1 and 2.0, CMRC 2018 and DRCD as published: articles, paragraphs, questions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from bertsmith.files.faults import BadRowError, shown
from bertsmith.files.json_documents import LARGEST_DOCUMENT, JsonDocument
from bertsmith.files.lines import Lines
from bertsmith.files.strict_json import may_hold_surrogates, refuse_surrogates, type_name
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Answers, Example
from bertsmith.labeled.read.answers import answer_pair, placed
from bertsmith.labeled.read.reject import Reject, check_texts, reject_of
from bertsmith.labeled.spec import DataSpec

Object = Mapping[str, object]


def read(
    lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """The questions of a file, each with its context; `extra` holds the article's title."""
    document = JsonDocument(lines.whole(LARGEST_DOCUMENT), lines.name, lines.number + 1)
    reader = _Reader(document, spec, account)
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


class _Reader:
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
            paragraphs = _list(article, "paragraphs", where)
        except BadRowError as fault:
            yield self._reject(fault, {"data": [article]})
            return
        title = article.get("title", article.get("id")) if isinstance(article, dict) else None
        name = title if isinstance(title, str) else where
        for number, paragraph in enumerate(paragraphs):
            yield from self._paragraph(paragraph, name, f"{where}.paragraphs[{number}]")

    def _paragraph(self, paragraph: object, title: str, where: str) -> Iterator[Example | Reject]:
        try:
            questions = _list(paragraph, "qas", where)
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
            raise BadRowError(f"it is {type_name(question)}", "write an object", column=at)
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
            what = "it is missing" if value is None else f"it is {type_name(value)}"
            raise BadRowError(what, "write a string", column=field)
        check_texts((value,), (field,), keep_empty=self._keep_empty)
        return value

    def _answers(self, question: Object, context: str, name: str, at: str) -> Answers | None:
        impossible = question.get("is_impossible", False)
        if type(impossible) is not bool:
            raise BadRowError(
                f"it is {type_name(impossible)}",
                "write true or false",
                column=f"{at}.is_impossible",
            )
        if "answers" not in question:
            self._account.unlabeled += 1
            return None
        given = _list(question, "answers", at)
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
                raise BadRowError(
                    f"it is {type_name(item)}",
                    'write {"text": ..., "answer_start": ...}',
                    column=f"{field}[{number}]",
                )
            start = item.get("answer_start", item.get("text_start"))
            pairs.append(answer_pair(item.get("text"), start, f"{field}[{number}]"))
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


def _list(value: object, key: str, where: str) -> list[object]:
    if not isinstance(value, dict):
        raise BadRowError(
            f"it is {type_name(value)}, not an object", "write an object", column=where
        )
    items = value.get(key)
    if isinstance(items, list):
        return items
    what = "is missing" if key not in value else f"is {type_name(items)}, not a list"
    raise BadRowError(f"{shown(key)} {what}", "write a list", column=f"{where}.{key}")
