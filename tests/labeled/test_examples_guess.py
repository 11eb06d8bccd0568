"""Guessing: files as people and benchmarks write them are read with no settings at all."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.labeled import DataSpec, Example, Label, LabelSet, read_examples
from bertsmith.labeled.guess.guess_spec import guess_spec

SENTENCES = [
    "the film is a refreshingly serious look at young women",
    "it is slow , very , very slow",
    "a charming and often affecting journey",
    "that loves its characters and says something true",
    "on the worst revenge of the nerds clichés",
    "are more deeply thought through than in most right thinking films",
    "saw how bad this movie was",
    "the mesmerizing performances of the leads keep it grounded",
]


def read(path: Path, content: str, **given: object) -> tuple[DataSpec, list[Example]]:
    data = content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    rows = read_examples(path, DataSpec(**given))  # type: ignore[arg-type]
    return rows.spec, list(rows)


def table(columns: str, delimiter: str = "\t") -> str:
    """Rows by a pattern of names: t text, l label, f score, i number, c code."""
    made = []
    for n, text in enumerate(SENTENCES * 3):
        cells = {
            "t": f"{text.replace(',', '')} {n}",
            "u": f"{SENTENCES[(n * 3 + 2) % 8]} {n}",
            "l": "pn"[n % 2] + "os",
            "f": f"{n % 5}.{n % 4}",
            "i": str(n),
            "z": str(n % 2),
            "c": f"x{n:03d}",
        }
        made.append(delimiter.join(cells[name] for name in columns))
    return "\n".join(made) + "\n"


@pytest.mark.parametrize(
    ("name", "header", "columns", "text", "label", "task"),
    [
        ("a.tsv", "sentence label", "tz", ("sentence",), ("label",), "classify"),
        ("a.tsv", "label text_a", "lt", ("text_a",), ("label",), "classify"),
        ("a.tsv", "id text_a text_b label", "ctuz", ("text_a", "text_b"), ("label",), "classify"),
        ("a.tsv", "", "tl", (1,), (2,), "classify"),
        ("a.tsv", "", "lt", (2,), (1,), "classify"),
        ("a.txt", "", "tuz", (1, 2), (3,), "classify"),
        ("a.tsv", "", "tuf", (1, 2), (3,), "regress"),
        ("a.tsv", "", "ctl", (2,), (3,), "classify"),
        ("a.tsv", "", "tu", (1, 2), (), None),
        ("a.tsv", "", "t", (1,), (), None),
        ("a.tsv.gz", "sentence label", "tl", ("sentence",), ("label",), "classify"),
        ("a.tsv", "meinung stimmung", "tl", ("meinung",), ("stimmung",), "classify"),
        ("a.tsv", "satz wert", "tf", ("satz",), ("wert",), "regress"),
        ("a.tsv", "文本 标签", "tl", ("文本",), ("标签",), "classify"),
        ("a.csv", "text label", "tl", ("text",), ("label",), "classify"),
        # GLUE
        ("a.tsv", "index sentence", "it", ("sentence",), (), None),
        (
            "a.tsv",
            "Quality #1_ID #2_ID #1_String #2_String",
            "ziitu",
            ("#1_String", "#2_String"),
            ("Quality",),
            "classify",
        ),
        (
            "a.tsv",
            "id qid1 qid2 question1 question2 is_duplicate",
            "iiituz",
            ("question1", "question2"),
            ("is_duplicate",),
            "classify",
        ),
        (
            "a.tsv",
            "index question sentence label",
            "itul",
            ("question", "sentence"),
            ("label",),
            "classify",
        ),
        (
            "a.tsv",
            "index sentence1 sentence2 label",
            "ituz",
            ("sentence1", "sentence2"),
            ("label",),
            "classify",
        ),
        (
            "a.tsv",
            "index genre filename year old_index source1 source2 sentence1 sentence2 score",
            "iccciccutf",
            ("sentence1", "sentence2"),
            ("score",),
            "regress",
        ),
        (
            "a.tsv",
            "index promptID pairID genre sentence1_parse sentence2_parse sentence1 sentence2 "
            "label1 gold_label",
            "iicctutull",
            ("sentence1", "sentence2"),
            ("gold_label",),
            "classify",
        ),
    ],
)
def test_the_columns_of_a_table(name, header, columns, text, label, task, tmp_path) -> None:
    delimiter = "," if ".csv" in name else "\t"
    first = header.replace(" ", delimiter) + "\n" if header else ""
    spec, found = read(tmp_path / name, first + table(columns, delimiter))
    assert (spec.text, spec.label, spec.task, spec.header) == (text, label, task, bool(header))
    assert len(found) == 24
    assert len(found[0].texts) == len(text)
    assert (found[0].target is None) == (label == ())
    said = "\n".join(spec.describe())
    for what in ("format", "encoding", "delimiter", "header", "text", "label", "language"):
        assert f"{what}: " in said


def test_cola_without_a_header_is_known_by_its_columns(tmp_path) -> None:
    rows = [
        f"gj04\t{n % 2}\t{'*' if n % 2 == 0 else ''}\t{SENTENCES[n % 8]} {n}" for n in range(30)
    ]
    spec, found = read(tmp_path / "train.tsv", "\n".join(rows) + "\n")
    assert (spec.text, spec.label, spec.task) == ((4,), (2,), "classify")
    assert found[1].target == Label("1")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt"])
def test_the_delimiter_is_found_whatever_the_name_says(delimiter, ending, tmp_path) -> None:
    rows = [
        f"text{delimiter}label",
        *(f'"{s}{delimiter} so"{delimiter}x{n % 2}' for n, s in enumerate(SENTENCES)),
    ]
    spec, found = read(tmp_path / f"a{ending}", "\n".join(rows) + "\n")
    assert (spec.delimiter, spec.quoting) == (delimiter, "double")
    assert [e.texts[0] for e in found] == [f"{s}{delimiter} so" for s in SENTENCES]


def test_stray_quotes_of_a_tsv_are_text(tmp_path) -> None:
    rows = ['"quoted" words\tx', 'he said "no\ty', '"open\tx', '5" disk\ty']
    spec, found = read(tmp_path / "a.tsv", "text\tlabel\n" + "\n".join(rows) + "\n")
    assert spec.quoting == "none"
    assert [e.texts[0] for e in found] == ['"quoted" words', 'he said "no', '"open', '5" disk']


def test_several_labels_in_a_cell_and_in_columns(tmp_path) -> None:
    cells = ["a|b", "b", "a|b|c", "c|a", "a", "b|c"] * 3
    spec, found = read(
        tmp_path / "a.tsv",
        "text\ttags\n" + "".join(f"words {n}\t{c}\n" for n, c in enumerate(cells)),
    )
    assert (spec.task, spec.label_separator) == ("multilabel", "|")
    assert found[2].target == LabelSet(("a", "b", "c"))
    rows = "".join(f"some words {n}\t{n % 2}\t{n % 3 // 2}\t{0}\n" for n in range(12))
    spec, found = read(tmp_path / "b.tsv", "comment_text\ttoxic\tobscene\tthreat\n" + rows)
    assert (spec.task, spec.label) == ("multilabel", ("toxic", "obscene", "threat"))
    assert (found[0].target, found[5].target) == (LabelSet(()), LabelSet(("toxic", "obscene")))


def test_labels_that_may_be_joined_are_told_and_parted_on_request(tmp_path) -> None:
    cells = ["pos|film", "neg|film", "pos|room", "neg|room"] * 3  # four parts make four cells
    body = "text\ttags\n" + "".join(f"words {n}\t{c}\n" for n, c in enumerate(cells))
    spec, found = read(tmp_path / "a.tsv", body)
    assert (spec.task, found[0].target) == ("classify", Label("pos|film"))
    assert any("if 'pos|film' is several: --label-separator '|'" in x for x in spec.describe())
    for given in ({"label_separator": "|"}, {"task": "multilabel"}):
        spec, found = read(tmp_path / "a.tsv", body, **given)
        assert (spec.task, spec.label_separator) == ("multilabel", "|")
        assert found[0].target == LabelSet(("pos", "film"))


def test_labels_with_a_semicolon_now_and_then_raise_no_doubt(tmp_path) -> None:
    cells = ["news", "sport"] * 20 + ["war; peace"]
    body = "text\tlabel\n" + "".join(f"words {n}\t{c}\n" for n, c in enumerate(cells))
    spec, _ = read(tmp_path / "a.tsv", body)
    assert spec.task == "classify"
    assert not any("separator" in line for line in spec.describe())


def test_every_guess_can_be_set(tmp_path) -> None:
    given = {
        "text": (1,),
        "label": (3,),
        "task": "classify",
        "header": False,
        "extra": (2,),
        "id": 2,
    }
    spec, found = read(tmp_path / "a.tsv", table("tcf"), **given)
    assert found[0].target == Label("0.0")
    assert (found[1].id, found[1].extra) == ("x001", {"column 2": "x001"})
    assert {line for line in spec.describe() if "as set" in line} >= {
        "task: classify (as set)",
        "text: column 1 (as set)",
    }
    assert DataSpec.from_values(spec.to_values()) == spec


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (SENTENCES, "en"),
        (["今天天气很好", "我们去公园"] * 4, "zh"),
        (["今日はいい天気ですね", "公園へ行きましょう"] * 4, "ja"),
        (["오늘은 날씨가 좋네요", "공원에 가요"] * 4, "ko"),
        (["сегодня хорошая погода", "пойдём в парк"] * 4, "cyrillic"),
        (["das Wetter ist heute sehr gut", "wir gehen heute hinaus"] * 4, "latin"),
    ],
)
def test_the_language_is_told_by_script_and_common_words(texts, language, tmp_path) -> None:
    content = "text\tlabel\n" + "".join(f"{t}\t{n % 2}\n" for n, t in enumerate(texts))
    assert read(tmp_path / "a.tsv", content)[0].language == language


def test_a_label_column_that_is_empty_reads_as_unlabeled(tmp_path) -> None:
    spec, found = read(tmp_path / "a.tsv", "text\tlabel\na b\t\nc d\t\n")
    assert spec.label == ()
    assert found[0].target is None


def test_settings_that_cannot_be_are_refused(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "label": "b"}\n{"text": "c", "label": "d"}\n')
    with pytest.raises(ConfigError, match="label 2 is a number, but JSON objects have keys"):
        list(read_examples(path, DataSpec(label=(2,))))
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\tx\n" * 3)
    with pytest.raises(ConfigError, match="2 label columns are for --task multilabel"):
        list(read_examples(path, DataSpec(text=(1,), label=(2, 3), task="classify")))
    with pytest.raises(ConfigError, match=r"read as delimited, .*not tag; set another --format"):
        read_examples(path, DataSpec(task="tag"))
    with pytest.raises(ConfigError, match="needs the column of a context, then one for each"):
        list(read_examples(path, DataSpec(task="choose")))
    with pytest.raises(InputFileError, match="column 'x' is a name"):
        list(read_examples(path, DataSpec(text=("x",), header=False)))


def test_a_guess_says_what_and_why(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\na fine day,01\nno\t,NA\n")
    assert guess_spec(path).describe() == [
        "format: delimited (rows are lines with delimiters)",
        "task: classify (labels in the sample: '01', 'NA')",
        "language: en (25 % of the words are the, of, and ...)",
        "encoding: utf-8 (the bytes are valid)",
        "delimiter: comma (3 of 3 rows have 2 columns by comma)",
        "quoting: double (a cell in double quotes may hold the delimiter and line breaks)",
        "header: yes (columns are called 'text', 'label')",
        "columns: text, label (the first row)",
        "text: text (a column is usually called so)",
        "label: label (a column is usually called so)",
    ]
