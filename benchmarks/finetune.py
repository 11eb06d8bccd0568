"""An epoch of fine-tuning, side by side with transformers' Trainer, and the scores of both.

    python benchmarks/finetune.py FOLDER

Both sides begin with all-MiniLM-L6-v2 and get the same rows, batch, rate, length and threads. Each
run is a process of its own; the sides take turns, round after round, and the best of each counts.
An epoch is as many median steps as it has: reading, tokenizing, judging and saving are left out.
The Trainer runs with its default dropout (.1, in attention too) and with that of ours, pads each
batch to its longest row, and has the fused optimizer. Both read the first token through the pooler;
what `bertsmith finetune` takes for this model by itself, the mean of all tokens, is shown as well.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from child import child

MODEL = "all-MiniLM-L6-v2"
LENGTH = {"sst2": 128, "bbc": 256}
ROWS = {"sst2": (3200, 872), "bbc": (480, 445)}  # to train on, to judge by
BATCH, RATE = 16, 1e-4
WITH, WITHOUT = {"attention_dropout": 0.1}, {"attention_dropout": 0.0}
OURS = {"precision": "fp32", "pooling": "published"}  # the head of the other side
SIDES: dict[str, dict[str, Any]] = {
    "transformers": WITH,
    "transformers, no attention dropout": WITHOUT,
    "bertsmith fp32": OURS | WITHOUT,
    "bertsmith fp32, attention dropout": OURS | WITH,
    "bertsmith fp32, mean of all tokens": OURS | WITHOUT | {"pooling": "mean"},
    "bertsmith bf16": OURS | WITHOUT | {"precision": "bf16"},
}
HALF = [("transformers", 0.5), ("transformers, no attention dropout", 1.0)]
PEERS = {  # whom a side is measured against, and the most it may take of their time
    "bertsmith fp32": HALF,
    "bertsmith fp32, attention dropout": [("transformers", 1.0)],
    "bertsmith fp32, mean of all tokens": HALF,
    "bertsmith bf16": HALF,
}


def main() -> int:
    options = arguments()
    if options.child:
        from finetune_sides import run_child

        print(json.dumps(run_child(json.loads(options.child))))
        return 0
    from machine import machine_facts

    report: dict[str, Any] = {"machine": machine_facts(options.threads), "speed": {}}
    for name in options.sets:
        with tempfile.TemporaryDirectory(prefix="bertsmith-bench-") as folder:
            rows = Path(folder) / "rows.json"
            rows.write_text(json.dumps(material(options.data, name, options.scale)))
            found = measure(name, rows, Path(folder), options)
        report["speed"][name] = found
        show(name, found, options.epochs)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {options.out}")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", help="folder with sst2/ and bbc/")
    parser.add_argument("--sets", nargs="+", default=list(LENGTH), choices=list(LENGTH))
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=list(SIDES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual rows")
    parser.add_argument("--out", type=Path, default=Path("bench_out/finetune.json"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.child and options.data is None:
        parser.error("give the folder that holds sst2/ and bbc/")
    return options


def material(data: Path, name: str, scale: float) -> dict[str, list[tuple[str, str]]]:
    """Rows (text, label) to train on and to judge by, drawn with a fixed seed."""
    train, judge = (round(count * scale) for count in ROWS[name])
    draw = random.Random(0)
    if name == "sst2":
        rows, test = tsv(data / "sst2" / "train.tsv"), tsv(data / "sst2" / "test.tsv")
        return {"train": draw.sample(rows, train), "judge": draw.sample(test, judge)}
    with (data / "bbc" / "bbc-text.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["text"], row["category"]) for row in csv.DictReader(file)]
    rows = draw.sample(rows, train + judge)
    return {"train": rows[:train], "judge": rows[train:]}


def tsv(path: Path) -> list[tuple[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return [(text, label) for text, label in (line.rsplit("\t", 1) for line in lines)]


def measure(
    name: str, rows: Path, folder: Path, options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Seconds an epoch of each side, the best round, and the accuracy it reached."""
    found: dict[str, dict[str, Any]] = {}
    for number in range(options.rounds):
        order = options.sides if number % 2 == 0 else options.sides[::-1]
        for side in order:
            job = {"side": side, **SIDES[side], "rows": str(rows), "length": LENGTH[name]}
            job |= {"epochs": options.epochs, "batch": BATCH, "rate": RATE, "seed": number}
            answer = child(
                __file__, {**job, "out": str(folder / f"{number}-{side}")}, options.threads
            )
            best = found.setdefault(side, {"seconds": float("inf"), "accuracy": []})
            best["seconds"] = min(best["seconds"], answer["seconds"] / options.epochs)
            best["accuracy"].append(answer["accuracy"])
            best["path"] = answer["path"]
    return found


def show(name: str, found: dict[str, dict[str, Any]], epochs: int) -> None:
    print(f"\n{name}: batch {BATCH}, at most {LENGTH[name]} tokens, accuracy after {epochs} epochs")
    print(f"  {'':<36}{'s/epoch':>9}{'accuracy':>10}   against")
    for side, row in found.items():
        against = [
            f"{row['seconds'] / found[peer]['seconds']:.2f} of {peer} (at most {most})"
            for peer, most in PEERS.get(side, [])
            if peer in found
        ]
        accuracy = sum(row["accuracy"]) / len(row["accuracy"])
        print(f"  {side:<36}{row['seconds']:>9.1f}{accuracy:>10.3f}   {'; '.join(against)}")
        print(f"  {'':<36}{'seeds':>9}   {', '.join(f'{one:.3f}' for one in row['accuracy'])}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
