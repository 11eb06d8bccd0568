"""Labels of a data set: how often each occurs, what is odd about them, which are misspelled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

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
from bertsmith.labeled.survey.duplicates import RowPlace, SurveyFinding, folded
from bertsmith.text.segment import is_chinese
from bertsmith.wording import shown

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
class Unseen(SurveyFinding):
    """A label that no training row has."""

    label: str
    split: str
    rows: int
    place: RowPlace

    def __str__(self) -> str:
        return f"{shown(self.label)}: {self.rows:,} in {self.split} ({self.place})"


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


RARER = 20  # times fewer rows than the label it is taken for
MOST_LABELS = 20_000  # beyond that they are no classes
LONG = 8  # letters, from which two slips are likelier than another word
LONGEST = 40  # letters of a label in which two slips are looked for
DIGITS = re.compile(r"\d+")
PARTS = re.compile(r"[\W_]+")
REPEATED = re.compile(r"(.)\1+")
NEGATIONS = ("un", "in", "im", "ir", "il", "non", "not", "no", "dis", "a", "anti")


@dataclass(frozen=True, slots=True)
class Typo(SurveyFinding):
    """A label, the one it was probably meant to be, and the first row of each."""

    label: str
    rows: int
    place: RowPlace
    meant: str
    meant_rows: int
    meant_place: RowPlace

    def __str__(self) -> str:
        return (
            f"{shown(self.label)} ({self.rows:,}, first at {self.place}): did you mean "
            f"{shown(self.meant)} ({self.meant_rows:,}, first at {self.meant_place})?"
        )


def find_typos(counts: Mapping[str, int], first: Mapping[str, RowPlace]) -> list[Typo]:
    """Labels that differ from a more frequent one by case, spaces or signs, or by a slip or two."""
    if len(counts) > MOST_LABELS:
        return []
    plain = {label: _plain(label) for label in counts}
    spellings: dict[str, list[str]] = {}
    near: dict[str, list[str]] = {}
    least, most = min(counts.values(), default=0), max(counts.values(), default=0)
    for label, rows in counts.items():
        spellings.setdefault(plain[label], []).append(label)
        if rows >= least * RARER:  # frequent enough to be what a rare one was meant to be
            for key in _shortened(plain[label]):
                near.setdefault(key, []).append(label)

    def likely(label: str) -> list[str]:
        """What the label was meant to be, the likeliest first."""
        rank = (-counts[label], label)
        same = [other for other in spellings[plain[label]] if (-counts[other], other) < rank]
        slips = []
        if not same and counts[label] * RARER <= most:
            others = dict.fromkeys(o for key in _shortened(plain[label]) for o in near.get(key, ()))
            slips = [
                other
                for other in others
                if counts[label] * RARER <= counts[other] and _slip(label, other, plain)
            ]
        return sorted(same or slips, key=lambda other: (-counts[other], other))

    typos = []
    for label, rows in counts.items():
        if meant := likely(label):
            one = meant[0]
            typos.append(Typo(label, rows, first[label], one, counts[one], first[one]))
    return typos


def _plain(label: str) -> str:
    """A label without differences of case, width, spaces and signs between its letters."""
    return PARTS.sub("", folded(label)) or label


def _slip(label: str, other: str, plain: Mapping[str, str]) -> bool:
    """Whether one could be the other misspelled, and not another label of the same kind."""
    short, long = sorted((plain[label], plain[other]), key=len)
    if DIGITS.findall(label) != DIGITS.findall(other):
        return False  # level 1, level 2
    if long.endswith(short) and long.removesuffix(short) in NEGATIONS:
        return False
    if _differ_in_a_letter(label, other):
        return False  # type A, type B
    size = len(short)
    if any(map(is_chinese, long)):
        size //= 2  # an ideograph says more than a letter
    edits = _distance(short, long)
    swapped = sorted(short) == sorted(long)
    doubled = len(short) < len(long) and REPEATED.sub(r"\1", short) == REPEATED.sub(r"\1", long)
    if edits == 1 and (swapped or doubled):
        return len(long) >= 3
    if size < 3 or (size == 3 and len(short) == len(long)):
        return False
    return edits == 1 or (edits == 2 and size >= LONG)


def _differ_in_a_letter(label: str, other: str) -> bool:
    """Whether parts of one or two letters are all that differs."""
    one, two = (PARTS.split(folded(text)) for text in (label, other))
    if len(one) != len(two) or len(one) < 2:
        return False
    unlike = [part for pair in zip(one, two, strict=True) if len(set(pair)) > 1 for part in pair]
    return all(len(part) <= 2 for part in unlike)


def _distance(one: str, two: str) -> int:
    """Letters left out, put in, replaced, or swapped with their neighbor."""
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, letter in enumerate(one, 1):
        last, before, row = before, row, [i]
        for j, other in enumerate(two, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == two[j - 2] and one[i - 2] == other:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]


def _shortened(text: str) -> Iterable[str]:
    """The text with up to one letter left out, of longer ones two; close texts share one."""
    shorter_texts = {text, *_without_one(text)}
    if LONG - 2 <= len(text) <= LONGEST:
        shorter_texts |= {shorter for some in _without_one(text) for shorter in _without_one(some)}
    return shorter_texts


def _without_one(text: str) -> list[str]:
    return [text[:place] + text[place + 1 :] for place in range(len(text))]
