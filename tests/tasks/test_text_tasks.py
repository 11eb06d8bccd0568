"""Tasks on whole texts: features, losses, every vector and head, answers back in order."""

from __future__ import annotations

import random
from typing import Literal

import numpy as np
import pytest
import torch
from tiny_tasks import CPU, TASK_WORDS, overfit, row, tiny_task_model, word_tokenizer
from torch.nn import functional as F

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import Example, Label, LabelSet, ScoreTarget
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.classify import Classify, classify_from
from bertsmith.tasks.inference import compute_logits, example_batches
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.losses import CrossEntropySettings, FocalSettings, class_loss, labels_loss
from bertsmith.tasks.model.heads import TextsHead
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.tasks.model.text_vector import VectorSettings
from bertsmith.tasks.multilabel import multilabel_from
from bertsmith.tasks.regress import regress_from
from bertsmith.tasks.task import Task, TaskOptions, score

LENGTHS = LengthSettings(max_length=24)
VECTORS = [
    VectorSettings(),
    *(VectorSettings(pooling=pooling) for pooling in ("first", "mean", "max", "attention")),
    *(VectorSettings(pooling="mean", layers=layers) for layers in (0, 1, "weighted")),
    VectorSettings(pooling="first", layers="all_first"),
]


def texts(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(TASK_WORDS, k=rng.randint(1, 9))) for _ in range(count)]


def labeled(count: int = 10) -> list[Example]:
    names = ["NA", "01", " x "]
    return [row(n, [text], Label(names[n % 3])) for n, text in enumerate(texts(count))]


def test_labels_stay_as_written_and_come_back() -> None:
    rows = labeled()
    task = classify_from(rows, TaskOptions(loss=CrossEntropySettings()))
    assert task.labels == (" x ", "01", "NA")
    features = task.features(rows, word_tokenizer(), LENGTHS)
    planted = [10.0 * np.eye(3, dtype=np.float32)[int(f.target)] for f in features]
    said = task.decode(planted, features, rows)
    assert [one.value for one in said] == [example.target.name for example in rows]
    assert score(task, rows, said)["accuracy"] == 1.0
    assert all(abs(sum(one.probabilities.values()) - 1) < 1e-5 for one in said)


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_every_vector_learns_a_batch_by_heart(vector: VectorSettings) -> None:
    rows = labeled(8)
    task = classify_from(rows, TaskOptions(loss=CrossEntropySettings()))
    features = task.features(rows, word_tokenizer(), LENGTHS)
    model = tiny_task_model(task, vector=vector)
    assert overfit(model, features, steps=120) < 0.2
    every = [name for name, p in model.named_parameters() if p.grad is None]
    unused = ("heads.", "pooler") if vector.layers == "last" else ("blocks", "pooler")
    assert all(any(part in name for part in unused) for name in every), every


@pytest.mark.parametrize(
    "head",
    [
        HeadSettings(layers=(16,), dropout=0.0),
        HeadSettings(layers=(16, 8), activation="relu", batch_norm=True, dropout=0.0),
        HeadSettings(dropout=0.2, samples=4),
    ],
    ids=["dense", "batch norm", "multi-sample"],
)
def test_every_head_learns_a_batch_by_heart(head: HeadSettings) -> None:
    rows = labeled(8)
    task = classify_from(rows, TaskOptions(loss=CrossEntropySettings()))
    features = task.features(rows, word_tokenizer(), LENGTHS)
    model = tiny_task_model(task, vector=VectorSettings(pooling="mean"), head=head)
    assert overfit(model, features, steps=120) < 0.4


