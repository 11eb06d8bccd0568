"""What short pre-training of models that write learns, and whether they read their source.

For each recipe: the held-out loss of every part next to the unigram entropy of the training tokens,
and `source_gain`, the nats per token that another text's source costs. One seed, a few minutes per
recipe; English film reviews or Chinese news and reviews from a data folder.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from itertools import islice
from pathlib import Path
from typing import Any

RECIPES = ("gpt", "unilm", "bart", "mass")
BELOW = {"gpt": 1.0, "unilm": 0.3}  # nats below the unigram entropy that are wanted
GAIN, GAIN_WANTED = "source_gain", 0.3
CHINESE = ("CLUECorpusSmall_sampled.txt", "chnsenticorp.txt")


def main() -> int:
    options = arguments()
    import torch

    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    corpus = prepare(options)
    report: dict[str, Any] = {"language": options.language, "runs": {}}
    for name in options.recipes:
        report["runs"][name] = run(name, corpus, options)
        show(name, report["runs"][name])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {options.out}")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with imdb, uer_corpora_zh")
    parser.add_argument("--language", choices=["en", "zh"], default="en")
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--budget", default="10m", help="training time per recipe")
    parser.add_argument("--steps", type=int, help="instead of a time: on a busy machine")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--words", type=int, default=8192, help="tokens of the vocabulary")
    parser.add_argument("--documents", type=int, default=25_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], help="a setting of all recipes")
    parser.add_argument("--work", type=Path, default=Path("build/writing"))
    parser.add_argument("--out", type=Path, default=Path("build/writing-quality.json"))
    return parser.parse_args()


def prepare(options: argparse.Namespace) -> Path:
    """The corpus as shards, with a vocabulary learned from it."""
    from bertsmith.corpus.build import build_corpus
    from bertsmith.text.learn import learn_vocabulary

    shards: Path = options.work / f"shards-{options.language}"
    if shards.exists():
        return shards
    text = options.work / f"text-{options.language}.txt"
    text.write_text("".join(f"{line}\n" for line in documents(options)), encoding="utf-8")
    lines = text.read_text(encoding="utf-8").splitlines()
    tokenizer = learn_vocabulary(lines, size=options.words)
    build_corpus([text], tokenizer, shards)
    return shards


def documents(options: argparse.Namespace) -> list[str]:
    """One document per line."""
    if options.language == "en":
        path = next((options.data / "imdb").glob("*.csv.gz"))
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = islice(csv.DictReader(file), options.documents)
            return [" ".join(row["review"].replace("<br />", " ").split()) for row in rows]
    lines: list[str] = []
    for name in CHINESE:
        lines += (options.data / "uer_corpora_zh" / name).read_text(encoding="utf-8").splitlines()
    return [" ".join(line.split()) for line in lines[: options.documents] if line.strip()]


def run(name: str, corpus: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Pre-train by one recipe; losses of held-out text and the unigram entropy of the rest."""
    from bertsmith import pretrain
    from bertsmith.corpus.shards import open_corpus
    from bertsmith.training.pretrain.recipe import load_recipe

    time = f'schedule.budget="{options.budget}"'
    length = f"schedule.steps={options.steps}" if options.steps else time
    given = [f"model.size={options.size}", length, *options.set]
    recipe = load_recipe(name, [*given, "eval.every=400", "log.tensorboard=false"])
    out = options.work / f"{options.language}-{name}"
    outcome = pretrain(recipe, corpus, out).outcome
    return {
        "entropy": unigram_entropy(recipe, open_corpus(corpus)),
        "losses": outcome.evaluation.losses if outcome.evaluation else {},
        "steps": outcome.step,
        "tokens": outcome.tokens,
        "seconds": round(outcome.seconds),
    }


def unigram_entropy(recipe: Any, corpus: Any) -> float:
    """Nats per token of the training documents, each token predicted by its frequency."""
    import numpy as np

    from bertsmith.training.pretrain.workload import split

    train, _ = split(recipe, corpus)
    borders = np.asarray(corpus.sentences)[np.asarray(corpus.documents)]
    counts = np.zeros(corpus.tokenizer().vocab_size, dtype=np.int64)
    for document in train:
        here = slice(borders[document], borders[document + 1])
        counts += np.bincount(corpus.tokens[here], minlength=len(counts))
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def show(name: str, found: dict[str, Any]) -> None:
    entropy = found["entropy"]
    print(f"{name}: {found['steps']:,} steps, {found['tokens']:,} tokens, {found['seconds']} s")
    for part, loss in found["losses"].items():
        if part == GAIN:
            print(f"  {part:<15}{loss:7.3f}  wanted {GAIN_WANTED}{verdict(loss >= GAIN_WANTED)}")
            continue
        wanted = BELOW.get(name)
        passed = "" if wanted is None else verdict(entropy - loss >= wanted)
        below = f"{entropy - loss:.3f} below{passed}"
        print(f"  {part:<15}{loss:7.3f}  unigram entropy {entropy:.3f}, {below}")


def verdict(passed: bool) -> str:
    return ": yes" if passed else ": NO"


if __name__ == "__main__":
    sys.exit(main())
