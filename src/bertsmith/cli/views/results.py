"""Results of training and evaluation as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.cli.shared.console import table_lines
from bertsmith.report.finetune.enrichment import enrichment_lines
from bertsmith.report.finetune.figures import fraction, value_of
from bertsmith.report.finetune.overfitting import overfitting
from bertsmith.report.finetune.overview import (
    BEATEN,
    baseline_title,
    is_beaten,
    only_here,
)
from bertsmith.wording import counted, duration

if TYPE_CHECKING:
    from bertsmith.api.train import TrainedModel
    from bertsmith.training.loop.run import Outcome


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


def result_lines(out: Path, record: dict[str, Any], page: Path) -> list[str]:
    """The result: metrics next to the baselines, truncation, where the report is."""
    lines = [_made(out, record["training"])]
    for name in ("dev", "test"):
        if record.get(name):
            lines += _side(name, record[name], (record.get("baselines") or {}).get(name) or {})
    lines += repeated_lines(record)
    lines += enrichment_lines(record)
    if is_beaten(record):
        lines.append(BEATEN)
    warning = overfitting(record)
    if warning:
        lines.append(warning)
    elsewhere = only_here(record)
    if elsewhere:
        lines.append(elsewhere)
    lines.append(f"report: {page}")
    return lines


def _made(out: Path, training: Mapping[str, Any]) -> str:
    parts = [counted(training["epochs"], "epoch")]
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
    return f"{out}: {', '.join(parts)}"


def _side(name: str, proof: dict[str, Any], simple: Mapping[str, Any]) -> list[str]:
    """A table: a row per metric, a column for the model and each baseline."""
    task = proof["task"]
    rows = [
        [
            f"  {figure}",
            *(value_of(figure, one) for one in (value, *(t.get(figure) for t in simple.values()))),
        ]
        for figure, value in proof["figures"].items()
    ]
    titles = (baseline_title(proof, task, key, figures) for key, figures in simple.items())
    heads = ["", "model", *titles]
    lines = [f"{name}, {counted(proof['rows'], 'row')}:", *table_lines(heads, rows)]
    interval = proof.get("interval") or {}
    if interval.get("low") is not None:
        low, high = (value_of(proof["main"], interval[side]) for side in ("low", "high"))
        lines.append(f"  95 % interval over rows: {proof['main']} {low} to {high}")
    cost = proof.get("truncation") or {}
    if cost.get("rows_cut"):
        lines.append(
            f"  truncated: {cost['rows_cut']:,} of {counted(proof['rows'], 'row')}, "
            f"{counted(cost['tokens_cut'], 'token')} lost"
        )
    return lines


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
