"""The runs of an ablation: every distinct recipe is pre-trained once per seed, then probed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from bertsmith.config import changed
from bertsmith.corpus.shards import Corpus, open_corpus
from bertsmith.errors import ConfigError, DivergedError
from bertsmith.files.digest import json_digest
from bertsmith.folders.read import read_folder
from bertsmith.labeled.example import Example
from bertsmith.studies.ablation.masked_loss import MASKED_LOSS, masked_loss, why_none
from bertsmith.studies.ablation.table import AblationTable, RowFigures, make_table
from bertsmith.studies.ablation.variations import Variation
from bertsmith.studies.vectors import frozen_recipe
from bertsmith.tasks.kinds import task_kind
from bertsmith.training.checkpoints.checkpoint import CHECKPOINTS
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.learner import FinetuneJob
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe, load_finetune_recipe
from bertsmith.training.kinds.labeled.rows import LabeledRows
from bertsmith.training.kinds.labeled.trials import finetune_trial
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.pretrain.pretrain import Job, facts, pretrain
from bertsmith.training.pretrain.recipe import PretrainRecipe, spec_of
from bertsmith.training.repeat.trials import (
    FINISHED,
    Trial,
    TrialResult,
    begin_run,
    read_result,
)

Probing = Literal["frozen", "tuned"]
FROZEN_EPOCHS = 10.0
MODELS = "models"
DIVERGED = "diverged"  # in the result of a run: why it ended


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRows:
    """The labeled rows of a probe, its task, and settings of its fine-tuning."""

    name: str
    task: str
    train: Sequence[Example]
    dev: Sequence[Example]
    settings: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        """The metric that a table shows."""
        return task_kind(self.task).metric.main

    def recipe(self, how: Probing, more: Sequence[str] = ()) -> FinetuneRecipe:
        """Of the fine-tuning; a frozen encoder trains the head alone."""
        recipe = load_finetune_recipe(None, [*self.settings, *more], task=self.task)
        return frozen_recipe(recipe, epochs=FROZEN_EPOCHS) if how == "frozen" else recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """What is compared: rows, the first of which is the base, seeds, a corpus and probes."""

    rows: tuple[Variation, ...]
    seeds: tuple[int, ...]
    corpus: Path
    folder: Path
    probes: tuple[ProbeRows, ...] = ()
    probing: tuple[Probing, ...] = ("tuned",)

    @property
    def base(self) -> PretrainRecipe:
        """The recipe that all rows vary."""
        return self.rows[0].recipe

    def cases(self) -> list[tuple[ProbeRows, Probing]]:
        """Every probe in every way."""
        return [(probe, how) for probe in self.probes for how in self.probing]

    def metric(self, probe: ProbeRows, how: Probing) -> str:
        """The column of a probe."""
        way = f" {how}" if len(self.probing) > 1 else ""
        return f"{probe.name}{way} {probe.metric}"

    def owners(self) -> dict[str, Variation]:
        """By row, the first row with the same pre-training: its models serve both."""
        found: dict[str, Variation] = {}
        for row in self.rows:
            same = [one for one in found.values() if _same(one.recipe, row.recipe)]
            found[row.name] = same[0] if same else row
        return found

    def probed(self, row: Variation) -> Variation:
        """The row whose probes are those of this one: itself, or the owner if it has the same."""
        own = self.owners()[row.name]
        return own if own.probe == row.probe else row


def _same(one: PretrainRecipe, other: PretrainRecipe) -> bool:
    return one.model_dump(exclude={"about"}) == other.model_dump(exclude={"about"})


def check_ablation(study: Ablation) -> Corpus:
    """The corpus, if every row can be trained on it; mistakes show before time goes into one."""
    from bertsmith.training.pretrain.workload import PretrainWorkload, split

    corpus = open_corpus(study.corpus)
    for row in study.rows:
        try:
            spec_of(row.recipe.model, corpus.tokenizer())
            split(row.recipe, corpus)
            row.recipe.program.make(corpus.tokenizer())
            held_out = PretrainWorkload(row.recipe, corpus)
            if not held_out.micro_batches(0, 0.0):
                raise ConfigError("there are no examples in it")
        except ConfigError as fault:
            raise ConfigError(
                f"{row.name}: it cannot be trained on {study.corpus}: {fault}"
            ) from fault
    return corpus


def ablation_trials(study: Ablation, execution: Execution) -> list[Trial]:
    """Every run, for each seed the models and their probes next; their costs are not known yet."""
    corpus = check_ablation(study)
    trials, owners = [], study.owners()
    for seed in study.seeds:
        for row in study.rows:
            if owners[row.name] is row:
                trials.append(_pretrain_trial(study, row, seed, corpus, execution))
            if study.probed(row) is row:
                trials += [
                    _probe_trial(study, row, seed, case, corpus, execution)
                    for case in study.cases()
                ]
    return trials


def model_name(row: Variation, seed: int) -> str:
    """The name of a pre-training."""
    return f"{row.slug}-{seed}"


def probe_name(row: Variation, seed: int, case: tuple[ProbeRows, Probing]) -> str:
    """The name of a probe of that model."""
    return f"{row.slug}-{seed}.{case[0].name}.{case[1]}"


def _model_folder(study: Ablation, row: Variation, seed: int) -> Path:
    return study.folder / MODELS / model_name(row, seed)


def _seeded(recipe: PretrainRecipe, seed: int) -> PretrainRecipe:
    return changed(recipe, {"run.seed": seed})


def _pretrain_key(
    study: Ablation, row: Variation, seed: int, corpus: Corpus, execution: Execution
) -> str:
    job = Job(recipe=_seeded(row.recipe, seed), corpus=study.corpus, out=study.folder)
    base = replace(job, recipe=_seeded(study.base, seed))
    known: dict[str, Any] = {
        "run": facts(job, corpus, execution),
        "recipe": row.recipe.model_dump(mode="json", exclude={"about", "run"}),
        "seed": seed,
        "measured": facts(base, corpus, execution),
    }
    return json_digest(known)


def _pretrain_trial(
    study: Ablation, row: Variation, seed: int, corpus: Corpus, execution: Execution
) -> Trial:
    """Pre-training with a seed, and the held-out masked loss under the base's masks."""
    name, folder = model_name(row, seed), _model_folder(study, row, seed)
    key = _pretrain_key(study, row, seed, corpus, execution)
    recipe = _seeded(row.recipe, seed)

    def run(watch: Watcher | None) -> TrialResult | Outcome:
        begin_run(folder, key)
        job = Job(recipe=recipe, corpus=study.corpus, out=folder)
        try:
            done = pretrain(job, execution=execution, watch=watch)
        except DivergedError as fault:
            if row is study.rows[0]:
                raise
            why = str(fault).partition(". ")[0]
            return TrialResult(name=name, figures={}, seconds=0.0, more={DIVERGED: why})
        if done.status != "finished":
            return done
        figures: dict[str, float | None] = {}
        if why_none(study.base, row.recipe) is None:
            base = _seeded(study.base, seed)
            figures[MASKED_LOSS] = masked_loss(folder, base, corpus, execution)
        shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
        evaluated = done.evaluation
        return TrialResult(
            name=name,
            figures=figures,
            seconds=done.seconds,
            more={
                "tokens": done.tokens,
                "held_out": None if evaluated is None else evaluated.to_json(),
                **_sizes(folder),
            },
        )

    record = study.folder / FINISHED / f"{name}.json"
    stored = read_result(record, name, key)
    if stored is not None and DIVERGED not in stored.more and not _has_model(folder):
        record.unlink()  # probes need the model
    return Trial(name=name, key=key, run=run, record=record)


