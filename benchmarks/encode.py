"""Texts a second, side by side: bertsmith against its peers on short, mixed and long texts.

Every library gets the same texts, the same threads and its own best settings, which are looked for
first. Then all take turns, round after round, and the best round of each counts.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peers import Contestant, Vectors

REST = 0.3  # seconds between runs: thread pools of one library must not spin into the next


def main() -> int:
    options = arguments()
    set_threads(options.threads)
    # Only now: the libraries read the environment when they are imported.
    from machine import machine_facts
    from material import COUNTS, LENGTHS, cut_texts

    facts = machine_facts(options.threads)
    work = tempfile.TemporaryDirectory(prefix="bertsmith-bench-")
    contestants, absent = assemble(options, Path(work.name))
    if options.texts:
        from bertsmith.labeled.texts import read_texts

        sets = {options.texts.name: list(read_texts(options.texts))}
    else:
        sets = {kind: cut_texts(kind, int(COUNTS[kind] * options.scale)) for kind in LENGTHS}
    results = {}
    for kind, texts in sets.items():
        results[kind] = measure(contestants, texts, options.rounds)
        print_table(kind, texts, results[kind], options.model)
    for name, reason in absent.items():
        print(f"left out: {name}: {reason}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    report = {"machine": facts, "model": options.model, "sets": results, "absent": absent}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {options.out}")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual text count")
    parser.add_argument("--texts", type=Path, help="own file of texts instead")
    parser.add_argument("--only", nargs="*", default=[], help="parts of names to measure")
    parser.add_argument("--out", type=Path, default=Path("bench_out/encode.json"))
    return parser.parse_args()


def set_threads(threads: int) -> None:
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ[variable] = str(threads)
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    import torch

    torch.set_num_threads(threads)


def assemble(options: argparse.Namespace, work: Path) -> tuple[list[Contestant], dict[str, str]]:
    model, only = options.model, options.only
    import bertsmith
    from bertsmith.folders.resolve import resolve
    from bertsmith.hardware.report import examine
    from bertsmith.runtime.engines.kinds import engine_probes
    from peers import Contestant, all_peers

    # Builds and proves the fast path first: what is timed is the encoding.
    examine(probes=engine_probes())

    def ours(name: str, precision: str) -> Contestant:
        start = time.perf_counter()
        embedder = bertsmith.load(model, precision=precision)
        embedder.encode(["warm up"])
        contestant = Contestant(name, {"": embedder.encode})
        contestant.facts = {"ready_seconds": round(time.perf_counter() - start, 2)}
        contestant.facts["engine"] = str(embedder.engine)
        return contestant

    found: list[Contestant] = []
    absent: dict[str, str] = {}
    for peer in all_peers(resolve(model), options.threads, work):
        if isinstance(peer, tuple):
            absent[peer[0]] = peer[1]
        else:
            found.append(peer)
    found += [ours("bertsmith fp32", "fp32"), ours("bertsmith", "auto")]
    # The reference of all ratios and cosines always takes part.
    wanted = [c for c in found if not only or any(part in c.name for part in only)]
    return [c for c in found if c in wanted or c.name == "sentence-transformers"], absent


def measure(
    contestants: list[Contestant], texts: list[str], rounds: int
) -> dict[str, dict[str, object]]:
    # Enough to tell settings apart: a fifth of the texts, and not more than 200.
    sample = texts[:: max(5, -(-len(texts) // 200))]
    best: dict[str, float] = {}
    outputs: dict[str, Vectors] = {}
    chosen = {c.name: tune(c, sample) for c in contestants}
    for number in range(rounds):
        turn = list(contestants)
        random.Random(number).shuffle(turn)
        for contestant in turn:
            encode = contestant.variants[chosen[contestant.name]]
            time.sleep(REST)
            start = time.perf_counter()
            outputs[contestant.name] = encode(texts)
            seconds = time.perf_counter() - start
            best[contestant.name] = min(best.get(contestant.name, seconds), seconds)
    reference = outputs["sentence-transformers"]
    return {
        c.name: {
            "texts_per_second": round(len(texts) / best[c.name], 2),
            "ratio": round(best["sentence-transformers"] / best[c.name], 3),
            "worst_cosine": float((outputs[c.name] * reference).sum(1).min()),
            "settings": chosen[c.name],
            **c.facts,
        }
        for c in contestants
    }


def tune(contestant: Contestant, sample: list[str]) -> str:
    """The fastest settings on a part of the texts, which also warms everything up."""
    seconds: dict[str, float] = {}
    for name, encode in contestant.variants.items():
        encode(sample[:8])
        start = time.perf_counter()
        encode(sample)
        seconds[name] = time.perf_counter() - start
    return min(seconds, key=lambda name: seconds[name])


def print_table(
    kind: str, texts: list[str], results: dict[str, dict[str, object]], model: str
) -> None:
    import bertsmith

    rows, _ = bertsmith.load(model).tokenizer.fast_ids(texts, None)
    mean = sum(map(len, rows)) / len(rows)
    print(f"\n{kind}: {len(texts):,} texts, {mean:.0f} tokens each before truncation")
    print(f"  {'':<24}{'texts/s':>10}{'ratio':>8}{'worst cosine':>15}  settings")
    for name, row in results.items():
        print(
            f"  {name:<24}{row['texts_per_second']:>10,.1f}{row['ratio']:>7.2f}x"
            f"{row['worst_cosine']:>15.7f}  {row.get('engine') or row['settings']}"
        )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
