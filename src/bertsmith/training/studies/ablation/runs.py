"""The runs of an ablation: every distinct recipe is pre-trained once per seed, then probed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from bertsmith.config import changed
from bertsmith.corpus.shards import Corpus, open_corpus
from bertsmith.errors import ConfigError
from bertsmith.files.digest import json_digest
from bertsmith.folders.read import read_folder
from bertsmith.labeled.example import Example
from bertsmith.tasks.kinds import task_kind
from bertsmith.training.checkpoints.checkpoint import CHECKPOINTS
from bertsmith.training.execution.execution import Execution
from bertsmith.training.finetune.finetune import FinetuneJob
from bertsmith.training.finetune.recipe import FinetuneRecipe, load_finetune_recipe
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.pretrain.pretrain import Job, facts, pretrain
from bertsmith.training.pretrain.recipe import PretrainRecipe
from bertsmith.training.studies.ablation.cost import ProbeSize, pretrain_work, probe_work
from bertsmith.training.studies.ablation.masked_loss import MASKED_LOSS, masked_loss, why_none
from bertsmith.training.studies.ablation.table import AblationTable, RowFigures, make_table
from bertsmith.training.studies.ablation.variations import Variation
from bertsmith.training.studies.trials import (
    FINISHED,
    Trial,
    TrialResult,
    begin_run,
    finetune_trial,
)
from bertsmith.training.studies.vectors import frozen_recipe

Probing = Literal["frozen", "tuned"]
FROZEN_EPOCHS = 10.0
MODELS = "models"
WORDS_PER_TOKEN = 0.75  # of running text


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
            split(row.recipe, corpus)
            row.recipe.program.make(corpus.tokenizer())
            held_out = PretrainWorkload(row.recipe, corpus)
            if not held_out.micro_batches(0, 0.0):
                raise ConfigError("there are no examples in it")
        except ConfigError as fault:
            raise ConfigError(f"{row.name}: {study.corpus} does not fit: {fault}") from fault
    return corpus


def ablation_trials(study: Ablation, execution: Execution) -> list[Trial]:
    """Every run, models first and their probes next; the cost of each is its work."""
    corpus = check_ablation(study)
    trials, owners = [], study.owners()
    for seed in study.seeds:
        for row in study.rows:
            own = owners[row.name]
            if own is row:
                trials.append(_pretrain_trial(study, row, seed, corpus, execution))
            if study.probed(row) is not row:
                continue
            for probe, how in study.cases():
                trials.append(_probe_trial(study, row, seed, (probe, how), corpus, execution))
    return trials


def _model_folder(study: Ablation, row: Variation, seed: int) -> Path:
    return study.folder / MODELS / f"{row.slug}-{seed}"


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
    name, folder = f"{row.slug}-{seed}", _model_folder(study, row, seed)
    key = _pretrain_key(study, row, seed, corpus, execution)
    recipe = _seeded(row.recipe, seed)

    def run(watch: Watcher | None) -> TrialResult | Outcome:
        begin_run(folder, key)
        done = pretrain(
            Job(recipe=recipe, corpus=study.corpus, out=folder), execution=execution, watch=watch
        )
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
    if record.exists() and not (folder / "config.json").exists():
        record.unlink()  # probes need the model
    return Trial(name=name, key=key, run=run, cost=pretrain_work(row.recipe, corpus), record=record)


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
    name = f"{row.slug}-{seed}.{probe.name}.{how}"
    job = FinetuneJob(
        recipe=recipe,
        task=probe.task,
        model=str(_model_folder(study, own, seed)),
        train=probe.train,
        dev=probe.dev,
        out=study.folder / "runs" / name,
        known=task_kind(probe.task).known([*probe.train, *probe.dev]),
    )
    size = ProbeSize(tokens=_tokens([*probe.train]) * recipe.plan.epochs, trained=how == "tuned")
    cost = probe_work(row.recipe, corpus, size)
    mark = _pretrain_key(study, own, seed, corpus, execution)
    return finetune_trial(name, job, execution, mark=mark, cost=cost)


def _tokens(rows: Sequence[Example]) -> float:
    return sum(len(text.split()) / WORDS_PER_TOKEN for row in rows for text in row.texts)


def ablation_table(study: Ablation, results: Sequence[TrialResult]) -> AblationTable:
    """The table of finished runs."""
    by_name = {one.name: one for one in results}
    owners = study.owners()
    rows = [_figures(study, row, owners[row.name], by_name) for row in study.rows]
    return make_table(rows, study.seeds)


def _figures(
    study: Ablation,
    row: Variation,
    own: Variation,
    results: Mapping[str, TrialResult],
) -> RowFigures:
    models = {seed: results[f"{own.slug}-{seed}"] for seed in study.seeds}
    values: dict[str, dict[int, float]] = {MASKED_LOSS: {}}
    for seed, one in models.items():
        loss = one.figures.get(MASKED_LOSS)
        if loss is not None:
            values[MASKED_LOSS][seed] = loss
        for probe, how in study.cases():
            done = results[f"{study.probed(row).slug}-{seed}.{probe.name}.{how}"]
            value = done.figures.get(probe.metric)
            if value is not None and value == value:
                values.setdefault(study.metric(probe, how), {})[seed] = value
    why = why_none(study.base, row.recipe)
    count, first = len(models), models[study.seeds[0]]
    return RowFigures(
        name=row.name,
        settings=row.given,
        values=values,
        dashes={} if why is None else {MASKED_LOSS: why},
        seconds=sum(one.seconds for one in models.values()) / count,
        parameters=int(first.more["parameters"]),
        size=int(first.more["bytes"]),
        tokens=round(sum(one.more["tokens"] for one in models.values()) / count),
    )