def _has_model(folder: Path) -> bool:
    return (folder / "config.json").exists()


def _sizes(folder: Path) -> dict[str, int]:
    from safetensors import safe_open

    count, size = 0, 0
    for path in sorted(read_folder(folder).path.glob("*.safetensors")):
        size += path.stat().st_size
        with safe_open(path, framework="numpy") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - not a mapping
                shape = tensors.get_slice(name).get_shape()
                product = 1
                for side in shape:
                    product *= side
                count += product
    return {"parameters": count, "bytes": size}


def _probe_trial(
    study: Ablation,
    row: Variation,
    seed: int,
    case: tuple[ProbeRows, Probing],
    corpus: Corpus,
    execution: Execution,
) -> Trial:
    probe, how = case
    own = study.owners()[row.name]
    recipe = changed(probe.recipe(how, row.probe), {"run.seed": seed})
    if recipe.vector.pooling == "auto":
        # Equal for all rows whose tokens see their whole text: a row without next sentence has no
        # pooler, and would be read in another way than the base.
        blind = row.recipe.model.sees == "before" and recipe.head.lstm is None
        recipe = changed(recipe, {"vector.pooling": "last" if blind else "mean"})
    name = probe_name(row, seed, case)
    job = FinetuneJob(
        recipe=recipe,
        task=probe.task,
        model=str(_model_folder(study, own, seed)),
        rows=LabeledRows(
            train=probe.train,
            dev=probe.dev,
            known=task_kind(probe.task).known([*probe.train, *probe.dev]),
        ),
        out=study.folder / "runs" / name,
    )
    mark = _pretrain_key(study, own, seed, corpus, execution)
    trial = finetune_trial(name, job, execution, mark=mark)

    def run(watch: Watcher | None) -> TrialResult | Outcome:
        if not _has_model(_model_folder(study, own, seed)):  # its training diverged
            return TrialResult(name=name, figures={}, seconds=0.0)
        return trial.run(watch)

    return replace(trial, run=run)


