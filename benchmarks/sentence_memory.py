"""Peak memory of a contrastive step by batch size: cached gradients need that of one chunk.

    python benchmarks/sentence_memory.py FOLDER

FOLDER holds stsb/en-train.csv. Each size is measured in a process of its own: the peak of resident
memory over a few steps, in all and beyond what the process held before the first of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from child import child
from sentences import cut_model, stsb

SIZES = (64, 1_024)
LIMIT = 1.3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with stsb/")
    parser.add_argument("--work", type=Path, default=Path("bench_out/sentences"))
    options = parser.parse_args()
    start = options.work / "start"
    if not start.exists():
        cut_model(start, 3)
    found = {}
    for size in SIZES:
        job = {"batch": size, "start": str(start), "data": str(options.data)}
        found[size] = child(__file__, job, 1)
        print(f"{size:>6} pairs: {found[size]['peak']:.0f} MB, steps {found[size]['steps']:.0f} MB")
    few, many = (found[size] for size in SIZES)
    print(f"ratio {many['peak'] / few['peak']:.2f}, of steps {many['steps'] / few['steps']:.2f}")
    return 0 if many["peak"] <= LIMIT * few["peak"] else 1


def run_child(job: dict[str, Any]) -> dict[str, float]:
    from bertsmith.config import validated
    from bertsmith.labeled.pairs.pairs import SentenceData
    from bertsmith.sentences.train.learner import (
        SENTENCES,
        SentenceJob,
        SentenceSplits,
        train_sentences,
    )
    from bertsmith.sentences.train.recipe import SentenceRecipe

    rows = [row[:2] for row in stsb(Path(job["data"]), "train")]
    plan = {"steps": 3, "batch": job["batch"]}
    recipe = validated(SentenceRecipe, {"objective": {"kind": "contrastive"}, "plan": plan}, "here")
    data = SentenceData(
        source="rows", kind="pairs", why="as set", rows=rows, lines=range(1, len(rows) + 1)
    )
    before = memory("VmRSS")
    train_sentences(
        SentenceJob(
            recipe=recipe,
            task=SENTENCES,
            model=job["start"],
            rows=SentenceSplits(train=data),
        )
    )
    return {"peak": memory("VmHWM"), "steps": memory("VmHWM") - before}


def memory(name: str) -> float:
    """A line of this process's status, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1_024 for line in lines if line.startswith(name))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.stdout.write(json.dumps(run_child(json.loads(sys.argv[2]))) + "\n")
    else:
        sys.exit(main())
