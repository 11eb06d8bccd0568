"""Turns the cell of a label column into a target, or a fault with its reason."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence

from bertsmith.files.faults import BadRowError
from bertsmith.files.strict_json import WrittenFloat, type_name
from bertsmith.labeled.example import ChoiceIndex, Label, LabelSet, ScoreTarget, Target
from bertsmith.labeled.spec import DataSpec
from bertsmith.wording import shown

MARK = "\ufeff"
YES = ("1", "1.0", "true", "True", "TRUE")
NO = ("0", "0.0", "false", "False", "FALSE")
REMEMBERED = 10_000  # distinct labels; a column of texts must not fill the memory

Read = Callable[[str], Target | None]


def label_reader(spec: DataSpec, column: int | str, choices: int) -> Read:
    """A function from a cell of the label column to its target; None for "not labeled"."""
    kind = spec.target_kind
    make = CELLS.get("label" if kind is None else kind.name, _label_cells)
    read = make(spec, column, choices)
    if not spec.no_label:
        return read
    none = frozenset(spec.no_label)
    return lambda cell: None if cell in none else read(cell)


def _label_cells(spec: DataSpec, column: int | str, choices: int) -> Callable[[str], Target]:
    known: dict[str, Label] = {}

    def read(cell: str) -> Label:
        label = known.get(cell)
        if label is None:
            label = Label(checked(cell, spec, column))
            if len(known) < REMEMBERED:
                known[cell] = label
        return label

    return read


CELLS: Mapping[str, Callable[[DataSpec, int | str, int], Callable[[str], Target]]] = {
    "label": _label_cells,
    "labels": lambda spec, column, choices: (
        lambda cell: labels_of(_parts(cell, spec.label_separator), spec, column)
    ),
    "number": lambda spec, column, choices: lambda cell: ScoreTarget(_number(cell, column)),
    "choice": lambda spec, column, choices: (
        lambda cell: ChoiceIndex(_index(cell, choices, spec.first_choice or 0, column))
    ),
}


def checked(name: str, spec: DataSpec, column: int | str) -> str:
    """A label as it is written, if it can be one."""
    if not name or name.isspace():
        what = "empty" if not name else "only white space"
        raise BadRowError(
            f"the label is {what}", "write the label, or remove the row", column=column
        )
    if name.startswith(MARK):
        raise BadRowError(
            f"the label {shown(name[1:])} begins with a byte order mark: files were joined here",
            "remove the mark (U+FEFF)",
            column=column,
        )
    if "\0" in name:
        raise BadRowError("the label holds a NUL character", "remove it", column=column)
    if spec.labels is not None and name not in spec.labels:
        raise unknown_label(name, spec, column)
    return name


def unknown_label(
    name: str, spec: DataSpec, column: int | str, line: int | None = None
) -> BadRowError:
    """The fault of a label that is not among those there are."""
    labels = spec.labels or ()
    near = difflib.get_close_matches(name, labels, n=1)
    some = ", ".join(shown(label) for label in labels[:8]) + (", ..." if len(labels) > 8 else "")
    return BadRowError(
        f"no label {spec.why.get('labels', '')} is called {shown(name)}".replace("  ", " "),
        f"did you mean {shown(near[0])}?" if near else f"the labels are {some}",
        column=column,
        line=line,
    )


def labels_of(names: Sequence[str], spec: DataSpec, column: int | str) -> LabelSet:
    """Several labels of one row."""
    for number, name in enumerate(names):
        checked(name, spec, column)
        if name in names[:number]:
            raise BadRowError(
                f"the label {shown(name)} stands twice in one row", "remove one", column=column
            )
    return LabelSet(tuple(names))


def _parts(cell: str, separator: str | None) -> list[str]:
    if not cell:
        return []
    return cell.split(separator) if separator else [cell]


def marked_labels(cells: Sequence[str], names: Sequence[str]) -> LabelSet:
    """The labels whose columns hold a 1."""
    labels = []
    for cell, name in zip(cells, names, strict=True):
        if cell in YES:
            labels.append(name)
        elif cell not in NO:
            raise BadRowError(
                f"{shown(cell)} does not say whether the label applies",
                "write 1 or 0",
                column=name,
            )
    return LabelSet(tuple(labels))


def as_number(cell: str) -> float:
    """The number that a cell spells, nan if it spells none."""
    try:
        return float(cell) if "_" not in cell else math.nan
    except ValueError:
        return math.nan


def _number(cell: str, column: int | str) -> float:
    value = as_number(cell)
    if math.isfinite(value):
        return value
    what = "is empty" if not cell.strip() else f"{shown(cell)} is no finite number"
    comma = "," in cell and cell.replace(",", "").replace(".", "").strip("-").isdigit()
    advice = "write a point for the decimals" if comma else "write a number such as 3.5"
    raise BadRowError(f"the score {what}", advice, column=column)


def _index(cell: str, choices: int, first: int, column: int | str) -> int:
    text = cell.strip()
    last = first + choices - 1
    if len(text) == 1 and "A" <= text.upper() <= "Z":
        index = ord(text.upper()) - ord("A")
        if index < choices:
            return index
    elif text.isdecimal() and text.isascii() and first <= int(text[:9]) <= last:
        return int(text) - first
    raise BadRowError(
        f"{shown(cell)} is not the number of a choice",
        f"write {first} to {last} (there are {choices} choices), or set --first-choice",
        column=column,
    )


def json_target(value: object, read: Read, spec: DataSpec, column: str) -> Target | None:
    """The target of a JSON value: a string, a number as it is written, true, or a list of them."""
    if type(value) is str:
        return read(value)
    if isinstance(value, list):
        kind = spec.target_kind
        if kind is not None and kind.many:
            return labels_of([_scalar(item, column) for item in value], spec, column)
        raise BadRowError(
            "the label is a list", "write one label, or set --task multilabel", column=column
        )
    return read(_scalar(value, column))


def _scalar(value: object, column: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | WrittenFloat):
        return str(value)
    raise BadRowError(
        f"the label is {type_name(value)}", "write it as a string or a number", column=column
    )
