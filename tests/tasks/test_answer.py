"""The task of finding answers: its loss, no-answer rule, threshold, figures, a batch by heart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from answer_cases import planted, question, tokenizer
from by_heart import steps_to_learn
from tiny_tasks import CPU, TASK_WORDS, row, tiny_task_model, word_tokenizer
from torch.nn import functional as F

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import Answers, Example
from bertsmith.tasks.answer.answer import FindAnswer, answer_from
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import compute_logits
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.tasks.prediction import PredictedAnswer, Prediction
from bertsmith.tasks.task import Logits, TaskOptions, score

LENGTHS = LengthSettings(max_length=16)
COLORS = TASK_WORDS[:3]
THINGS = TASK_WORDS[-5:]


def colors(count: int = 6, *, impossible: bool = False) -> list[Example]:
    """What color is the thing? Contexts of one window and of several; some do not tell."""
    rng = np.random.default_rng(4)
    rows = []
    for number in range(count):
        things = rng.permutation(THINGS)[: 2 + number % 3]
        context = " ".join(f"{rng.choice(COLORS)} {thing}" for thing in things)
        asked = str(things[rng.integers(len(things))])
        start = context.index(asked)
        start = context.rindex(" ", 0, start - 1) + 1 if " " in context[: start - 1] else 0
        text = context[start:].split()[0]
        target = Answers(((text, start),))
        if impossible and number % 2:
            asked, target = next(one for one in THINGS if one not in things), Answers(())
        rows.append(row(number, [asked, context], target))
    return rows


@pytest.mark.parametrize(
    "head", [HeadSettings(dropout=0.0), HeadSettings(layers=(32,), activation="gelu", dropout=0.0)]
)
@pytest.mark.parametrize("impossible", [False, True])
def test_a_batch_is_learned_by_heart_and_answered(head: HeadSettings, impossible: bool) -> None:
    rows = colors(impossible=impossible)
    task = answer_from(rows, TaskOptions())
    assert task.no_answer is impossible
    features = task.features(rows, word_tokenizer(), LENGTHS)
    model = tiny_task_model(task, head=head)
    assert (model.head.published == "span") is head.is_plain
    steps_to_learn(model, features)
    found = compute_logits(model, features, device=CPU, micro_tokens=30)
    assert found.loss is not None
    assert found.loss < 0.05
    said = task.decode(found.logits, features, rows)
    assert score(task, rows, said)["exact"] == 1.0


def test_windows_with_and_without_the_answer_are_learned_by_heart() -> None:
    rows = colors()
    task = FindAnswer()
    features = task.features(rows, word_tokenizer(), LengthSettings(max_length=10))
    assert len(features) > len(rows)
    assert 0 < sum(feature.target.any() for feature in features) < len(features)
    model = tiny_task_model(task)
    steps_to_learn(model, features)
    found = compute_logits(model, features, device=CPU, micro_tokens=30)
    for feature, logits in zip(features, found.logits, strict=True):
        assert logits.argmax(axis=0).tolist() == feature.target.tolist()


def test_the_loss_is_a_softmax_within_each_window() -> None:
    rows = colors(4)
    task = FindAnswer()
    features = task.features(rows, word_tokenizer(), LengthSettings(max_length=10))
    batch = task_batch(features)
    random = torch.Generator().manual_seed(1)
    logits = torch.randn(batch.tokens, 2, generator=random, requires_grad=True)
    found = task.loss(logits, batch)
    wanted = torch.zeros(())
    for feature, part in zip(features, logits.split([len(f) for f in features]), strict=True):
        for side in (0, 1):
            wanted = wanted + F.cross_entropy(
                part[None, :, side], torch.tensor([feature.target[side]])
            )
    torch.testing.assert_close(found.sum, wanted / 2)
    assert found.count == task.count(batch) == len(features)
    (gradient,) = torch.autograd.grad(found.sum, logits)
    (expected,) = torch.autograd.grad(wanted / 2, logits)
    torch.testing.assert_close(gradient, expected)


def test_a_batch_without_answers_has_no_loss() -> None:
    task = FindAnswer()
    features = task.features([row(0, ["red", "red tree"])], word_tokenizer(), LENGTHS)
    batch = task_batch(features)
    with pytest.raises(TextError, match="unlabeled rows"):
        task.loss(torch.zeros(batch.tokens, 2), batch)


def one_window(*, null: float, best: float, second: float) -> tuple[list[Feature], list[Logits]]:
    task = FindAnswer()
    features = task.features([question("red tree", 0, 3)], word_tokenizer(), LENGTHS)
    logits = np.full((len(features[0]), 2), -30.0, dtype=np.float32)
    logits[0] = null / 2
    rows = np.flatnonzero(features[0].units >= 0)
    logits[rows[0]], logits[rows[1]] = best / 2, second / 2
    return features, [logits]


def test_no_answer_is_given_where_the_first_token_leads_by_more_than_the_threshold() -> None:
    rows = [question("red tree", 0, 3)]
    features, logits = one_window(null=5.0, best=4.0, second=2.0)
    (sure,) = FindAnswer().decode(logits, features, rows)
    assert sure.value == PredictedAnswer("red", 0, 3, 4.0)
    assert all(one.text for one in sure.others)
    task = FindAnswer(no_answer=True)
    (said,) = task.decode(logits, features, rows)
    assert said.value == PredictedAnswer("", 0, 0, 5.0)
    # red and tree at 4 and 2, "red tree" at 1 + 2, nothing at 5
    assert [(one.text, one.score) for one in said.others] == [
        ("red", 4.0),
        ("red tree", 3.0),
        ("tree", 2.0),
    ]
    odds = np.exp([5.0, 4.0, 3.0, 2.0])
    assert said.confidence == pytest.approx(odds[0] / odds.sum(), rel=1e-5)
    assert said.probabilities[""] == said.confidence
    assert sum(said.probabilities.values()) == pytest.approx(1.0)
    (bold,) = replace(task, threshold=1.0).decode(logits, features, rows)
    assert bold.value.text == "red"
    assert [one.text for one in bold.others] == ["", "red tree", "tree"]


def test_of_several_windows_the_least_sure_first_token_counts() -> None:
    rows = [question("red tree " * 20, 0, 3)]
    task = FindAnswer(no_answer=True)
    features = task.features(rows, word_tokenizer(), LENGTHS)
    assert len(features) > 2
    logits = [np.full((len(f), 2), -30.0, dtype=np.float32) for f in features]
    for number, one in enumerate(logits):
        one[0] = 10.0 + number
    logits[-1][0] = 1.0
    (said,) = task.decode(logits, features, rows)
    assert said.value == PredictedAnswer("", 0, 0, 2.0)


def spoken(span: str, lead: float) -> Prediction:
    """A prediction whose score for no answer is `lead` above that of its span."""
    return Prediction(
        value=PredictedAnswer(span, 0, len(span), 1.0),
        others=(PredictedAnswer("", 0, 0, 1.0 + lead),),
    )


def test_the_threshold_is_tuned_where_both_kinds_of_questions_are() -> None:
    rows = [question("red tree", 0, 3, number=n) for n in range(3)]
    rows += [row(n, ["who?", "red tree"], Answers(())) for n in (3, 4)]
    said = [spoken("red", lead) for lead in (-5.0, 0.5, 1.5, 3.0, 4.0)]
    tuned = FindAnswer(no_answer=True).tuned(rows, said)
    assert isinstance(tuned, FindAnswer)
    assert 1.5 <= tuned.threshold < 3.0
    assert tuned.to_json()["threshold"] == tuned.threshold
    assert FindAnswer(**tuned.to_json()) == tuned
    # Nothing is tuned without the rule, or on rows of one kind.
    assert FindAnswer().tuned(rows, said) == FindAnswer()
    alike = FindAnswer(no_answer=True)
    assert alike.tuned(rows[:3], said[:3]) == alike
    assert alike.tuned(rows[3:], said[3:]) == alike


def test_tuning_on_decoded_logits_reaches_the_best_score() -> None:
    rows = colors(12, impossible=True)
    task = FindAnswer(no_answer=True)
    features = task.features(rows, word_tokenizer(), LengthSettings(max_length=32))
    logits = planted(features)
    for feature, one in zip(features, logits, strict=True):
        one[0] += 60.0 if feature.target.any() else 90.0  # too fond of no answer, by far
    before = task.decode(logits, features, rows)
    tuned = task.tuned(rows, before)
    after = tuned.decode(logits, features, rows)
    assert tuned.threshold != 0.0
    assert score(tuned, rows, after)["f1"] == 1.0 > score(task, rows, before)["f1"]


def test_figures_count_every_accepted_answer() -> None:
    rows = [row(0, ["who?", "red tree"], Answers((("red", 0),), ("a tree",)))]
    for text, exact in [("red", 1.0), ("the tree", 1.0), ("red tree", 0.0)]:
        said = [Prediction(value=PredictedAnswer(text, 0, len(text), 1.0))]
        assert score(FindAnswer(), rows, said)["exact"] == exact


def test_an_empty_context_has_no_answer_and_breaks_nothing() -> None:
    rows = [row(0, ["who?", ""]), question("red tree", 0, 3, number=1)]
    for task in (FindAnswer(), FindAnswer(no_answer=True)):
        features = task.features(rows, word_tokenizer(), LENGTHS)
        logits = [np.ones((len(f), 2), dtype=np.float32) for f in features]
        empty, full = task.decode(logits, features, rows)
        assert empty.value.text == ""
        assert empty.others == ()
        assert full.value.text or task.no_answer
    assert FindAnswer().decode([], [], []) == []


def test_the_language_sets_how_long_an_answer_may_be() -> None:
    english = [question("The cat sat on the mat and it was the best of all.", 4, 7)]
    chinese = [question("我爱北京天安门", 0, 1)]
    assert answer_from(english, TaskOptions()).longest == 30
    assert answer_from(chinese, TaskOptions()).longest == 60
    assert answer_from(english, TaskOptions(language="zh")).longest == 60
    with pytest.raises(ConfigError, match=r"answer\.longest is 0"):
        FindAnswer(longest=0)


def test_no_span_is_longer_than_it_may_be() -> None:
    rows = [question("x " * 30, 0, 1)]
    task = FindAnswer(longest=4)
    features = task.features(rows, tokenizer("cased"), LengthSettings(max_length=64))
    logits = np.random.default_rng(0).normal(size=(len(features[0]), 2)).astype(np.float32)
    inside = np.flatnonzero(features[0].units >= 0)
    logits[inside[0], 0] = logits[inside[-1], 1] = 50.0
    (said,) = task.decode([logits], features, rows)
    spans = [said.value, *said.others]
    assert len(spans) == task.n_best
    assert all(1 <= len(one.text.split()) <= 4 for one in spans)
