"""Broken SQuAD files."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from broken import Broken

CONTEXT = "Ada was born in London.\nShe died there in 1852."
QUESTIONS = [
    {"id": "q1", "question": "Where?", "answers": [{"text": "London", "answer_start": 16}]},
    {"id": "q2", "question": "When?", "answers": [{"text": "1852", "answer_start": 42}]},
    {"id": "q3", "question": "Why?", "answers": [], "is_impossible": True},
]
GOOD = {"title": "Ada", "paragraphs": [{"context": CONTEXT, "qas": QUESTIONS}]}
TITLE = '"title": "B"'  # its article begins one line above
BAD = "data[1].paragraphs[0].qas[0]"


def question(
    name: str, change: Callable[[Any], object], place: str, says: str, **more: Any
) -> Broken:
    """A second article whose only question is changed."""
    own = copy.deepcopy(QUESTIONS[0])
    own["id"] = "bad"
    paragraph = {"context": CONTEXT, "qas": [own]}
    changed = change(own)
    if changed is not None:
        paragraph["qas"] = [changed]
    return article(name, {"title": "B", "paragraphs": [paragraph]}, f"{BAD}{place}", says, **more)


def article(name: str, second: object, place: str, says: str, **more: Any) -> Broken:
    text = json.dumps({"version": "1.1", "data": [GOOD, second]}, indent=1, ensure_ascii=False)
    marker = more.pop("marker", '"bad"')
    line = text.count("\n", 0, text.rindex(marker)) + 1 - (marker == TITLE)
    place = "field " + place.replace("[", r"\[").replace("]", r"\]").replace(".", r"\.")
    return Broken(f"{name}.json", text.encode(), line, place, says, good=3, **more)


def whole(name: str, content: str | bytes, line: int, place: str, says: str) -> Broken:
    data = content if isinstance(content, bytes) else content.encode()
    return Broken(f"{name}.json", data, line, place, says, good=0, fatal=True)


def put(**values: Any) -> Callable[[Any], None]:
    return lambda own: own.update(values)


def drop(key: str) -> Callable[[Any], None]:
    return lambda own: own.pop(key) and None


def answer(**values: Any) -> Callable[[Any], None]:
    return lambda own: own["answers"][0].update(values)


PLAIN = json.dumps({"data": [GOOD]}, ensure_ascii=False)
LINES = json.dumps({"data": [GOOD]}, ensure_ascii=False, indent=1)
SQUAD_FAULTS = [
    question(
        "absent", answer(text="Paris"), ".answers[0].text", r"'Paris' does not occur.*; write the"
    ),
    question(
        "case", answer(text="london"), ".answers[0].text", r"'london' does not occur.*; write"
    ),
    question("spaces", answer(text="London. She"), ".answers[0].text", r"does not occur.*; write"),
    question("empty", answer(text=""), ".answers[0].text", r"the answer is empty; write it"),
    question("blank", answer(text=" "), ".answers[0].text", r"the answer is empty; write it"),
    question("number", answer(text=1852), ".answers[0].text", r"it is a number.*; write a string"),
    question(
        "null", answer(text=None), ".answers[0].text", r"it is null, not a string; write a str"
    ),
    question(
        "start", answer(answer_start="16"), ".answers[0].answer_start", r"a string, .*; count"
    ),
    question(
        "point", answer(answer_start=16.0), ".answers[0].answer_start", r"a number, .*; count"
    ),
    question(
        "words", put(answers=["London"]), ".answers[0]", r"a string, not an object; write \{.text"
    ),
    question(
        "one", put(answers={"text": "London"}), ".answers", r"an object, not a list; write a li"
    ),
    question(
        "none", put(answers=[]), ".answers", r"the list of answers is empty; write the answer"
    ),
    question("both", put(is_impossible=True), ".is_impossible", r"impossible but has 1.*; remove"),
    question(
        "maybe", put(is_impossible="no"), ".is_impossible", r"a string, not true or false; write"
    ),
    question("no-question", drop("question"), ".question", r"it is missing; write a string"),
    question(
        "list", put(question=["Where?"]), ".question", r"a list, not a string; write a string"
    ),
    question("asks-none", put(question=" "), ".question", r"white space only; fill it in"),
    question("no-id", drop("id"), ".id", r"the id is missing; write a string", marker=TITLE),
    question("empty-id", put(id=""), ".id", r"the id is a string; write a string", marker=TITLE),
    question("id-list", put(id=["bad"]), ".id", r"the id is a list; write a string", marker=TITLE),
    question(
        "id-again",
        put(id="q1"),
        ".id",
        r"'q1' stands twice, first on line \d+; give",
        marker='"q1"',
    ),
    question("nul", put(question="Wh\0ere?"), ".question", r"NUL character.*; remove it"),
    question("string", lambda own: "Where?", "", r"a string, not an object; write", marker=TITLE),
    article(
        "no-context",
        {"paragraphs": [{"qas": [{**QUESTIONS[0], "id": "bad"}]}]},
        "data[1].paragraphs[0].context",
        r"it is missing; write a string",
    ),
    article(
        "no-questions",
        {"title": "B", "paragraphs": [{"context": CONTEXT}]},
        "data[1].paragraphs[0].qas",
        r"'qas' is missing; write a list",
        marker=TITLE,
    ),
    article(
        "no-paragraphs",
        {"title": "B"},
        "data[1].paragraphs",
        r"is missing; write a list",
        marker=TITLE,
    ),
    article(
        "a-string", "B", "data[1]", r"it is a string, not an object; write an object", marker='"B"'
    ),
    whole(
        "cut", PLAIN[:-30], 1, r"column \d+", r"ends too early: it was cut off; restore the file"
    ),
    whole(
        "cut-lines",
        LINES[:-40],
        LINES[:-40].count("\n") + 1,
        r"column \d+",
        r"ends too early: it was cut off; restore",
    ),
    whole(
        "comma", PLAIN.replace('"qas": [', '"qas": [,'), 1, r"column \d+", r"not JSON: .*; restore"
    ),
    whole("quotes", PLAIN.replace('"', "'"), 1, r"column \d+", r".*; \S+"),
    whole("after", PLAIN + " x", 1, r"column \d+", r"'x' stands after the document; restore"),
    whole(
        "double", PLAIN.replace('"id"', '"question"', 1), 1, "column question", r"twice.*; remove"
    ),
    whole(
        "bytes", PLAIN.encode().replace(b"London", b"Lond\xffn", 1), 1, r"byte 0xff", r"at byte \d+"
    ),
]
