"""Files as people have them: read right, or refused with the reason; every column accounted for."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from bertsmith.errors import InputFileError
from bertsmith.labeled import DataSpec, Label, LabelSet, ScoreTarget, guess_spec, load_splits
from bertsmith.labeled.read.reader import read_examples
from bertsmith.labeled.texts import read_texts

FILM = "the film was good and bad , but slow and long in parts with some fine acting"
WORDS = FILM.split()


def sentence(seed: int, most: int = 12) -> str:
    drawn = random.Random(seed)
    return " ".join(drawn.choice(WORDS) for _ in range(drawn.randint(5, most)))


def write(path: Path, rows: list[str]) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def checked(path: Path) -> list:
    """All rows of a file; none of them is lost."""
    rows = read_examples(path)
    examples = list(rows)
    account = rows.account
    assert account.rows_in == account.rows_ok + account.rows_rejected == len(examples)
    return examples


@pytest.mark.parametrize(
    "labels", [["0", "1", "2", "3", "4"], ["DESC:manner", "NUM:count", "HUM:ind"], ["pos", "neg"]]
)
@pytest.mark.parametrize("name", ["a.txt", "a.train", "a"])
def test_a_label_a_space_and_a_text(tmp_path, labels, name) -> None:
    rows = [f"{labels[n % len(labels)]} {sentence(n)} , {sentence(n + 99)}" for n in range(60)]
    path = write(tmp_path / name, rows)
    spec = guess_spec(path)
    assert spec.format == "labeled-lines"
    assert spec.task == "classify"
    examples = checked(path)
    assert [f"{e.target.name} {e.texts[0]}" for e in examples] == rows
    assert {e.target.name for e in examples} == set(labels)


def test_prose_with_commas_is_no_table_and_the_advice_names_what_to_write(tmp_path) -> None:
    rows = [f"{sentence(n)}, {sentence(n + 50)}" * (1 + n % 3) for n in range(60)]
    path = write(tmp_path / "a.txt", rows)
    assert guess_spec(path).format == "lines"
    with pytest.raises(InputFileError, match="labeled-lines for a label, a space and a text") as e:
        load_splits(path)
    assert "add what is missing" not in str(e.value)


def test_a_table_that_begins_with_few_words_stays_a_table(tmp_path) -> None:
    rows = [f"{'AB'[n % 2]} {sentence(n).replace(',', '')},{'xy'[n % 2]}" for n in range(60)]
    spec = guess_spec(write(tmp_path / "a.txt", rows))
    assert (spec.format, spec.delimiter, spec.label) == ("delimited", ",", (2,))


def test_fasttext_labels_one_or_several(tmp_path) -> None:
    path = write(tmp_path / "a.txt", [f"__label__{'ab'[n % 2]} {sentence(n)}" for n in range(20)])
    assert checked(path)[1].target == Label("b")
    path = write(
        tmp_path / "b.txt", ["__label__a __label__b x y", "__label__a z z", "__label__c w"]
    )
    assert guess_spec(path).task == "multilabel"
    assert [e.target for e in checked(path)] == [
        LabelSet(("a", "b")),
        LabelSet(("a",)),
        LabelSet(("c",)),
    ]
    assert [e.texts for e in checked(path)] == [("x y",), ("z z",), ("w",)]


def test_bad_lines_among_labeled_ones_are_rejected_and_counted(tmp_path) -> None:
    good = [f"__label__{'ab'[n % 2]} {sentence(n)}" for n in range(50)]
    path = write(tmp_path / "a.txt", [*good, "no label here", "", "__label__a"])
    rows = read_examples(path, on_error="skip")
    assert sum(1 for _ in rows) == 50
    assert (rows.account.rows_in, rows.account.rows_rejected, rows.account.blank) == (52, 2, 1)
    assert "line 51, column 1: the line begins with 'no'" in str(rows.faults[0])
    assert "line 53, column 2: there is no text after the label" in str(rows.faults[1])


@pytest.mark.parametrize(
    ("files", "rows"),
    [
        (["s.train", "s.dev", "s.test"], (30, 10, 20)),
        (["TREC.train.all", "TREC.dev.all", "TREC.test.all"], (30, 10, 20)),
        (["eng.train", "eng.testa", "eng.testb"], (30, 10, 20)),
        (["stsa.binary.train", "stsa.binary.valid", "stsa.binary.test"], (30, 10, 20)),
    ],
)
def test_a_folder_of_files_that_end_in_their_split(tmp_path, files, rows) -> None:
    for name, count in zip(files, rows, strict=True):
        write(tmp_path / name, [f"{n % 2} {sentence(n)}" for n in range(count)])
    (tmp_path / "README.md").write_text("about\n")
    splits = load_splits(tmp_path)
    assert (len(splits.train), len(splits.dev), len(splits.test)) == rows


def test_one_file_that_ends_in_all_is_split(tmp_path) -> None:
    write(tmp_path / "custrev.all", [f"{n % 2} {sentence(n)}" for n in range(60)])
    splits = load_splits(tmp_path)
    assert len(splits.train) + len(splits.dev) + len(splits.test) == 60


@pytest.mark.parametrize(
    "second",
    [
        lambda n: sentence(n % 20 + 500),  # a premise that comes back
        lambda n: " ".join(sentence(n * 50 + k) for k in range(20)),  # a passage, much longer
    ],
)
def test_two_texts_without_a_header_are_both_read(tmp_path, second) -> None:
    rows = [f"{['yes', 'no'][n % 2]}\t{second(n)}\t{sentence(n)}" for n in range(60)]
    spec = guess_spec(write(tmp_path / "a.tsv", rows))
    assert (spec.header, spec.text, spec.label) == (False, (2, 3), (1,))
    assert spec.unread == ()


def test_a_column_that_is_not_read_is_named(tmp_path) -> None:
    head = '"{}","{}","Mon Apr 06 22:19:{:02d} PDT 2009","NO_QUERY","user{}","{}"'
    rows = [head.format(n % 2 * 4, n + 10**6, n % 60, n, sentence(n)) for n in range(60)]
    spec = guess_spec(write(tmp_path / "a.csv", rows))
    assert (spec.text, spec.label) == ((6,), (1,))
    assert "not read: column 2, column 3, column 4, column 5" in spec.describe()
    objects = [json.dumps({"text": sentence(n), "label": n % 2, "user": "x"}) for n in range(9)]
    assert "not read: user" in guess_spec(write(tmp_path / "a.jsonl", objects)).describe()


WEIBO = "科0 O\n技1 O\n全0 O\n方1 O\n位2 O\n2 0 O\n\n马0 B-PER.NAM\n云1 I-PER.NAM\n0 0 O\n说1 O\n"


def test_position_digits_after_characters_are_stripped_and_reported(tmp_path) -> None:
    path = tmp_path / "a.conll"
    path.write_text(WEIBO.replace("2 0", "20").replace("0 0", "00"), encoding="utf-8")
    spec = guess_spec(path)
    assert (spec.word_digits, spec.language) == ("strip", "zh")
    assert any("'科0'" in line and "not part of the text" in line for line in spec.describe())
    assert [e.texts[0] for e in checked(path)] == ["科技全方位2", "马云0说"]
    kept = read_examples(path, DataSpec(word_digits="keep"))
    assert next(kept).texts[0].startswith("科0技1")


def test_a_word_without_its_position_is_a_fault_with_its_line(tmp_path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("科0 O\n技1 O\n\n" * 30 + "马 O\n云1 O\n", encoding="utf-8")
    with pytest.raises(InputFileError, match=r"line 91, column 1: '马' does not end in its posit"):
        list(read_examples(path))


def test_words_that_end_in_digits_are_no_positions(tmp_path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("covid19 O\nin O\n2020 B-X\nA4 O\n\n" * 9)
    assert guess_spec(path).word_digits is None


def test_sick_is_scored_and_names_its_other_label(tmp_path) -> None:
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    rows = [f"{n}\t{sentence(n)}\t{sentence(n + 9)}\t{n % 5}.{n % 7}\tNEUTRAL" for n in range(40)]
    path = write(tmp_path / "SICK_train.txt", [head, *rows])
    spec = guess_spec(path)
    assert (spec.text, spec.label, spec.task, spec.id) == (
        ("sentence_A", "sentence_B"),
        ("relatedness_score",),
        "regress",
        "pair_ID",
    )
    assert "--label 'entailment_judgment'" in spec.why["label"]
    assert spec.unread == ("entailment_judgment",)
    given = DataSpec(label=("entailment_judgment",))
    assert guess_spec(path, given=given).task == "classify"


@pytest.mark.parametrize("spelling", ["{}", "{}.0", "{}.5"])
@pytest.mark.parametrize("header", [[], ["sentence1\tsentence2\tscore"], ["left\tright\tgold"]])
def test_scores_from_0_to_5_of_pairs_are_no_classes(tmp_path, spelling, header) -> None:
    rows = [f"{sentence(n)}\t{sentence(n + 80)}\t{spelling.format(n % 6)}" for n in range(60)]
    path = write(tmp_path / "a.tsv", [*header, *rows])
    spec = guess_spec(path)
    assert spec.task == "regress"
    assert "--task classify" in spec.why["task"]
    assert checked(path)[1].target == ScoreTarget(float(spelling.format(1)))
    assert guess_spec(path, given=DataSpec(task="classify")).task == "classify"


@pytest.mark.parametrize("labels", [["0", "1"], ["0", "1", "2"], ["1", "2", "3", "4", "5"]])
def test_classes_that_are_numbers_stay_classes(tmp_path, labels) -> None:
    rows = [f"{labels[n % len(labels)]}\t{sentence(n)}" for n in range(60)]
    assert guess_spec(write(tmp_path / "a.tsv", rows)).task == "classify"
    pairs = [f"{sentence(n)}\t{sentence(n + 80)}\t{labels[n % 2]}" for n in range(60)]
    assert guess_spec(write(tmp_path / "b.tsv", pairs)).task == "classify"


def test_the_language_of_escaped_json_is_that_of_its_characters(tmp_path) -> None:
    question = {
        "id": "1",
        "question": "天气怎么样？",
        "answers": [{"text": "很好", "answer_start": 5}],
    }
    paragraph = {"context": "今天的天气很好我们去公园散步吧", "qas": [question]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"data": [{"title": "标题", "paragraphs": [paragraph]}]}))
    assert "\\u" in path.read_text()
    assert guess_spec(path).language == "zh"


@pytest.mark.parametrize(
    ("name", "row"),
    [("a.csv", "{},x{}"), ("a.txt", "{} x{}"), ("a.jsonl", '{{"label": "{}", "text": "t{}"}}')],
)
def test_only_the_first_rows_are_read_and_counted(tmp_path, name, row) -> None:
    head = ["label,text"] if name.endswith(".csv") else []
    path = write(tmp_path / name, [*head, *(row.format("ab"[n % 2], n) for n in range(50))])
    rows = read_examples(path, DataSpec(rows=10))
    assert len(list(rows)) == rows.account.rows_in == 10
    assert "rows: 10 (as set)" in rows.spec.describe()
    assert "rows" not in rows.spec.to_values()  # a model does not learn how much to read
    assert len(list(read_texts(path, DataSpec(rows=7)))) == 7


def test_bad_rows_are_among_the_first_rows(tmp_path) -> None:
    path = write(tmp_path / "a.tsv", ["text\tlabel", "a b\tx", "alone", *["c d\ty"] * 9])
    rows = read_examples(path, DataSpec(rows=4), on_error="skip")
    assert (len(list(rows)), rows.account.rows_in, rows.account.rows_rejected) == (3, 4, 1)


def test_a_split_takes_the_first_rows_of_each_file(tmp_path) -> None:
    for name in ("train", "dev", "test"):
        write(tmp_path / f"{name}.tsv", ["text\tlabel", *(f"a {n}\t{n % 2}" for n in range(40))])
    splits = load_splits(tmp_path, DataSpec(rows=12))
    assert (len(splits.train), len(splits.dev), len(splits.test)) == (12, 12, 12)


def test_a_column_of_texts_is_no_label_and_the_message_shows_it_as_written(tmp_path) -> None:
    texts = [sentence(n).replace(",", "") for n in range(40)]
    rows = [f"{text} {n},{['pos', 'neg'][n % 2]}" for n, text in enumerate(texts)]
    path = write(tmp_path / "a.csv", ["text,label", *rows])
    with pytest.raises(
        InputFileError, match=r"column text holds 40 different labels .*--label"
    ) as e:
        load_splits(path, DataSpec(label=("text",)))
    assert "Label(" not in str(e.value)
    assert guess_spec(path, given=DataSpec(label=("text",))).text != ("text",)
