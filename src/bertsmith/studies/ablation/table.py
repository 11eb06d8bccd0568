"""The table of an ablation: paired differences to the base over seeds, corrected for many."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bertsmith.files.strict_json import json_values
from bertsmith.metrics import LOWER_IS_BETTER
from bertsmith.metrics.significance import Difference, Spread, holm, over_seeds, paired_over_seeds
from bertsmith.studies.ablation.masked_loss import MASKED_LOSS
from bertsmith.studies.study import StudyTable
from bertsmith.wording import duration

ENOUGH_SEEDS = 3
LEVEL = 0.05
DIRECTION = "direction only"
NOTHING = "no difference shown"
Verdict = Literal["better", "worse", "no difference shown", "direction only"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationCell:
    """A metric of a row: over seeds, against the base (None in the base), and what that shows.

    `p` is Holm's: the smallest level at which the table as a whole shows this difference.
    """

    value: Spread | None
    by_seed: Mapping[int, float] = field(default_factory=dict)
    dash: str = ""  # why there is no value
    difference: Difference | None = None
    agree: bool = False  # the difference has the same sign with every seed
    lower: bool = False  # a small value is a good one
    p: float = math.nan
    verdict: Verdict | None = None

    @property
    def star(self) -> bool:
        """Whether a difference is shown."""
        return self.verdict in ("better", "worse")

    @property
    def direction(self) -> str:
        """Better or worse with every seed; empty if seeds disagree."""
        if self.difference is None or not self.agree:
            return ""
        return "better" if (self.difference.value < 0) == self.lower else "worse"

    def text(self) -> str:
        """The value with half of its interval."""
        if self.value is None:
            return "-"
        if math.isnan(self.value.low):
            return f"{self.value.mean:.4f}"
        return f"{self.value.mean:.4f} ± {self.value.high - self.value.mean:.4f}"

    def difference_text(self) -> str:
        """The difference to the base with its interval; a star if it is shown."""
        gap = self.difference
        if gap is None:
            return "-" if self.value is None else ""
        if math.isnan(gap.low):
            return f"{gap.value:+.4f}"
        star = " *" if self.star else ""
        return f"{gap.value:+.4f} ({gap.low:+.4f} to {gap.high:+.4f}){star}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRow:
    """A row: what it changes, its cells by metric, and what it cost."""

    name: str
    settings: tuple[str, ...]
    cells: Mapping[str, AblationCell]
    notes: tuple[str, ...] = ()
    steps: int = 0
    seconds: float = 0.0  # of pre-training, mean over seeds
    parameters: int = 0
    size: int = 0  # bytes of the weights
    tokens: int = 0  # of training, mean over seeds

    @property
    def summary(self) -> str:
        """What the row shows, in a few words."""
        verdicts = {name: cell.verdict for name, cell in self.cells.items() if cell.verdict}
        shown = [f"{name} {v}" for name, v in verdicts.items() if v in ("better", "worse")]
        if shown:
            return ", ".join(shown)
        if DIRECTION not in verdicts.values():
            return NOTHING if verdicts else ""
        ways = [f"{name} {c.direction}" for name, c in self.cells.items() if c.direction]
        return f"{DIRECTION}: {', '.join(ways) or 'seeds disagree'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFigures:
    """What the runs of a row gave: values by metric and seed, or why there are none."""

    name: str
    settings: tuple[str, ...] = ()
    values: Mapping[str, Mapping[int, float]]
    dashes: Mapping[str, str]
    notes: tuple[str, ...] = ()
    steps: int = 0
    seconds: float = 0.0
    parameters: int = 0
    size: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationTable:
    """The base and its variations; the first row is the base."""

    metrics: tuple[str, ...]
    seeds: tuple[int, ...]
    rows: tuple[AblationRow, ...]

    @property
    def stars(self) -> int:
        """The differences that are shown."""
        return sum(cell.star for row in self.rows for cell in row.cells.values())

    @property
    def head(self) -> tuple[str, ...]:
        """Nothing stands before the table."""
        return ()

    @property
    def tables(self) -> list[StudyTable]:
        """Two columns for every metric, then cost and what the row shows."""
        metrics = [one for name in self.metrics for one in (name, "difference")]
        heads = ["row", *metrics, "tokens", "parameters", "size", "time", "shows"]
        return [StudyTable(heads=heads, rows=[self._cells(row) for row in self.rows])]

    def _cells(self, row: AblationRow) -> list[str]:
        cells = [row.name]
        for name in self.metrics:
            cells += [row.cells[name].text(), row.cells[name].difference_text()]
        return [
            *cells,
            f"{row.tokens / 1e6:.2f} M",
            f"{row.parameters / 1e6:.2f} M",
            f"{row.size / 1e6:.1f} MB",
            duration(row.seconds),
            row.summary,
        ]

    @property
    def notes(self) -> list[str]:
        """What must be known to read the table."""
        lines = [
            "differences to the base are paired by seed; intervals are Student's, 95 %, for one "
            "comparison; a star stands where Holm's correction over all comparisons of the table "
            f"leaves p below {LEVEL}"
        ]
        if len(self.seeds) < ENOUGH_SEEDS:
            lines.append(
                f"{DIRECTION}: what is better or worse with every seed; {len(self.seeds)} cannot "
                f"tell a difference from chance, take at least {ENOUGH_SEEDS}"
            )
        if MASKED_LOSS in self.metrics:
            lines.append(f"{MASKED_LOSS}: of held-out text under the base's masks, nats per token")
        lines.append("time: of one pre-training, the mean over seeds")
        if others := _other_steps(self.rows):
            lines.append(
                f"all rows train on equally many tokens; their texts have other lengths than those "
                f"of the base ({self.rows[0].steps:,} steps): {others}"
            )
        lines += [f"{row.name}: {note}" for row in self.rows for note in row.notes]
        reasons = dict.fromkeys(
            f"- in {name} of {row.name}: {cell.dash}"
            for row in self.rows
            for name, cell in row.cells.items()
            if cell.dash
        )
        return [*lines, *reasons]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        rows = []
        for row in self.rows:
            cells = {name: _cell_json(cell) for name, cell in row.cells.items()}
            rows.append(
                {
                    "name": row.name,
                    "settings": list(row.settings),
                    "summary": row.summary,
                    "metrics": cells,
                    "notes": list(row.notes),
                    "steps": row.steps,
                    "seconds": row.seconds,
                    "parameters": row.parameters,
                    "bytes": row.size,
                    "tokens": row.tokens,
                }
            )
        record = {"seeds": list(self.seeds), "metrics": list(self.metrics), "rows": rows}
        return dict(json_values({**record, "notes": self.notes}))


def lower_is_better(metric: str) -> bool:
    """Whether a small value of this metric is a good one."""
    return metric == MASKED_LOSS or metric.rpartition(" ")[2] in LOWER_IS_BETTER


def standard_errors_needed(seeds: int, comparisons: int) -> float:
    """The smallest t that Holm's correction lets pass if no other difference is shown."""
    if seeds < ENOUGH_SEEDS or not comparisons:
        return math.nan
    from scipy.special import stdtrit  # here, because scipy takes longer to load than all of ours

    return float(stdtrit(seeds - 1, 1 - LEVEL / comparisons / 2))


