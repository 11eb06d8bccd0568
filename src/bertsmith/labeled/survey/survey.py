"""Checks of a data set before training; every finding names its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertsmith.labeled.example import Example, Label, Tagged
from bertsmith.labeled.split.splits import Splits
from bertsmith.labeled.split.stratify import SPLITS
from bertsmith.labeled.survey.duplicates import SurveyFinding, Twins, find_twins
from bertsmith.labeled.survey.labels import (
    Imbalance,
    LabelSurvey,
    Typo,
    Unseen,
    count_labels,
    find_typos,
    imbalance,
    unseen,
)
from bertsmith.wording import counted, shown

SHOWN_LABELS = 20
SHOWN_FINDINGS = 3
STORED_FINDINGS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Counts and findings of a data set; `rows` and `labels` are by split."""

    rows: dict[str, int]
    labels: LabelSurvey
    twins: list[Twins]
    typos: list[Typo]
    unseen: list[Unseen]
    imbalance: Imbalance | None

    @property
    def duplicates(self) -> list[Twins]:
        """Rows that repeat one of the same split, label and all."""
        return [one for one in self.twins if one.kind == "duplicate"]

    @property
    def leaks(self) -> list[Twins]:
        """Rows that stand in two splits."""
        return [one for one in self.twins if one.kind == "leak"]

    @property
    def conflicts(self) -> list[Twins]:
        """Texts with two labels."""
        return [one for one in self.twins if one.kind == "conflict"]

    def lines(self) -> list[str]:
        """What a user should see before training."""
        return [*self._counts(), *self._odd_labels(), *self._same_texts()]

    def to_json(self, most: int | None = STORED_FINDINGS) -> dict[str, Any]:
        """Plain values; of each kind the first findings (None: all) and how many there are."""

        def some(findings: Sequence[SurveyFinding]) -> dict[str, Any]:
            return {"count": len(findings), "first": [one.to_json() for one in findings[:most]]}

        def twins(pairs: Sequence[Twins]) -> dict[str, Any]:
            return {**some(pairs), "exact": sum(one.exact for one in pairs)}

        return {
            "rows": self.rows,
            "labels": {split: dict(c.most_common()) for split, c in self.labels.counts.items()},
            "unlabeled": self.labels.unlabeled,
            "scores": {
                split: dict(zip(("least", "mean", "largest"), values, strict=True))
                for split, values in self.labels.scores.items()
            },
            "duplicates": twins(self.duplicates),
            "leaks": twins(self.leaks),
            "conflicts": twins(self.conflicts),
            "typos": some(self.typos),
            "unseen": some(self.unseen),
            "imbalance": None if self.imbalance is None else self.imbalance.to_json(),
        }

    def _counts(self) -> list[str]:
        rows = ", ".join(f"{split} {count:,}" for split, count in self.rows.items())
        lines = [f"rows: {rows}"]
        for split, count in self.labels.unlabeled.items():
            if count:
                lines.append(f"{split}: {count:,} rows without a label")
        for split, (least, mean, largest) in self.labels.scores.items():
            lines.append(f"{split}: scores from {least:g} to {largest:g}, {mean:.3g} on average")
        ordered = self.labels.totals.most_common()
        if not ordered:
            return lines
        spelled = shown if self.labels.learned else str
        names = [spelled(name) for name, _ in ordered[:SHOWN_LABELS]]
        width = max(map(len, [*names, "labels"])) + 2
        splits = [split for split, counts in self.labels.counts.items() if counts]
        lines.append("labels".ljust(width) + "".join(f"{split:>10}" for split in splits))
        for name, (label, _) in zip(names, ordered, strict=False):
            counts = "".join(f"{self.labels.counts[split][label]:>10,}" for split in splits)
            lines.append(name.ljust(width) + counts)
        if len(ordered) > SHOWN_LABELS:
            lines.append(f"and {len(ordered) - SHOWN_LABELS:,} more labels")
        return lines

    def _odd_labels(self) -> list[str]:
        lines = []
        if self.typos:
            many = counted(len(self.typos), "label is", "labels are")
            lines += [f"{many} probably misspelled:", *_listed(self.typos)]
        if self.unseen:
            many = counted(len(self.unseen), "label stands", "labels stand")
            lines += [f"{many} in no training row, so it cannot be learned:", *_listed(self.unseen)]
        if self.imbalance is not None:
            lines.append(_uneven(self.imbalance, self.labels.kind))
        return lines

    def _same_texts(self) -> list[str]:
        lines = []
        for split in self.rows:
            inside = [one for one in self.duplicates if one.first.split == split]
            many = counted(len(inside), "row repeats an earlier one", "rows repeat earlier ones")
            lines += _sentence(f"{split}: {many}, label and all", inside)
        for first in self.rows:
            for second in self.rows:
                both = [o for o in self.leaks if (o.first.split, o.second.split) == (first, second)]
                many = counted(len(both), "row")
                stand = "stands" if len(both) == 1 else "stand"
                lines += _sentence(f"{many} of {second} {stand} in {first}, too", both)
        many = counted(len(self.conflicts), "text has", "texts have")
        return lines + _sentence(f"{many} different labels", self.conflicts)


def survey(splits: Splits | Mapping[str, Sequence[Example]]) -> Survey:
    """Look at every row once; training rows come first."""
    if isinstance(splits, Splits):
        given = {name: getattr(splits, name) for name in SPLITS}
    else:
        given = dict(splits)
    rows: dict[str, Sequence[Example]] = {name: part for name, part in given.items() if part}
    labels = count_labels(rows)
    return Survey(
        rows={name: len(part) for name, part in rows.items()},
        labels=labels,
        twins=find_twins(rows),
        typos=find_typos(labels.totals, labels.first) if labels.learned else [],
        unseen=unseen(labels, rows),
        imbalance=imbalance(labels),
    )


def _sentence(what: str, twins: Sequence[Twins]) -> list[str]:
    """A sentence and the first rows, if there are any."""
    if not twins:
        return []
    near = sum(not one.exact for one in twins)
    rest = f" ({near:,} of them but for case, space or width)" if near else ""
    return [f"{what}{rest}:", *_listed(twins)]


def _listed(findings: Sequence[SurveyFinding]) -> list[str]:
    more = len(findings) - SHOWN_FINDINGS
    lines = [f"  {one}" for one in findings[:SHOWN_FINDINGS]]
    return [*lines, f"  and {more:,} more"] if more > 0 else lines


def _uneven(uneven: Imbalance, kind: type | None) -> str:
    unit = "tagged span" if kind is Tagged else "row"
    rare = f"{shown(uneven.rarest)} has {counted(uneven.rarest_rows, unit)}"
    if len(uneven.few) > 1:
        rare = f"{len(uneven.few):,} labels are hardly met in training: {rare}"
    advice = (
        f"{rare} to learn from, {shown(uneven.commonest)} {uneven.commonest_rows:,}; "
        "loss.weights = balanced makes them count alike"
    )
    return f"{advice}, plan.sampler = balanced draws them alike" if kind is Label else advice
