"""Labels of a data set: how often each occurs, where first, and what is odd about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bertsmith.files.faults import shown
from bertsmith.labeled.example import (
    Answers,
    ChoiceIndex,
    Example,
    Label,
    LabelSet,
    ScoreTarget,
    Tagged,
    Target,
    label_names,
)
from bertsmith.labeled.survey.rows import RowPlace

UNEVEN = 10  # times as many rows of one label as of another
FEW = 5  # training rows of a label, from which little can be learned
ANSWERED, UNANSWERED = "has an answer", "has none"


@dataclass(slots=True)
class LabelSurvey:
    """Rows by label and split (of tags: spans by kind), and the first row of each label."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    scores: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    """Of numbers to predict: the least, the mean and the largest of each split."""
    unlabeled: dict[str, int] = field(default_factory=dict)
    first: dict[str, RowPlace] = field(default_factory=dict)
    kind: type | None = None
    """Of the targets."""

    @property
    def learned(self) -> bool:
        """Whether labels are names that a model learns, not numbers of choices."""
        return self.kind in (Label, LabelSet, Tagged)

    @property
    def totals(self) -> Counter[str]:
        """Rows by label over all splits."""
        totals: Counter[str] = Counter()
        for counts in self.counts.values():
            totals += counts
        return totals


@dataclass(frozen=True, slots=True)
class Unseen:
    """A label that no training row has."""

    label: str
    split: str
    rows: int
    place: RowPlace

    def __str__(self) -> str:
        return f"{shown(self.label)}: {self.rows:,} in {self.split} ({self.place})"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"place": self.place.to_json()}


@dataclass(frozen=True, slots=True)
class Imbalance:
    """The labels that the fewest and the most training rows have."""

    rarest: str
    rarest_rows: int
    commonest: str
    commonest_rows: int
    few: tuple[str, ...]
    """Labels with hardly any training rows."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        ratio = self.commonest_rows / self.rarest_rows
        return asdict(self) | {"ratio": ratio, "few": list(self.few)}


def count_labels(splits: Mapping[str, Sequence[Example]]) -> LabelSurvey:
    """Every label of every row."""
    labels = LabelSurvey()
    for split, examples in splits.items():
        counts: Counter[str] = Counter()
        scores: list[float] = []
        unlabeled = 0
        for example in examples:
            target = example.target
            if target is None:
                unlabeled += 1
            elif isinstance(target, ScoreTarget):
                scores.append(target.value)
            else:
                labels.kind = type(target)
                for name in _names(target):
                    counts[name] += 1
                    if name not in labels.first:
                        labels.first[name] = RowPlace.of(split, example)
        labels.counts[split] = counts
        labels.unlabeled[split] = unlabeled
        if scores:
            labels.scores[split] = (min(scores), sum(scores) / len(scores), max(scores))
    return labels


def unseen(labels: LabelSurvey, splits: Mapping[str, Sequence[Example]]) -> list[Unseen]:
    """Labels of later splits that are missing from the first, the training rows."""
    if not labels.learned or not labels.counts:
        return []
    train, *rest = labels.counts
    missing = []
    for split in rest:
        for name, rows in labels.counts[split].most_common():
            if name not in labels.counts[train]:
                place = next(
                    RowPlace.of(split, example)
                    for example in splits[split]
                    if example.target is not None and name in _names(example.target)
                )
                missing.append(Unseen(name, split, rows, place))
    return missing


def imbalance(labels: LabelSurvey) -> Imbalance | None:
    """How uneven the training rows are, None if they are not."""
    if not labels.learned or not labels.counts:
        return None
    counts = next(iter(labels.counts.values())).most_common()
    if len(counts) < 2:
        return None
    (commonest, most), (rarest, least) = counts[0], counts[-1]
    few = tuple(name for name, rows in reversed(counts) if rows < FEW)
    if most < UNEVEN * least and not few:
        return None
    return Imbalance(rarest, least, commonest, most, few)


def _names(target: Target) -> tuple[str, ...]:
    """The labels of a target, each as often as it counts."""
    if isinstance(target, ChoiceIndex):
        return (f"choice {target.index}",)
    if isinstance(target, Answers):
        return (ANSWERED if target.placed or target.unplaced else UNANSWERED,)
    return label_names(target)
