"""SemBERT: tags aligned with words, and the layers that read them, against plain loops."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from tiny_tasks import row, word_tokenizer

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import Example, Label
from bertsmith.tasks.channel import Channel, ChannelReading, structures_of
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.tag_channel import CHANNEL, ChannelShape, TagChannel

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


def test_a_missing_column_and_tags_without_meaning_are_refused() -> None:
    with pytest.raises(ConfigError, match="no column 'roles'"):
        structures_of(example("red bird", json.dumps([])), "roles")
    with pytest.raises(ConfigError, match="no training row has a tag"):
        Channel.of(ChannelReading(column="tags"), [example("red bird", "O O")])
