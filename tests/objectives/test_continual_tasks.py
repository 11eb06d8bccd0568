"""Examples and labels of the tasks of ERNIE 2.0, against plain loops over the texts."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from continual_text import CHINESE, ENGLISH, chosen_of, continual_corpus, parts_of, spelled

from bertsmith.corpus.rows import RowsBatch
from bertsmith.corpus.sentence_plans import ORDERS
from bertsmith.corpus.shards import Corpus
from bertsmith.errors import BertsmithError, ConfigError, InputFileError
from bertsmith.objectives.continual.discourse import read_markers
from bertsmith.objectives.continual.tasks import (
    CapitalTask,
    ContinualTask,
    DistanceTask,
    ElsewhereTask,
    RelationTask,
    RelevanceTask,
    ReorderTask,
)

TEXTS = {"english": ENGLISH, "chinese": CHINESE}
EPOCHS = 12


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Corpus]:
    place = tmp_path_factory.mktemp("corpora")
    found = {name: continual_corpus(place / name, texts) for name, texts in TEXTS.items()}
    found["bytes"] = continual_corpus(place / "bytes", ENGLISH, kind="byte-bpe")
    return found


def rows_of_task(task: ContinualTask, corpus: Corpus, epoch: int = 0, **more: object) -> RowsBatch:
    source = task.source(chosen_of(corpus, **more))
    numbers = np.arange(source.count(epoch))
    rows = source.examples(epoch, numbers)
    assert source.lengths(epoch, numbers).tolist() == list(rows.lengths)
    assert max(rows.lengths) <= more.get("max_length", 32)
    return rows


def sentence_of(corpus: Corpus, place: int) -> tuple[int, int]:
    """The document and the sentence that a token belongs to."""
    sentence = int(np.searchsorted(corpus.sentences, place, side="right")) - 1
    return int(np.searchsorted(corpus.documents, sentence, side="right")) - 1, sentence


@pytest.mark.parametrize("name", ["english", "bytes"])
def test_capitals_are_those_of_the_text(name: str, corpora: dict[str, Corpus]) -> None:
    corpus = corpora[name]
    words = re.findall(r"\w+|[^\w\s]", "\n".join("\n".join(lines) for lines in ENGLISH))
    starts = np.flatnonzero(corpus.starts_word)
    assert len(starts) == len(words)
    expected = {
        int(place): int(word[0].isupper())
        for place, word in zip(starts, words, strict=True)
        if word[0].isalpha()
    }
    rows = rows_of_task(CapitalTask(), corpus)
    found = {
        origin: label
        for origin, label in zip(rows.origins.tolist(), rows.token_labels.tolist(), strict=True)
        if label >= 0
    }
    assert found == expected
    assert 0 < sum(found.values()) < len(found)


def test_capitals_asked_of_chinese_are_refused(corpora: dict[str, Corpus]) -> None:
    with pytest.raises(ConfigError, match=r"Chinese has none.*program\.objectives\.capital=0"):
        CapitalTask().source(chosen_of(corpora["chinese"]))


def test_capitals_asked_of_an_old_corpus_are_refused(corpora: dict[str, Corpus]) -> None:
    corpus = corpora["english"]
    case = corpus.manifest.pop("case")
    with pytest.raises(ConfigError, match="build it again under another name"):
        CapitalTask().source(chosen_of(corpus))
    corpus.manifest["case"] = case


@pytest.mark.parametrize("name", ["english", "chinese"])
def test_tokens_elsewhere_are_those_of_the_rest_of_the_document(
    name: str, corpora: dict[str, Corpus]
) -> None:
    corpus = corpora[name]
    rows = rows_of_task(ElsewhereTask(), corpus, max_length=16)
    seen = set()
    for text in range(len(rows.lengths)):
        start = int(rows.starts[text])
        (part,) = parts_of(rows, text)
        number = sentence_of(corpus, part[0])[0]
        first, last = (int(border) for border in corpus.documents[number : number + 2])
        document = range(int(corpus.sentences[first]), int(corpus.sentences[last]))
        others = {int(corpus.tokens[place]) for place in document if place not in part}
        assert others  # documents of one example are left out
        for row in range(start, start + rows.lengths[text]):
            label = int(rows.token_labels[row])
            if rows.origins[row] < 0:
                assert label == -1
            else:
                assert label == (int(rows.ids[row]) in others)
                seen.add(label)
    assert seen == {0, 1}


@pytest.mark.parametrize("name", ["english", "chinese"])
def test_segments_stand_in_the_order_that_the_class_names(
    name: str, corpora: dict[str, Corpus]
) -> None:
    corpus = corpora[name]
    borders = set(corpus.sentences.tolist())
    classes = set()
    for epoch in range(EPOCHS):
        rows = rows_of_task(ReorderTask(), corpus, epoch)
        for text, label in enumerate(rows.pair_labels.tolist()):
            parts = parts_of(rows, text)
            whole = sorted(place for part in parts for place in part)
            assert whole == list(range(whole[0], whole[-1] + 1))
            assert sentence_of(corpus, whole[0])[0] == sentence_of(corpus, whole[-1])[0]
            for part in parts:
                assert part == list(range(part[0], part[-1] + 1))
                assert {part[0], part[-1] + 1} <= borders
            order = [sorted(parts).index(part) for part in parts]
            assert [*order, *[-1] * (3 - len(order))] == ORDERS[label].tolist()
            classes.add(label)
    assert len(ORDERS) == 9
    assert classes == set(range(9))


@pytest.mark.parametrize("name", ["english", "chinese"])
def test_pairs_of_sentences_are_as_far_apart_as_their_class_says(
    name: str, corpora: dict[str, Corpus]
) -> None:
    corpus = corpora[name]
    seen = {0: 0, 1: 0, 2: 0}
    for epoch in range(EPOCHS):
        rows = rows_of_task(DistanceTask(), corpus, epoch, max_length=40)
        for text, label in enumerate(rows.pair_labels.tolist()):
            (document, a), (other, b) = (sentence_of(corpus, p[0]) for p in parts_of(rows, text))
            expected = 2 if document != other else 0 if b == a + 1 else 1
            assert label == expected
            assert document != other or abs(a - b) != 1 or b == a + 1
            seen[label] += 1
    assert min(seen.values()) > 0.2 * sum(seen.values())


def relations_in(documents: list[list[str]], named: str) -> set[tuple[str, str, int]]:
    """Plain loops over strings: the text before a marker, the text after it, the relation."""
    listed = read_markers(named)
    bare = dict(listed.markers)
    found = set()

    def strip(text: str) -> str:
        return re.sub(r"\s", "", text).lower()

    def marker_at(text: str) -> tuple[str, int] | None:
        for marker in sorted(bare, key=len, reverse=True):
            rest = text[len(marker) :]
            if text.lower().startswith(marker) and (named == "zh" or not rest[:1].isalpha()):
                return rest.lstrip(" ,，"), bare[marker]
        return None

    for lines in documents:
        for number, line in enumerate(lines):
            places = [(lines[number - 1], line)] if number else []
            places += [
                (line[: comma.start()], line[comma.end() :].strip())
                for comma in re.finditer("[,，]", line)
            ]
            for before, after in places:
                match = marker_at(after)
                if match is not None:
                    found.add((strip(before), strip(match[0]), match[1]))
    return found


@pytest.mark.parametrize(("name", "named"), [("english", "en"), ("chinese", "zh"), ("bytes", "en")])
def test_relations_are_those_of_the_markers_that_were_taken_out(
    name: str, named: str, corpora: dict[str, Corpus]
) -> None:
    corpus = corpora[name]
    task = RelationTask(markers=named)
    rows = rows_of_task(task, corpus, max_length=64)
    found = set()
    for text, label in enumerate(rows.pair_labels.tolist()):
        a, b = (spelled(corpus, part).lower() for part in parts_of(rows, text))
        found.add((a, b, label))
    assert found == relations_in(TEXTS.get(name, ENGLISH), named)
    assert len({label for *_, label in found}) >= 4
    assert task.classes == len(read_markers(named).relations)


def test_a_long_text_loses_what_is_farthest_from_the_marker(corpora: dict[str, Corpus]) -> None:
    corpus = corpora["english"]
    full = rows_of_task(RelationTask(), corpus, max_length=64)
    short = rows_of_task(RelationTask(), corpus, max_length=11)
    for text in range(len(full.lengths)):
        (a, b), (short_a, short_b) = parts_of(full, text), parts_of(short, text)
        assert short_a == a[-len(short_a) :]
        assert short_b == b[: len(short_b)]
        assert len(short_a) + len(short_b) <= 8


def test_labeled_pairs_become_texts_of_two_with_their_labels(
    corpora: dict[str, Corpus], tmp_path: Path
) -> None:
    path = tmp_path / "clicks.tsv"
    lines = [(f"rome {n}", f"the old walls of rome {n}", str(n % 3)) for n in range(60)]
    path.write_text("".join("\t".join(line) + "\n" for line in lines))
    task = RelevanceTask(pairs=str(path))
    corpus = corpora["english"]
    tokenizer = corpus.tokenizer()
    parts = [
        rows_of_task(task, corpus, held_out=0.3, training=training) for training in (True, False)
    ]
    found = []
    for rows in parts:
        texts = np.split(rows.ids, rows.starts[1:])
        found += [(tuple(ids), label) for ids, label in zip(texts, rows.pair_labels, strict=True)]
    expected = [(tuple(tokenizer.encode_fields([a, b]).ids), int(y)) for a, b, y in lines]
    assert sorted(found) == sorted(expected)
    assert 5 < len(parts[1].lengths) < 30
    assert RelationTask(pairs=str(path)).classes == 3


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a\tb\t0\na\tb\t7\n", r"clicks\.tsv, line 2.*7"),
        ("a\tb\t0\na\tb\n", r"clicks\.tsv, line 2"),
        ("a\tb\t0\n\tb\t1\n", r"clicks\.tsv, line 2"),
    ],
)
def test_bad_rows_of_a_pair_file_are_named(text: str, match: str, tmp_path: Path) -> None:
    path = tmp_path / "clicks.tsv"
    path.write_text(text)
    with pytest.raises(BertsmithError, match=f"(?s){match}"):
        _ = RelevanceTask(pairs=str(path)).labeled


def test_a_bad_list_of_markers_is_named(tmp_path: Path) -> None:
    path = tmp_path / "markers.tsv"
    path.write_text("but\tcontrast\nso\n")
    with pytest.raises(InputFileError, match=r"markers\.tsv, line 2: expected `marker TAB"):
        read_markers(str(path))
    path.write_text("but\tcontrast\nbut\tcause\n")
    with pytest.raises(InputFileError, match=r"line 2: 'but' signals 'cause' here"):
        read_markers(str(path))


def test_text_without_a_marker_is_refused_by_task(corpora: dict[str, Corpus]) -> None:
    with pytest.raises(ConfigError, match=r"relation: none of the markers of 'zh' joins"):
        rows_of_task(RelationTask(markers="zh"), corpora["english"])
