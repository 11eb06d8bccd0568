"""Sentence training against sentence-transformers' trainer: CPU time and STS-B, one thread each.

    python benchmarks/sentences.py FOLDER [--only cosine cosent] [--seeds 3] [--steps 50]

FOLDER holds stsb/en-{train,dev,test}.csv and imdb/IMDB_Dataset.csv.gz. Both sides start from the
first three layers of all-MiniLM-L6-v2, an encoder that nobody trained for sentences, and take the
same rows, batch, steps, rate, warmup, decay and dropout; the last weights are scored on the STS-B
test pairs. "mixed" is contrast on neighboring sentences of 5 to 60 words, where lengths differ.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from child import child

LAYERS = 3
BATCH = 16
MIXED = 32  # pairs per step
RATE = 5e-5
LIMITS = {"stsb": 0.85, "mixed": 0.70}
NEAR = 4.0  # the score from which a pair counts as the same
ON_PAIRS = ("softmax", "cosine", "cosent", "triplet", "contrastive", "simcse", "matryoshka")
OBJECTIVES = (*ON_PAIRS, "mixed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with stsb/ and imdb/")
    parser.add_argument("--only", nargs="+", default=list(OBJECTIVES), choices=list(OBJECTIVES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--work", type=Path, default=Path("bench_out/sentences"))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    start = options.work / "start"
    if not start.exists():
        cut_model(start, LAYERS)
    plain = child(__file__, {"side": "none", "start": str(start), "data": str(options.data)}, 1)
    print(f"start: STS-B test {100 * plain['spearman']:.2f}; {options.steps} steps, rate {RATE:g}")
    print(f"{'objective':<14}{'ours':>22}{'theirs':>22}{'CPU ours':>10}{'theirs':>8}{'ratio':>7}")
    results = [measured(name, options, start) for name in options.only]
    (options.work / "sentences.json").write_text(json.dumps(results, indent=1) + "\n")
    return 0 if all(one["fast"] and one["good"] for one in results) else 1


def measured(name: str, options: argparse.Namespace, start: Path) -> dict[str, Any]:
    """Both sides of an objective, seed by seed in turn."""
    rows = options.work / f"{name}.json"
    rows.write_text(json.dumps(rows_of(name, options.data)))
    found: dict[str, list[dict[str, float]]] = {"ours": [], "theirs": []}
    steps = max(5, options.steps // 4) if name == "mixed" else options.steps
    for seed in range(options.seeds):
        for side in found:
            job = {"side": side, "objective": name, "seed": seed, "steps": steps}
            job |= {"start": str(start), "rows": str(rows), "data": str(options.data)}
            job |= {"batch": MIXED if name == "mixed" else BATCH, "work": str(options.work)}
            found[side].append(child(__file__, job, 1))
    scores = {side: [100 * one["spearman"] for one in some] for side, some in found.items()}
    seconds = {side: statistics.median(o["cpu"] for o in some) for side, some in found.items()}
    ratio = seconds["ours"] / seconds["theirs"]
    means = {side: statistics.mean(some) for side, some in scores.items()}
    noise = 2 * max(statistics.stdev(some) if len(some) > 1 else 1.0 for some in scores.values())
    shown = {side: f"{means[side]:.2f} ± {_spread(some):.2f}" for side, some in scores.items()}
    print(
        f"{name:<14}{shown['ours']:>22}{shown['theirs']:>22}"
        f"{seconds['ours']:>10.1f}{seconds['theirs']:>8.1f}{ratio:>7.2f}"
    )
    sys.stdout.flush()
    limit = LIMITS["mixed" if name == "mixed" else "stsb"]
    return {
        "objective": name,
        "steps": steps,
        "scores": scores,
        "cpu": {side: [one["cpu"] for one in some] for side, some in found.items()},
        "ratio": ratio,
        "fast": ratio <= limit,
        "good": means["ours"] >= means["theirs"] - max(noise, 0.2),
    }


def _spread(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def cut_model(out: Path, layers: int, model: str = "all-MiniLM-L6-v2") -> None:
    """The first layers of a model as a folder that every library reads, without attention dropout.

    Attention dropout rules out the fused attention of CPUs, here and in torch's own.
    """
    from bertsmith.folders.read import load_model
    from bertsmith.folders.write import save_model
    from bertsmith.models.build import build
    from bertsmith.models.surgery import copy_weights

    whole = load_model(model)
    spec = replace(whole.model.spec, layers=layers, attention_dropout=0.0)
    short = build(whole.model.variant, spec, empty=True)
    copy_weights(whole.model, short)
    save_model(short, whole.tokenizer, out, sentence=whole.sentence)


def rows_of(name: str, data: Path) -> dict[str, Any]:
    """Columns and targets of an objective, the same for both sides."""
    if name == "mixed":
        return {"rows": neighbors(data / "imdb" / "IMDB_Dataset.csv.gz", 2_000), "targets": None}
    pairs = stsb(data, "train")
    same = [[one, two] for one, two, score in pairs if score >= NEAR]
    if name in ("cosine", "cosent", "matryoshka"):
        return {"rows": [row[:2] for row in pairs], "targets": [row[2] / 5 for row in pairs]}
    if name == "softmax":
        classes = [int(score >= 2) + int(score >= NEAR) for *_, score in pairs]
        return {"rows": [row[:2] for row in pairs], "targets": classes}
    if name == "triplet":
        rng = random.Random(0)
        return {"rows": [[*row, rng.choice(pairs)[0]] for row in same], "targets": None}
    if name == "contrastive":
        return {"rows": same, "targets": None}
    texts = list(dict.fromkeys(text for row in pairs for text in row[:2]))
    return {"rows": [[text, text] for text in texts], "targets": None}


def stsb(data: Path, part: str) -> list[tuple[str, str, float]]:
    with (data / "stsb" / f"en-{part}.csv").open(encoding="utf-8", newline="") as file:
        return [(one, two, float(score)) for one, two, score in csv.reader(file)]


def neighbors(path: Path, number: int) -> list[list[str]]:
    """Neighboring sentences of 5 to 60 words."""
    found: list[list[str]] = []
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            sentences = re.split(r"(?<=[.!?]) +", row[0].replace("<br />", " "))
            fitting = [one for one in sentences if 5 <= len(one.split()) <= 60]
            found += [list(pair) for pair in zip(fitting[::2], fitting[1::2], strict=False)]
            if len(found) >= number:
                return found[:number]
    return found


def run_child(job: dict[str, Any]) -> dict[str, Any]:
    """One side: CPU seconds of training, and the score of its last weights."""
    folder, seconds = job["start"], 0.0
    if job["side"] != "none":
        loaded = json.loads(Path(job["rows"]).read_text())
        side = ours if job["side"] == "ours" else theirs
        folder = str(Path(job["work"]) / f"{job['side']}-{job['objective']}-{job['seed']}")
        seconds = side(job, loaded, folder)
    return {"cpu": seconds, "spearman": score(folder, Path(job["data"]))}


def score(folder: str, data: Path) -> float:
    import bertsmith
    from bertsmith.metrics.correlation import spearman
    from bertsmith.sentences.compare import paired_similarity

    pairs = stsb(data, "test")
    model = bertsmith.load(folder, precision="fp32")
    first, second = (model.encode([row[side] for row in pairs]) for side in (0, 1))
    return spearman([row[2] for row in pairs], paired_similarity("cosine", first, second))


def per_steps(marks: list[float]) -> float:
    """CPU seconds of as many steps: without loading, model cards and the first step."""
    return (marks[-1] - marks[0]) / (len(marks) - 1) * len(marks)


def ours(job: dict[str, Any], loaded: dict[str, Any], folder: str) -> float:
    import shutil

    import numpy as np

    from bertsmith.config import validated
    from bertsmith.labeled.pairs.pairs import SentenceData
    from bertsmith.sentences.train.learner import (
        SENTENCES,
        SentenceJob,
        SentenceSplits,
        train_sentences,
    )
    from bertsmith.sentences.train.recipe import SentenceRecipe
    from bertsmith.training.execution.execution import keep_freed_memory

    name = job["objective"]
    objective: dict[str, Any] = {"kind": name}
    if name in ("mixed", "matryoshka"):
        objective = {"kind": "contrastive" if name == "mixed" else "cosine"}
    if name == "simcse":
        objective["head"] = "none"  # theirs has none
    kinds = {"softmax": "labels", "triplet": "triplets", "simcse": "texts"}
    kind = kinds.get(name, "scores" if loaded["targets"] else "pairs")
    rows = [row[:1] for row in loaded["rows"]] if kind == "texts" else loaded["rows"]
    recipe = {
        "objective": objective,
        "matryoshka": {"dims": [384, 128, 32] if name == "matryoshka" else []},
        "vector": {"max_length": 256},
        "encoder": {"dropout": 0.1, "attention_dropout": 0.0},
        "optimizer": {"lr": RATE, "eps": 1e-8, "weight_decay": 0.01, "clip": 1.0},
        "plan": {"steps": job["steps"], "batch": job["batch"], "warmup": 0.1},
        "run": {"seed": job["seed"]},
    }
    data = SentenceData(
        source="rows",
        kind=kind,  # type: ignore[arg-type]
        why="as set",
        rows=[tuple(row) for row in rows],
        lines=range(1, len(rows) + 1),
        targets=None if loaded["targets"] is None else np.array(loaded["targets"], dtype=float),
        labels=("low", "middle", "high") if kind == "labels" else (),
    )
    shutil.rmtree(folder, ignore_errors=True)
    keep_freed_memory()
    whole = validated(SentenceRecipe, recipe, "the benchmark")
    marks: list[float] = []
    train_sentences(
        SentenceJob(
            recipe=whole,
            task=SENTENCES,
            model=job["start"],
            rows=SentenceSplits(train=data),
            out=Path(folder),
        ),
        watch=lambda _: marks.append(time.process_time()),
    )
    return per_steps(marks)


def theirs(job: dict[str, Any], loaded: dict[str, Any], folder: str) -> float:
    from datasets import Dataset
    from datasets.table import InMemoryTable
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        losses,
    )
    from transformers import TrainerCallback

    model = SentenceTransformer(job["start"], device="cpu")
    columns: dict[str, Any] = {
        f"text{number}": [row[number] for row in loaded["rows"]]
        for number in range(len(loaded["rows"][0]))
    }
    if loaded["targets"] is not None:
        columns["label"] = loaded["targets"]
    name = job["objective"]
    cosine = losses.CosineSimilarityLoss(model)
    loss = {
        "softmax": lambda: losses.SoftmaxLoss(model, 384, 3),
        "cosine": lambda: cosine,
        "cosent": lambda: losses.CoSENTLoss(model),
        "triplet": lambda: losses.TripletLoss(model, triplet_margin=1.0),
        "matryoshka": lambda: losses.MatryoshkaLoss(model, cosine, [384, 128, 32]),
    }.get(name, lambda: losses.MultipleNegativesRankingLoss(model))()
    arguments = SentenceTransformerTrainingArguments(
        output_dir=f"{folder}-run",
        max_steps=job["steps"],
        per_device_train_batch_size=job["batch"],
        learning_rate=RATE,
        warmup_steps=0.1,
        weight_decay=0.01,
        seed=job["seed"],
        data_seed=job["seed"],
        use_cpu=True,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
    )
    # A fingerprint of its own: that of some releases cannot be computed with all of pyarrow's.
    rows = Dataset(InMemoryTable.from_pydict(columns), fingerprint="rows")
    trainer = SentenceTransformerTrainer(model=model, args=arguments, train_dataset=rows, loss=loss)
    marks: list[float] = []

    class Marks(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            marks.append(time.process_time())

    trainer.add_callback(Marks())
    trainer.train()
    model.save(folder)
    return per_steps(marks)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.stdout.write(json.dumps(run_child(json.loads(sys.argv[2]))) + "\n")
    else:
        sys.exit(main())
