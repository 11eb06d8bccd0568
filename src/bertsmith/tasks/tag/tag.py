"""Sequence tagging: a tag per word or character, and the spans that the tags mark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import Example, Tagged, shown_target
from bertsmith.metrics import TAGS
from bertsmith.metrics.baselines import majority
from bertsmith.nn.crf import Crf
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature, tokens_cut
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.losses import (
    CrossEntropySettings,
    LossSettings,
    class_loss,
    class_weights,
    weights_tensor,
)
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.stored import stored_value
from bertsmith.tasks.tag import evaluation
from bertsmith.tasks.tag.features import example_units, tag_features
from bertsmith.tasks.tag.paths import Steps, best_paths
from bertsmith.tasks.tag.scheme import OUTSIDE, is_bio, labels_of, legal_steps, tag_spans
from bertsmith.tasks.task import Logits, PublishedHead, Task, TaskKind, TaskOptions
from bertsmith.text.encoding import FieldEncoder


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag(Task):
    """Tagging with BIO labels (or plain ones, such as parts of speech); sequences are legal.

    `crf` holds scores of neighboring tags; TaskModel owns it, too, so that it is trained and stored
    with the head.
    """

    labels: tuple[str, ...]
    crf: Crf | None = None
    settings: LossSettings = field(default_factory=CrossEntropySettings)
    weights: tuple[float, ...] | None = None  # of the labels, in training

    def __post_init__(self) -> None:
        legal_steps(self.labels)
        if self.crf is None:
            return
        if self.crf.tags != len(self.labels):
            raise ConfigError(f"a CRF of {self.crf.tags} tags, but {len(self.labels)} labels")
        if self.settings != CrossEntropySettings() or self.weights is not None:
            raise ConfigError(
                "a CRF scores whole sequences: smoothing, focal and class weights are losses of "
                "single tags; leave them out, or set task.crf = false"
            )

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Tag:
        """What `to_json` wrote; the scores of a CRF are 0 until weights are loaded."""
        labels = stored_value(values, "labels", tuple[str, ...])
        crf = stored_value(values, "crf", bool)
        return cls(labels=labels, crf=Crf(len(labels)) if crf else None)

    @property
    def kind(self) -> TaskKind:
        """Sequence tagging."""
        return KIND

    def features(
        self, examples: Sequence[Example], tokenizer: FieldEncoder, lengths: LengthSettings
    ) -> list[Feature]:
        """One passage per example, or its windows; each unit is read in one of them."""
        place = {label: number for number, label in enumerate(self.labels)}
        return tag_features(examples, tokenizer, lengths, place)

    def count(self, batch: TaskBatch) -> int:
        """One per unit that is read."""
        return 0 if batch.at is None else len(batch.at)

    def loss(self, logits: Tensor, batch: TaskBatch) -> LossSum:
        """(U, C) -> LossSum over units."""
        if self.crf is not None:
            return self.crf(logits, batch.wanted, run_sizes(batch))  # type: ignore[no-any-return]
        return class_loss(logits, batch.wanted, self.settings, weights_tensor(self.weights, logits))

    def decode(
        self, logits: Sequence[Logits], features: Sequence[Feature], examples: Sequence[Example]
    ) -> list[Prediction]:
        """The best legal tags of each example; a unit without a token is outside.

        The confidence is the mean chance of the tags that were read: the share to expect right;
        that of a span is the chance of its least certain tag.
        """
        owners, units, rows = _in_order(logits, features, self.outputs)
        tags, chances = best_paths(rows, _sizes(owners, units), self._steps())
        borders = np.searchsorted(owners, np.arange(len(examples) + 1))
        cuts = tokens_cut(features, len(examples))
        bio = is_bio(self.labels)
        predictions = []
        for number, example in enumerate(examples):
            here = slice(borders[number], borders[number + 1])
            places = example_units(example)
            names, odds = [OUTSIDE] * len(places), [1.0] * len(places)
            read_here = (part[here].tolist() for part in (units, tags, chances))
            for unit, tag, chance in zip(*read_here, strict=True):
                names[unit], odds[unit] = self.labels[tag], chance
            read = here.stop - here.start
            predictions.append(
                Prediction(
                    value=tag_spans(example.texts[0], places, names, bio=bio, chances=odds),
                    tags=tuple(names),
                    confidence=float(chances[here].mean()) if read else None,
                    # A unit of control characters has no token to count.
                    cut=max(cuts[number], int(len(places) - read)),
                )
            )
        return predictions

    def truth(self, examples: Sequence[Example]) -> list[list[str]]:
        """Gold tags of N texts."""
        return [list(_tags(example)) for example in examples]

    def predicted(self, predictions: Sequence[Prediction]) -> list[list[str]]:
        """Predicted tags of N texts."""
        return [list(one.tags) for one in predictions]

    def to_json(self) -> Mapping[str, Any]:
        """JSON values; the scores of a CRF are stored with the weights."""
        return {"labels": list(self.labels), "crf": self.crf is not None}

    def _steps(self) -> Steps:
        steps = legal_steps(self.labels)
        if self.crf is None:
            return steps
        return steps + Steps(*(s.detach().double().cpu().numpy() for s in self.crf.scores()))


def tag_from(examples: Sequence[Example], options: TaskOptions) -> Tag:
    """Every label of the types of entities in these training rows, and its weight."""
    targets = [e.target for e in examples if isinstance(e.target, Tagged)]
    counts = Counter(tag for target in targets for tag in target.tags)
    if not counts:
        raise ConfigError("no training row has a tag")
    labels = labels_of(counts)
    weights = class_weights(options.loss, labels, [counts[label] for label in labels])
    crf = Crf(len(labels)) if options.settings.crf else None
    return Tag(labels=labels, crf=crf, settings=options.loss, weights=weights)


def run_sizes(batch: TaskBatch) -> Tensor:
    """(R,) how many of a batch's units follow each other without a gap, run by run."""
    if batch.at is None or batch.units is None:
        raise TextError("a batch of tagging names the tokens it reads and their units")
    starts = torch.tensor(batch.layout.starts, device=batch.at.device)
    owners = batch.owners[torch.searchsorted(starts, batch.at, right=True) - 1]
    sizes = _sizes(owners.cpu().numpy(), batch.units.cpu().numpy())
    return torch.from_numpy(sizes).to(batch.at.device)


