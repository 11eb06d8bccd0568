"""A question's answers in its context: checked, moved to where they stand, or refused."""

from __future__ import annotations

from collections.abc import Sequence

from bertsmith.files.faults import BadRowError, shown
from bertsmith.files.strict_json import type_name
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Answers
from bertsmith.labeled.read.spans import nearest

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
        raise BadRowError(
            f"it is {type_name(text)}, not a string", "write a string", column=f"{at}.text"
        )
    if start is not None and type(start) is not int:
        raise BadRowError(
            f"it is {type_name(start)}, not a whole number",
            "count the characters of the context from 0",
            column=f"{at}.answer_start",
        )
    return text, start
