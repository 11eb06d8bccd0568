"""Formats: JSON, CoNLL and multiple choice as published are read with no settings at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertsmith.labeled import (
    ChoiceIndex,
    DataSpec,
    Example,
    Label,
    LabelSet,
    ScoreTarget,
    Tagged,
    read_examples,
)


def read(path: Path, content: str, **given: object) -> tuple[DataSpec, list[Example]]:
    path.write_text(content, encoding="utf-8")
    rows = read_examples(path, DataSpec(**given))  # type: ignore[arg-type]
    return rows.spec, list(rows)


def lines(*rows: object) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


# CLUE as published, and rows as other tools write them
ROWS = {
    "afqmc": (
        {"sentence1": "花呗怎么还款", "sentence2": "花呗还款方法", "label": "0"},
        "jsonl",
        2,
        Label("0"),
    ),
    "tnews": (
        {"label": "108", "label_desc": "news_edu", "sentence": "上课时学生手机响", "keywords": ""},
        "jsonl",
        1,
        Label("108"),
    ),
    "iflytek": (
        {"label": "11", "label_des": "薅羊毛", "sentence": "超级多的优惠"},
        "jsonl",
        1,
        Label("11"),
    ),
    "cmnli": (
        {"sentence1": "新的权利", "sentence2": "每个人", "label": "neutral"},
        "jsonl",
        2,
        Label("neutral"),
    ),
    "csl": (
        {"id": 1, "abst": "为解决问题", "keyword": ["水下", "稀疏"], "label": "1"},
        "jsonl",
        2,
        Label("1"),
    ),
    "list": ({"text": "two at once", "labels": ["a", "b"]}, "jsonl", 1, LabelSet(("a", "b"))),
    "score": ({"text_a": "one", "text_b": "two", "score": 3.25}, "jsonl", 2, ScoreTarget(3.25)),
    "choices": (
        {"context": "It rains.", "question": "Why?", "choices": ["so", "no"], "answer": "B"},
        "jsonl",
        3,
        ChoiceIndex(1),
    ),
    "unlabeled": ({"id": 3, "text": "销售冠军"}, "jsonl", 1, None),
    "cluener": (
        {
            "text": "彭小军在台湾",
            "label": {"name": {"彭小军": [[0, 2]]}, "address": {"台湾": [[4, 5]]}},
        },
        "cluener",
        1,
        Tagged(
            ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)),
            ("B-name", "I-name", "I-name", "O", "B-address", "I-address"),
        ),
    ),
    "doccano": (
        {"text": "Ada ran", "label": [[0, 3, "PER"]]},
        "spans",
        1,
        Tagged(((0, 3), (4, 7)), ("B-PER", "O")),
    ),
    "offsets": (
        {"text": "Ada ran", "entities": [{"start_offset": 0, "end_offset": 3, "label": "PER"}]},
        "spans",
        1,
        Tagged(((0, 3), (4, 7)), ("B-PER", "O")),
    ),
    "tokens": (
        {"tokens": ["Ada", "ran"], "ner_tags": ["B-PER", "O"]},
        "words",
        1,
        Tagged(((0, 3), (4, 7)), ("B-PER", "O")),
    ),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("listed", [False, True])
def test_rows_of_json(name, listed, tmp_path) -> None:
    row, form, texts, target = ROWS[name]
    content = json.dumps([row] * 4, indent=1) if listed else lines(*[row] * 4)
    spec, found = read(tmp_path / "a.json", content)
    assert spec.format == form
    assert len(found) == 4
    assert len(found[0].texts) == texts
    assert found[0].target == target
    assert len({example.line for example in found}) == 4


def test_cluewsc_shows_both_spans_in_the_text(tmp_path) -> None:
    spans = {"span2_index": 6, "span1_index": 0, "span1_text": "床", "span2_text": "它"}
    row = {"target": spans, "idx": 7, "label": "true", "text": "床很大,所以它贵"}
    spec, found = read(tmp_path / "a.json", lines(row, row))
    assert spec.format == "cluewsc"
    assert found[0].texts == ("_床_很大,所以[它]贵",)
    assert (found[0].target, found[0].id) == (Label("true"), "7")


def test_rows_on_which_annotators_disagree_have_no_label(tmp_path) -> None:
    labels = ["neutral", "-", "entailment", "contradiction"] * 3
    rows = [
        {"sentence1": f"a {n}", "sentence2": f"b {n}", "label": x} for n, x in enumerate(labels)
    ]
    path = tmp_path / "a.jsonl"
    path.write_text(lines(*rows))
    found = read_examples(path)
    assert [e.target for e in found][:2] == [Label("neutral"), None]
    assert found.account.unlabeled == 3
    assert found.spec.no_label == ("-",)


SWAG = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label"
)


def test_swag_gives_the_first_sentence_and_the_second_with_each_ending(tmp_path) -> None:
    rows = [
        f'{n},v{n},{n},A man. He,A man.,He,gold,runs,sits,"eats, then sleeps",swims,{n % 4}'
        for n in range(8)
    ]
    spec, found = read(tmp_path / "train.csv", "\n".join([SWAG, *rows]) + "\n")
    assert (spec.format, spec.task) == ("swag", "choose")
    assert found[2].texts == ("A man.", "He runs", "He sits", "He eats, then sleeps", "He swims")
    assert (found[2].target, found[2].id) == (ChoiceIndex(2), "2")


def test_c3_gives_the_passage_and_the_question_with_each_choice(tmp_path) -> None:
    entry = [
        ["男：你好。", "女：再见。"],
        [{"question": "谁先说？", "choice": ["男", "女"], "answer": "男"}],
        "d1",
    ]
    spec, found = read(tmp_path / "c3.json", json.dumps([entry, entry], ensure_ascii=False))
    assert (spec.format, spec.task) == ("c3", "choose")
    assert found[0].texts == ("男：你好。\n女：再见。", "谁先说？ 男", "谁先说？ 女")
    assert (found[0].target, found[0].id) == (ChoiceIndex(0), "d1-0")


def test_cmrc_in_its_other_spelling(tmp_path) -> None:
    question = {"query_id": "Q1", "query_text": "谁?", "answers": ["李白", "李白"]}
    row = {"context_id": "C", "context_text": "唐代诗人李白", "title": "t", "qas": [question]}
    spec, found = read(tmp_path / "cmrc.json", json.dumps([row], ensure_ascii=False))
    assert (spec.format, spec.task, spec.language) == ("squad", "answer", "zh")
    assert found[0].target.placed == (("李白", 4), ("李白", 4))  # type: ignore[union-attr]


CONLL = {
    "bio": "EU\tB-ORG\nand\tO\nNew\tB-LOC\nYork\tI-LOC\n",
    "iob1": "EU\tI-ORG\nand\tO\nNew\tI-LOC\nYork\tI-LOC\n",
    "bioes": "EU\tS-ORG\nand\tO\nNew\tB-LOC\nYork\tE-LOC\n",
    "bilou": "EU\tU-ORG\nand\tO\nNew\tB-LOC\nYork\tL-LOC\n",
    "bmes": "EU\tS-ORG\nand\tO\nNew\tB-LOC\nYork\tE-LOC\n\nA\tB-X\nB\tM-X\nC\tE-X\n",
    "io": "EU\tORG\nand\tO\nNew\tLOC\nYork\tLOC\n",
}


@pytest.mark.parametrize("scheme", CONLL)
@pytest.mark.parametrize("delimiter", ["\t", " "])
@pytest.mark.parametrize("columns", [2, 4])
def test_conll_in_every_scheme_and_shape(scheme, delimiter, columns, tmp_path) -> None:
    more = f"{delimiter}NN{delimiter}I-NP{delimiter}" if columns == 4 else delimiter
    content = CONLL[scheme].replace("\t", more) + "\n"
    start = delimiter.join(["-DOCSTART-", "-X-", "O", "O"][:columns])
    spec, found = read(tmp_path / "a.conll", f"{start}\n\n{content}\n{start}\n\n{content}")
    assert (spec.format, spec.task, spec.scheme, spec.columns) == ("conll", "tag", scheme, columns)
    assert found[0].texts == ("EU and New York",)
    assert found[0].target == Tagged(
        ((0, 2), (3, 6), (7, 10), (11, 15)), ("B-ORG", "O", "B-LOC", "I-LOC")
    )
    assert [e.extra["document"] for e in (found[0], found[-1])] == ["1", "2"]


def test_conll_of_other_kinds(tmp_path) -> None:
    spec, found = read(tmp_path / "a.txt", "我\tO\n爱\tO\n北\tB-LOC\n京\tI-LOC\n\n好\tO\n")
    assert (spec.format, spec.joiner, found[0].texts) == ("conll", "", ("我爱北京",))
    spec, found = read(tmp_path / "b.conll", "en:Rome\tB-LOC\nen::\tO\n\nen:fell\tO\n")
    assert (spec.word_prefix, found[0].texts, len(found)) == ("en:", ("Rome :",), 2)
    spec, found = read(tmp_path / "c.conll", "He\tPRP\nruns\tVBZ\n\nShe\tPRP\n")
    assert spec.scheme == "plain"
    assert found[0].target.tags == ("PRP", "VBZ")  # type: ignore[union-attr]
    spec, found = read(
        tmp_path / "d.conll", "# id 77 domain=en\nRome _ _ B-LOC\n# O O O\n\nfell _ _ O\n"
    )
    assert (found[0].id, found[0].texts) == ("77", ("Rome #",))
    spec, found = read(tmp_path / "e.conll", "He\nruns\n\nShe\n")
    assert (spec.label, found[0].target, found[0].texts) == ((), None, ("He runs",))
