"""Broken JSONL files of texts with labels, and of texts with spans."""

from __future__ import annotations

import json
from typing import Any

from broken import Broken, at

ROWS = [
    '{"text": "a fine day", "label": "pos"}',
    '{"text": "a dull one", "label": "neg"}',
    '{"text": "quite good", "label": "pos"}',
    '{"text": "no, bad", "label": "neg"}',
]
CHOICES = [
    json.dumps({"question": f"q {n}?", "choices": ["a", "b", "c"], "answer": n % 3})
    for n in range(4)
]
SPANS = [
    '{"text": "Ada met Bob in Rome", "entities": [[0, 3, "PER"], [15, 19, "LOC"]]}',
    '{"text": "nobody came", "entities": []}',
    '{"text": "Rome, at night", "entities": [[0, 4, "LOC"]]}',
    '{"text": "Bob left", "entities": [[0, 3, "PER"]]}',
]
LONG = b'{"text": "' + b"x" * (2 << 20) + b'", "label": "pos"}'


def row(name: str, bad: str | bytes, place: str, says: str, **more: Any) -> Broken:
    rows = more.pop("rows", ROWS)
    line = more.pop("line", 3)
    return Broken(f"{name}.jsonl", at(line, rows, bad), line, place, says, **more)


def span(name: str, entities: object, place: str, says: str, **more: Any) -> Broken:
    text = more.pop("text", "Ada saw Bob")
    bad = json.dumps({"text": text, "entities": entities})
    return row(f"span-{name}", bad, place, says, rows=SPANS, **more)


def said(start: int, end: int, text: str) -> list[dict[str, object]]:
    return [{"start": start, "end": end, "label": "PER", "text": text}]


JSONL_FAULTS = [
    row("cut", '{"text": "good", "label": "p', "column 27", r"ends too early.*; complete it"),
    row(
        "unclosed", '{"text": "good", "label": "pos"', "column 32", r"ends too early.*; complete it"
    ),
    row(
        "comma", '{"text": "good", "label": "pos",}', "column 3", r"not JSON: .*; write each row as"
    ),
    row("single", "{'text': 'good', 'label': 'pos'}", "column 2", r"not JSON: .*double quotes"),
    row("bare", '{text: "good", "label": "pos"}', "column 2", r"not JSON: .*double quotes"),
    row("python", '{"text": "good", "label": True}', "column 27", r"not JSON: .*; write each row"),
    row("comment", '// {"text": "good"}', "column 1", r"begins with '//.*; write each row as one"),
    row(
        "two",
        '{"text": "a", "label": "pos"} {"text": "b"}',
        "column 30",
        r"stands after.*each line",
    ),
    row(
        "listed",
        '{"text": "good", "label": "pos"},',
        "column 33",
        r"',' stands.*; remove the comma",
    ),
    row("list", '["good", "pos"]', "column 1", r"the row is a list, not an object; write each"),
    row("string", '"good"', "column 1", r"the row is a string, not an object; write each row"),
    row("number", "12", "column 1", r"the row is a number, not an object; write each row"),
    row(
        "mark",
        '\ufeff{"text": "good", "label": "pos"}',
        "column 1",
        r"begins with '\\ufeff.*; write",
    ),
    row(
        "nan",
        '{"text": "good", "label": NaN}',
        "column 1",
        r"NaN is no JSON number; write a number",
    ),
    row(
        "digits",
        '{"text": "g", "label": ' + "9" * 5000 + "}",
        "column 1",
        r"a number has too many digits; w",
    ),
    row(
        "twice",
        '{"text": "a", "text": "b", "label": "pos"}',
        "field text",
        r"twice in one.*; remove",
    ),
    row(
        "deep",
        '{"text": ' + "[" * 9999 + "]" * 9999 + "}",
        "column 1",
        r"nested too deeply; flatten",
    ),
    row("half", '{"text": "go\\ud83d", "label": "pos"}', "field text", r"\\ud83d is half.*; write"),
    row("half-key", '{"te\\ud800": 1, "text": "a", "label": "b"}', "field te", r"is half.*; write"),
    row(
        "nul",
        '{"text": "go\\u0000od", "label": "pos"}',
        "field text",
        r"NUL character.*; remove it",
    ),
    row(
        "no-text",
        '{"txt": "good", "label": "pos"}',
        "field text",
        r"'text' is missing.*'txt'.*; add",
    ),
    row(
        "no-label", '{"text": "good"}', "field label", r"'label' is missing; the keys are.*; add it"
    ),
    row(
        "text-number",
        '{"text": 12, "label": "pos"}',
        "field text",
        r"it is a number, not a s.*; put",
    ),
    row(
        "text-null", '{"text": null, "label": "pos"}', "field text", r"it is null, not a str.*; put"
    ),
    row(
        "text-dict", '{"text": {"a": 1}, "label": "x"}', "field text", r"it is an object.*; put it"
    ),
    row(
        "label-null",
        '{"text": "good", "label": null}',
        "field label",
        r"label is null; write it as",
    ),
    row(
        "label-list",
        '{"text": "good", "label": ["a"]}',
        "field label",
        r"is a list; write one.*set",
        spec={"task": "classify"},
    ),
    row(
        "empty-text", '{"text": "", "label": "pos"}', "field text", r"the text is empty; fill it in"
    ),
    row(
        "empty-label", '{"text": "good", "label": ""}', "field label", r"label is empty; write the"
    ),
    row(
        "bad-byte", b'{"text": "go\xff", "label": "pos"}', "column 13", r"0xff at byte \d+ .*; \S+"
    ),
    row("long", LONG, "column 1", r"bytes; the limit is .*; split the text", longest=1 << 20),
    row(
        "typo",
        '{"text": "good", "label": "psitive"}',
        "field label",
        r"'psitive'; did you mean",
        spec={"labels": ("positive", "pos", "neg")},
    ),
    row(
        "choice",
        '{"question": "q?", "choices": ["a", "b"], "answer": 2}',
        "field answer",
        r"'2' is not the number of a choice; write 0 to 1",
        rows=CHOICES,
    ),
    row(
        "choices",
        '{"question": "q?", "choices": ["a"], "answer": 0}',
        "field choices",
        r"a list of 1, not of two.*; write all choices",
        rows=CHOICES,
    ),
]

