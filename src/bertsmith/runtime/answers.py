"""Answers to rows: what a model adds to each of them, the same for files, the service and Python.

`ANSWERS` says which abilities of a `LoadedModel` answer rows, and with which settings.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.labeled.example import Example
from bertsmith.runtime.generation.generator import Source, TextGenerator
from bertsmith.runtime.generation.options import Generated, GenerationOptions
from bertsmith.tasks.prediction import PredictedAnswer, PredictedSpan, Prediction
from bertsmith.tasks.spelling.edits import CorrectedText
from bertsmith.tasks.spelling.settings import CorrectionOptions
from bertsmith.tasks.task import Logits
from bertsmith.text.encoding import UnknownTokens

if TYPE_CHECKING:
    from bertsmith.runtime.corrector import Corrector
    from bertsmith.runtime.loading import LoadedModel
    from bertsmith.runtime.predictor import Predictor

LABELS_JOINED = "|"
SHOWN_OTHERS = 5  # further answers of a question in a row
Result = TypeVar("Result")


class Answerer(ABC, Generic[Result]):
    """One model that answers rows, with the settings it answers by.

    `columns` are all keys that an answer may add to a row, the first one its gist; `shown` are
    those that a table has, `reads` columns of the input that are read in addition to the texts.
    `settings` decide the answers, besides the model and the rows.
    """

    columns: tuple[str, ...]
    shown: tuple[str, ...]
    reads: tuple[str, ...] = ()
    settings: Mapping[str, Any]

    def settle(self, tokens: int) -> str:
        """Select the engine for about so many tokens, for good; its name, if there is a choice.

        Answers by one engine are equal to the last bit.
        """
        return ""

    @abstractmethod
    def answers(self, rows: Sequence[Example], counts: Counter[str]) -> Iterable[Result]:
        """The answer to each row, in order; what is counted on the way is added to `counts`."""

    @abstractmethod
    def to_json(self, result: Result) -> dict[str, Any]:
        """A whole answer, as the service returns it."""

    def row(self, result: Result | None) -> dict[str, Any]:
        """What an answer adds to its row, by `columns`; None: the row has none."""
        return {self.columns[0]: None} if result is None else self.to_json(result)

    def cell(self, name: str, result: Result) -> str:
        """One column of a table."""
        value = self.row(result).get(name, "")
        return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value)


class PredictedRow(NamedTuple):
    """A prediction, and the logits (C,) of a task that reads whole texts."""

    prediction: Prediction
    logits: Logits | None = None


class RowPredictions(Answerer[PredictedRow]):
    """Labels, numbers, tags or answers by a fine-tuned model, or an ensemble of several."""

    columns = ("prediction", "confidence", "probabilities", "tags", "others", "tokens_cut")

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._task = predictor.task
        self._unknown = UnknownTokens()
        self.shown = self._task.kind.columns
        self.reads = predictor.meta_columns
        self.settings = {}

    def settle(self, tokens: int) -> str:
        """The engine for about so many tokens."""
        return self._predictor.settle(tokens)

    def answers(self, rows: Sequence[Example], counts: Counter[str]) -> list[PredictedRow]:
        """The predictions; counts rows that were cut, tokens and unknown tokens."""
        unknown = self._unknown = self.unknown(counts)
        if self._task.reads == "text":
            pairs = self._predictor.predict_with_logits(rows, unknown=unknown)
            found = [PredictedRow(*pair) for pair in pairs]
        else:
            found = [PredictedRow(one) for one in self._predictor.predict(rows, unknown=unknown)]
        counts["cut"] += sum(one.prediction.cut > 0 for one in found)
        counts |= {"tokens": unknown.tokens, "unknown": unknown.unknown}
        return found

    def unknown(self, counts: Mapping[str, int]) -> UnknownTokens:
        """The unknown tokens that were counted."""
        tokens, unknown = counts.get("tokens", 0), counts.get("unknown", 0)
        return replace(self._unknown, tokens=tokens, unknown=unknown)

    def to_json(self, result: PredictedRow) -> dict[str, Any]:
        """The prediction, and its logits by label."""
        values = result.prediction.to_json()
        if result.logits is not None:
            values["logits"] = named_logits(result.logits, self._task.labels)
        return values

    def row(self, result: PredictedRow | None) -> dict[str, Any]:
        """The prediction with a few of its alternatives."""
        return {"prediction": None} if result is None else prediction_values(result.prediction)

    def cell(self, name: str, result: PredictedRow) -> str:
        """One column of a table."""
        value = self.row(result).get(name)
        if name == "prediction":
            return _text(result.prediction)
        if value is None:
            return "0" if name == "tokens_cut" else ""
        if isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=False)
        return str(value)


class RowTexts(Answerer[Generated]):
    """Texts that a model writes for each row; `scores` adds those of the answers to rows."""

    columns = ("generated", "stopped", "tokens", "score", "answers")

    def __init__(
        self, generator: TextGenerator, options: GenerationOptions, *, scores: bool = False
    ) -> None:
        generator.plan(options)  # options that cannot be are refused before the work
        self._generator = generator
        self._options = options
        self._scores = scores
        self.shown = tuple(name for name in self.columns if scores or name != "score")
        self.settings = {**asdict(options), "scores": scores}

    def answers(self, rows: Sequence[Example], counts: Counter[str]) -> list[Generated]:
        """What is written; counts why it stopped."""
        sources = [Source(one.texts[0], f"{one.source}, line {one.line:,}") for one in rows]
        found = list(self._generator.each(sources, self._options))
        counts.update(one.stopped for one in found)
        return found

    def to_json(self, result: Generated) -> dict[str, Any]:
        """The best text, and all answers with their scores."""
        return {"text": result.text, "answers": [one.to_json() for one in result.answers]}

    def row(self, result: Generated | None) -> dict[str, Any]:
        """The best answer, and the texts of all where there are several."""
        if result is None:
            return {"generated": None}
        best = result.answers[0].to_json()
        if not self._scores:
            del best["score"]
        values = {"generated": best.pop("text"), **best}
        if len(result.answers) > 1:
            values["answers"] = [one.text for one in result.answers]
        return values


class RowCorrections(Answerer[CorrectedText]):
    """Each text with its spelling corrected, and the edits."""

    columns = shown = ("corrected", "edits")

    def __init__(self, corrector: Corrector, options: CorrectionOptions) -> None:
        self._corrector = corrector
        self._threshold = options.threshold
        if self._threshold is None:
            self._threshold = corrector.threshold
        self.settings = {"threshold": self._threshold}

    def answers(self, rows: Sequence[Example], counts: Counter[str]) -> list[CorrectedText]:
        """The corrected texts; counts those that were changed, and the edits."""
        texts = [one.texts[0] for one in rows]
        found = self._corrector.correct(texts, threshold=self._threshold)
        counts["changed"] += sum(bool(one.edits) for one in found)
        counts["edits"] += sum(len(one.edits) for one in found)
        return found

    def to_json(self, result: CorrectedText) -> dict[str, Any]:
        """The corrected text and its edits."""
        return {"corrected": result.corrected, "edits": [one.to_json() for one in result.edits]}

    def row(self, result: CorrectedText | None) -> dict[str, Any]:
        """The same; an empty text has no edits."""
        return {"corrected": None, "edits": []} if result is None else self.to_json(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictOptions:
    """Predictions have no settings: those of training decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKind:
    """The answerer that a loaded model has by one ability, made with `settings` of a class."""

    settings: type
    of: Callable[[LoadedModel, Any], Answerer[Any]]


