"""SemBERT: tags aligned with words, and the layers that read them, against plain loops."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_tasks import row, word_tokenizer

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import Example, Label
from bertsmith.labeled.guess.guess_spec import guess_spec
from bertsmith.labeled.read.reader import read_examples
from bertsmith.labeled.spec import DataSpec
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.enrichment.tag_channel import CHANNEL, ChannelShape, TagChannel
from bertsmith.tasks.enrichment.tags import Channel, ChannelReading, structures_of
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.tag.tag import Tag

WORDS = ["red", "##der", "green", "##er", "##st", "##ly", "bird"]


def example(text: str, cell: str) -> Example:
    return replace(row(0, [text], Label("a")), extra={"tags": cell})


def test_rows_of_words_equal_plain_loops_and_no_neighbor_changes_them() -> None:
    torch.manual_seed(0)
    layers = TagChannel(ChannelShape(tags=5, structures=2, width=4), 6).eval()
    words = [[0, 1, 1, 2, 3, 3, 3, 3, 4], [0, 1, 1, 1, 2], [0, 1]]
    tags = [[[(w + n) % 5, (2 * w + n) % 5] for w in one] for n, one in enumerate(words)]
    lengths = [len(one) for one in words]
    hidden = torch.randn(sum(lengths), 6)
    channel = torch.tensor(
        [
            [w, *t]
            for one, own in zip(words, tags, strict=True)
            for w, t in zip(one, own, strict=True)
        ]
    )
    with torch.no_grad():
        rows, counts = layers(hidden, channel, lengths)
    assert counts == [5, 3, 2]
    wanted, at = [], 0
    with torch.no_grad():
        for one, own in zip(words, tags, strict=True):
            first = [one.index(w) for w in sorted(set(one))]
            parts = []
            for structure in (0, 1):
                ids = torch.tensor([own[f][structure] for f in first])
                parts.append(layers.gru(layers.embedding(ids)[None])[0][0])
            joined = layers.join(torch.cat(parts, dim=1))
            for word, f in enumerate(first):
                pieces = [hidden[at + i] for i in range(len(one)) if one[i] == one[f]]
                pieces += [torch.zeros(6)] * (3 - len(pieces))
                windows = [torch.cat(pieces[i : i + 3]) for i in range(len(pieces) - 2)]
                best = torch.stack([torch.relu(layers.convolution(w)) for w in windows]).amax(0)
                wanted.append(torch.cat([best, joined[word]]))
            at += len(one)
        alone, _ = layers(hidden[9:14], channel[9:14], [5])
    assert torch.allclose(rows, torch.stack(wanted), atol=1e-6)
    assert torch.allclose(rows[5:8], alone, atol=1e-6)


@pytest.mark.parametrize(
    "cell",
    [
        "A O B",
        '["A", "O", "B"]',
        '{"words": ["redder", "greenerstly", "bird"], "tags": ["A", "O", "B"]}',
        '{"words": ["redder", "greenerstly", "bird"], "verbs": [{"tags": ["A", "O", "B"]}]}',
        '[{"start": 0, "end": 6, "label": "A"}, {"start": 19, "end": 23, "label": "B"}]',
    ],
)
def test_every_form_of_tags_reaches_its_words(cell: str) -> None:
    one = example("redder greenerstly bird", cell)
    channel = Channel.of(ChannelReading(column="tags"), [one])
    task = Classify(labels=("a", "b"))
    features = task.features([one], word_tokenizer(WORDS), LengthSettings())
    joined, counts = channel.joined(features, [one], word_tokenizer(WORDS), 64)
    a, b, out = channel.table["A"], channel.table["B"], channel.table["O"]
    numbers = joined[0].channels[CHANNEL]
    assert numbers[:, 0].tolist() == [0, 1, 1, 2, 2, 2, 2, 3, 4]
    assert numbers[:, 1].tolist() == [out, a, a, out, out, out, out, b, out]
    assert counts["rows_with_tags"] == 1
    assert counts["tags_never_seen"] == 0


def test_a_tag_never_seen_is_counted() -> None:
    channel = Channel.of(ChannelReading(column="tags"), [example("red bird", "A O")])
    new = example("red bird", "Z A")
    features = Classify(labels=("a", "b")).features([new], word_tokenizer(), LengthSettings())
    joined, counts = channel.joined(features, [new], word_tokenizer(), 64)
    assert counts["tags_never_seen"] == 1
    assert counts["never_seen"] == ["Z"]
    assert joined[0].channels[CHANNEL][1, 1] == 0


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("A", "1 tags for 2 words"),
        ('{"words": ["blue"], "tags": ["A"]}', "the word 'blue'|not in the text"),
        ('[{"start": 0, "end": 99, "label": "A"}]', "does not fit its text of 8 characters"),
        ('{"words": [', "is no JSON"),
    ],
)
def test_tags_that_do_not_fit_their_text_are_refused_by_place(cell: str, said: str) -> None:
    with pytest.raises(TextError, match=said) as fault:
        structures_of(example("red bird", cell), "tags")
    assert "rows.tsv, line 1, column tags" in str(fault.value)


CONLL = """red JJ X O
bird NN Y B-ANIMAL