SPAN_FAULTS = [
    span("beyond", [[8, 12, "PER"]], "field entities\\[0\\]", r"8 to 12 .*not lie inside.*; count"),
    span("before", [[-1, 3, "PER"]], "field entities\\[0\\]", r"-1 to 3 .*not lie inside.*; count"),
    span(
        "backwards", [[3, 0, "PER"]], "field entities\\[0\\]", r"3 to 0 .*not lie inside.*; count"
    ),
    span(
        "empty",
        [[3, 3, "PER"], [0, 3, "PER"]],
        "field entities\\[0\\]",
        r"3 to 3.*is empty.*; count",
        spec={"span_end": "exclusive"},
    ),
    span("space", [[3, 4, "PER"]], "field entities\\[0\\]", r"white space only; remove it"),
    span(
        "crossing", [[0, 7, "PER"], [4, 11, "LOC"]], "field entities", r"overlap; keep one of them"
    ),
    span("same", [[0, 3, "PER"], [0, 3, "LOC"]], "field entities", r"'Ada' .*overlap; keep one"),
    span(
        "nested",
        [[0, 11, "A"], [4, 7, "B"]],
        "field entities",
        r"overlap; keep one of them",
        spec={"overlap": "reject"},
    ),
    span(
        "two", [[0, 3]], "field entities\\[0\\]", r"a list, not \[start, end, kind\]; write \[0, 5"
    ),
    span(
        "words", [["0", "3", "PER"]], "field entities\\[0\\]", r"a string and a string; write whole"
    ),
    span(
        "float", [[0.0, 3, "PER"]], "field entities\\[0\\]", r"a number and a number; write whole"
    ),
    span("kind", [[0, 3, 7]], "field entities\\[0\\]", r"the kind is a number; write a string"),
    span("no-kind", [[0, 3, ""]], "field entities\\[0\\]", r"the label is empty; write the label"),
    span("second", [[0, 3, "PER"], 4], "field entities\\[1\\]", r"a number, not \[start.*; write"),
    span("object", {"PER": [0, 3]}, "field entities", r"an object, not a list of spans; write"),
    span("null", None, "field entities", r"null, not a list of spans; write \[\[start"),
    span(
        "no-start",
        [{"end": 3, "label": "A"}],
        "field entities\\[0\\]",
        r"'start' is missing.*; wri",
    ),
    span(
        "no-end",
        [{"start": 3, "label": "A"}],
        "field entities\\[0\\]",
        r"'end' is missing.*; write",
    ),
    span(
        "no-label",
        [{"start": 0, "end": 3}],
        "field entities\\[0\\]",
        r"'label' is missing.*; write",
    ),
    span(
        "elsewhere", said(0, 3, "Eve"), "field entities\\[0\\]", r"'Eve' does not occur.*; write it"
    ),
    span(
        "case", said(0, 3, "ada"), "field entities\\[0\\]", r"'ada' does not occur.*; write it as"
    ),
    span("no-text", [[0, 3, "PER"]], "field text", r"the text is empty; fill it in", text=""),
    span("number", [[0, 3, "PER"]], "field text", r"it is a number, not a string; put", text=12),
    span(
        "unknown",
        [[0, 3, "PRE"]],
        "field entities\\[0\\]",
        r"'PRE'; did you mean 'PER'\?",
        spec={"labels": ("PER", "LOC")},
    ),
    row(
        "span-missing",
        '{"text": "Ada"}',
        "field entities",
        r"'entities' is missing.*; add it",
        rows=SPANS,
    ),
    row(
        "span-cut",
        '{"text": "Ada", "entities": [[0,',
        "column 33",
        r"ends too early.*; complete",
        rows=SPANS,
    ),
]
