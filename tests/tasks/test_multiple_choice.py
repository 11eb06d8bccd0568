"""Multiple choice: passages side by side, a softmax over the choices of each row."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from by_heart import steps_to_learn
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_tasks import CPU, TASK_WORDS, row, tiny_task_model, word_tokenizer
from torch.nn import functional as F

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import ChoiceIndex, Example, Label
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.choose import Choose
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import compute_logits
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.tasks.model.text_vector import VectorSettings
from bertsmith.tasks.task import score

LENGTHS = LengthSettings(max_length=24)
TASK = Choose()


def choices(count: int = 6, seed: int = 0, *, most: int = 5) -> list[Example]:
    """Contexts with 1 to `most` choices, one of them right."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        texts = [" ".join(rng.choices(TASK_WORDS, k=rng.randint(1, 6))) for _ in range(1 + most)]
        texts = texts[: 2 + number % most]
        rows.append(row(number, texts, ChoiceIndex(rng.randrange(len(texts) - 1))))
    return rows


@pytest.mark.parametrize(
    ("vector", "head"),
    [
        (VectorSettings(), HeadSettings(dropout=0.0)),
        (
            VectorSettings(pooling="mean"),
            HeadSettings(layers=(32,), activation="gelu", dropout=0.0),
        ),
    ],
)
def test_a_batch_is_learned_by_heart_and_chosen(vector: VectorSettings, head: HeadSettings) -> None:
    rows = choices()
    features = TASK.features(rows, word_tokenizer(), LENGTHS)
    model = tiny_task_model(TASK, vector=vector, head=head)
    assert (model.head.published == "sequence") is vector.is_published
    steps_to_learn(model, features)
    found = compute_logits(model, features, device=CPU, micro_tokens=40)
    said = TASK.decode(found.logits, features, rows)
    assert score(TASK, rows, said)["accuracy"] == 1.0
    assert found.loss is not None
    assert found.loss < 0.05


def test_each_choice_is_a_passage_with_the_context() -> None:
    rows = choices(5)
    features = TASK.features(rows, word_tokenizer(), LENGTHS)
    wanted = [
        (number, word_tokenizer().encode(example.texts[0], choice).ids.tolist())
        for number, example in enumerate(rows)
        for choice in example.texts[1:]
    ]
    assert [(f.example, f.encoding.ids.tolist()) for f in features] == wanted
    batch = task_batch(features)
    assert batch.examples == TASK.count(batch) == len(rows)
    assert batch.targets.tolist() == [example.target.index for example in rows]


def test_the_loss_is_a_softmax_over_the_choices_of_each_row() -> None:
    rows = choices(7)
    batch = task_batch(TASK.features(rows, word_tokenizer(), LENGTHS))
    random_ = torch.Generator().manual_seed(1)
    logits = torch.randn(len(batch.owners), 1, generator=random_, requires_grad=True)
    found = TASK.loss(logits, batch)
    sizes = [len(example.texts) - 1 for example in rows]
    wanted = torch.zeros(())
    for example, part in zip(rows, logits.squeeze(1).split(sizes), strict=True):
        wanted = wanted + F.cross_entropy(part[None], torch.tensor([example.target.index]))
    torch.testing.assert_close(found.sum, wanted)
    assert found.count == len(rows)
    (gradient,) = torch.autograd.grad(found.sum, logits)
    (expected,) = torch.autograd.grad(wanted, logits)
    torch.testing.assert_close(gradient, expected)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=6), max_size=5))
def test_the_best_choice_comes_back_with_its_probability(scores: list[list[float]]) -> None:
    rows = [row(n, ["red", *("tree" for _ in one)]) for n, one in enumerate(scores)]
    features = TASK.features(rows, word_tokenizer(), LENGTHS)
    logits = [np.array(one, dtype=np.float32)[:, None] for one in scores]
    said = TASK.decode(logits, features, rows)
    assert len(said) == len(rows)
    for one, numbers in zip(said, scores, strict=True):
        assert numbers[one.value] == max(numbers)
        assert list(one.probabilities) == [str(place) for place in range(len(numbers))]
        assert sum(one.probabilities.values()) == pytest.approx(1.0, abs=1e-5)
        assert (
            one.confidence == one.probabilities[str(one.value)] == max(one.probabilities.values())
        )


def test_meta_features_of_a_row_go_with_each_of_its_choices() -> None:
    rows = choices(3)
    features = [
        Feature(encoding=f.encoding, example=f.example, target=f.target, meta=np.array([f.example]))
        for f in TASK.features(rows, word_tokenizer(), LENGTHS)
    ]
    model = tiny_task_model(
        TASK,
        vector=VectorSettings(pooling="mean"),
        head=HeadSettings(meta={"topic": 4}, dropout=0.0),
        meta_sizes={"topic": 3},
    ).eval()
    batch = task_batch(features)
    together = model(batch)
    alone = [model(task_batch([f for f in features if f.example == n])) for n in range(3)]
    torch.testing.assert_close(together, torch.cat(alone))


def test_what_is_cut_is_counted() -> None:
    rows = [row(0, ["red " * 30, "tree", "bird"], ChoiceIndex(0))]
    features = TASK.features(rows, word_tokenizer(), LengthSettings(max_length=14))
    (said,) = TASK.decode([np.zeros((2, 1), dtype=np.float32)], features, rows)
    assert said.cut == 20
    assert all(len(feature) == 14 for feature in features)


def test_wrong_rows_and_settings_are_refused_with_their_place() -> None:
    tokens = word_tokenizer()
    with pytest.raises(TextError, match=r"rows.tsv, line 4: a context without choices"):
        TASK.features([row(3, ["red"])], tokens, LENGTHS)
    for target in (ChoiceIndex(2), ChoiceIndex(-1), Label("tree")):
        with pytest.raises(TextError, match=r"rows.tsv, line 1: .* none of the 2 choices"):
            TASK.features([row(0, ["red", "tree", "bird"], target)], tokens, LENGTHS)
    with pytest.raises(ConfigError, match=r"length\.stride"):
        TASK.features(choices(1), tokens, LengthSettings(stride=4))
    rows = [row(0, ["red", "tree", "bird"])]
    features = TASK.features(rows, tokens, LENGTHS)
    with pytest.raises(TextError, match="2 choices and 3 scores"):
        TASK.decode([np.zeros((3, 1), dtype=np.float32)], features, rows)
    with pytest.raises(TextError, match="no loss"):
        TASK.loss(torch.zeros(2, 1), task_batch(features))
