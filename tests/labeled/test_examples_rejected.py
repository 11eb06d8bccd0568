"""Rejected rows: counted, written with line and reason, and read again once they are repaired."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertsmith.errors import ConfigError, InputFileError, RowsError
from bertsmith.labeled import Label, read_examples
from bertsmith.labeled.guess.guess_spec import guess_spec

FILES = {
    "a.tsv": (
        "text\tlabel\none day\tx\nbad\ntwo days\ty\n\tx\n",
        [("bad", "bad\tx"), ("\tx", "c\tx")],
    ),
    "a.csv": (
        'text,label\n"one, day",x\n"open,x\ntwo days,y\n"x"y,z\n',
        [('"open,x', '"open",x'), ('"x"y,z', '"x""y",z')],
    ),
    "a.jsonl": (
        '{"text": "a b", "label": "x"}\n{"text": "c"}\n{"text": "d e", "label": "y"}\n{"text\n',
        [
            ('{"text": "c"}', '{"text": "c", "label": "x"}'),
            ('{"text', '{"text": "z", "label": "y"}'),
        ],
    ),
    "a.conll": (
        "Ada\tB-PER\nran\tO\n\nRome\nfell\tO\n\nBob\tB-PER\n\nHe\tI-PER\n",
        [("Rome\nfell", "Rome\tB-LOC\nfell"), ("He\tI-PER", "He\tO")],
    ),
    "a.json": (
        json.dumps(
            {
                "data": [
                    {
                        "title": "t",
                        "paragraphs": [
                            {
                                "context": "Ada met Bob",
                                "qas": [
                                    {
                                        "id": name,
                                        "question": "?",
                                        "answers": [{"text": text, "answer_start": 0}],
                                    }
                                    for name, text in [
                                        ("1", "Ada"),
                                        ("2", "Eve"),
                                        ("3", "met"),
                                        ("4", ""),
                                    ]
                                ],
                            }
                        ],
                    }
                ]
            }
        ),
        [('"Eve"', '"Bob"'), ('"text": ""', '"text": "Ada"')],
    ),
}


@pytest.mark.reliability
@pytest.mark.parametrize("name", FILES)
def test_repaired_rows_are_read_again_and_complete_the_set(name, tmp_path: Path) -> None:
    content, repairs = FILES[name]
    path = tmp_path / name
    path.write_text(content)
    spec = guess_spec(path)
    rows = read_examples(path, spec, on_error="skip")
    kept = list(rows)
    assert (rows.account.rows_in, len(kept), rows.account.rows_rejected) == (4, 2, 2)
    aside = tmp_path / f"{name}.rejected.jsonl"
    written = [json.loads(line) for line in aside.read_text().splitlines()]
    assert all({"line", "reason", "advice", "raw"} <= set(row) for row in written)
    for row, (was, now) in zip(written, repairs, strict=True):
        assert was in row["raw"]
        row["raw"] = row["raw"].replace(was, now)
    aside.write_text("".join(json.dumps(row) + "\n" for row in written))
    again = list(read_examples(aside))
    assert len(again) == 2
    assert all(example.source == str(path) for example in again)
    assert all(example.target is not None for example in again)
    places = {(example.line, example.id) for example in [*kept, *again]}
    assert len(places) == 4


def test_every_fault_is_counted_and_the_first_twenty_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\n" + "a b\tx\n" * 30 + "bad\n" * 25 + "c\ty\n")
    rows = read_examples(path)
    with pytest.raises(RowsError) as caught:
        list(rows)
    message = str(caught.value)
    assert message.count("a.tsv, line ") == 20
    assert "25 of 56 rows" in message
    assert "and 5 more" in message
    assert "--on-error skip" in message
    assert (caught.value.total, len(caught.value.rejects)) == (25, 20)
    assert (rows.account.rows_in, rows.account.rows_ok) == (56, 31)


def test_rows_are_given_until_the_first_fault_and_not_after_it(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\na b\tx\nbad\nc d\tx\n")
    rows = read_examples(path)
    assert next(rows).texts == ("a b",)
    with pytest.raises(RowsError):
        next(rows)


def test_a_file_without_a_good_row_is_refused_even_when_skipping(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\n\tx\n\ty\n")
    with pytest.raises(RowsError, match="2 of 2 rows"):
        list(read_examples(path, on_error="skip"))
    assert not Path(f"{path}.rejected.jsonl").exists()


def test_repairs_in_place_survive_another_reading(tmp_path: Path) -> None:
    path, aside = tmp_path / "a.tsv", tmp_path / "a.tsv.rejected.jsonl"
    path.write_text("text\tlabel\na b\tx\nbad\n")
    list(read_examples(path, on_error="skip"))
    first = aside.read_text()
    aside.write_text(first.replace("bad", "good\\tx"))
    list(read_examples(path, on_error="skip"))
    list(read_examples(path, on_error="skip"))
    assert aside.read_text() == first
    assert "good" in Path(f"{aside}.old").read_text()


def test_rows_that_are_still_bad_are_named_by_their_place_among_the_rejected(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\na b\tx\nbad\nworse\nc d\tx\n")
    list(read_examples(path, on_error="skip"))
    aside = Path(f"{path}.rejected.jsonl")
    aside.write_text(aside.read_text().replace('"raw": "bad"', '"raw": "good\\tx"') + "{}\n")
    rows = read_examples(aside)
    with pytest.raises(RowsError) as caught:
        list(rows)
    assert "rejected.jsonl, line 2, column label: 1 column" in str(caught.value)
    assert "rejected.jsonl, line 3, field raw: the key 'raw' is missing" in str(caught.value)


def test_rejected_rows_can_go_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\na b\tx\nbad\n")
    list(read_examples(path, on_error="skip", rejects=tmp_path / "out.jsonl"))
    assert json.loads((tmp_path / "out.jsonl").read_text())["line"] == 3
    assert not Path(f"{path}.rejected.jsonl").exists()


def test_faults_before_a_file_breaks_off_are_told_too(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    good = "一二\tx\n".encode("utf-16-le")
    path.write_bytes(
        b"\xff\xfe" + "text\tlabel\nbad\n".encode("utf-16-le") + good * 4 + b"\x00\xd8x\n"
    )
    with pytest.raises(RowsError) as caught:
        list(read_examples(path))
    assert "is not valid utf-16-le" in str(caught.value)
    assert "line 2, column label: 1 column" in str(caught.value)


def test_blank_lines_and_endings_are_no_rows_and_no_faults(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbftext\tlabel\r\na b\tx\n\n\r\nc d\tx")
    rows = read_examples(path)
    assert [(e.line, e.texts[0], e.target) for e in rows] == [
        (2, "a b", Label("x")),
        (5, "c d", Label("x")),
    ]
    assert rows.account.blank == 2
    assert rows.account.notes() == ["2 blank lines passed over"]


def test_unknown_ways_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no way to handle errors is called 'ignore'"):
        read_examples(tmp_path / "a.tsv", on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(InputFileError, match="cannot read"):
        read_examples(tmp_path / "a.tsv")
    with pytest.raises(InputFileError, match="is a folder"):
        read_examples(tmp_path)