def test_several_labels_and_their_thresholds() -> None:
    names = ["a", "b", "c"]
    rows = [
        row(n, [text], LabelSet(tuple(name for at, name in enumerate(names) if n >> at & 1)))
        for n, text in enumerate(texts(8))
    ]
    task = multilabel_from(rows, TaskOptions(loss=CrossEntropySettings()))
    features = task.features(rows, word_tokenizer(), LENGTHS)
    model = tiny_task_model(task)
    assert overfit(model, features, steps=150) < 0.2
    said = model.task.decode(compute_logits(model, features, device=CPU).logits, features, rows)
    assert score(task, rows, said)["f1_micro"] == 1.0
    # Logits that are all too low by one: one half finds nothing, tuned thresholds everything.
    low = [np.array([-1.0 if name in r.target.names else -3.0 for name in names]) for r in rows]
    missed = task.decode(low, features, rows)
    assert score(task, rows, missed)["f1_micro"] == 0.0
    tuned = task.tuned(rows, missed)
    assert score(tuned, rows, tuned.decode(low, features, rows))["f1_micro"] == 1.0


def test_numbers_are_learned_on_their_own_scale() -> None:
    rows = [row(n, [text, "bird"], ScoreTarget(100.0 + 10 * n)) for n, text in enumerate(texts(6))]
    task = regress_from(rows, TaskOptions())
    assert (task.mean, round(task.spread, 3)) == (125.0, 17.078)
    features = task.features(rows, word_tokenizer(), LENGTHS)
    model = tiny_task_model(task)
    overfit(model, features, steps=150)
    said = model.task.decode(compute_logits(model, features, device=CPU).logits, features, rows)
    assert score(task, rows, said)["spearman"] > 0.99
    assert abs(float(said[0].value) - 100.0) < 4.0


def test_a_number_that_never_changes_cannot_be_learned() -> None:
    with pytest.raises(ConfigError, match="all training rows have the number 2"):
        regress_from([row(n, ["bird"], ScoreTarget(2.0)) for n in range(3)], TaskOptions())


