"""The two sides of the pre-training benchmark, each run in a process of its own."""

from __future__ import annotations

import itertools
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pretrain import LENGTH, RATE, SHAPES, TEXTS

HELD_OUT = 0.02


class Steps:
    """How long each step took, by the clock and in processor time of all threads."""

    def __init__(self) -> None:
        self._marks = [(time.perf_counter(), time.process_time())]

    def end(self) -> None:
        self._marks.append((time.perf_counter(), time.process_time()))

    def to_json(self) -> dict[str, list[float]]:
        pairs = list(itertools.pairwise(self._marks))
        return {
            "seconds": [after[0] - before[0] for before, after in pairs],
            "processor": [after[1] - before[1] for before, after in pairs],
        }


def run_child(job: dict[str, Any]) -> dict[str, Any]:
    torch.manual_seed(0)
    if job["side"] == "race theirs":
        return race_theirs(job)
    if job["side"] == "race ours":
        return race_ours(job)
    return theirs(job) if job["side"] == "transformers" else ours(job)


def ours(job: dict[str, Any]) -> dict[str, Any]:
    """The whole of `bertsmith pretrain`, saving and evaluation left out."""
    from bertsmith.training.execution.execution import choose_execution, keep_freed_memory
    from bertsmith.training.loop.progress import Progress
    from bertsmith.training.pretrain.pretrain import Job, pretrain

    keep_freed_memory()
    recipe = plain_recipe(job)
    out = Path(f"{job['out']}-{time.monotonic_ns()}")
    execution = choose_execution(recipe.run, out)
    steps = Steps()
    tokens: list[int] = []

    def watch(look: Progress) -> None:
        steps.end()
        tokens.append(look.tokens)

    pretrain(
        Job(recipe=recipe, corpus=Path(job["corpus"]), out=out), execution=execution, watch=watch
    )
    each = (tokens[-1] - tokens[0]) / (len(tokens) - 1)
    return {**steps.to_json(), "tokens": each, "path": execution.precision.name}


def plain_recipe(job: dict[str, Any]) -> Any:
    from bertsmith.training.pretrain.recipe import load_recipe

    return load_recipe(
        "bert",
        [
            f"model.size={job['size']}",
            f"model.vocab_multiple={job['words']}",
            "stages=[]",
            "input.kind=full_sentences",
            f"input.max_length={LENGTH}",
            "input.short=0.0",
            f"program.mask.rate={RATE}",
            "program.objectives.nsp=0.0",
            f"batch.sequences={TEXTS}",
            f"batch.micro_tokens={TEXTS * LENGTH}",
            f"schedule.steps={job['steps']}",
            "averaging.tail=0.0",
            "save.every=1000000",
            "eval.held_out=0.0",
            "log.every=1",
            "log.tensorboard=false",
            f"run.precision={job['side']}",
        ],
    )


def theirs(job: dict[str, Any]) -> dict[str, Any]:
    """transformers' Trainer at its best: blocks without padding in memory, sdpa, fused AdamW."""
    from transformers import Trainer, TrainerCallback

    steps = Steps()

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            steps.end()

    model, data, collator = trainer_parts(job)
    trainer = Trainer(
        model=model,
        args=settings(job, max_steps=job["steps"], per_device_train_batch_size=TEXTS),
        train_dataset=data,
        data_collator=collator,
        callbacks=[Clock()],
    )
    trainer.train()
    return {**steps.to_json(), "tokens": TEXTS * LENGTH, "path": "transformers"}


def settings(job: dict[str, Any], **more: Any) -> Any:
    from transformers import TrainingArguments

    quiet = {"save_strategy": "no", "logging_strategy": "no", "report_to": [], "disable_tqdm": True}
    return TrainingArguments(
        output_dir=f"{job['out']}-theirs",
        use_cpu=True,
        optim="adamw_torch_fused",
        dataloader_num_workers=0,
        **quiet,
        **more,
    )


