"""The interface of a task: `Task` for one trained model, `TaskKind` for all that share a name.

`WholeText` has the defaults of tasks with one prediction per example.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.config import Count, Settings
from bertsmith.errors import ConfigError
from bertsmith.labeled.example import Example, Label, shown_target
from bertsmith.metrics.arrays import Bools, Floats, Ints
from bertsmith.metrics.baselines import Baseline
from bertsmith.metrics.metric import Metric
from bertsmith.models.text_model import TextModel
from bertsmith.nn.crf import Crf
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature, Targets, text_features
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.losses import CrossEntropySettings, LossSettings
from bertsmith.tasks.prediction import Prediction
from bertsmith.text.encoding import FieldEncoder

if TYPE_CHECKING:
    from bertsmith.tasks.model.task_head import InputWrapper, TaskHead  # which know of batches

Logits = NDArray[np.float32]
Loss = Callable[[Tensor, TaskBatch], LossSum]
"""Logits and their batch -> the sum over `task.count(batch)` predictions."""

SURE = 1e-9  # the least weight of an error whose confidence is 0

Pair = Literal["cross-encoder", "bi-encoder"]


class TaskSettings(Settings):
    """Section `task` of a recipe: `crf` for tagging, all others for question answering."""

    crf: bool = False  # learn transition scores between neighboring tags
    longest: Count | None = None  # tokens of an answer; None: 30, or 60 where characters are tokens
    n_best: Count = 20  # candidate answers per question
    question_limit: Count = 64  # tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """What a task is built from, apart from the training rows."""

    loss: LossSettings = field(default_factory=CrossEntropySettings)
    settings: TaskSettings = field(default_factory=TaskSettings)
    pair: Pair = "cross-encoder"
    language: str | None = None


class Task(Protocol):
    """What a model is trained for: examples to features, logits to a loss and to predictions."""

    __slots__ = ()

    labels: tuple[str, ...]
    """The names of its outputs, () if they have none."""

    @property
    @abstractmethod
    def kind(self) -> TaskKind:
        """The descriptor that all tasks of this name share."""

    @property
    def name(self) -> str:
        """Its name in recipes and on the command line."""
        return self.kind.name

    @property
    def reads(self) -> Literal["text", "rows"]:
        """Whether its head reads a vector of the whole text or the token rows `Feature.at`."""
        return self.kind.reads

    @property
    def crf(self) -> Crf | None:
        """Transition scores that are trained and stored with the head."""
        return None

    @property
    def bi_encoder(self) -> bool:
        """Whether the texts of a pair are encoded separately."""
        return False

    @property
    def outputs(self) -> int:
        """C, the width of the logits: one per label, or one number."""
        return len(self.labels) or 1

    @abstractmethod
    def features(
        self, examples: Sequence[Example], tokenizer: FieldEncoder, lengths: LengthSettings
    ) -> list[Feature]:
        """The passages of every example, in order; each holds the count of truncated tokens."""

    @abstractmethod
    def count(self, batch: TaskBatch) -> int:
        """How many predictions the loss of a batch sums over, known before the forward pass."""

    @abstractmethod
    def loss(self, logits: Tensor, batch: TaskBatch) -> LossSum:
        """(E, C) or (U, C) and the batch's targets -> LossSum."""

    @abstractmethod
    def decode(
        self,
        logits: Sequence[Logits],
        features: Sequence[Feature],
        examples: Sequence[Example],
    ) -> list[Prediction]:
        """One prediction per example.

        `logits` has an entry for each example, (C,), when the task reads texts, and for each
        feature, (U, C), when it reads rows.
        """

    @abstractmethod
    def truth(self, examples: Sequence[Example]) -> Any:
        """Targets of labeled examples, as `kind.metric` takes them."""

    @abstractmethod
    def predicted(self, predictions: Sequence[Prediction]) -> Any:
        """Predictions, as `kind.metric` takes them."""

    def tuned(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> Task:
        """The task with thresholds tuned on these examples, if it has any."""
        return self

    def to_json(self) -> Mapping[str, Any]:
        """Plain values that `kind.from_json` takes."""
        return {"labels": list(self.labels)}


class WholeText(Task, Protocol):
    """Defaults for one class, several, a number or a choice per example; `truth` is an array."""

    __slots__ = ()

    def loss_targets(self, truth: NDArray[Any]) -> NDArray[Any]:
        """`truth` in the form that the loss takes: (N, ...) -> (N, ...)."""
        return truth

    def targets(self, examples: Sequence[Example]) -> Targets:
        """The loss target of each example, None without a label."""
        labeled = [example for example in examples if example.target is not None]
        wanted = iter(self.loss_targets(self.truth(labeled)) if labeled else ())
        return [
            None if example.target is None else np.asarray(next(wanted)) for example in examples
        ]

    def features(
        self, examples: Sequence[Example], tokenizer: FieldEncoder, lengths: LengthSettings
    ) -> list[Feature]:
        """One passage per example, or its windows."""
        return text_features(examples, tokenizer, lengths, self.targets(examples))

    def count(self, batch: TaskBatch) -> int:
        """One per example."""
        return batch.examples


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRows:
    """Labeled examples with their predictions; `table` (N, S) is `metric.rows` of both."""

    task: Task
    examples: Sequence[Example]
    predictions: Sequence[Prediction]
    truth: Any
    predicted: Any
    table: Floats

    @classmethod
    def of(
        cls, task: Task, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> ScoredRows:
        """Score labeled examples."""
        truth, predicted = task.truth(examples), task.predicted(predictions)
        return cls(
            task=task,
            examples=examples,
            predictions=predictions,
            truth=truth,
            predicted=predicted,
            table=task.kind.metric.rows(truth, predicted, task.labels),
        )

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def labels(self) -> tuple[str, ...]:
        """Those of the task."""
        return self.task.labels

    @property
    def confidence(self) -> Floats:
        """(N,), nan where a prediction has none."""
        return np.array(
            [np.nan if one.confidence is None else one.confidence for one in self.predictions]
        )

    def figures(self, chosen: Bools | None = None) -> dict[str, float]:
        """The metric of all rows, or of the chosen ones."""
        table = self.table if chosen is None else self.table[chosen]
        return self.task.kind.metric.figures(table, self.labels)


def exact(rows: ScoredRows) -> Bools | None:
    """(N,) whether prediction and target are equal."""
    return np.asarray(rows.truth == rows.predicted)


def confident_errors(rows: ScoredRows) -> Floats:
    """(N,) the confidence of wrong predictions; 0: right."""
    right = rows.task.kind.right(rows)
    wrong = np.zeros(len(rows), dtype=bool) if right is None else ~right
    return np.where(wrong, np.maximum(np.nan_to_num(rows.confidence), SURE), 0.0)


def label_and_value(example: Example, prediction: Prediction, task: Task) -> tuple[str, str]:
    """The label of the example and the predicted value."""
    target = example.target
    return target.name if isinstance(target, Label) else shown_target(target), str(prediction.value)


def first_task(tasks: Sequence[Task]) -> Task:
    """The tasks of an ensemble are equal: the first."""
    return tasks[0]


def mean_logits(tasks: Sequence[Task], entry: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The mean over models."""
    return np.asarray(np.mean(entry, axis=0))


def same_text_count(given: int, trained: int) -> None:
    """Refuse rows with more or fewer texts than the training rows have (0: unknown)."""
    if trained and given != trained:
        counted = "1 text" if trained == 1 else f"{trained} texts"
        raise ConfigError(
            f"the model was trained on {counted} per row, and {given} were given; several texts "
            "are a tuple in Python, and --pair TEXT adds one on the command line"
        )


@dataclass(frozen=True, slots=True)
class PublishedHead:
    """The matching head of the model's own family, and its entries in config.json."""

    kind: str | None = "sequence"  # None: none is needed, the task brings its own
    problem: str | None = None
    labeled: bool = True  # whether id2label has names


ClassPairs = tuple[list[str], Ints, Ints]
"""Class names, and (M,) true and (M,) predicted class numbers."""
Outcomes = tuple[Floats, Bools, str]
"""(M,) confidences, (M,) whether each was right, and what M counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind:
    """The descriptor of a task: everything that the rest of the package needs to know about it.

    `target` names the kind of label it learns (`labeled.example.TARGETS`); `from_data` makes the
    task of some training rows, `from_json` that of a model folder. Fields with defaults describe
    single-label classification of whole texts.
    """

    name: str
    title: str
    target: str
    metric: Metric
    from_data: Callable[[Sequence[Example], TaskOptions], Task]
    from_json: Callable[[Mapping[str, Any]], Task]

    from_labels: Callable[[tuple[str, ...]], Task] | None = None
    """The task of a model that another library fine-tuned, from the names of its outputs."""
    reads: Literal["text", "rows"] = "text"
    head: PublishedHead = PublishedHead()
    open_head: Callable[[TextModel, Task, torch.Generator | None], TaskHead] | None = None
    """A head that the task brings, on a model with the heads that `head` names; its weights drawn.

    None: the published one, or one that the settings of a recipe describe.
    """
    wrapper: Callable[[TextModel, Task, torch.Generator | None], InputWrapper] | None = None
    """What changes the inputs of the encoder, such as a soft prompt."""
    pools_passages: bool = True
    """Whether the passages of an example become one vector."""
    windows: Literal["optional", "always", "never"] = "optional"
    """Whether a long text is read in windows."""
    bi_encoder: bool = False
    """Whether it can be learned from the cosine of two text vectors."""
    enriched: bool = True
    """Whether a passage, which holds all texts of its row, may get branches and tags."""
    settings: frozenset[str] = frozenset()
    """The fields of `TaskSettings` that apply."""
    loss_selectable: bool = False
    labels_from_all: bool = True
    """Whether labels are collected from all labeled rows, not only from those trained on."""
    divergence: Callable[[Tensor, Tensor], Tensor] | None = None
    """R-Drop: logits of two dropout passes (E, C), (E, C) -> (); None: not defined."""

    majority: Baseline | None = None
    words: Baseline | None = None

    joint_task: Callable[[Sequence[Task]], Task] = first_task
    joint_logits: Callable[[Sequence[Task], Sequence[NDArray[np.float64]]], NDArray[np.float64]] = (
        mean_logits
    )

    right: Callable[[ScoredRows], Bools | None] = exact
    """(N,) whether each row is exactly right; None where predictions are never exact."""
    error_weight: Callable[[ScoredRows], Floats] = confident_errors
    """(N,) how bad each row is, the worst the highest; 0 and less: right."""
    error_order: str = "the most confident errors come first"
    weight_is_confidence: bool = False
    row_score: Callable[[Any, Any], Floats] | None = None
    """Truth, predictions -> (N,), more is better; None: 1 if equal, else 0."""
    sides: Callable[[Example, Prediction, Task], tuple[str, str]] = label_and_value
    """Truth and prediction of a row in words."""
    class_pairs: Callable[[ScoredRows, bool], ClassPairs | None] | None = None
    """True and predicted classes; with True, as the confusion matrix counts them."""
    class_rows: Callable[[ScoredRows], list[dict[str, Any]] | None] | None = None
    """Per-class figures, where they do not come from `class_pairs`."""
    outcomes: Callable[[ScoredRows], Outcomes] | None = None
    """What calibration counts; None: rows."""
    scores_classes: bool = False
    """Whether `Prediction.probabilities` are a distribution over the numbers of `truth`."""
    sections: Callable[[ScoredRows], dict[str, Any]] | None = None
    """Further parts of the evaluation record, by name."""

    columns: tuple[str, ...] = ("prediction", "confidence", "probabilities", "tokens_cut")
    """What a table of predictions holds."""
    figures: tuple[str, ...] = ()
    """What short tables show; (): the main one."""
    main_title: str = ""
    majority_title: str = "majority class"
    words_title: str = "TF-IDF linear model"
    pipeline: str = "text-classification"
    """Its name on model hubs."""
    sample_call: str = '["a text"]'
    check_texts: Callable[[int, int], None] = same_text_count
    """Refuses a number of texts (given, in training) that a row cannot have."""

    def known(self, rows: Sequence[Example]) -> Sequence[Example]:
        """The rows beyond the training rows that labels are collected from."""
        return rows if self.labels_from_all else ()


def score(
    task: Task, examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, float]:
    """The figures of labeled examples, the main one first."""
    truth, predicted = task.truth(examples), task.predicted(predictions)
    return task.kind.metric.score(truth, predicted, task.labels)
