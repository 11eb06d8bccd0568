"""Spearman on the STS-B test set: bertsmith must agree with sentence-transformers.

    python benchmarks/stsb.py FOLDER

FOLDER/stsb/en-test.csv holds rows of sentence, sentence, score.

fp32 must agree to the fourth decimal, the fast path within .0005; exit code 1 otherwise.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
PAIRS = 1379
FAST_TOLERANCE = 0.0005


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder that holds stsb/en-test.csv")
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--out", type=Path, default=Path("bench_out/stsb.json"))
    options = parser.parse_args()
    source = options.data / "stsb" / "en-test.csv"
    if not source.is_file():
        print(f"error: there is no {source}; give the folder that holds stsb/en-test.csv")
        return 2
    os.environ["HF_HUB_OFFLINE"] = "1"
    left, right, gold = read_pairs(source)
    scores = {name: spearman(encode, left, right, gold) for name, encode in encoders(options.model)}
    reference = scores["sentence-transformers"]
    for name, score in scores.items():
        print(f"{name:<24}{score:.6f}  {score - reference:+.6f}")
    agree = {
        "fp32": round(scores["bertsmith fp32"], 4) == round(reference, 4),
        "fast": abs(scores["bertsmith"] - reference) <= FAST_TOLERANCE,
        "all pairs": len(gold) == PAIRS,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(
        json.dumps({"pairs": len(gold), "spearman": scores, "agree": agree}) + "\n"
    )
    for rule, kept in agree.items():
        print(f"{'ok  ' if kept else 'FAIL'}  {rule}")
    return 0 if all(agree.values()) else 1


def read_pairs(source: Path) -> tuple[list[str], list[str], list[float]]:
    with source.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    return [a for a, _, _ in rows], [b for _, b, _ in rows], [float(score) for _, _, score in rows]


def encoders(model: str) -> list[tuple[str, Callable[[Sequence[str]], Vectors]]]:
    from sentence_transformers import SentenceTransformer

    import bertsmith
    from bertsmith.folders.resolve import resolve

    peer = SentenceTransformer(str(resolve(model)), device="cpu")
    return [
        ("sentence-transformers", lambda texts: np.asarray(peer.encode(list(texts)))),
        ("bertsmith fp32", bertsmith.load(model, precision="fp32").encode),
        ("bertsmith", bertsmith.load(model).encode),
    ]


def spearman(
    encode: Callable[[Sequence[str]], Vectors],
    left: list[str],
    right: list[str],
    gold: list[float],
) -> float:
    from scipy.stats import spearmanr

    a, b = encode(left).astype(np.float64), encode(right).astype(np.float64)
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return float(spearmanr(cosine, gold).statistic)


if __name__ == "__main__":
    sys.exit(main())
