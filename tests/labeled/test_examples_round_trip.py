"""What is written is read: counts, texts and labels come back, byte for byte.

BERTSMITH_LONG=1 runs the 5,000 files of the reliability page.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertsmith.errors import ConfigError
from bertsmith.labeled import (
    Answers,
    ChoiceIndex,
    DataSpec,
    Example,
    Label,
    LabelSet,
    ScoreTarget,
    Tagged,
    Target,
    read_examples,
    write_examples,
)
from bertsmith.labeled.formats.spans import units_of
from bertsmith.labeled.guess.guess_spec import guess_spec

pytestmark = pytest.mark.reliability
CASES = 2_500 if os.environ.get("BERTSMITH_LONG") else 150
MANY = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))

SEASONING = "\",;\t\r\n\ufeff\u2028\x1c\x85'=+-@ aNA中\U0001f600"
CELL = st.text(
    st.sampled_from(SEASONING) | st.characters(codec="utf-8", exclude_characters="\0"), max_size=9
)
TEXT = CELL.filter(lambda text: bool(text.strip()))
NAME = TEXT.filter(lambda name: not name.startswith("\ufeff"))
ROWS = st.lists(st.tuples(TEXT, NAME), min_size=1, max_size=4)


def example(line: int, texts: tuple[str, ...], target: Target | None = None, **extra) -> Example:
    return Example(source="x", line=line, id=f"n{line}", texts=texts, target=target, extra=extra)


def shape(examples: list[Example]) -> list[object]:
    return [(e.id, e.texts, e.target, dict(e.extra)) for e in examples]


def kept_by_tsv(row: tuple[str, str]) -> bool:
    return not any(c in cell for cell in row for c in "\t\n") and not row[1].endswith("\r")


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_any_text_and_label_come_back(kind, tmp_path) -> None:
    path = tmp_path / f"a.{kind}"

    @MANY
    @given(ROWS)
    def check(rows: list[tuple[str, str]]) -> None:
        rows = [row for row in rows if kind != "tsv" or kept_by_tsv(row)] or [("a", "b")]
        written = [example(n, (text,), Label(name)) for n, (text, name) in enumerate(rows)]
        spec = write_examples(path, written, kind)
        found = read_examples(path, spec)
        assert shape(list(found)) == shape(written)
        assert found.account.rows_in == len(rows)

    check()


def excel(rows: list[tuple[str, str]], **options) -> bytes:
    stream = io.StringIO(newline="")
    csv.writer(stream, **options).writerows(rows)
    return stream.getvalue().encode()


@MANY
@given(ROWS, st.sampled_from([",", ";", "\t"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_tables_of_another_writer_come_back(tmp_path_factory, rows, delimiter, end, marked) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    options = {"delimiter": delimiter, "lineterminator": end, "quoting": csv.QUOTE_ALL}
    path.write_bytes(b"\xef\xbb\xbf" * marked + excel([("text", "label"), *rows], **options))
    spec = DataSpec(
        format="delimited",
        delimiter=delimiter,
        quoting="double",
        header=True,
        columns=("text", "label"),
        text=("text",),
        label=("label",),
        task="classify",
    )
    found = read_examples(path, spec)
    assert [(e.texts[0], e.target) for e in found] == [(t, Label(n)) for t, n in rows]
    assert found.account.rows_in == len(rows)


@MANY
@given(ROWS)
def test_lines_of_a_plain_table_are_rows(tmp_path_factory, rows) -> None:
    rows = [row for row in rows if kept_by_tsv(row)] or [("a", "b")]
    path = tmp_path_factory.mktemp("tsv") / "a.tsv"
    # The mark in front keeps a text that begins with one apart from it.
    path.write_bytes(b"\xef\xbb\xbf" + "".join(f"{t}\t{n}\n" for t, n in rows).encode())
    spec = DataSpec(
        format="delimited",
        delimiter="\t",
        quoting="none",
        header=False,
        columns=2,
        text=(1,),
        label=(2,),
        task="classify",
    )
    found = list(read_examples(path, spec))
    assert [(e.texts[0], e.target) for e in found] == [(t, Label(n)) for t, n in rows]
    assert [e.line for e in found] == list(range(1, len(rows) + 1))


LABELS = ["NA", "N/A", "null", "None", "nan", "TRUE", "true", "01", "1.0", " x ", "-1", "1e3", "é"]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_labels_stay_as_they_are_written(kind, tmp_path) -> None:
    path = tmp_path / f"a.{kind}"
    rows = [example(n, (f"text {n}",), Label(name)) for n, name in enumerate(LABELS * 3)]
    write_examples(path, rows, kind)
    found = list(read_examples(path))
    assert [e.target for e in found] == [Label(name) for name in LABELS * 3]


@pytest.mark.parametrize(
    ("written", "label"),
    [
        ("1.0", "1.0"),
        ("1", "1"),
        ("1e3", "1e3"),
        ("true", "true"),
        ('"01"', "01"),
        ("-0.50", "-0.50"),
    ],
)
def test_json_numbers_stay_as_they_are_written(written, label, tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "a b", "label": {written}}}\n' * 2)
    found = list(read_examples(path, DataSpec(task="classify")))
    assert [e.target for e in found] == [Label(label)] * 2


DANGEROUS = ["=1+1", "+1", "-1", "@x", "\ta", "\ra", "'=1", "''@", "'", "'a", "=", "-"]


def test_cells_that_a_spreadsheet_would_compute_are_neutral_and_come_back(tmp_path) -> None:
    path = tmp_path / "a.csv"
    rows = [example(n, (f"{text}x",), Label(text)) for n, text in enumerate(DANGEROUS)]
    rows.append(example(99, ("last",), Label("l")))
    write_examples(path, rows, "csv")
    with path.open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r") and cell]
    assert guess_spec(path).guarded is True
    assert shape(list(read_examples(path))) == shape(rows)


def test_names_of_columns_are_guarded_and_come_back_too(tmp_path) -> None:
    path = tmp_path / "a.csv"
    rows = [example(n, ("a b",), Label("x"), **{"=site": "s", "-1": "t"}) for n in range(3)]
    spec = write_examples(path, rows, "csv")
    assert path.read_text().partition("\n")[0].count(",'=site,'-1") == 1
    assert [dict(e.extra) for e in read_examples(path, spec)] == [{"=site": "s", "-1": "t"}] * 3
    assert {"=site", "-1"} < set(guess_spec(path).columns)


def test_an_apostrophe_of_another_writer_is_text(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n'=a,'-1\n'@b,'-1\n")
    assert [e.texts[0] for e in read_examples(path)] == ["'=a", "'@b"]


TARGETS: dict[str, Callable[[int], Target]] = {
    "labels": lambda n: LabelSet(("a", "b", "c")[: n % 4]),
    "score": lambda n: ScoreTarget(n / 7),
    "choice": lambda n: ChoiceIndex(n % 2),
}


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("target", TARGETS)
def test_every_task_of_a_table_comes_back(kind, target, tmp_path) -> None:
    texts = ("a context", "one", "two") if target == "choice" else ("a b", "c d")
    rows = [example(n, texts, TARGETS[target](n), site=f"s{n}") for n in range(9)]
    spec = write_examples(tmp_path / "a", rows, kind)
    assert shape(list(read_examples(tmp_path / "a", spec))) == shape(rows)


def test_tags_and_answers_come_back_from_jsonl(tmp_path) -> None:
    text = "Ada Byron met 李白 in Rome"
    units = units_of(text)
    tags = ("B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "B-LOC")
    rows = [
        example(1, (text,), Tagged(units, tags)),
        example(2, ("no one",), Tagged(((0, 2), (3, 6)), ("O", "O"))),
    ]
    spec = write_examples(tmp_path / "a.jsonl", rows, "jsonl")
    assert shape(list(read_examples(tmp_path / "a.jsonl", spec))) == shape(rows)
    rows = [
        example(1, ("Who?", "Ada met Bob"), Answers((("Ada", 0), ("Bob", 8)), ("Eve",))),
        example(2, ("Why?", "Ada met Bob"), Answers(())),
    ]
    spec = write_examples(tmp_path / "b.jsonl", rows, "jsonl")
    assert shape(list(read_examples(tmp_path / "b.jsonl", spec))) == shape(rows)


@pytest.mark.parametrize(
    ("rows", "kind", "says"),
    [
        ([example(1, ("a\tb",), Label("x"))], "tsv", "tab or a line break"),
        ([example(1, ("a",), Label("x\r"))], "tsv", "carriage return"),
        ([example(1, ("a",), LabelSet(("x|y",)))], "csv", "parts labels"),
        ([example(1, ("a",), Tagged(((0, 1),), ("O",)))], "csv", "write JSONL"),
        ([example(1, ("a",), Label("x")), example(2, ("a",))], "csv", "another shape"),
        ([example(1, ("a",), Label("x"), label="y")], "csv", "has the name of another"),
        ([example(1, ("\ud800",), Label("x"))], "jsonl", "lone surrogate"),
        ([], "csv", "no example"),
    ],
)
def test_what_a_format_cannot_hold_is_refused_and_nothing_is_left(
    rows, kind, says, tmp_path
) -> None:
    with pytest.raises(ConfigError, match=says):
        write_examples(tmp_path / "a", rows, kind)
    assert list(tmp_path.iterdir()) == []
