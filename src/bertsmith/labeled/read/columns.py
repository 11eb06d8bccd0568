"""Maps the columns of a spec to the cells of a row: texts, label, id, extras."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.files.faults import shown
from bertsmith.labeled.spec import Column, DataSpec

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """Where the parts of an example stand among the cells of a row, counted from 0."""

    names: Names  # of all columns, as messages call them
    text: tuple[int, ...]
    label: tuple[int, ...]
    id: int | None
    extra: tuple[int, ...]

    @property
    def width(self) -> int:
        """How many cells a row has."""
        return len(self.names)

    def called(self, place: int) -> int | str:
        """A column as messages call it: its name, or its number."""
        return self.names[place] or place + 1


def places(spec: DataSpec, names: Sequence[str] | None, width: int, place: str) -> ColumnPlan:
    """The columns of a spec among those of a file: `names` of its header, or their number."""
    finder = _Finder(list(names) if names is not None else None, width, place)
    text = finder.all(spec.text or ())
    if not text:
        raise ConfigError(f"{place}: no text column was chosen; {finder.there_are()}; set --text")
    label = finder.all(spec.label or ())
    kind = spec.target_kind
    if len(label) > 1 and kind is not None and not kind.many:
        raise ConfigError(
            f"{place}: {len(label)} label columns are for --task multilabel, not {spec.task}"
        )
    extra = list(spec.extra or ())
    if spec.group is not None and spec.group not in extra:
        extra.append(spec.group)
    return ColumnPlan(
        names=finder.names(),
        text=text,
        label=label,
        id=finder.one(spec.id) if spec.id is not None else None,
        extra=finder.all(extra),
    )


class _Finder:
    def __init__(self, header: list[str] | None, width: int, place: str) -> None:
        self._header = header
        self._width = width
        self._place = place

    def names(self) -> Names:
        return tuple(self._header) if self._header is not None else ("",) * self._width

    def all(self, columns: Sequence[Column]) -> tuple[int, ...]:
        return tuple(self.one(column) for column in columns)

    def one(self, column: Column) -> int:
        if isinstance(column, int):
            if column <= self._width:
                return column - 1
            raise InputFileError(
                f"{self._place}, column {column}: there is no such column; {self.there_are()}"
            )
        if self._header is None:
            raise InputFileError(
                f"{self._place}: column {shown(column)} is a name, but the file is read without a "
                f"header; {self.there_are()}; set --header or give numbers"
            )
        matches = [i for i, name in enumerate(self._header) if name == column]
        if len(matches) == 1:
            return matches[0]
        what = "no column is" if not matches else f"{len(matches)} columns are"
        way = "" if not matches else ": rename one of them, or give its number"
        raise InputFileError(
            f"{self._place}, column {column}: {what} called {shown(column)}{way}; "
            f"{self.there_are()}"
        )

    def there_are(self) -> str:
        if self._header is None:
            return f"columns are counted from 1 to {self._width}"
        some = ", ".join(f"{i}: {shown(name)}" for i, name in enumerate(self._header[:20], 1))
        more = f" and {self._width - 20} more" if self._width > 20 else ""
        return f"the columns are {some}{more}"
