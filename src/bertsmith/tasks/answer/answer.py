"""Extractive question answering: a span of the context, or no answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from bertsmith.errors import ConfigError
from bertsmith.labeled.example import Answers, Example
from bertsmith.labeled.language import guess_language
from bertsmith.metrics import ANSWERS
from bertsmith.metrics.answers import answer_scores, rules_for, tune_no_answer
from bertsmith.metrics.baselines import majority
from bertsmith.metrics.baselines.answer_window import answer_words
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.answer import evaluation
from bertsmith.tasks.answer.decoding import Spans, best_spans
from bertsmith.tasks.answer.features import WindowRule, answer_features, answers_of, characters_of
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.classify import softmax
from bertsmith.tasks.feature import Feature, tokens_cut
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.losses import group_cross_entropy
from bertsmith.tasks.prediction import PredictedAnswer, Prediction
from bertsmith.tasks.stored import stored_fields
from bertsmith.tasks.task import Logits, PublishedHead, Task, TaskKind, TaskOptions
from bertsmith.text.encoding import FieldEncoder

logger = logging.getLogger(__name__)

LONGEST = 30
LONGEST_BY_LANGUAGE = {"zh": 60, "ja": 60}  # where a character is a token
SAMPLED_CONTEXTS = 200  # for guessing the language
STORED = ("no_answer", "threshold", "longest", "n_best", "question_limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class FindAnswer(Task):
    """Span answers (Rajpurkar et al. 2016; with questions that have none, 2018).

    An answer has at most `longest` tokens. With `no_answer`, there is none if the score of the
    first token, the lowest of all windows, is more than `threshold` above that of the best span.
    `question_limit` is the most tokens a question may have.
    """

    no_answer: bool = False
    threshold: float = 0.0
    longest: int = LONGEST
    n_best: int = 20
    question_limit: int = 64

    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("longest", "n_best", "question_limit"):
            if getattr(self, name) < 1:
                raise ConfigError(f"answer.{name} is {getattr(self, name)}; it must be at least 1")

    @property
    def kind(self) -> TaskKind:
        """Extractive question answering."""
        return KIND

    @property
    def outputs(self) -> int:
        """Start and end."""
        return 2

    def features(
        self, examples: Sequence[Example], tokenizer: FieldEncoder, lengths: LengthSettings
    ) -> list[Feature]:
        """The windows of each example; what is cut or cannot be learned is logged by id."""
        rule = WindowRule.of(tokenizer, lengths, self.question_limit)
        features, account = answer_features(examples, tokenizer, rule)
        for line in account.lines():
            logger.warning("%s", line)
        return features

    def count(self, batch: TaskBatch) -> int:
        """One per passage."""
        return len(batch.layout.lengths)

    def loss(self, logits: Tensor, batch: TaskBatch) -> LossSum:
        """(T, 2) -> LossSum over passages: the mean of start and end, each among all tokens."""
        aims = batch.wanted.reshape(-1, 2)  # (B, 2)
        lengths = batch.layout.lengths
        first, last = (
            group_cross_entropy(logits[:, side], lengths, aims[:, side]) for side in (0, 1)
        )
        return LossSum((first + last) / 2, len(lengths))

    def decode(
        self, logits: Sequence[Logits], features: Sequence[Feature], examples: Sequence[Example]
    ) -> list[Prediction]:
        """The best answer of each example over its windows: (L, 2) of each feature.

        `others` are the next best, with "" for no answer among them if there may be none.
        """
        owners = np.array([feature.example for feature in features], dtype=np.int64)
        nulls = np.full(len(examples), np.inf)
        np.minimum.at(nulls, owners, [float(one[0].sum()) for one in logits])
        spans = best_spans(logits, features, longest=self.longest, count=self.n_best)
        texts = [example.texts[1] for example in examples]
        answers = _answers(spans, features, texts, self.n_best)
        cuts = tokens_cut(features, len(examples))
        return [
            self._prediction(ranked, float(null), cut)
            for ranked, null, cut in zip(answers, nulls, cuts, strict=True)
        ]

    def truth(self, examples: Sequence[Example]) -> list[tuple[str, ...]]:
        """The gold answers of N questions."""
        return [_golds(example) for example in examples]

    def predicted(self, predictions: Sequence[Prediction]) -> list[str]:
        """The predicted answers of N questions."""
        return [one.value_as(PredictedAnswer).text for one in predictions]

    def tuned(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> Task:
        """With the threshold of the best F1 on these examples, if they are of both kinds."""
        golds = self.truth(examples)
        if not self.no_answer or all(golds) or not any(golds):
            return self
        ranked = [_ranked(one) for one in predictions]
        # Where there is no span to give, no threshold changes anything.
        rows = [row for row, (span, _) in enumerate(ranked) if span is not None]
        if not rows:
            return self
        spans = [span for span, _ in ranked if span is not None]
        rules = rules_for(golds)
        targets = [golds[row] for row in rows]
        given = answer_scores(targets, [span.text for span in spans], rules)[:, 1]
        silent = answer_scores(targets, [""] * len(rows), rules)[:, 1]
        against = [ranked[row][1] - span.score for row, span in zip(rows, spans, strict=True)]
        return replace(self, threshold=tune_no_answer(given, silent, against))

    def to_json(self) -> Mapping[str, Any]:
        """JSON values."""
        return {name: getattr(self, name) for name in STORED}

    def _prediction(self, answers: list[PredictedAnswer], null: float, cut: int) -> Prediction:
        """`answers` are the spans, best first."""
        nothing = PredictedAnswer("", 0, 0, null)
        ranked = answers
        if self.no_answer or not answers:
            ranked = sorted([*answers, nothing], key=lambda one: -one.score)
        silent = not answers or (self.no_answer and null - answers[0].score > self.threshold)
        value = nothing if silent else answers[0]
        odds = softmax(np.array([one.score for one in ranked]))
        chances: dict[str, float] = {}
        for one, chance in zip(ranked, odds.tolist(), strict=True):
            chances[one.text] = chances.get(one.text, 0.0) + chance
        return Prediction(
            value=value,
            probabilities=chances,
            confidence=chances[value.text],
            cut=cut,
            others=tuple(one for one in ranked if one is not value),
        )


def _answers(
    spans: Spans, features: Sequence[Feature], texts: Sequence[str], count: int
) -> list[list[PredictedAnswer]]:
    """The `count` best spans of each example as characters, best first, none twice."""
    owners = np.array([feature.example for feature in features], dtype=np.int64)[spans.passages]
    order = np.lexsort((spans.ends, spans.starts, spans.passages, -spans.scores, owners))
    by_example: list[dict[tuple[int, int], PredictedAnswer]] = [{} for _ in texts]
    columns = (owners, spans.passages, spans.starts, spans.ends, spans.scores)
    for owner, passage, first, last, score in zip(
        *(column[order].tolist() for column in columns), strict=True
    ):
        here, text = by_example[owner], texts[owner]
        if len(here) == count:
            continue
        offsets = features[passage].encoding.offsets
        place = characters_of(text, offsets, first, last)
        if place[0] < place[1] and place not in here:
            here[place] = PredictedAnswer(text[slice(*place)], *place, score)
    return [list(answers.values()) for answers in by_example]


def _ranked(prediction: Prediction) -> tuple[PredictedAnswer | None, float]:
    """The best span, if there is one, and the score of having none."""
    ranked = [prediction.value_as(PredictedAnswer), *prediction.others]
    best = max((one for one in ranked if one.text), key=lambda one: one.score, default=None)
    return best, next(one.score for one in ranked if not one.text)


def _golds(example: Example) -> tuple[str, ...]:
    target = answers_of(example)
    return (*(text for text, _ in target.placed), *target.unplaced)


def answer_from(examples: Sequence[Example], options: TaskOptions) -> FindAnswer:
    """With `no_answer` if a training row has none, and answers as long as the language's are."""
    longest, language = options.settings.longest, options.language
    if longest is None:
        if language is None:
            contexts = [example.texts[-1] for example in examples[:SAMPLED_CONTEXTS]]
            language = (guess_language(contexts) or ("", ""))[0]
        longest = LONGEST_BY_LANGUAGE.get(language, LONGEST)
    return FindAnswer(
        no_answer=any(isinstance(e.target, Answers) and not _golds(e) for e in examples),
        longest=longest,
        n_best=options.settings.n_best,
        question_limit=options.settings.question_limit,
    )


