"""Results of training and evaluation as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.cli.shared.console import table_lines
from bertsmith.report.finetune.figures import fraction, value_of
from bertsmith.report.result import ResultSide, ResultView, repeated_lines, spent
from bertsmith.wording import counted, duration

if TYPE_CHECKING:
    from bertsmith.api.train import TrainedModel
    from bertsmith.training.loop.run import Outcome


UNCHANGED = (
    "no step was better on the dev rows than the start, whose weights are kept; try other rows, a "
    "lower --lr or more steps"
)


def stopped_line(outcome: Outcome) -> str:
    """How a run that was stopped ended."""
    if outcome.step == 0:
        return (
            f"stopped by {outcome.signal} before the first step, after {duration(outcome.seconds)};"
            " there is no training to save yet, the same command starts it again"
        )
    return (
        f"stopped by {outcome.signal} after {counted(outcome.step, 'step')}, "
        f"{duration(outcome.seconds)}; saved, the same command resumes"
    )


def pretrain_lines(result: TrainedModel) -> list[str]:
    """The result of pre-training: what was spent, held-out metrics, where the curves are."""
    outcome = result.outcome
    if outcome.status == "stopped":
        return [stopped_line(outcome)]
    spent = f"{counted(outcome.step, 'step')}, {counted(outcome.tokens, 'token')}"
    lines = [f"{result.folder}: {spent}, {duration(outcome.seconds)}"]
    evaluation = outcome.evaluation
    if evaluation is not None:
        mean = " (averaged weights)" if outcome.chosen == "average" else ""
        lines.append(f"held-out text{mean}:")
        for name, loss in evaluation.losses.items():
            parts = [f"loss {loss:.4f}", f"perplexity {evaluation.perplexity[name]:,.1f}"]
            if name in evaluation.accuracy:
                parts.append(f"accuracy {evaluation.accuracy[name]:.4f}")
            parts.append(counted(evaluation.counts[name], "prediction"))
            lines.append(f"  {name:<13}{', '.join(parts)}")
    lines += stage_lines(outcome)
    return [*lines, f"curves: {result.report}"]


def stage_lines(outcome: Outcome) -> list[str]:
    """The held-out loss (and accuracy) of every task at the end of every stage."""
    if not outcome.stages:
        return []
    names = list(dict.fromkeys(name for stage in outcome.stages for name in stage["losses"]))
    rows = [
        [
            str(number),
            f"{stage['step']:,}",
            *(_loss_and_accuracy(stage, name) for name in names),
        ]
        for number, stage in enumerate(outcome.stages, start=1)
    ]
    learned = [
        f"  stage {number} learns {stage['stage']}"
        for number, stage in enumerate(outcome.stages, start=1)
    ]
    lines = table_lines(["stage", "step", *names], rows)
    return ["held-out loss (accuracy) at the end of each stage:", *learned, *lines]


def _loss_and_accuracy(stage: Mapping[str, Any], name: str) -> str:
    loss, accuracy = stage["losses"].get(name), stage["accuracy"].get(name)
    if loss is None:
        return ""
    return f"{loss:.3f}" if accuracy is None else f"{loss:.3f} ({accuracy:.3f})"


def training_lines(
    folder: Path, record: Mapping[str, Any], view: ResultView, page: Path
) -> list[str]:
    """What a training of any kind came to: what it took, figures, and where the page is."""
    lines = [f"{folder}: {', '.join([*spent(record['training']), *view.spent])}"]
    if record["training"].get("best_step") == 0:
        lines.append(UNCHANGED)
    lines += [f"  {remark}" for remark in view.before]
    for side in view.sides:
        lines += [f"{side.title}:", *side_lines(side)]
    return [*lines, *repeated_lines(record), *view.after, f"report: {page}"]


def side_lines(side: ResultSide) -> list[str]:
    """A table of figures with its remarks."""
    rows = [[f"  {name}", *values] for name, *values in side.rows]
    return [*table_lines(side.header, rows), *(f"  {remark}" for remark in side.remarks)]


def proof_lines(record: Mapping[str, Any], *, most: int) -> list[str]:
    """The lines of a `Proof.to_json`: metrics, then a table of classes."""
    what = record.get("model") or record.get("answers")
    rows = counted(record["rows"], "row")
    lines = [f"{what} on {record.get('file')}: {rows}"]
    lines += figure_lines(record["figures"], interval=record.get("interval"))
    if record.get("rules"):
        lines.append(f"  scored by the rules of {record['rules']}")
    lines += class_lines(record.get("classes") or (), most=most)
    cost = record.get("truncation")
    if isinstance(cost, Mapping) and cost.get("rows_cut"):
        lines.append(f"  truncated: {cost['rows_cut']:,} of {rows}")
    return lines


def figure_lines(
    figures: Mapping[str, float | None], *, interval: Mapping[str, Any] | None = None
) -> list[str]:
    """One line per metric, the main one first, with its interval."""
    width = max(map(len, figures), default=0) + 2
    lines = []
    for place, (name, value) in enumerate(figures.items()):
        line = f"  {name:<{width}}{value_of(name, value)}"
        if place == 0 and interval and interval.get("low") is not None:
            low, high = (value_of(name, interval[side]) for side in ("low", "high"))
            line += f"  (95 % interval: {low} to {high})"
        lines.append(line)
    return lines


def class_lines(classes: Sequence[Mapping[str, Any]], *, most: int) -> list[str]:
    """Precision, recall, F1 and rows of each class."""
    if not classes:
        return []
    rows = [
        [
            f"  {row.get('label', row.get('type', ''))}",
            *(fraction(row.get(key) or 0.0) for key in ("precision", "recall", "f1")),
            f"{row.get('support', row.get('rows', 0)):,}",
        ]
        for row in classes[:most]
    ]
    lines = table_lines(["", "precision", "recall", "f1", "rows"], rows)
    more = len(classes) - most
    return [*lines, f"  and {counted(more, 'more class', 'more classes')}"] if more > 0 else lines