def test_answers_are_the_same_in_any_batch_and_in_order() -> None:
    rows = labeled(13)
    task = classify_from(rows, TaskOptions(loss=CrossEntropySettings()))
    features = task.features(rows, word_tokenizer(), LENGTHS)
    model = tiny_task_model(task, vector=VectorSettings(pooling="mean"))
    alone = compute_logits(model, features, device=CPU, micro_tokens=1)
    together = compute_logits(model, features, device=CPU, micro_tokens=10_000)
    assert len(alone.logits) == 13
    for one, other in zip(alone.logits, together.logits, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert alone.loss == pytest.approx(together.loss, abs=1e-5)


@pytest.mark.parametrize("pool", ["mean", "max"])
def test_windows_of_a_long_text_are_pooled_as_one(pool: Literal["mean", "max"]) -> None:
    long = " ".join(TASK_WORDS * 3)
    rows = [row(0, [long], Label("a")), row(1, ["bird"], Label("b"))]
    task = Classify(labels=("a", "b"))
    lengths = LengthSettings(max_length=16, stride=10, pool=pool)
    features = task.features(rows, word_tokenizer(), lengths)
    assert [feature.example for feature in features] == [0, 0, 0, 0, 1]
    assert all(feature.encoding.total_cut == 0 for feature in features)
    model = tiny_task_model(task, vector=VectorSettings(pooling="mean"), lengths=lengths)
    assert isinstance(model.head, TextsHead)
    batch = task_batch(features)
    assert (batch.examples, batch.owners.tolist(), batch.targets.tolist()) == (
        2,
        [0, 0, 0, 0, 1],
        [0, 1],
    )
    model.eval()
    each = torch.cat([model.passages(task_batch([one])) for one in features[:4]])
    joined = each.mean(dim=0) if pool == "mean" else each.amax(dim=0)
    said = model.head.own(joined[None], batch.meta[:1])[0]
    torch.testing.assert_close(model(batch)[0], said, atol=1e-5, rtol=0)


def test_what_was_cut_is_said() -> None:
    rows = [row(0, [" ".join(TASK_WORDS)], Label("a")), row(1, ["bird"], Label("b"))]
    task = Classify(labels=("a", "b"))
    features = task.features(rows, word_tokenizer(), LengthSettings(max_length=7, keep="tail"))
    said = task.decode([np.zeros(2, np.float32)] * 2, features, rows)
    assert [one.cut for one in said] == [len(TASK_WORDS) - 5, 0]


def test_an_unknown_label_names_its_place() -> None:
    task = Classify(labels=("a", "b"))
    with pytest.raises(TextError, match=r"rows.tsv, line 4: the label is .*zz"):
        task.features([row(3, ["bird"], Label("zz"))], word_tokenizer(), LENGTHS)


def test_batches_hold_whole_examples_within_the_budget() -> None:
    rows = labeled(30)
    task: Task = classify_from(rows, TaskOptions(loss=CrossEntropySettings()))
    features = task.features(rows, word_tokenizer(), LENGTHS)
    parts = list(example_batches(features, 20))
    assert sorted(number for part in parts for number in part) == list(range(30))
    sizes = [sum(len(features[number]) for number in part) for part in parts]
    assert all(size <= 20 or len(part) == 1 for size, part in zip(sizes, parts, strict=True))


def test_losses_are_the_sums_they_claim_to_be() -> None:
    torch.manual_seed(0)
    logits, targets = torch.randn(6, 4), torch.tensor([0, 1, 2, 3, 1, 1])
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    odds = logits.softmax(1)[torch.arange(6), targets]
    plain = class_loss(logits, targets, CrossEntropySettings(), weights)
    torch.testing.assert_close(plain.sum, (-odds.log() * weights[targets]).sum())
    focal = class_loss(logits, targets, FocalSettings(gamma=1.5), None)
    torch.testing.assert_close(focal.sum, (-((1 - odds) ** 1.5) * odds.log()).sum())
    assert (plain.count, focal.count) == (6, 6)
    marks = torch.randint(0, 2, (6, 4)).float()
    both = labels_loss(logits, marks, FocalSettings(gamma=2.0), None)
    chance = torch.where(marks > 0, logits.sigmoid(), 1 - logits.sigmoid())
    torch.testing.assert_close(both.sum, (-((1 - chance) ** 2) * chance.log()).mean(1).sum())
    smooth = labels_loss(logits, marks, CrossEntropySettings(smoothing=0.2), None)
    aims = marks * 0.8 + 0.1
    torch.testing.assert_close(
        smooth.sum, F.binary_cross_entropy_with_logits(logits, aims, reduction="none").mean(1).sum()
    )


def test_balanced_weights_and_unknown_names() -> None:
    rows = [row(n, ["bird"], Label("a" if n else "b")) for n in range(4)]
    assert classify_from(
        rows, TaskOptions(loss=CrossEntropySettings(weights="balanced"))
    ).weights == (4 / 6, 2.0)
    with pytest.raises(ConfigError, match="names 'c', which is no label"):
        classify_from(rows, TaskOptions(loss=CrossEntropySettings(weights={"c": 2.0})))


def test_meta_features_stand_beside_the_text() -> None:
    """Two rows of the same text differ by their meta feature alone."""
    from dataclasses import replace

    rows = [row(n, ["bird house"], Label("ab"[n])) for n in range(2)]
    task = Classify(labels=("a", "b"))
    features = [
        replace(feature, meta=np.array([n]))
        for n, feature in enumerate(task.features(rows, word_tokenizer(), LENGTHS))
    ]
    head = HeadSettings(meta={"kind": 4}, dropout=0.0)
    model = tiny_task_model(
        task, vector=VectorSettings(pooling="mean"), head=head, meta_sizes={"kind": 2}
    )
    assert overfit(model, features, steps=200) < 0.2


def test_published_pooling_refuses_heads_that_are_not() -> None:
    task = Classify(labels=("a", "b"))
    with pytest.raises(ConfigError, match="published pooling goes with a single linear layer"):
        tiny_task_model(task, head=HeadSettings(layers=(8,)))
