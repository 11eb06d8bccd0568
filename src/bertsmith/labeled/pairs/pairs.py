"""Files of sentence rows: what they hold is guessed from columns and content, shown, and settable.

Kinds: "scores" (pairs with a number), "labels" (pairs with a class), "triplets" (anchor, positive,
one or more negatives), "pairs" (question and answer, or any two texts that belong together) and
"texts" (plain text).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import ConfigError, InputFileError, unknown
from bertsmith.files.lines import Lines
from bertsmith.files.streams import format_suffix
from bertsmith.labeled.example import Example, Label, ScoreTarget
from bertsmith.labeled.guess.columns import COMPARABLE, Profile, plain_name, profile
from bertsmith.labeled.guess.guess_spec import guess_spec
from bertsmith.labeled.guess.json_rows import sample_rows
from bertsmith.labeled.guess.sample import Sample, SpecBuilder, take_sample
from bertsmith.labeled.guess.table import guess_table
from bertsmith.labeled.read.reader import OnError, read_examples
from bertsmith.labeled.read.targets import as_number
from bertsmith.labeled.spec import Column, DataSpec

Kind = Literal["scores", "labels", "triplets", "pairs", "texts"]
ANCHORS = ("anchor", "query", "question", "sent0", "sentence", "premise", "text")
POSITIVES = ("positive", "pos", "sent1", "answer", "response", "entailment", "document", "passage")
NEGATIVE = re.compile(r"((hard_)?neg(ative)?|contradiction)s?_?\d*")
YES = ("1", "1.0", "true", "yes", "duplicate", "paraphrase", "entailment", "similar", "equivalent")
NO = ("0", "0.0", "false", "no", "contradiction", "not_duplicate", "different")
NAMED_ROWS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceData:
    """Rows of texts of one kind, with their targets and where they stand.

    `targets` (N,) are scores as the file has them, or numbers of `labels`; None for other kinds.
    """

    source: str
    kind: Kind
    why: str
    rows: Sequence[tuple[str, ...]]
    lines: Sequence[int]
    targets: NDArray[np.float64] | None = None
    labels: tuple[str, ...] = ()
    spec: DataSpec | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, row: int) -> str:
        """Where a row stands, for messages."""
        return f"{self.source}, line {self.lines[row]}"

    def some(self, numbers: Sequence[int]) -> SentenceData:
        """These rows alone."""
        return replace(
            self,
            rows=[self.rows[n] for n in numbers],
            lines=[self.lines[n] for n in numbers],
            targets=None if self.targets is None else self.targets[list(numbers)],
        )

    def texts(self) -> list[str]:
        """Every distinct text, in the order of the file."""
        return list(dict.fromkeys(text for row in self.rows for text in row))

    def as_texts(self) -> SentenceData:
        """The distinct texts without what connects them."""
        first: dict[str, int] = {}
        for row, line in zip(self.rows, self.lines, strict=True):
            for text in row:
                first.setdefault(text, line)
        return replace(
            self,
            kind="texts",
            rows=[(text,) for text in first],
            lines=list(first.values()),
            targets=None,
            labels=(),
        )

    def describe(self) -> list[str]:
        """What the file holds and why, and how it is read: lines to print."""
        count = f"{len(self.rows):,} {'texts' if self.kind == 'texts' else 'rows'}"
        read = [] if self.spec is None else self.spec.describe()
        # The task is one of fine-tuning; here the kind says what rows are.
        columns = [line for line in read if not line.startswith("task:")]
        return [f"kind: {self.kind} ({self.why}); {count}", *columns]


def read_sentences(
    path: Path,
    *,
    kind: Kind | None = None,
    spec: DataSpec | None = None,
    on_error: OnError = "stop",
    by_lines: bool = False,
) -> SentenceData:
    """The rows of a file; what `kind` and `spec` leave open is guessed from the content.

    With `by_lines` each line is one text, whatever it contains.
    """
    if kind is not None and kind not in get_args(Kind):
        raise unknown("kind of sentence data", kind, get_args(Kind))
    given = spec or DataSpec()
    sample = take_sample(path, given.encoding)
    if not sample.filled:
        raise InputFileError(f"{path}, line 1, column 1: the file is blank; give one with rows")
    if by_lines or _is_plain(sample, kind, given):
        return _read_lines(path, sample.encoding, stated=by_lines or kind is not None)
    decided, guess = _decide(sample, kind, given)
    examples = read_examples(path, decided, on_error=on_error)
    rows = list(examples)
    notes = [f"{path.name}: {note}" for note in examples.account.notes()]
    if examples.account.rows_rejected:
        notes.append(f"{path.name}: {examples.account.rows_rejected:,} rows rejected")
    data = _data(path, rows, decided, guess, notes)
    return data.as_texts() if kind == "texts" else data


def positive_label(data: SentenceData, stated: str | None = None) -> str | None:
    """The label of pairs that mean the same; None if no label has such a name."""
    if stated is not None:
        if stated not in data.labels:
            raise unknown(f"label of {data.source}", stated, data.labels)
        return stated
    return next((name for name in data.labels if name.strip().lower() in YES), None)


def negative_label(data: SentenceData, positive: str | None) -> str | None:
    """The label of pairs that contradict each other, if one has such a name."""
    return next(
        (name for name in data.labels if name.strip().lower() in NO and name != positive), None
    )


def split_dev(data: SentenceData, share: float, seed: int) -> tuple[SentenceData, SentenceData]:
    """Train and dev rows; rows with the same first text stay on one side."""
    groups: dict[str, list[int]] = {}
    for number, row in enumerate(data.rows):
        groups.setdefault(row[0], []).append(number)
    order = np.random.Generator(np.random.Philox(key=seed)).permutation(len(groups))
    members = list(groups.values())
    wanted = max(1, round(share * len(data)))
    dev: list[int] = []
    for group in order.tolist():
        if len(dev) >= wanted:
            break
        dev += members[group]
    chosen = set(dev)
    train = [number for number in range(len(data)) if number not in chosen]
    return data.some(train), data.some(sorted(dev))


def _is_plain(sample: Sample, kind: Kind | None, given: DataSpec) -> bool:
    """Whether each line is one text: a .txt without tabs, and nothing said of columns."""
    if kind not in (None, "texts") or given.given - {"encoding"}:
        return False
    if sample.ending not in (".txt", "") or sample.filled[0].lstrip().startswith("{"):
        return False
    return not any("\t" in line for line in sample.lines)


def _read_lines(path: Path, encoding: str, *, stated: bool) -> SentenceData:
    lines = Lines(path, encoding=encoding)
    rows: list[tuple[str, ...]] = []
    numbers = []
    try:
        for line in lines:
            if not isinstance(line, str):
                raise line.error(lines.name, lines.number)
            if line.strip():
                rows.append((line,))
                numbers.append(lines.number)
    finally:
        lines.close()
    why = "as set" if stated else f"a .{format_suffix(path) or 'txt'} file without tabs"
    return SentenceData(source=str(path), kind="texts", why=why, rows=rows, lines=numbers)


@dataclass(slots=True)
class _Guess:
    kind: Kind
    why: str


def _decide(sample: Sample, kind: Kind | None, given: DataSpec) -> tuple[DataSpec, _Guess]:
    """How the file is read, and what its rows are."""
    columns = _columns(sample, given)
    texts, why = _text_columns(columns, kind, given)
    if texts is not None:
        given = given.model_copy(update={"text": texts})
        if given.label is None and kind not in ("scores", "labels"):
            given = given.model_copy(update={"label": ()})
    if kind in ("pairs", "triplets", "texts") and given.label is None:
        given = given.model_copy(update={"label": ()})
    if kind in ("scores", "labels"):
        given = given.model_copy(update={"task": "regress" if kind == "scores" else "classify"})
    spec = guess_spec(sample.path, given=_set(given))
    if texts is None and given.text is None and len(spec.text or ()) == 1 and kind != "texts":
        texts, why = _second_text(columns, spec), "two columns hold texts of comparable length"
        if texts is not None:
            given = given.model_copy(update={"text": texts})
            spec = guess_spec(sample.path, given=_set(given))
    if texts is not None:
        spec = spec.model_copy(update={"why": {**spec.why, "text": why}})
    guess = _kind(spec, columns, kind, why)
    if guess.kind == "scores" and not _holds_numbers(spec):
        spec = guess_spec(sample.path, given=_set(given.model_copy(update={"task": "regress"})))
    return spec, guess


def _holds_numbers(spec: DataSpec) -> bool:
    return spec.target_kind is not None and spec.target_kind.type is ScoreTarget


def _set(given: DataSpec) -> DataSpec:
    """A spec whose fields count as set by the user."""
    return DataSpec(**{name: getattr(given, name) for name in _filled(given)})


def _filled(given: DataSpec) -> Iterator[str]:
    for name in DataSpec.model_fields:
        if name != "why" and getattr(given, name) is not None:
            yield name


def _columns(sample: Sample, given: DataSpec) -> dict[Column, Profile]:
    """A profile of each column of a table, or of each key of objects."""
    if sample.filled[0].lstrip().startswith(("{", "[")):
        rows = sample_rows(sample)
        keys = dict.fromkeys(key for row in rows for key in row)
        cells = {key: [str(row[key]) for row in rows if key in row] for key in keys}
        return {key: profile(some) for key, some in cells.items()}
    builder = SpecBuilder(given)
    names, table = guess_table(sample, builder)
    width = len(names) if names is not None else int(builder.get("columns"))
    profiles = [profile([row[at] for row in table if len(row) == width]) for at in range(width)]
    if names is not None and len(set(names)) == len(names):
        return dict(zip(names, profiles, strict=True))
    return {at + 1: one for at, one in enumerate(profiles)}


def _text_columns(
    columns: Mapping[Column, Profile], kind: Kind | None, given: DataSpec
) -> tuple[tuple[Column, ...] | None, str]:
    """Columns that are named as anchors, positives and negatives are, or hold three texts."""
    if given.text is not None or kind in ("scores", "labels"):
        return None, "as set"
    names = {plain_name(name): name for name in columns if isinstance(name, str)}
    positive = next((names[name] for name in POSITIVES if name in names), None)
    anchor = next((names[name] for name in ANCHORS if name in names), None)
    negatives = [own for name, own in names.items() if NEGATIVE.fullmatch(name)]
    if anchor is not None and positive is not None and anchor != positive:
        if kind in (None, "triplets") and negatives:
            return (anchor, positive, *negatives), "columns are called so in triplets"
        if kind in (None, "pairs") and not given.label and not negatives:
            others = set(columns) - {anchor, positive}
            if kind == "pairs" or not any(columns[name].category for name in others):
                return (anchor, positive), "columns are called so in pairs"
    texts = [name for name, one in columns.items() if not (one.number_or_id or one.category)]
    if kind == "triplets" or (kind is None and len(columns) == len(texts) == 3):
        return (tuple(texts), f"{len(texts)} columns of texts") if len(texts) > 2 else (None, "")
    return None, ""


def _second_text(columns: Mapping[Column, Profile], spec: DataSpec) -> tuple[Column, ...] | None:
    """Two columns of texts where one was guessed: in pairs, the same sentence may come often."""
    taken = {*(spec.label or ()), spec.id}
    texts = {n: one for n, one in columns.items() if n not in taken and not one.number_or_id}
    longest = max((one.length for one in texts.values()), default=0.0)
    pair = tuple(name for name, one in texts.items() if one.length * COMPARABLE >= longest)
    return pair if len(pair) == 2 else None


def _kind(
    spec: DataSpec, columns: Mapping[Column, Profile], stated: Kind | None, why: str
) -> _Guess:
    texts = len(spec.text or ())
    if stated is not None:
        needed = {"scores": 2, "labels": 2, "pairs": 2, "triplets": 3, "texts": 1}[stated]
        if texts < needed or (stated in ("scores", "labels", "pairs") and texts > 2):
            raise ConfigError(
                f"{stated} need {needed} text columns, and {texts} are read "
                f"({', '.join(map(str, spec.text or ()))}); name them with --text"
            )
        if stated in ("scores", "labels") and not spec.label:
            what = "a score" if stated == "scores" else "a label"
            raise ConfigError(f"no column holds {what} of each pair; name it with --label")
        return _Guess(stated, "as set")
    if not spec.label or texts > 2:
        kind: Kind = "texts" if texts < 2 else "pairs" if texts == 2 else "triplets"
        return _Guess(kind, why or f"{texts} text column{'s' * (texts > 1)}, no label")
    if texts < 2:
        return _Guess("texts", "one text column; labels of single texts are not used")
    if _holds_numbers(spec):
        return _Guess("scores", "two texts and a number")
    label = columns.get(spec.label[0])
    if label is not None and label.numeric and label.distinct > 2:
        return _Guess("scores", f"two texts and numbers of {label.distinct} values")
    return _Guess("labels", "two texts and a label")


def _data(
    path: Path, examples: list[Example], spec: DataSpec, guess: _Guess, notes: list[str]
) -> SentenceData:
    labeled = guess.kind in ("scores", "labels")
    if labeled:
        left = sum(example.target is None for example in examples)
        examples = [example for example in examples if example.target is not None]
        notes += [f"{path.name}: {left:,} rows without a label left out"] if left else []
    if not examples:
        raise InputFileError(f"{path}, line 1: no row can be used; check --text and --label")
    targets, labels = _targets(examples) if labeled else (None, ())
    data = SentenceData(
        source=str(path),
        kind=guess.kind,
        why=guess.why,
        rows=[example.texts for example in examples],
        lines=[example.line for example in examples],
        targets=targets,
        labels=labels,
        spec=spec,
        notes=tuple(notes),
    )
    _check_rows(data)
    return data


def _targets(examples: Sequence[Example]) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    names = sorted(
        {one.target.name for one in examples if isinstance(one.target, Label)}, key=_order
    )
    number = {name: at for at, name in enumerate(names)}
    values = []
    for example in examples:
        target = example.target
        if isinstance(target, ScoreTarget):
            values.append(target.value)
        elif isinstance(target, Label):
            values.append(float(number[target.name]))
        else:
            raise ConfigError(f"{example.place}: a pair needs a score or one label; set --label")
    return np.array(values), tuple(names)


def _order(name: str) -> tuple[float, str]:
    value = as_number(name)
    return (value if value == value else float("inf"), name)


def _check_rows(data: SentenceData) -> None:
    """Refuse rows with an empty side, and triplets whose positive is a negative, too."""
    faults = []
    for number, row in enumerate(data.rows):
        if any(not text.strip() for text in row):
            side = next(at for at, text in enumerate(row) if not text.strip())
            faults.append((number, f"text {side + 1} of {len(row)} is empty"))
        elif data.kind == "triplets" and row[1] in row[2:]:
            faults.append((number, "the positive and the negative are the same text"))
    if faults:
        lines = [f"  {data.place(n)}: {what}" for n, what in faults[:NAMED_ROWS]]
        more = [f"  and {len(faults) - NAMED_ROWS:,} more"] if len(faults) > NAMED_ROWS else []
        raise InputFileError(
            "\n".join(
                [
                    f"{data.source}: {len(faults):,} rows cannot be used; correct or remove them",
                    *lines,
                    *more,
                ]
            )
        )
