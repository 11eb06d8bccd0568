"""Heads on an encoder that stays as it is: all ways to read it are tried in one go.

Each text passes through the encoder once an epoch, however many heads read what comes out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertsmith.errors import ConfigError
from bertsmith.folders.read import load_model
from bertsmith.metrics import better
from bertsmith.nn.encoder import Want
from bertsmith.tasks.batch import TaskBatch, task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import MICRO_TOKENS, cut_up, shared_out
from bertsmith.tasks.model.meta import meta_sizes, meta_tables, with_meta
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.model.text_vector import VectorSettings
from bertsmith.tasks.task import Logits, score
from bertsmith.training.execution.execution import Place
from bertsmith.training.finetune.default_rate import by_size
from bertsmith.training.finetune.finetune import FinetuneJob, job_task
from bertsmith.training.finetune.model import build_task_model
from bertsmith.training.finetune.recipe import FinetuneRecipe, TextVectorSettings
from bertsmith.training.finetune.workload import FinetuneWork
from bertsmith.training.loop.progress import Progress, Watcher
from bertsmith.training.studies.store import Tried


@dataclass(slots=True, kw_only=True)
class _Head:
    """One way to read the encoder, what it has learned, and the best it was."""

    model: TaskModel
    optimizer: torch.optim.Optimizer
    rate: float | None  # None: not known before the first vectors
    seconds: float = 0.0
    logits: list[Logits] = field(default_factory=list)
    figure: float = float("nan")


def frozen_heads(
    job: FinetuneJob,
    choices: Mapping[str, VectorSettings],
    place: Place,
    *,
    rate: float | None = None,
    watch: Watcher | None = None,
) -> dict[str, Tried]:
    """Train a head for each choice on the same frozen encoder, by the plan of the job's recipe.

    `rate` is the learning rate; if it is None, each head gets one that suits the size of the
    vectors it reads. The best epoch of each is kept, by its development figure. Nothing of one
    choice depends on the others. `seconds` are those of the encoder and of the head: what it would
    take by itself.
    """
    recipe = job.recipe
    task = job_task(job)
    if task.reads != "text":
        raise ConfigError(f"{job.task} reads single tokens: there is no vector of a text to choose")
    tables = meta_tables(job.train, recipe.head.meta)
    base, tokenizer = build_task_model(
        _read_as(recipe, next(iter(choices.values()))),
        load_model(job.model),
        task,
        meta_sizes=meta_sizes(tables),
        device=place.device.type,
    )
    base.requires_grad_(False).eval().to(place.device)
    heads = {
        name: _head(base, choice, recipe, rate, meta_sizes(tables))
        for name, choice in choices.items()
    }
    train, dev = (
        with_meta(task.features(rows, tokenizer, recipe.length), rows, tables)
        for rows in (job.train, job.dev)
    )
    for head in heads.values():
        if head.model.bag is not None:
            head.model.bag.learn_rarity(train)
    work = FinetuneWork(task, train, plan=recipe.plan, seed=recipe.run.seed, ranks=place.ranks)
    an_epoch = max(1, round(work.steps_an_epoch))
    steps = max(1, round(work.steps_an_epoch * recipe.plan.epochs))
    encoder = _Encoding(base, place)
    every, figure = list(heads.values()), recipe.best.figure or task.kind.metric.main
    began = time.monotonic()
    for step in range(steps):
        ramp = _ramp(step, steps, recipe.plan.warmup)
        _learn(every, work, step, encoder, ramp=ramp, recipe=recipe)
        if watch is not None:
            watch(_look(step + 1, steps, encoder, began))
        if (step + 1) % an_epoch == 0 or step + 1 == steps:
            _judge(every, figure, encoder, dev, job)
    return {
        name: _told(name, head, dev, job, shared=encoder.seconds) for name, head in heads.items()
    }


def _read_as(recipe: FinetuneRecipe, choice: VectorSettings) -> FinetuneRecipe:
    vector = TextVectorSettings(pooling=choice.pooling, layers=choice.layers)
    return recipe.model_copy(update={"vector": vector})


def _own(model: TaskModel) -> list[nn.Parameter]:
    """Everything but the encoder."""
    return [p for name, p in model.named_parameters() if not name.startswith("model.")]


def _head(
    base: TaskModel,
    choice: VectorSettings,
    recipe: FinetuneRecipe,
    rate: float | None,
    sizes: Mapping[str, int],
) -> _Head:
    model = TaskModel(
        base.model,
        base.task,
        vector=choice,
        head=recipe.head,
        lengths=recipe.length,
        meta_sizes=sizes,
        random=torch.Generator().manual_seed(recipe.run.seed),
    ).to(next(base.model.parameters()).device)
    settings = recipe.optimizer
    optimizer = torch.optim.AdamW(
        _own(model),
        betas=settings.betas,
        eps=settings.eps,
        weight_decay=settings.weight_decay,
    )
    return _Head(model=model, optimizer=optimizer, rate=rate)


class _Encoding:
    """The encoder, the time it takes and the tokens that it has read."""

    def __init__(self, base: TaskModel, place: Place) -> None:
        self._model, self._place = base.model, place
        self.seconds = 0.0
        self.tokens = 0

    @torch.no_grad()
    def __call__(self, batch: TaskBatch) -> tuple[TaskBatch, tuple[Tensor, ...]]:
        """The batch where it is computed, and the (T, D) of each layer, the embeddings first."""
        began = time.monotonic()
        batch = batch.to(self._place.device)
        with self._place.path.context():
            encoded = self._model(batch.inputs, want=Want(layers=True))
        layers = tuple(rows.float() for rows in encoded.layers or (encoded.hidden,))
        self.seconds += time.monotonic() - began
        self.tokens += batch.tokens
        return batch, layers


def _in_mode(model: TaskModel, *, training: bool) -> TaskModel:
    """Only the head has a mode: the encoder, which all share, drops nothing out."""
    model.train(training)
    model.model.eval()
    return model


def _ramp(step: int, steps: int, warmup: float) -> float:
    """Up to 1 in the warm-up, then down to 0."""
    rise = warmup * steps
    return (step + 1) / rise if step + 1 < rise else (steps - step) / max(1.0, steps - rise)


def _learn(
    heads: Sequence[_Head],
    work: FinetuneWork,
    step: int,
    encoder: _Encoding,
    *,
    ramp: float,
    recipe: FinetuneRecipe,
) -> None:
    """One step of every head, with `ramp` times its rate."""
    batches = work.micro_batches(step, 0.0)
    count = max(1, sum(sum(work.counts(batch).values()) for batch in batches))
    for number, plain in enumerate(batches):
        batch, layers = encoder(plain)
        for head in heads:
            began = time.monotonic()
            if head.rate is None:
                head.rate = by_size(_read(head.model, layers, batch))
            # The same dropout for each head, whoever else is trained beside it.
            torch.manual_seed(((recipe.run.seed * 1_000_003 + step) * 64 + number) % 2**63)
            logits = _in_mode(head.model, training=True).read_layers(layers, batch)
            part = head.model.task.loss(logits, batch)
            torch.autograd.backward(part.sum / count)
            head.seconds += time.monotonic() - began
    for head in heads:
        began = time.monotonic()
        if recipe.optimizer.clip:
            nn.utils.clip_grad_norm_(_own(head.model), recipe.optimizer.clip)
        for group in head.optimizer.param_groups:
            group["lr"] = ramp * (head.rate or 0.0)
        head.optimizer.step()
        head.optimizer.zero_grad()
        head.seconds += time.monotonic() - began


@torch.no_grad()
def _read(model: TaskModel, layers: Sequence[Tensor], batch: TaskBatch) -> NDArray[np.float32]:
    """The vectors (B, W) that a head reads."""
    if model.vector is None:
        raise ConfigError("a head on single tokens reads no vectors")
    vectors: Tensor = model.vector(layers, batch.layout.lengths)
    return vectors.float().cpu().numpy()


@torch.no_grad()
def _judge(
    heads: Sequence[_Head],
    figure: str,
    encoder: _Encoding,
    dev: Sequence[Feature],
    job: FinetuneJob,
) -> None:
    """What every head says of the development rows; the best it ever said is kept."""
    said: list[dict[int, Logits]] = [{} for _ in heads]
    for numbers in cut_up(dev, MICRO_TOKENS):
        chosen = [dev[number] for number in numbers]
        batch, layers = encoder(task_batch(chosen))
        for head, found in zip(heads, said, strict=True):
            began = time.monotonic()
            rows = (
                _in_mode(head.model, training=False)
                .read_layers(layers, batch)
                .float()
                .cpu()
                .numpy()
            )
            found |= shared_out(rows, batch, chosen, numbers, by_rows=False)
            head.seconds += time.monotonic() - began
    for head, found in zip(heads, said, strict=True):
        logits = [found[number] for number in sorted(found)]
        task = head.model.task
        now = score(task, job.dev, task.decode(logits, dev, job.dev))[figure]
        if not head.logits or better(figure, now, head.figure):
            head.logits, head.figure = logits, now


def _told(
    name: str, head: _Head, dev: Sequence[Feature], job: FinetuneJob, *, shared: float
) -> Tried:
    """Figures of the best epoch, thresholds tuned as in any run of fine-tuning."""
    task = head.model.task
    task = task.tuned(job.dev, task.decode(head.logits, dev, job.dev))
    said = task.decode(head.logits, dev, job.dev)
    return Tried(
        name=name,
        figures=score(task, job.dev, said),
        seconds=shared + head.seconds,
        answers=said,
    )


def _look(step: int, steps: int, encoder: _Encoding, began: float) -> Progress:
    seconds = max(time.monotonic() - began, 1e-9)
    return Progress(
        step=step,
        steps=steps,
        share=step / steps,
        rate=0.0,
        tokens=encoder.tokens,
        tokens_per_second=encoder.tokens / seconds,
        seconds=seconds,
        left=seconds * (steps - step) / step,
        losses={},
        accuracy={},
    )
