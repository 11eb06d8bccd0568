"""Files of texts: every row comes out, byte for byte, or the error says where and what to do."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.labeled import DataSpec
from bertsmith.labeled.texts import read_text_rows, read_texts

CHINESE = "今天的天气很好,我们去公园散步。中国的首都是北京,那里有很多历史悠久的建筑。"
TRADITIONAL = "今天的天氣很好,我們去公園散步。臺灣的首都是臺北,那裡有很多歷史悠久的建築。"


def write(path: Path, content: str | bytes, encoding: str = "utf-8") -> Path:
    data = content if isinstance(content, bytes) else content.encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def texts(path: Path, **options: object) -> list[str]:
    return list(read_texts(path, DataSpec(**options)))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", []),
        ("\n", [""]),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\n\nb\n\n", ["a", "", "b", ""]),
        ("a\rb\n", ["a\rb"]),
        ("a\u2028b\x1cc\x85d\x0be\n", ["a\u2028b\x1cc\x85d\x0be"]),
        ("a\0b\n", ["a\0b"]),
        (" a \t\n", [" a \t"]),
    ],
)
def test_a_line_ends_at_a_line_feed_and_at_nothing_else(tmp_path, content, expected) -> None:
    assert texts(write(tmp_path / "a.txt", content)) == expected
    assert texts(write(tmp_path / "a.txt.gz", content)) == expected


def test_lines_that_straddle_chunks_come_out_whole(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("bertsmith.files.streams.CHUNK", 3)
    content = "ab€\r\n中文字\r\n\r\nx"
    assert texts(write(tmp_path / "a.txt", content)) == ["ab€", "中文字", "", "x"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le+", "utf-16-be+", "utf-32"])
def test_a_byte_order_mark_decides_and_is_not_part_of_the_text(tmp_path, encoding) -> None:
    declared = encoding.rstrip("+")
    mark = "\ufeff" if encoding.endswith("+") else ""
    path = write(tmp_path / "a.txt", mark + f"{CHINESE}\nb\n", declared)
    assert texts(path) == [CHINESE, "b"]
    assert texts(path, encoding="gb18030") == [CHINESE, "b"]


@pytest.mark.parametrize(
    ("encoding", "content"),
    [
        ("gb18030", CHINESE),
        ("gbk", CHINESE),
        ("big5", TRADITIONAL),
        ("latin-1", "Ça va très bien, merci; à bientôt à la maison."),
        ("utf-16-le", CHINESE),
        ("utf-16-be", CHINESE),
    ],
)
@pytest.mark.parametrize("ending", [".txt", ".txt.gz", ".csv"])
def test_another_encoding_is_refused_by_name_and_read_when_declared(
    tmp_path, encoding, content, ending
) -> None:
    content = content.replace(",", ";")
    lines = ["plain"] * 3 + [content] * 4
    path = write(tmp_path / f"a{ending}", "\n".join(lines) + "\n", encoding)
    assert texts(path, encoding=encoding) == lines
    with pytest.raises(InputFileError) as caught:
        texts(path)
    suggested = str(caught.value).rpartition("--encoding ")[2].partition(" ")[0]
    assert str(path) in str(caught.value)
    assert "plain\n" * 3 + (content + "\n") * 4 == path_text(path, suggested)


def path_text(path: Path, encoding: str) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode(encoding)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_not_read_as_letters_between_nuls(tmp_path, encoding) -> None:
    path = write(tmp_path / "a.txt", "hello world\n", encoding)
    with pytest.raises(InputFileError, match=f"--encoding {encoding}"):
        texts(path)
    assert texts(path, encoding=encoding) == ["hello world"]


@pytest.mark.parametrize("chunk", [1, 7, 1 << 18])
def test_a_bad_byte_is_named_by_line_and_offset(tmp_path, monkeypatch, chunk) -> None:
    monkeypatch.setattr("bertsmith.files.streams.CHUNK", chunk)
    path = write(tmp_path / "a.txt", "ok\né€\nbad ".encode() + b"\xff\nmore\n")
    with pytest.raises(
        InputFileError, match="line 3, column 5: byte 0xff at byte 13 is not valid utf-8"
    ):
        texts(path)


def test_a_character_cut_off_at_the_end_is_an_error(tmp_path) -> None:
    path = write(tmp_path / "a.txt", b"ab\nc" + "中".encode()[:2])
    with pytest.raises(InputFileError, match="line 2, column 2: byte 0xe4 at byte 4 "):
        texts(path)
    path = write(tmp_path / "b.txt", "中文\n".encode("gb18030")[:-2])
    with pytest.raises(InputFileError, match="line 1, column 2: byte 0xce at byte 2 "):
        texts(path, encoding="gb18030")


def test_texts_before_a_bad_line_were_already_given(tmp_path) -> None:
    reader = read_texts(write(tmp_path / "a.jsonl", '"a"\n{"x": \n'))
    assert next(reader) == "a"
    with pytest.raises(InputFileError, match=r"a\.jsonl, line 2, column 7: not JSON"):
        next(reader)


@pytest.mark.parametrize("name", ["nonsense", "base64", "rot13"])
def test_an_unknown_encoding_is_an_error(tmp_path, name) -> None:
    with pytest.raises(InputFileError, match="utf-8"):
        texts(write(tmp_path / "a.txt", "a"), encoding=name)


def test_missing_files_and_folders_are_errors_and_other_endings_are_lines(tmp_path) -> None:
    with pytest.raises(InputFileError, match="No such file"):
        texts(tmp_path / "none.txt")
    with pytest.raises(InputFileError, match="is a folder"):
        texts(tmp_path, format="lines")
    assert texts(write(tmp_path / "a.log", "a\nb")) == ["a", "b"]
    assert texts(write(tmp_path / "a", "a, b\nb")) == ["a, b", "b"]


def test_a_damaged_gzip_file_is_an_error_not_a_short_file(tmp_path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"some text\n" * 100_000)[:-20])
    with pytest.raises(InputFileError, match=r"not a whole \.gz file"):
        texts(path)
    path.write_bytes(b"plain\n")
    with pytest.raises(InputFileError, match=r"not a whole \.gz file"):
        texts(path)


TABLE = 'id,text,score\n1,"a, ""b""\r\nc",x\n2,plain "quotes" kept,y\n\n3,,z\n'


def test_a_csv_column_is_found_by_name_by_number_or_by_its_usual_name(tmp_path) -> None:
    path = write(tmp_path / "a.csv", TABLE)
    assert texts(path) == ['a, "b"\r\nc', 'plain "quotes" kept', ""]
    assert texts(path, text=("score",)) == ["x", "y", "z"]
    assert texts(path, text=(1,), header=False) == ["id", "1", "2", "3"]
    reader = read_texts(path)
    assert len(list(reader)) == 3
    assert reader.account.blank == 1
    assert reader.account.empty == 1
    assert len(reader.account.notes()) == 2


def test_an_unclear_column_lists_what_there_is(tmp_path) -> None:
    path = write(tmp_path / "a.tsv", "left\tright\n1\t2\n")
    with pytest.raises(InputFileError, match=r"first row is 'left\\tright'.*--text"):
        texts(path)
    with pytest.raises(InputFileError, match="no column is called 'lft'"):
        texts(path, text=("lft",))
    with pytest.raises(InputFileError, match="column 3: there is no such column"):
        texts(path, text=(3,))
    with pytest.raises(InputFileError, match="2 columns are called 'a'"):
        texts(write(tmp_path / "b.csv", "a,a\n1,2\n"), text=("a",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,b\n1,2\n1,2,3\n", "line 3, column 3: 3 columns, but the header has 2"),
        ('text,b\n1,"2\n3,4\n', "line 2, column 2: the quote that opens here is never closed"),
        ('text,b\n"1"2,3\n', "line 2, column 1: '2' stands after the quote that closes the cell"),
    ],
)
def test_a_malformed_table_is_named_by_line_and_column(tmp_path, content, message) -> None:
    with pytest.raises(InputFileError, match=message):
        texts(write(tmp_path / "a.csv", content), quoting="double")


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ('"a"\n"b\\n"\n', {}, ["a", "b\n"]),
        ('{"text": "a", "n": 1}\n\n{"n": 2, "text": ""}', {}, ["a", ""]),
        ('{"body": "a"}\n', {}, ["a"]),
        ('{"q": "a", "r": "b"}\n', {"text": ("r",)}, ["b"]),
    ],
)
def test_json_rows_are_strings_or_objects(tmp_path, content, options, expected) -> None:
    assert texts(write(tmp_path / "a.jsonl", content), **options) == expected


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"text": 1}', "line 1: 'text' is a number, not a string"),
        ('{"a": "1", "b": "2"}', "which column holds the texts. the columns are 1: 'a', 2: 'b'"),
        ('{"text": "a", "text": "b"}', "'text' stands twice"),
        ("[" * 100_000, "line 1, column 1: the value is nested too deeply"),
        ('{"text": ' + "9" * 5000 + "}", "line 1"),
        ("{'text': 'a'}", "line 1, column 2: not JSON"),
    ],
)
def test_a_bad_json_row_is_named(tmp_path, row, message) -> None:
    with pytest.raises(InputFileError, match=message):
        texts(write(tmp_path / "a.jsonl", row + "\n"))


def test_lone_surrogates_become_replacement_characters_and_are_counted(tmp_path) -> None:
    path = write(tmp_path / "a.jsonl", '"a\\ud800b"\n"\\ud83d\\ude00"\n"\\udc00\\ud800"\n')
    reader = read_texts(path)
    assert list(reader) == ["a\ufffdb", "😀", "\ufffd\ufffd"]
    assert reader.account.surrogates == 3


def test_standard_input_is_read_as_lines(monkeypatch) -> None:
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(b"a\nb"))  # type: ignore[arg-type]

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert list(read_texts("-")) == ["a", "b"]


def test_one_long_line_is_one_long_text(tmp_path) -> None:
    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        for _ in range(16):
            file.write(b"x" * (1 << 20))
        file.write(b"\nend\n")
    first, last = texts(path)
    assert (len(first), last) == (16 << 20, "end")


def test_a_bomb_in_one_line_and_an_unclosed_quote_stop_early(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("bertsmith.files.lines.LONGEST_LINE", 1000)
    monkeypatch.setattr("bertsmith.files.csv_records.LONGEST_CELL", 1000)
    with pytest.raises(
        InputFileError, match="line 1, column 1: the line has 5,000 bytes; the limit is 1,000"
    ):
        texts(write(tmp_path / "a.txt", "x" * 5000))
    with pytest.raises(InputFileError, match="line 2, column 1: the quote"):
        texts(write(tmp_path / "a.csv", 'text\n"' + "x\n" * 5000))


def test_memory_does_not_grow_with_the_file(tmp_path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w") as file:
        file.write("id,text\n")
        file.writelines(f'{i},"some text, number {i} of the file"\n' for i in range(300_000))
    tracemalloc.start()
    count = sum(1 for _ in read_texts(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 300_000
    assert peak < 8 << 20


def test_the_share_grows_from_line_to_line(tmp_path) -> None:
    reader = read_texts(write(tmp_path / "a.txt", "abc\n" * 10))
    assert reader.share is None
    shares = [reader.share for _ in reader]
    assert shares == pytest.approx([i / 10 for i in range(1, 11)])


CELL = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=20
) | st.sampled_from(
    ['"', '""', ",", "\t", "\r", "\n", "\r\n", "\u2028", "\x1c", "\ufeff", "=1+1", " NA "]
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.lists(st.tuples(CELL, CELL), max_size=8), mark=st.booleans())
def test_a_csv_comes_back_byte_for_byte(tmp_path, rows, mark) -> None:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([("id", "text"), *rows])
    path = write(tmp_path / "a.csv", buffer.getvalue(), "utf-8-sig" if mark else "utf-8")
    assert texts(path) == [text for _, text in rows]
    assert texts(path, text=("id",)) == [identity for identity, _ in rows]


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.lists(st.tuples(CELL, CELL), max_size=8))
def test_a_tsv_and_a_jsonl_come_back_byte_for_byte(tmp_path, rows) -> None:
    clean = [tuple(c.translate({9: None, 10: None, 13: None}) for c in row) for row in rows]
    table = "".join("\t".join(row) + "\n" for row in [("id", "text"), *clean])
    assert texts(write(tmp_path / "a.tsv", table), quoting="none") == [text for _, text in clean]
    objects = "".join(json.dumps({"id": a, "text": b}) + "\n" for a, b in rows)
    assert texts(write(tmp_path / "a.jsonl", objects)) == [text for _, text in rows]


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("a.txt", "one\ntwo\n", [("one", {}), ("two", {})]),
        ("a.tsv", "text\tlabel\tyear\none\tpos\t1\n", [("one", {"label": "pos", "year": "1"})]),
        ("a.csv", 'label,text\nneg,"a, b"\n', [("a, b", {"label": "neg"})]),
        (
            "a.jsonl",
            '{"text": "one", "n": 1.10, "b": true, "x": null, "l": [1, "é"]}\n"two"\n',
            [("one", {"n": "1.10", "b": "true", "l": '[1, "é"]'}), ("two", {})],
        ),
    ],
)
def test_rows_with_their_other_columns(
    tmp_path: Path, name: str, content: str, rows: list[tuple[str, dict[str, str]]]
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert list(read_text_rows(tmp_path / name)) == rows
    assert list(read_texts(tmp_path / name)) == [text for text, _ in rows]


def test_a_table_without_a_header_numbers_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a q\ta\na q2\ta2\n", encoding="utf-8")
    assert list(read_text_rows(path, DataSpec(text=(1,), header=False))) == [
        ("a q", {"column 2": "a"}),
        ("a q2", {"column 2": "a2"}),
    ]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\tlabel\none\t1\t2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="two columns are called 'label'"):
        list(read_text_rows(path))
    assert list(read_texts(path)) == ["one"]
