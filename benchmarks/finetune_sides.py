"""The two sides of the fine-tuning benchmark, each run in a process of its own."""

from __future__ import annotations

import itertools
import json
import statistics
import time
from pathlib import Path
from typing import Any

from finetune import MODEL

HANDFUL = 16


class Steps:
    """How long steps take."""

    def __init__(self) -> None:
        self._marks: list[float] = []

    def end(self) -> None:
        self._marks.append(time.perf_counter())

    def whole(self) -> float:
        """All steps as long as their median: without loading, judging and saving in between."""
        pairs = itertools.pairwise(self._marks)
        return statistics.median(after - before for before, after in pairs) * len(self._marks)


def run_child(job: dict[str, Any]) -> dict[str, Any]:
    rows = json.loads(Path(job["rows"]).read_text())
    return theirs(job, rows) if job["side"].startswith("transformers") else ours(job, rows)


def ours(job: dict[str, Any], rows: dict[str, Any]) -> dict[str, Any]:
    """`bertsmith finetune` without its reports; as on the other side, the last weights are kept."""
    from bertsmith.labeled.example import Example, Label
    from bertsmith.runtime.load_predictor import load_predictor
    from bertsmith.training.execution.execution import choose_execution, keep_freed_memory
    from bertsmith.training.kinds.labeled.learner import FinetuneJob, finetune
    from bertsmith.training.kinds.labeled.recipe import load_finetune_recipe
    from bertsmith.training.kinds.labeled.rows import LabeledRows

    def examples(name: str) -> list[Example]:
        return [
            Example(source=name, line=at, id=str(at), texts=(text,), target=Label(label))
            for at, (text, label) in enumerate(rows[name], start=1)
        ]

    keep_freed_memory()
    recipe = load_finetune_recipe(
        None,
        [
            f"length.max_length={job['length']}",
            f"vector.pooling={job['pooling']}",
            f"encoder.attention_dropout={job['attention_dropout']}",
            f"plan.epochs={job['epochs']}.0",
            f"plan.evaluations={1 / job['epochs']}",  # one, at the end: nothing is chosen by it
            f"plan.batch={job['batch']}",
            f"optimizer.lr={job['rate']}",
            f"run.precision={job['precision']}",
            f"run.seed={job['seed']}",
        ],
    )
    out = Path(job["out"])
    execution = choose_execution(recipe.run, out)
    judged = examples("judge")
    work = FinetuneJob(
        recipe=recipe,
        task="classify",
        model=MODEL,
        rows=LabeledRows(train=examples("train"), dev=judged[:HANDFUL]),
        out=out,
    )
    steps = Steps()
    finetune(work, execution=execution, watch=lambda _: steps.end())
    said = load_predictor(out).predict(judged)
    right = [one.value == row.target.name for one, row in zip(said, judged, strict=True)]
    return {
        "seconds": steps.whole(),
        "accuracy": sum(right) / len(right),
        "path": execution.precision.name,
    }


def theirs(job: dict[str, Any], rows: dict[str, Any]) -> dict[str, Any]:
    """transformers' Trainer with dynamic padding and the fused optimizer."""
    import numpy as np
    import torch
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    from bertsmith.folders.resolve import resolve

    torch.manual_seed(job["seed"])
    folder = str(resolve(MODEL))
    labels = sorted({label for _, label in rows["train"]})
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder,
        num_labels=len(labels),
        attention_probs_dropout_prob=job["attention_dropout"],
        attn_implementation="sdpa",
    )

    def encoded(name: str) -> list[dict[str, Any]]:
        texts = [text for text, _ in rows[name]]
        ids = tokenizer(texts, truncation=True, max_length=job["length"])["input_ids"]
        known = [labels.index(label) for _, label in rows[name]]
        return [{"input_ids": row, "labels": at} for row, at in zip(ids, known, strict=True)]

    steps = Steps()

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            steps.end()

    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=job["out"],
            use_cpu=True,
            optim="adamw_torch_fused",
            num_train_epochs=job["epochs"],
            per_device_train_batch_size=job["batch"],
            per_device_eval_batch_size=64,
            learning_rate=job["rate"],
            warmup_steps=0.06,
            seed=job["seed"],
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
        train_dataset=encoded("train"),
        data_collator=DataCollatorWithPadding(tokenizer),
        callbacks=[Clock()],
    )
    trainer.train()
    judged = encoded("judge")
    said = trainer.predict(judged).predictions.argmax(-1)
    right = np.array([row["labels"] for row in judged])
    return {
        "seconds": steps.whole(),
        "accuracy": float((said == right).mean()),
        "path": "transformers",
    }