green JJ X O
"""


def conll(tmp_path: Path, *columns: int) -> list[Example]:
    path = tmp_path / "rows.conll"
    path.write_text(CONLL, encoding="utf-8")
    spec = guess_spec(path, given=DataSpec(extra=columns))
    return list(read_examples(path, spec))


def test_columns_of_a_conll_file_are_tags_of_its_words(tmp_path: Path) -> None:
    rows = conll(tmp_path, 2, 3)
    assert structures_of(rows[0], "2") == [[(0, 3, "JJ"), (4, 8, "NN")]]
    channel = Channel.of(ChannelReading(column="2,3"), rows)
    assert channel.columns == ("2", "3")
    assert channel.structures == 2
    task = Tag(labels=("O", "B-ANIMAL", "I-ANIMAL"))
    features = task.features(rows, word_tokenizer(WORDS), LengthSettings())
    joined, _ = channel.joined(features, rows, word_tokenizer(WORDS), 64)
    names = {number: name for name, number in channel.table.items()}
    tags = [[names[n] for n in part] for part in joined[0].channels[CHANNEL][:, 1:].T.tolist()]
    assert tags == [["O", "JJ", "NN", "O"], ["O", "X", "Y", "O"]]


@pytest.mark.parametrize(
    ("column", "said"),
    [(4, "tags that are learned"), (1, "has the words"), (9, "no column '9'.* from 1 to 4")],
)
def test_a_column_of_a_conll_file_that_cannot_be_a_channel_is_refused_by_file(
    tmp_path: Path, column: int, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as fault:
        conll(tmp_path, column)
    assert "rows.conll" in str(fault.value)


def test_tags_of_json_rows_may_be_objects_and_lists_next_to_words(tmp_path: Path) -> None:
    roles = {"words": ["red", "bird"], "verbs": [{"tags": ["A", "B"]}]}
    objects = tmp_path / "rows.jsonl"
    objects.write_text(json.dumps({"text": "red bird", "label": "a", "roles": roles}) + "\n")
    spec = DataSpec(format="jsonl", task="classify", text=("text",), label=("label",))
    (one,) = read_examples(objects, spec.model_copy(update={"extra": ("roles",)}))
    assert structures_of(one, "roles") == [[(0, 3, "A"), (4, 8, "B")]]
    words = tmp_path / "words.jsonl"
    row = {"tokens": ["red", "bird"], "tags": ["O", "B-X"], "pos": ["JJ", "NN NN"]}
    words.write_text(json.dumps(row) + "\n")
    spec = DataSpec(format="words", task="tag", text=("tokens",), label=("tags",), extra=("pos",))
    (two,) = read_examples(words, spec)
    assert structures_of(two, "pos") == [[(0, 3, "JJ"), (4, 8, "NN NN")]]


def test_a_column_of_a_table_without_header_is_named_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    path.write_text("red bird\ta\tA B\n", encoding="utf-8")
    spec = DataSpec(format="delimited", header=False, columns=3, task="classify", delimiter="\t")
    columns = {"text": (1,), "label": (2,), "extra": (3,)}
    (one,) = read_examples(path, spec.model_copy(update=columns))
    assert structures_of(one, "3") == [[(0, 3, "A"), (4, 8, "B")]]


def test_a_missing_column_and_tags_without_meaning_are_refused() -> None:
    with pytest.raises(ConfigError, match="no column 'roles'"):
        structures_of(example("red bird", json.dumps([])), "roles")
    with pytest.raises(ConfigError, match="no model folder of that name"):
        Channel.of(ChannelReading(column="tags"), [example("red bird", "")])
    with pytest.raises(ConfigError, match="no training row has a tag"):
        Channel.of(ChannelReading(column="tags"), [example("red bird", "O O")])
