"""Labeled rows of every task with predictions that are partly wrong, made from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from bertsmith.labeled.example import (
    Answers,
    ChoiceIndex,
    Example,
    Label,
    LabelSet,
    ScoreTarget,
    Tagged,
)
from bertsmith.tasks.answer.answer import FindAnswer
from bertsmith.tasks.choose import Choose
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.multilabel import Multilabel
from bertsmith.tasks.prediction import PredictedAnswer, Prediction
from bertsmith.tasks.regress import Regress
from bertsmith.tasks.tag.scheme import tag_spans
from bertsmith.tasks.tag.tag import Tag
from bertsmith.tasks.task import Task

Case = tuple[Task, list[Example], list[Prediction]]
WORDS = ["the", "river", "runs", "past", "a", "small", "green", "house", "where", "birds"]
WORDS += ["sing", "of", "stone", "and", "rain"]


def example(number: int, texts: Sequence[str], target: Any, source: str = "dev.tsv") -> Example:
    return Example(
        source=source, line=number + 1, id=str(number), texts=tuple(texts), target=target
    )


def words(draw: random.Random, count: int) -> str:
    return " ".join(draw.choices(WORDS, k=count))


def classify_case(
    rows: int = 200, labels: Sequence[str] = ("neg", "neutral", "pos"), source: str = "dev.tsv"
) -> Case:
    draw = random.Random(1)
    task = Classify(labels=tuple(labels))
    examples, said = [], []
    for number in range(rows):
        truth = draw.choice(labels)
        sure = draw.uniform(0.5, 1.0)
        given = truth if draw.random() < sure else draw.choice(labels)
        rest = (1 - sure) / max(1, len(labels) - 1)
        odds = {label: sure if label == given else rest for label in labels}
        text = words(draw, draw.choice([4, 9, 200])) + f" {truth} {number}"
        examples.append(example(number, [text], Label(truth), source))
        cut = 60 if len(text) > 400 else 0
        said.append(Prediction(value=given, probabilities=odds, confidence=sure, cut=cut))
    return task, examples, said


def multilabel_case(rows: int = 120, labels: Sequence[str] = ("sport", "tech", "art")) -> Case:
    draw = random.Random(2)
    task = Multilabel(labels=tuple(labels), thresholds=tuple(0.3 + 0.1 * n for n in range(3)))
    examples, said = [], []
    for number in range(rows):
        wanted = tuple(label for label in labels if draw.random() < 0.4)
        odds = {
            label: min(1.0, max(0.0, (0.75 if label in wanted else 0.25) + draw.gauss(0, 0.2)))
            for label in labels
        }
        given = tuple(
            label
            for label, limit in zip(labels, task.thresholds, strict=True)
            if odds[label] >= limit
        )
        examples.append(example(number, [words(draw, 8)], LabelSet(wanted)))
        said.append(Prediction(value=given, probabilities=odds))
    return task, examples, said


def regress_case(rows: int = 150) -> Case:
    draw = random.Random(3)
    examples, said = [], []
    for number in range(rows):
        truth = draw.uniform(0, 5)
        pair = [words(draw, 6), words(draw, 7)]
        examples.append(example(number, pair, ScoreTarget(truth)))
        said.append(Prediction(value=truth + draw.gauss(0.1, 0.6), cut=number % 3))
    return Regress(mean=2.5, spread=1.4), examples, said


def tag_case(rows: int = 80, kinds: Sequence[str] = ("PER", "LOC")) -> Case:
    draw = random.Random(4)
    labels = ("O", *(f"{letter}-{kind}" for kind in kinds for letter in "BI"))
    examples, said = [], []
    for number in range(rows):
        names = words(draw, 9).split()
        text, units, at = " ".join(names), [], 0
        for name in names:
            units.append((at, at + len(name)))
            at += len(name) + 1
        tags = _tags(draw, kinds)
        given = tags if draw.random() < 0.5 else _tags(draw, kinds)
        examples.append(example(number, [text], Tagged(tuple(units), tuple(tags))))
        said.append(
            Prediction(
                value=tag_spans(text, units, given, bio=True),
                tags=tuple(given),
                confidence=draw.uniform(0.6, 1),
            )
        )
    return Tag(labels=labels), examples, said


def _tags(draw: random.Random, kinds: Sequence[str]) -> list[str]:
    one, two = draw.choice(kinds), draw.choice(kinds)
    where = draw.randrange(3)
    tags = ["O"] * 9
    tags[where : where + 2] = [f"B-{one}", f"I-{one}"]
    tags[where + 4] = f"B-{two}"
    return tags


def answer_case(rows: int = 90) -> Case:
    draw = random.Random(5)
    asks = (
        "Who built the house?",
        "How many birds sing?",
        "In which year?",
        "谁 在 唱?",
        "Name it.",
    )
    examples, said = [], []
    for number in range(rows):
        context = words(draw, 150)
        gold = context[30:41].strip()
        target = Answers(((gold, context.index(gold)),)) if number % 4 else Answers(())
        start = context.index(gold) if draw.random() < 0.6 else 400
        text = context[start : start + len(gold)] if draw.random() < 0.8 else ""
        value = PredictedAnswer(text, start if text else 0, start + len(text) if text else 0, 1.0)
        examples.append(example(number, [asks[number % 5], context], target, "dev.json"))
        said.append(Prediction(value=value, confidence=draw.random(), cut=0))
    return FindAnswer(no_answer=True), examples, said


def choose_case(rows: int = 60) -> Case:
    draw = random.Random(6)
    examples, said = [], []
    for number in range(rows):
        choices = 3 + number % 2
        right = draw.randrange(choices)
        texts = [words(draw, 8), *(words(draw, 4) for _ in range(choices))]
        raw = [draw.random() for _ in range(choices)]
        odds = [value / sum(raw) for value in raw]
        best = odds.index(max(odds))
        examples.append(example(number, texts, ChoiceIndex(right)))
        said.append(
            Prediction(
                value=best,
                probabilities={str(place): chance for place, chance in enumerate(odds)},
                confidence=odds[best],
            )
        )
    return Choose(), examples, said


CASES = {
    "classify": classify_case,
    "multilabel": multilabel_case,
    "regress": regress_case,
    "tag": tag_case,
    "answer": answer_case,
    "choose": choose_case,
}