def make_table(rows: Sequence[RowFigures], seeds: Sequence[int]) -> AblationTable:
    """The table of these rows; the first one is the base."""
    base, metrics = rows[0], tuple(dict.fromkeys(m for row in rows for m in row.values))
    pairs: dict[tuple[str, str], _Pairs] = {}
    for row in rows[1:]:
        for metric in metrics:
            ours, theirs = row.values.get(metric, {}), base.values.get(metric, {})
            both = [seed for seed in seeds if seed in ours and seed in theirs]
            if both:
                pairs[row.name, metric] = _Pairs.of(
                    [theirs[seed] for seed in both], [ours[seed] for seed in both]
                )
    ps = holm([one.difference.p for one in pairs.values()])
    adjusted = {key: (one, p) for (key, one), p in zip(pairs.items(), ps, strict=True)}
    made = []
    for row in rows:
        cells = {m: _cell(row, m, adjusted.get((row.name, m))) for m in metrics}
        made.append(
            AblationRow(
                name=row.name,
                settings=row.settings,
                cells=cells,
                notes=row.notes,
                steps=row.steps,
                seconds=row.seconds,
                parameters=row.parameters,
                size=row.size,
                tokens=row.tokens,
            )
        )
    return AblationTable(metrics=metrics, seeds=tuple(seeds), rows=tuple(made))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairs:
    """The difference of a row to the base in one metric, over the seeds that both have."""

    difference: Difference
    agree: bool
    seeds: int

    @classmethod
    def of(cls, base: Sequence[float], row: Sequence[float]) -> _Pairs:
        signs = {(b > a) - (b < a) for a, b in zip(base, row, strict=True)}
        agree = signs in ({1}, {-1})
        return cls(difference=paired_over_seeds(base, row), agree=agree, seeds=len(row))


def _cell(row: RowFigures, metric: str, compared: tuple[_Pairs, float] | None) -> AblationCell:
    values = row.values.get(metric, {})
    if not values:
        return AblationCell(value=None, dash=row.dashes.get(metric, "nothing was measured"))
    spread = over_seeds(list(values.values()))
    if compared is None:
        return AblationCell(value=spread, by_seed=values)
    pairs, p = compared
    lower = lower_is_better(metric)
    verdict: Verdict = "no difference shown"
    if pairs.seeds < ENOUGH_SEEDS:
        verdict = "direction only"
    elif p < LEVEL:
        verdict = "better" if (pairs.difference.value < 0) == lower else "worse"
    return AblationCell(
        value=spread,
        by_seed=values,
        difference=pairs.difference,
        agree=pairs.agree,
        lower=lower,
        p=p,
        verdict=verdict,
    )


def _cell_json(cell: AblationCell) -> dict[str, Any]:
    if cell.value is None:
        return {"value": None, "reason": cell.dash}
    record: dict[str, Any] = {
        "value": cell.value.mean,
        "by_seed": {str(seed): value for seed, value in cell.by_seed.items()},
        "deviation": cell.value.deviation,
        "low": cell.value.low,
        "high": cell.value.high,
    }
    if cell.difference is not None:
        gap = cell.difference
        record["difference"] = {
            "value": gap.value,
            "low": gap.low,
            "high": gap.high,
            "p": gap.p,
            "p_holm": cell.p,
            "shown": cell.star,
            "verdict": cell.verdict,
            "direction": cell.direction or None,
        }
    return record


def _other_steps(rows: Sequence[AblationRow]) -> str:
    """The rows with other numbers of steps than the base."""
    return ", ".join(f"{row.name} {row.steps:,}" for row in rows if row.steps != rows[0].steps)