def _joint_task(tasks: Sequence[Task]) -> FindAnswer:
    """With the mean of the thresholds."""
    own = [one for one in tasks if isinstance(one, FindAnswer)]
    if len({replace(one, threshold=0.0) for one in own}) > 1:
        raise ConfigError(
            "the models of an ensemble differ in settings of the task (no_answer, longest, n_best "
            "or question_limit); train them with the same ones"
        )
    return replace(own[0], threshold=float(np.mean([one.threshold for one in own])))


def _check_texts(given: int, trained: int) -> None:
    if given != 2:
        raise ConfigError("the model answers questions: give the context with --pair TEXT")


KIND = TaskKind(
    name="answer",
    enriched=False,
    title="extractive question answering",
    target="answers",
    metric=ANSWERS,
    from_data=answer_from,
    from_json=lambda values: stored_fields(FindAnswer, values, *STORED),
    from_labels=lambda labels: FindAnswer(),
    reads="rows",
    head=PublishedHead("span", labeled=False),  # a span head always has two outputs
    windows="always",
    settings=frozenset({"longest", "n_best", "question_limit"}),
    majority=majority.answer,
    words=answer_words,
    joint_task=_joint_task,
    right=evaluation.right,
    error_weight=evaluation.error_weight,
    error_order="those with the highest confidence and the lowest F1 come first",
    row_score=evaluation.row_score,
    sides=evaluation.sides,
    sections=evaluation.sections,
    columns=("prediction", "confidence", "others", "tokens_cut"),
    figures=("f1", "exact"),
    main_title="F1 of answers",
    majority_title="most frequent answer",
    words_title="sliding window of question words",
    pipeline="question-answering",
    sample_call='[("a question", "a text")]',
    check_texts=_check_texts,
)
