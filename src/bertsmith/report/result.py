"""What a training or an evaluation came to, as tables and remarks: read from its record.

Kinds say what belongs in it; terminals print it in one way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertsmith.report.finetune.figures import value_of
from bertsmith.wording import counted, duration

SIDES = ("dev", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSide:
    """Figures of the dev or the test rows, a row each; the model's and those of baselines."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    remarks: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultView:
    """Sides with remarks before and after them; `spent` adds to what all say of their time."""

    spent: Sequence[str] = ()
    before: Sequence[str] = ()
    sides: Sequence[ResultSide] = ()
    after: Sequence[str] = ()


def plain_result(record: Mapping[str, Any]) -> ResultView:
    """The figures of each side with their baselines and the interval of the main one."""
    sides = []
    for name in SIDES:
        side = record.get(name)
        if side:
            simple = side.get("baselines") or (record.get("baselines") or {}).get(name) or {}
            sides.append(plain_side(name, side, {key: (key, one) for key, one in simple.items()}))
    return ResultView(sides=sides)


def plain_side(
    name: str, side: Mapping[str, Any], simple: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> ResultSide:
    """A row per figure, a column for the model and each baseline (its title and figures)."""
    columns = [side["figures"], *(figures for _, figures in simple.values())]
    remarks = []
    interval = side.get("interval") or {}
    if interval.get("low") is not None:
        low, high = (value_of(side["main"], interval[end]) for end in ("low", "high"))
        remarks.append(f"95 % interval over rows: {side['main']} {low} to {high}")
    cost = side.get("truncation") or {}
    if cost.get("rows_cut"):
        remarks.append(
            f"truncated: {cost['rows_cut']:,} of {counted(side['rows'], 'row')}, "
            f"{counted(cost['tokens_cut'], 'token')} lost"
        )
    return ResultSide(
        title=f"{name}, {counted(side['rows'], 'row')}",
        header=["", "model", *(title for title, _ in simple.values())],
        rows=[
            [figure, *(value_of(figure, column.get(figure)) for column in columns)]
            for figure in side["figures"]
        ],
        remarks=remarks,
    )


def spent(training: Mapping[str, Any]) -> list[str]:
    """Epochs, steps, rate and time of a training, and which of its weights are the best."""
    parts = []
    if training.get("epochs"):
        parts.append(counted(training["epochs"], "epoch"))
    if training.get("steps"):
        parts.append(counted(training["steps"], "step"))
    if training.get("rate"):
        parts.append(f"learning rate {training['rate']:g}")
    if training.get("seconds"):
        parts.append(duration(training["seconds"]))
    if training.get("tokens_per_second"):
        parts.append(f"{training['tokens_per_second']:,.0f} tokens/s")
    if training.get("best_weights") == "average":
        parts.append("best: averaged weights")
    elif training.get("best_step"):
        parts.append(f"best after step {training['best_step']:,}")
    elif training.get("best_step") == 0:
        parts.append("best: the weights of the start")
    return parts


def repeated_lines(record: Mapping[str, Any]) -> list[str]:
    """Mean and interval of several seeds; the figures of all rows held out in folds."""
    folds, seeds = record.get("folds"), record.get("seeds")
    lines: list[str] = []
    if isinstance(folds, Mapping):
        rows = counted(record["data"]["rows"]["train"], "row")
        lines.append(f"{rows} in {folds['count']} folds, each evaluated when held out:")
        lines += [f"  {name}: {value_of(name, value)}" for name, value in folds["figures"].items()]
    if seeds:
        lines.append(f"dev over {len(seeds)} seeds; {record.get('chosen')} was chosen:")
        lines += [
            f"  {name}: mean {value_of(name, one['mean'])}, standard deviation "
            f"{value_of(name, one['deviation'])}, 95 % interval "
            f"{value_of(name, one['low'])} to {value_of(name, one['high'])}"
            for name, one in (record.get("interval") or {}).items()
        ]
    return lines
