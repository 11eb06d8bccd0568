"""Tables: TSV, CSV and their kin, with or without a header; SWAG as published."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.files.csv_records import Record, column_place, columns_there, table_records
from bertsmith.files.faults import BadRowError
from bertsmith.files.lines import Lines
from bertsmith.labeled.example import Example, Target
from bertsmith.labeled.read.reject import Reject, RowAccount, check_texts, reject_of
from bertsmith.labeled.read.targets import label_reader, marked_labels
from bertsmith.labeled.read.write import unguarded
from bertsmith.labeled.spec import Column, DataSpec
from bertsmith.wording import shown

Cells = list[str]
BEGUN = "sent2"
SWAG_COLUMNS = ("sent1", BEGUN, "ending0", "ending1", "ending2", "ending3")


def read(
    lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """The rows of a table; `piece` reads a part of one, which has no header of its own."""
    columns = spec.columns if isinstance(spec.columns, int) else len(spec.columns or ())
    quoted = spec.quoting == "double"
    records = table_records(lines, spec.delimiter or "\t", quoted=quoted, width=columns or None)
    header = _header(lines, spec, records, piece=piece)
    width = len(header) if header is not None else _width(spec)
    where = _places(spec, header, width, f"{lines.name}, line 1")
    build = _builder(lines.name, spec, where, account)
    for line, raw, cells in records:
        if isinstance(cells, BadRowError):
            yield reject_of(cells, lines.name, line, raw)
            continue
        if len(cells) == width:
            try:
                yield build(line, cells)
            except BadRowError as fault:
                yield reject_of(fault, lines.name, line, raw)
        elif cells == [""]:
            account.blank += 1
        else:
            yield reject_of(_ragged(cells, where, spec), lines.name, line, raw)


def _header(
    lines: Lines, spec: DataSpec, records: Iterator[Record], *, piece: bool
) -> Sequence[str] | None:
    if not spec.header:
        return None
    if piece:
        return spec.columns if isinstance(spec.columns, tuple) else None
    for line, _, cells in records:
        if isinstance(cells, BadRowError):
            raise cells.error(lines.name, line)
        if cells != [""]:
            return [unguarded(cell) for cell in cells] if spec.guarded else cells
    raise InputFileError(f"{lines.name}, line 1, column 1: the file is empty; give one with rows")


def _width(spec: DataSpec) -> int:
    if isinstance(spec.columns, int):
        return spec.columns
    named = [c for c in (*(spec.text or ()), *(spec.label or ())) if isinstance(c, int)]
    return max(named, default=1)


def _builder(
    source: str, spec: DataSpec, where: ColumnPlan, account: RowAccount
) -> Callable[[int, Cells], Example]:
    """A function from the cells of a row to its example."""
    if spec.has_choices and where.label and len(where.text) < 3:
        raise ConfigError(
            f"{source}: multiple choice needs the column of a context, then one for each choice; "
            "set --text"
        )
    single = where.text[0] if len(where.text) == 1 else None
    target = _target_reader(spec, where, account)
    named = [(where.names[i] or f"column {i + 1}", i) for i in where.extra]
    keep_empty = spec.empty == "keep"
    guarded = bool(spec.guarded)
    header = list(where.names) if spec.header else None

    def build(line: int, cells: Cells) -> Example:
        if guarded:
            cells = [unguarded(cell) for cell in cells]
        texts = (cells[single],) if single is not None else tuple(cells[i] for i in where.text)
        for text in texts:
            if not text or "\0" in text or text.isspace():
                check_texts(texts, [where.called(i) for i in where.text], keep_empty=keep_empty)
                break
        if cells == header:
            raise BadRowError(
                "the row repeats the header: files were joined here", "remove it", column=1
            )
        return Example(
            source=source,
            line=line,
            id=str(line) if where.id is None else cells[where.id],
            texts=texts,
            target=target(cells),
            extra={name: cells[i] for name, i in named},
        )

    return build


def _target_reader(
    spec: DataSpec, where: ColumnPlan, account: RowAccount
) -> Callable[[Cells], Target | None]:
    if not where.label:
        return lambda cells: None
    if len(where.label) > 1:
        names = [str(where.names[i] or f"column {i + 1}") for i in where.label]
        return lambda cells: marked_labels([cells[i] for i in where.label], names)
    at = where.label[0]
    read_label = label_reader(spec, where.called(at), len(where.text) - 1)
    if not spec.no_label:
        return lambda cells: read_label(cells[at])

    def read(cells: Cells) -> Target | None:
        target = read_label(cells[at])
        account.unlabeled += target is None
        return target

    return read


def _ragged(cells: Cells, where: ColumnPlan, spec: DataSpec) -> BadRowError:
    """The fault of a row that is wider or narrower than the table."""
    count, width = len(cells), where.width
    whose = "the header has" if spec.header else "the other rows have"
    counted = "1 column" if count == 1 else f"{count} columns"
    separator = {"\t": "tab", ",": "comma", ";": "semicolon"}.get(
        spec.delimiter or "\t", shown(spec.delimiter or "")
    )
    if any("\r" in cell for cell in cells):
        advice = "a lone carriage return stands in the row: end each row with a line feed"
    elif count < width:
        advice = f"add what is missing, with a {separator} between columns"
    elif spec.quoting == "double":
        advice = f"put double quotes around a cell that holds a {separator}"
    else:
        advice = f"remove the stray {separator} from the text"
    column = where.called(count) if count < width else width + 1
    return BadRowError(f"{counted}, but {whose} {width}", advice, column=column)


def read_swag(
    lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """The rows of a SWAG file: the first sentence, then the second one with each of its endings."""
    text = tuple(column for column in (spec.text or SWAG_COLUMNS) if column != BEGUN)
    with_choices = spec.model_copy(
        update={"text": text, "extra": (BEGUN, *(spec.extra or ())), "task": "choose"}
    )
    for item in read(lines, with_choices, account, piece=piece):
        if isinstance(item, Reject):
            yield item
            continue
        begun = item.extra[BEGUN]
        context, *endings = item.texts
        yield Example(
            source=item.source,
            line=item.line,
            id=item.id,
            texts=(context, *(f"{begun} {ending}" if begun else ending for ending in endings)),
            target=item.target,
            extra={name: cell for name, cell in item.extra.items() if name != BEGUN},
        )


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """Where the parts of an example stand among the cells of a row, counted from 0."""

    names: tuple[str, ...]  # of all columns, as messages call them
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


def _places(spec: DataSpec, names: Sequence[str] | None, width: int, place: str) -> ColumnPlan:
    """The columns of a spec among those of a file: `names` of its header, or their number."""

    def places(columns: Sequence[Column]) -> tuple[int, ...]:
        return tuple(column_place(column, names, width, place) for column in columns)

    text, label = places(spec.text or ()), places(spec.label or ())
    if not text:
        there = columns_there(names, width)
        raise ConfigError(f"{place}: no text column was chosen; {there}; set --text")
    kind = spec.target_kind
    if len(label) > 1 and kind is not None and not kind.many:
        raise ConfigError(
            f"{place}: {len(label)} label columns are for --task multilabel, not {spec.task}"
        )
    extra = list(spec.extra or ())
    if spec.group is not None and spec.group not in extra:
        extra.append(spec.group)
    return ColumnPlan(
        names=("",) * width if names is None else tuple(names),
        text=text,
        label=label,
        id=None if spec.id is None else places((spec.id,))[0],
        extra=places(extra),
    )