def trainer_parts(job: dict[str, Any]) -> tuple[Any, list[dict[str, Any]], Any]:
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        DataCollatorForLanguageModeling,
        PreTrainedTokenizerFast,
    )

    layers, hidden = SHAPES[job["size"]]
    config = BertConfig(
        vocab_size=job["words"],
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
        attention_probs_dropout_prob=0.0,  # as ours; above 0 it would switch flash attention off
        attn_implementation="sdpa",
    )
    tokenizer = PreTrainedTokenizerFast.from_pretrained(f"{job['corpus']}/tokenizer")
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=RATE)
    return BertForMaskedLM(config), blocks(Path(job["corpus"])), collator


def blocks(corpus: Path) -> list[dict[str, Any]]:
    """run_mlm's group_texts: everything one after another, cut into equal pieces."""
    from bertsmith.corpus.shards import open_corpus

    found = open_corpus(corpus)
    train, _ = found.split(HELD_OUT, 0)
    starts = found.sentences[found.documents]
    parts = [
        np.concatenate(
            ([found.special.cls], found.tokens[starts[d] : starts[d + 1]], [found.special.sep])
        )
        for d in train
    ]
    joined = np.concatenate(parts).astype(np.int64)
    whole = joined[: len(joined) // LENGTH * LENGTH].reshape(-1, LENGTH)
    return [{"input_ids": row} for row in whole]


def race_theirs(job: dict[str, Any]) -> dict[str, Any]:
    """run_mlm's defaults (AdamW 5e-5, batch 8, linear decay) for so many minutes."""
    from transformers import Trainer, TrainerCallback

    start = time.perf_counter()
    limit = job["minutes"] * 60

    class Clock(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_training_stop = time.perf_counter() - start > limit

    model, data, collator = trainer_parts(job)
    trainer = Trainer(
        model=model,
        args=settings(job, num_train_epochs=3, per_device_train_batch_size=8),
        train_dataset=data,
        data_collator=collator,
        callbacks=[Clock()],
    )
    trainer.train()
    seconds = time.perf_counter() - start
    folder = Path(job["out"])
    model.save_pretrained(folder)
    trainer.data_collator.tokenizer.save_pretrained(folder)
    return {"loss": held_out_loss(job, folder), "seconds": seconds}


def race_ours(job: dict[str, Any]) -> dict[str, Any]:
    from bertsmith.training.execution.execution import choose_execution, keep_freed_memory
    from bertsmith.training.pretrain.pretrain import Job, pretrain

    keep_freed_memory()
    start = time.perf_counter()
    recipe = fast_recipe(job)
    out = Path(job["out"])
    execution = choose_execution(recipe.run, out)
    pretrain(Job(recipe=recipe, corpus=Path(job["corpus"]), out=out), execution=execution)
    return {"loss": held_out_loss(job, out), "seconds": time.perf_counter() - start}


def fast_recipe(job: dict[str, Any]) -> Any:
    from bertsmith.training.pretrain.recipe import load_recipe

    budget = f'schedule.budget="{math.floor(job["minutes"] * 60)}s"'
    held = f"eval.held_out={HELD_OUT}"
    return load_recipe("fast", [f"model.size={job['size']}", budget, held, "run.seed=0"])


def held_out_loss(job: dict[str, Any], folder: Path) -> float:
    """The masked-LM loss of a model folder on the held-out part, the same for both sides."""
    from bertsmith.corpus.shards import open_corpus
    from bertsmith.folders.read import load_model
    from bertsmith.objectives.program import PretrainModule
    from bertsmith.training.execution.execution import Execution
    from bertsmith.training.loop.evaluate import evaluate_losses
    from bertsmith.training.pretrain.workload import PretrainWorkload

    recipe = plain_recipe({**job, "side": "fp32", "steps": 1})
    held = recipe.eval.model_copy(update={"held_out": HELD_OUT})
    work = PretrainWorkload(
        recipe.model_copy(update={"eval": held}), open_corpus(Path(job["corpus"]))
    )
    module = PretrainModule(work.program, load_model(folder).model)
    found = evaluate_losses(module, work, Execution())
    if found is None:
        raise SystemExit("there is no held-out text")
    return float(found.total)
