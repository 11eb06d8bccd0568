"""What transformers' Trainer reaches on the rows of `finetune_quality.py`.

    python benchmarks/finetune_peer.py FOLDER [--only sst2 bbc] [--seeds 2]

The same rows, rate, batch, epochs and length from the same weights; its own dropout, head and
padding. It is judged after its last step, as its examples are, and by the test rows alone. On BBC
News, where the recipe leaves the encoder as it is, it trains all weights in its usual way: the
default recipe's rate and epochs over 256 tokens.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

from child import child
from finetune_quality import TRIALS, rows_of

WIDTH = 384  # of all-MiniLM-L6-v2
COLUMNS = {"sst2": ("sentence", "label", "tsv"), "bbc": ("text", "category", "csv")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with sst2/ and bbc/")
    parser.add_argument("--only", nargs="+", default=list(COLUMNS), choices=list(COLUMNS))
    parser.add_argument("--seeds", type=int, help="as many as ours if unset")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("bench_out/quality"))
    options = parser.parse_args()
    for name in options.only:
        found = reached(name, options)
        each = ", ".join(f"{value:.4f}" for value in found)
        print(f"{name:<10}transformers: accuracy {sum(found) / len(found):.4f} (seeds: {each})")
        sys.stdout.flush()
    return 0


def reached(name: str, options: argparse.Namespace) -> list[float]:
    """Accuracy on the test rows, seed by seed."""
    script = str(Path(__file__).with_name("finetune.py"))
    found = []
    first = TRIALS[name].first
    for seed in range(first, first + (options.seeds or TRIALS[name].seeds)):
        out = options.work / name / f"transformers-{seed}"
        out.mkdir(parents=True, exist_ok=True)
        kept = out / "found.json"
        if not kept.exists():
            files = rows_of(name, TRIALS[name], options.data, options.work, seed)
            rows = out / "rows.json"
            sides = {"train": read(files, name, "train"), "judge": read(files, name, "test")}
            rows.write_text(json.dumps(sides))
            job = {"side": "transformers", "attention_dropout": 0.1, "rows": str(rows)}
            job |= {"out": str(out / "run"), "seed": seed, **settings(name)}
            kept.write_text(json.dumps(child(script, job, options.threads)))
        found.append(json.loads(kept.read_text())["accuracy"])
    return found


def settings(name: str) -> dict[str, Any]:
    """Those that `bertsmith finetune` takes for this set."""
    from bertsmith.training.default_rate import by_width
    from bertsmith.training.kinds.labeled.recipe import load_finetune_recipe

    recipe = load_finetune_recipe(TRIALS[name].recipe)
    if recipe.encoder.frozen:
        recipe = load_finetune_recipe(None, ["length.max_length=256"])
    return {
        "length": recipe.length.max_length,
        "epochs": recipe.plan.epochs,
        "batch": recipe.plan.batch,
        "rate": recipe.optimizer.lr or by_width(WIDTH),
    }


def read(files: Path, name: str, part: str) -> list[tuple[str, str]]:
    text, label, kind = COLUMNS[name]
    with (files / f"{part}.{kind}").open(encoding="utf-8", newline="") as file:
        if kind == "csv":
            return [(row[text], row[label]) for row in csv.DictReader(file)]
        table = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(row[text], row[label]) for row in table]


if __name__ == "__main__":
    sys.exit(main())