def _sizes(owners: NDArray[np.int64], units: NDArray[np.int64]) -> NDArray[np.int64]:
    """Runs of neighboring units of one example: a gap, where text was cut, begins a new one."""
    opens = np.ones(len(units), dtype=bool)
    opens[1:] = (owners[1:] != owners[:-1]) | (units[1:] != units[:-1] + 1)
    return np.diff(np.flatnonzero(np.append(opens, True)))


def _in_order(
    logits: Sequence[Logits], features: Sequence[Feature], outputs: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The example (M,), the unit (M,) and the logits (M, C) of all that was read, sorted."""
    owners = np.repeat([f.example for f in features], [len(rows) for rows in logits])
    none = np.zeros(0, dtype=np.int64)
    units = np.concatenate([none, *(none if f.units is None else f.units for f in features)])
    rows = np.concatenate([np.zeros((0, outputs)), *logits])
    order = np.lexsort((units, owners))
    return owners[order].astype(np.int64), units[order].astype(np.int64), rows[order]


def _tags(example: Example) -> tuple[str, ...]:
    target = example.target
    if not isinstance(target, Tagged) or len(target.tags) != len(target.units):
        raise TextError(
            f"{example.place}: the target is {shown_target(target)}, not one tag per unit"
        )
    return target.tags


def _joint_task(tasks: Sequence[Task]) -> Task:
    """With the mean of the CRF's scores."""
    parts = [one.crf for one in tasks if one.crf is not None]
    if not parts:
        return tasks[0]
    if len(parts) < len(tasks):
        raise ConfigError("an ensemble of taggers has a CRF in all of them or in none")
    joint = Crf(parts[0].tags)
    with torch.no_grad():
        for name, weight in joint.named_parameters():
            every = [dict(part.named_parameters())[name].detach().float().cpu() for part in parts]
            weight.copy_(torch.stack(every).mean(dim=0))
    return next(replace(one, crf=joint) for one in tasks if isinstance(one, Tag))


KIND = TaskKind(
    name="tag",
    title="sequence tagging of words or characters",
    target="tags",
    metric=TAGS,
    from_data=tag_from,
    from_json=Tag.from_json,
    from_labels=lambda labels: Tag(labels=labels),
    reads="rows",
    head=PublishedHead("token"),
    windows="always",
    settings=frozenset({"crf"}),
    loss_selectable=True,
    majority=majority.tag,
    words=majority.tag_words,
    joint_task=_joint_task,
    right=evaluation.right,
    error_weight=evaluation.error_weight,
    error_order="those with the most differing entities come first; only these are listed",
    row_score=evaluation.row_score,
    sides=evaluation.sides,
    class_pairs=evaluation.class_pairs,
    class_rows=evaluation.class_rows,
    outcomes=evaluation.outcomes,
    sections=evaluation.sections,
    columns=("prediction", "confidence", "tags", "tokens_cut"),
    figures=("f1", "precision", "recall"),
    main_title="entity F1",
    majority_title="most frequent tag",
    words_title="most frequent tag per word",
    pipeline="token-classification",
)
