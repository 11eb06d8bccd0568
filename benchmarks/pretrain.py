"""Real tokens a second of pre-training, side by side with transformers' Trainer.

Both sides get the same text, vocabulary, shape, batch, rate of hidden tokens and threads. Each run
is a process of its own; the sides take turns, round after round, and the best of each counts.
`--race MINUTES` also trains both for real: theirs so long with the settings of run_mlm, ours with
the recipe `fast` for a third of it, and compares the losses on the same held-out text.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import statistics
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

from child import child

SHAPES = {"tiny": (2, 128), "mini": (4, 256), "small": (4, 512)}
STEPS = {"tiny": 30, "mini": 14, "small": 8}
TARGETS = {("tiny", "fp32"): 4.0, ("mini", "fp32"): 2.5, ("small", "fp32"): 1.9}
TARGETS |= {("mini", "bf16"): 4.0, ("small", "bf16"): 3.5}
SIDES = ("transformers", "fp32", "bf16")
LENGTH, TEXTS, RATE = 128, 32, 0.15
WARM = 3  # steps that are not counted
PROBES = {"fp32": "fp32_gemm", "transformers": "fp32_gemm", "torch-bf16": "bf16_onednn"}
PROBES |= {"mkl-bf16": "mkl_bf16"}


def main() -> int:
    options = arguments()
    if options.child:
        from pretrain_sides import run_child

        print(json.dumps(run_child(json.loads(options.child))))
        return 0
    from machine import machine_facts

    with tempfile.TemporaryDirectory(prefix="bertsmith-bench-") as folder:
        work = Path(folder)
        report: dict[str, Any] = {"machine": machine_facts(options.threads), "speed": {}}
        for words in options.vocabularies:
            corpus = prepare(options.data, work, words, options.documents)
            for size in options.sizes:
                found = speed(size, words, corpus, work, options)
                report["speed"][f"{size} {words}"] = found
                show(size, words, found)
            if options.race:
                report["race"] = race(corpus, words, work, options)
                options.race = 0.0  # once, with the first vocabulary
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {options.out}")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", help="folder with imdb/*.csv.gz")
    parser.add_argument("--sizes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--vocabularies", nargs="+", type=int, default=[30_522, 8_192])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual steps")
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="count it instead of the clock: for a busy machine, with --threads 1",
    )
    parser.add_argument("--race", type=float, default=0.0, metavar="MINUTES")
    parser.add_argument("--out", type=Path, default=Path("bench_out/pretrain.json"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.child and options.data is None:
        parser.error("give the folder that holds imdb/")
    return options


def prepare(data: Path, work: Path, words: int, documents: int) -> Path:
    """Reviews as shards, with a vocabulary learned from them."""
    from bertsmith.corpus.build import build_corpus
    from bertsmith.text.learn import learn_vocabulary

    texts = work / "text.txt"
    if not texts.exists():
        path = next((data / "imdb").glob("*.csv.gz"))
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            reviews = [row["review"].replace("<br />", " ") for row in islice(rows, documents)]
        texts.write_text("".join(" ".join(x.split()) + "\n" for x in reviews), encoding="utf-8")
    tokenizer = learn_vocabulary(texts.read_text(encoding="utf-8").splitlines(), size=words)
    out = work / f"shards-{words}"
    build_corpus([texts], tokenizer, out)
    return out


def speed(
    size: str, words: int, corpus: Path, work: Path, options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Tokens a second of each side: the best round, each round the median step."""
    steps = WARM + max(3, round(STEPS[size] * options.scale))
    found: dict[str, dict[str, Any]] = {}
    for number in range(options.rounds):
        for side in SIDES if number % 2 == 0 else SIDES[::-1]:
            job = {"side": side, "size": size, "words": words, "corpus": str(corpus)}
            answer = child(
                __file__, {**job, "steps": steps, "out": str(work / "run")}, options.threads
            )
            kind = "processor" if options.processor_time else "seconds"
            seconds = statistics.median(answer[kind][WARM:])
            rate = answer["tokens"] / seconds
            if rate > found.get(side, {}).get("tokens_per_second", 0.0):
                found[side] = {"tokens_per_second": round(rate), "path": answer["path"]}
    theirs = found["transformers"]["tokens_per_second"]
    for row in found.values():
        row["ratio"] = round(row["tokens_per_second"] / theirs, 2)
        top = peak(row["path"], options.threads)
        row["mfu"] = round(row["tokens_per_second"] * flops(size, words) / top, 3)
    return found


def flops(size: str, words: int) -> float:
    """Useful operations for a trained token: only hidden rows need the vocabulary."""
    layers, hidden = SHAPES[size]
    encoder = 12 * layers * hidden**2
    head = 6 * (hidden**2 + hidden * words) * RATE
    return 6 * encoder + 12 * layers * hidden * LENGTH + head


def peak(path: str, threads: int) -> float:
    """Operations a second of a path at its best, as `bertsmith doctor` measured them."""
    from bertsmith.hardware.report import examine

    report = examine([PROBES[path]])
    best = report.findings[0].best_gflops or float("nan")
    return best * 1e9 * threads / report.machine.threads


def race(corpus: Path, words: int, work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Their loss after so many minutes, ours after less than a third, on the same held-out text."""
    job = {"size": "mini", "words": words, "corpus": str(corpus), "minutes": options.race}
    theirs = child(
        __file__, {**job, "side": "race theirs", "out": str(work / "theirs")}, options.threads
    )
    # Starting, judging and saving come on top of the budget, and belong to the third.
    less = {**job, "minutes": 0.85 * options.race / 3}
    ours = child(
        __file__, {**less, "side": "race ours", "out": str(work / "ours")}, options.threads
    )
    holds = ours["loss"] <= theirs["loss"] and ours["seconds"] <= theirs["seconds"] / 3
    print(f"\nheld-out loss, mini, {words:,} tokens")
    for name, row in (("transformers", theirs), ("bertsmith fast", ours)):
        print(f"  {name:<14}{row['loss']:>10.4f} after {row['seconds']:.0f} s")
    print(f"  no worse in a third of the time: {'holds' if holds else 'MISSED'}")
    return {"transformers": theirs, "bertsmith": ours}


def show(size: str, words: int, found: dict[str, dict[str, Any]]) -> None:
    print(f"\n{size}, {words:,} tokens, {TEXTS} x {LENGTH}, {RATE:.0%} hidden")
    print(f"  {'':<14}{'tokens/s':>10}{'ratio':>8}{'target':>8}{'MFU':>7}  products")
    for side, row in found.items():
        target = TARGETS.get((size, side))
        print(
            f"  {side:<14}{row['tokens_per_second']:>10,}{row['ratio']:>7.2f}x"
            f"{f'{target:.1f}x' if target else '':>8}{row['mfu']:>7.0%}  {row['path']}"
        )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
