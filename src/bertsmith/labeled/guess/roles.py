"""Guesses about columns: which hold the texts, which the label, which an id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bertsmith.labeled.guess.column_names import (
    ANSWERS,
    CONTEXTS,
    IDS,
    LABELS,
    TEXTS,
    called,
    choices_called,
    pair_called,
)
from bertsmith.labeled.guess.profile import Profile
from bertsmith.labeled.guess.spec_builder import SpecBuilder
from bertsmith.labeled.spec import Column

Profiles = Mapping[Any, Profile]  # by name, or by number
COMPARABLE = 4  # a second text is no shorter than a quarter of the first
MOST_CATEGORIES = 30  # label columns beyond it are not guessed


def guess_named(profiles: Profiles, draft: SpecBuilder) -> None:
    """Decide by the names of columns or keys, and where they say nothing by what stands there."""
    names = [str(name) for name in profiles]
    choices = choices_called(names)
    label = called(names, LABELS)
    if choices:
        label = label or called(names, ANSWERS) or _numbers_of(profiles, len(choices))
    if choices and (context := called(names, CONTEXTS)) and _fits(profiles, label, len(choices)):
        draft.put("text", (context, *choices), "a context and numbered choices")
        draft.put("task", "choose", "columns are numbered choices")
        draft.put("label", (label,) if label else (), "it holds numbers of choices")
    _id(names, profiles, draft)
    if draft.get("text") is not None:
        pass
    elif pair := pair_called(names):
        draft.put("text", pair, "columns are usually called so")
    elif single := called(names, TEXTS):
        draft.put("text", (single,), "a column is usually called so")
    taken = {*(draft.get("text") or ()), draft.get("id")}
    if draft.get("label") is None and label is not None and label not in taken:
        draft.put("label", (label,), "a column is usually called so")
    taken |= set(draft.get("label") or ())
    rest = {name: column for name, column in profiles.items() if name not in taken}
    if draft.get("text") is None:
        guess_texts(rest, draft)
        rest = {name: column for name, column in rest.items() if name not in draft.get("text")}
    if draft.get("label") is None:
        _label_by_content(rest, draft)


def _fits(profiles: Profiles, label: str | None, choices: int) -> bool:
    """Whether the label, if there is one, could be the number of a choice."""
    if label is None:
        return True
    cells = set(profiles[label].cells)
    return all(cell.isdecimal() and int(cell) <= choices for cell in cells if cell)


def _numbers_of(profiles: Profiles, choices: int) -> str | None:
    """The only column that could hold the number of the right choice."""
    fitting = [
        str(name)
        for name, column in profiles.items()
        if column.category and {*column.cells} <= {str(number) for number in range(choices)}
    ]
    return fitting[0] if len(fitting) == 1 else None


def _id(names: Sequence[str], profiles: Profiles, draft: SpecBuilder) -> None:
    found = called(names, IDS)
    if found is not None:
        draft.put("id", found, f"a column is called {found!r}")
    elif names and names[0] == "" and profiles[names[0]].numeric:
        draft.put("id", 1, "the first column counts the rows and has no name")


def _label_by_content(rest: Profiles, draft: SpecBuilder) -> None:
    marks = [name for name, column in rest.items() if column.binary]
    if 1 < len(marks) <= MOST_CATEGORIES:
        draft.put("label", tuple(marks), "columns of 0 and 1, one for each label")
        draft.put("task", "multilabel", "several label columns")
        return
    fitting = [
        (name, column)
        for name, column in rest.items()
        if (column.category and column.distinct <= MOST_CATEGORIES) or column.score
    ]
    if len(fitting) == 1:
        name, column = fitting[0]
        draft.put("label", (name,), f"{column.distinct} values repeat in it")
    else:
        what = "no column is called like a label"
        draft.put("label", (), f"{what}: read as unlabeled; set --label if there is one")


def guess_numbered(profiles: Profiles, draft: SpecBuilder) -> None:
    """Decide for a table without a header, by what stands in its columns."""
    if _cola(profiles):
        draft.put("text", (4,), "four columns as in CoLA")
        draft.put("label", (2,), "four columns as in CoLA")
        return
    if draft.get("label") is None:
        label = _label_of(profiles, set(draft.get("text") or ()))
        if label is None:
            draft.put("label", (), "no column repeats as labels do: read as unlabeled")
        else:
            draft.put("label", (label,), _why_label(profiles[label]))
    taken = {*(draft.get("label") or ()), draft.get("id")}
    guess_texts({name: column for name, column in profiles.items() if name not in taken}, draft)


def _cola(profiles: Profiles) -> bool:
    """CoLA as published: source, 0 or 1, the author's star, sentence."""
    if set(profiles) != {1, 2, 3, 4}:
        return False
    stars = {character for cell in profiles[3].cells for character in cell}
    return profiles[2].binary and stars <= set("*?# ") and profiles[1].category


def _label_of(profiles: Profiles, taken: set[Column]) -> Column | None:
    """The column that repeats, or is short beside a long one; the last and the first come first."""
    if len(profiles) < 2:
        return None
    order = [*reversed(list(profiles))]
    order = [order[0], order[-1], *order[1:-1]]
    free: list[Column] = [name for name in order if name not in taken]
    for name in free:
        column = profiles[name]
        if (column.category and column.short) or column.score:
            return name
    for name in free:
        others = [profiles[other].length for other in profiles if other != name]
        if profiles[name].short and profiles[name].length * 2 <= max(others):
            return name
    return None


def _why_label(column: Profile) -> str:
    if column.score:
        return "it holds numbers with decimals"
    if column.category:
        return f"{column.distinct} values repeat in it"
    return "it is short beside a long text"


def guess_texts(rest: Profiles, draft: SpecBuilder) -> None:
    """The longest column, and a second one of comparable length: a pair."""
    texts = {name: column for name, column in rest.items() if not column.number_or_id}
    found = texts or dict(rest)
    if not found:
        return
    longest = max(found, key=lambda name: found[name].length)
    pair = [
        name
        for name, column in found.items()
        if column.length * COMPARABLE >= found[longest].length and not column.category
    ]
    if len(pair) == 2:
        draft.put("text", tuple(pair), "two columns hold texts of comparable length")
    else:
        draft.put("text", (longest,), "the column with the longest texts")