def comparisons(study: Ablation) -> int:
    """How many differences to the base the table will have."""
    losses = sum(why_none(study.base, row.recipe) is None for row in study.rows[1:])
    return losses + (len(study.rows) - 1) * len(study.cases())


def ablation_table(study: Ablation, results: Sequence[TrialResult]) -> AblationTable:
    """The table of finished runs."""
    return make_table(row_figures(study, results), study.seeds)


def row_figures(study: Ablation, results: Sequence[TrialResult]) -> list[RowFigures]:
    """What finished runs gave, row by row."""
    by_name = {one.name: one for one in results}
    owners = study.owners()
    return [_figures(study, row, owners[row.name], by_name) for row in study.rows]


def _figures(
    study: Ablation,
    row: Variation,
    own: Variation,
    results: Mapping[str, TrialResult],
) -> RowFigures:
    models = {seed: results[model_name(own, seed)] for seed in study.seeds}
    whole = [one for one in models.values() if DIVERGED not in one.more]
    values: dict[str, dict[int, float]] = {MASKED_LOSS: {}}
    for seed, one in models.items():
        found = {MASKED_LOSS: one.figures.get(MASKED_LOSS)}
        for case in study.cases():
            done = results[probe_name(study.probed(row), seed, case)]
            found[study.metric(*case)] = done.figures.get(case[0].metric)
        for metric, value in found.items():
            if value is not None and value == value:
                values.setdefault(metric, {})[seed] = value
    why = why_none(study.base, row.recipe)
    dashes = {} if why is None else {MASKED_LOSS: why}
    notes = [row.note] if row.note else []
    for seed, one in models.items():
        if DIVERGED in one.more:
            notes.append(f"training diverged with seed {seed}: {one.more[DIVERGED]}")
    if not whole:
        dashes = {study.metric(*case): "training diverged" for case in study.cases()}
        dashes[MASKED_LOSS] = "training diverged"
    return RowFigures(
        name=row.name,
        settings=row.given,
        values=values,
        dashes=dashes,
        notes=tuple(notes),
        steps=row.recipe.schedule.steps or 0,
        seconds=_mean([one.seconds for one in whole]),
        parameters=max((int(one.more["parameters"]) for one in whole), default=0),
        size=max((int(one.more["bytes"]) for one in whole), default=0),
        tokens=round(_mean([one.more["tokens"] for one in whole])),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