ANSWERS: dict[str, AnswerKind] = {
    "predict": AnswerKind(
        settings=PredictOptions, of=lambda model, options: RowPredictions(model.predictor)
    ),
    "generate": AnswerKind(
        settings=GenerationOptions,
        of=lambda model, options: RowTexts(model.generator(options.by), options),
    ),
    "correct": AnswerKind(
        settings=CorrectionOptions,
        of=lambda model, options: RowCorrections(model.corrector, options),
    ),
}


def answerer_of(model: LoadedModel, ability: str, settings: Mapping[str, Any]) -> Answerer[Any]:
    """The answerer of a model by an ability, with settings by their names."""
    if ability not in ANSWERS:
        raise ConfigError(f"{ability!r} does not answer rows; {', '.join(sorted(ANSWERS))} do")
    kind = ANSWERS[ability]
    return kind.of(model, kind.settings(**settings))


def prediction_values(prediction: Prediction) -> dict[str, Any]:
    """A prediction as a row of a file has it."""
    values = prediction.to_json()
    if prediction.others:
        values["others"] = values["others"][:SHOWN_OTHERS]
        values.pop("probabilities", None)  # the same as those of the others
    return values


def _text(prediction: Prediction) -> str:
    """The prediction in one cell."""
    value = prediction.value
    if isinstance(value, PredictedAnswer):
        return value.text
    if isinstance(value, tuple):
        if prediction.tags or any(isinstance(one, PredictedSpan) for one in value):
            return json.dumps(prediction.to_json()["prediction"], ensure_ascii=False)
        return LABELS_JOINED.join(str(one) for one in value)
    return str(value)


def named_logits(logits: Logits, labels: Sequence[str]) -> dict[str, float]:
    """Logits by label, by the number of a choice, or the one of a regression as "score"."""
    flat = np.asarray(logits).reshape(-1).tolist()  # those of choices are (K, 1)
    numbers = ["score"] if len(flat) == 1 else [str(number) for number in range(len(flat))]
    return dict(zip(labels or numbers, flat, strict=True))
