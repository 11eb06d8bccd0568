"""Tagging: one batch is learned by heart, spans come back, sequences are legal."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_tasks import CPU, SPECIAL, overfit, row, tiny_task_model, word_tokenizer

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import Example, Label, Tagged
from bertsmith.labeled.formats.spans import tagged
from bertsmith.nn.crf import FASTER, Crf
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.inference import compute_logits
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.losses import CrossEntropySettings, FocalSettings
from bertsmith.tasks.model.from_settings import published_head
from bertsmith.tasks.model.heads import RowsHead
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.model.text_vector import VectorSettings
from bertsmith.tasks.prediction import PredictedSpan, Prediction
from bertsmith.tasks.tag.tag import Tag, tag_from
from bertsmith.tasks.task import TaskOptions, TaskSettings, score

WORDS = "john ##ny smith paul lives works in at new york old big bank for , .".split()  # noqa: SIM905
CHARACTERS = list("张伟住在北京市中国银行工作，。李小明去上海")
TOKENIZER = word_tokenizer([*WORDS, *CHARACTERS])
SIZE = len(SPECIAL) + len(WORDS) + len(CHARACTERS)
ENGLISH = {
    "Johnny Smith lives in New York.": ["Johnny Smith/PER", "New York/LOC"],
    "Paul, Smith, New York": ["Paul/PER", "Smith/PER", "New York/LOC"],
    "old York works for Big Bank of Paul": ["old York/LOC", "Big Bank of Paul/ORG"],
    "lives in it": [],
}
CHINESE = {
    "张伟住在北京市。": ["张伟/PER", "北京市/LOC"],
    "李小明去上海，北京": ["李小明/PER", "上海/LOC", "北京/LOC"],
    "中国银行工作": ["中国银行/ORG"],
    "在在": [],
}
BIO = ("O", "B-PER", "I-PER")


def marked(texts: dict[str, list[str]]) -> list[Example]:
    found = []
    for number, (text, entities) in enumerate(texts.items()):
        spans, at = [], 0
        for piece, kind in (entity.split("/") for entity in entities):
            at = text.index(piece, at)
            spans.append((at, at + len(piece), kind))
            at += len(piece)
        found.append(row(number, [text], tagged(text, spans)))
    return found


def entities(prediction: Prediction) -> list[str]:
    return [f"{span.text}/{span.label}" for span in prediction.value]


def sure(task: Tag, tags: list[str]) -> np.ndarray:
    """Logits that leave no doubt."""
    return np.eye(len(task.labels), dtype=np.float32)[[task.labels.index(t) for t in tags]] * 20


@pytest.mark.parametrize("crf", [False, True])
@pytest.mark.parametrize("texts", [ENGLISH, CHINESE], ids=["english", "chinese"])
@pytest.mark.parametrize("stride", [None, 3])
def test_one_batch_is_learned_by_heart_and_its_spans_come_back(
    texts: dict[str, list[str]], crf: bool, stride: int | None
) -> None:
    examples = marked(texts)
    task = tag_from(examples, TaskOptions(settings=TaskSettings(crf=crf)))
    assert set(task.labels) == {"O", *(f"{x}-{k}" for x in "BI" for k in ("LOC", "ORG", "PER"))}
    lengths = LengthSettings(max_length=32 if stride is None else 8, stride=stride)
    features = task.features(examples, TOKENIZER, lengths)
    assert (len(features) > len(examples)) == (stride is not None)
    model = tiny_task_model(task, words=SIZE)
    assert overfit(model, features) < 0.05
    plain = [replace(example, target=None) for example in examples]
    told = task.features(plain, TOKENIZER, lengths)
    answered = compute_logits(model, told, device=CPU)
    found = task.decode(answered.logits, told, plain)
    assert [entities(one) for one in found] == list(texts.values())
    assert all(one.confidence > 0.8 and one.cut == 0 for one in found)
    assert score(task, examples, found)["f1"] == 1.0


def test_a_span_is_as_certain_as_its_least_certain_tag() -> None:
    task = Tag(labels=BIO)
    example = row(0, ["john john saw john"])
    features = task.features([example], TOKENIZER, LengthSettings())
    chances = [[0.1, 0.8, 0.1], [0.3, 0.1, 0.6], [1.0, 1e-9, 1e-9], [0.01, 0.99, 1e-9]]
    (found,) = task.decode([np.log(chances)], features, [example])
    assert found.tags == ("B-PER", "I-PER", "O", "B-PER")
    first, second = found.value
    # Tags after O and at the start cannot be I, so what they take is shared by the legal ones.
    legal = 0.8 * 0.6 / (0.8 + 0.1 * 0.4)
    assert first.confidence == pytest.approx(legal, abs=1e-6)
    assert second.confidence == pytest.approx(0.99, abs=1e-6)
    assert found.to_json()["prediction"][0]["confidence"] == round(first.confidence, 6)
    assert first == replace(first, confidence=None)
    assert "confidence" not in replace(first, confidence=None).to_json()


def test_the_scores_of_a_crf_are_trained_stored_and_read_in_decoding() -> None:
    examples = marked(ENGLISH)
    task = tag_from(examples, TaskOptions(settings=TaskSettings(crf=True)))
    features = task.features(examples, TOKENIZER, LengthSettings())
    model = tiny_task_model(task, words=SIZE)
    assert published_head(task, VectorSettings(), HeadSettings()) is None
    overfit(model, features, steps=5)
    assert all(parameter.abs().sum() > 0 for parameter in task.crf.parameters())
    stored = model.state_dict()
    again = Tag.from_json(task.to_json())
    other = tiny_task_model(again, words=SIZE)
    other.load_state_dict(stored)
    first, second = (compute_logits(one, features, device=CPU) for one in (model, other))
    assert first.loss == second.loss
    assert task.decode(first.logits, features, examples) == again.decode(
        second.logits, features, examples
    )
    twin = copy.deepcopy(model)
    assert isinstance(model.head, RowsHead)
    assert isinstance(twin.head, RowsHead)
    assert twin.task.crf is twin.head.crf
    assert twin.head.crf is not model.head.crf


def test_learned_scores_change_the_tags() -> None:
    task = Tag(labels=BIO, crf=Crf(3))
    example = row(0, ["john john"])
    features = task.features([example], TOKENIZER, LengthSettings())
    logits = [np.zeros((2, 3), dtype=np.float32)]
    with torch.no_grad():
        task.crf.between[1, 2] = 3.0 / FASTER
    (found,) = task.decode(logits, features, [example])
    assert found.tags == ("B-PER", "I-PER")
    with torch.no_grad():
        task.crf.end[2] = -9.0 / FASTER
    (found,) = task.decode(logits, features, [example])
    assert found.tags[1] != "I-PER"
    with torch.no_grad():
        task.crf.start[2] = 99.0 / FASTER  # learned or not, I does not begin
    (found,) = task.decode(logits, features, [example])
    assert found.tags[0] != "I-PER"


@settings(max_examples=80, deadline=None)
@given(data=st.data(), text=st.text("ab 北京\u200b\t,é👩\ud800", max_size=20))
def test_spans_point_into_the_text_for_any_units_and_logits(data: st.DataObject, text: str) -> None:
    target = None
    if data.draw(st.booleans()):
        borders = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
        target = Tagged(tuple(zip(borders[::2], borders[1::2], strict=False)), ())
    example = row(0, [text], target)
    task = Tag(labels=("O", "B-PER", "I-PER", "B-ORG", "I-ORG"))
    lengths = data.draw(st.sampled_from([{}, {"max_length": 4}, {"max_length": 4, "stride": 2}]))
    features = task.features([example], TOKENIZER, LengthSettings(**lengths))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    logits = [random.normal(size=(len(f.at), 5)).astype(np.float32) for f in features]
    (found,) = task.decode(logits, features, [example])
    end = 0
    for span in found.value:
        assert end <= span.start <= span.end <= len(text)
        assert span.text == text[span.start : span.end]
        end = span.end
    begun = None
    for tag in found.tags:
        assert tag[0] != "I" or tag[1:] == begun
        begun = tag[1:]
    assert found.cut >= len(found.tags) - sum(len(f.at) for f in features)


def test_a_unit_that_is_not_read_is_outside_counted_and_parts_spans() -> None:
    text = "john \u200b smith paul"
    units = ((0, 4), (5, 6), (7, 12), (13, 17))
    example = row(0, [text], Tagged(units, ("B-PER", "I-PER", "I-PER", "O")))
    task = Tag(labels=BIO)
    features = task.features([example], TOKENIZER, LengthSettings())
    logits = [sure(task, ["B-PER", "I-PER", "O"])]
    (found,) = task.decode(logits, features, [example])
    assert found.tags[:2] == ("B-PER", "O")
    assert found.tags[2] != "I-PER"
    assert found.cut == 1
    cut = task.features([example], TOKENIZER, LengthSettings(max_length=3))
    (found,) = task.decode([logits[0][:1]], cut, [example])
    assert found.value == (PredictedSpan(0, 4, "PER", "john"),)
    assert found.cut == 3
    assert found.to_json()["tokens_cut"] == 3


def test_neighbors_of_one_kind_stay_two_spans() -> None:
    task = Tag(labels=BIO)
    example = row(0, ["john smith, paul"])
    features = task.features([example], TOKENIZER, LengthSettings())
    logits = [sure(task, ["B-PER", "B-PER", "O", "B-PER"])]
    (found,) = task.decode(logits, features, [example])
    assert [span.text for span in found.value] == ["john", "smith", "paul"]


def test_plain_labels_mark_every_unit() -> None:
    task = Tag(labels=("NOUN", "VERB"))
    example = row(0, ["john lives"])
    features = task.features([example], TOKENIZER, LengthSettings())
    (found,) = task.decode([sure(task, ["NOUN", "VERB"])], features, [example])
    assert found.value == (
        PredictedSpan(0, 4, "NOUN", "john"),
        PredictedSpan(5, 10, "VERB", "lives"),
    )


def test_a_text_without_units_goes_through_training_and_decoding() -> None:
    task = Tag(labels=BIO, crf=Crf(3))
    examples = [row(0, [""], Tagged((), ())), row(1, ["\u200b"], Tagged(((0, 1),), ("O",)))]
    features = task.features(examples, TOKENIZER, LengthSettings())
    model = tiny_task_model(task, words=SIZE)
    batch = task_batch(features)
    logits = model(batch)
    assert logits.shape == (0, 3)
    part = task.loss(logits, batch)
    assert (part.sum.item(), part.count) == (0.0, 0)
    found = task.decode(compute_logits(model, features, device=CPU).logits, features, examples)
    assert [one.tags for one in found] == [(), ("O",)]
    assert [one.confidence for one in found] == [None, None]


def test_class_weights_and_other_losses_reach_the_units() -> None:
    examples = marked(ENGLISH)
    balanced = tag_from(examples, TaskOptions(loss=CrossEntropySettings(weights="balanced")))
    features = balanced.features(examples, TOKENIZER, LengthSettings())
    batch = task_batch(features)
    logits = torch.randn(
        len(batch.at), balanced.outputs, generator=torch.Generator().manual_seed(0)
    )
    weights = torch.tensor(balanced.weights)[batch.targets]
    each = torch.nn.functional.cross_entropy(logits, batch.targets, reduction="none")
    torch.testing.assert_close(balanced.loss(logits, batch).sum, (weights * each).sum())
    focal = tag_from(examples, TaskOptions(loss=FocalSettings()))
    assert focal.loss(logits, batch).sum < balanced.loss(logits, batch).sum


def test_settings_that_would_be_ignored_are_refused() -> None:
    for loss in (FocalSettings(), CrossEntropySettings(smoothing=0.1)):
        with pytest.raises(ConfigError, match="whole sequences"):
            Tag(labels=BIO, crf=Crf(3), settings=loss)
    with pytest.raises(ConfigError, match="whole sequences"):
        tag_from(
            marked(ENGLISH),
            TaskOptions(
                loss=CrossEntropySettings(weights="balanced"), settings=TaskSettings(crf=True)
            ),
        )
    with pytest.raises(ConfigError, match="4 tags, but 3 labels"):
        Tag(labels=BIO, crf=Crf(4))
    with pytest.raises(ConfigError, match="no training row"):
        tag_from([row(0, ["john"])], TaskOptions(loss=CrossEntropySettings()))


def test_rows_of_another_kind_are_named() -> None:
    task = Tag(labels=BIO)
    other = row(3, ["john"], Label("x"))
    with pytest.raises(TextError, match=r"rows\.tsv, line 4"):
        task.features([other], TOKENIZER, LengthSettings())
    with pytest.raises(TextError, match=r"rows\.tsv, line 4"):
        task.truth([other])


def test_json_brings_the_task_back() -> None:
    for task in (Tag(labels=BIO), Tag(labels=BIO, crf=Crf(3))):
        again = Tag.from_json(task.to_json())
        assert again.labels == task.labels
        assert (again.crf is None) == (task.crf is None)


def test_without_a_crf_the_head_is_the_published_one() -> None:
    model: TaskModel = tiny_task_model(Tag(labels=BIO), words=SIZE)
    assert model.head.published == "token"
    assert "crf" not in dict(model.head.named_children())
    assert not [name for name in model.state_dict() if not name.startswith("model.")]
