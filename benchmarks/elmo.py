"""A small ELMo against word2vec vectors of the same reviews: entities, and senses of words.

Both are trained on the same sentences of IMDb and read, frozen, by the same head: the entities of
WikiANN English, several seeds, differences in pairs. The sense test classifies occurrences of a
word by their nearest other occurrence, in reviews that neither was trained on.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from machine import machine_facts

HELD_OUT = 5_000  # reviews at the end, for the senses of words
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
WORDS = 15_000  # whose probabilities ELMo learns; it reads all words by their characters
WIDTH = 256  # of both: two directions of 128
ELMO = (
    "model.filters=[[1, 16], [2, 32], [3, 64], [4, 64], [5, 64]]",
    "model.hidden=512",
    f"model.projection={WIDTH // 2}",
    "plan.lines=64",
    "plan.window=100",
    "plan.evaluate_every=1000",
    "held_out=0.005",
    "best.patience=20",
)
SHARES = {"train": 1.0, "dev": 0.2, "test": 1.0}  # of --sentences of WikiANN
HEAD: dict[str, Any] = {"head.lstm": 64, "plan.epochs": 4, "plan.batch": 32, "optimizer.lr": 2e-3}
SENSES: dict[str, dict[str, list[str]]] = {
    "kind": {"sort": ["+of"], "good": ["-so", "-very", "+man", "+and", "+woman", "+enough"]},
    "lead": {"main": ["+role", "+actor", "+actress", "+character"], "bring": ["+to"]},
    "well": {"good": ["+acted", "+done", "+made", "+written"], "too": ["-as"]},
    "like": {"as": ["-looks", "-looked", "-sounds", "-feels"], "fond": ["-i", "-you", "-would"]},
    "back": {"return": ["-come", "-came", "-go", "-went"], "rear": ["-the", "-his", "-her"]},
}


def reviews(data: Path) -> list[list[str]]:
    """The sentences of each review of IMDb, in its order and case."""
    csv.field_size_limit(1 << 30)
    with gzip.open(data / "imdb/IMDB_Dataset.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return [
            [one for one in SENTENCE.split(row["review"].replace("<br />", "\n")) if one.strip()]
            for row in csv.DictReader(file)
        ]


def write_text(texts: Sequence[Sequence[str]], path: Path) -> None:
    """One sentence per line, a blank line between reviews."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join("\n".join(text) for text in texts) + "\n", encoding="utf-8")


def bertsmith(*arguments: object) -> float:
    """Run a command; its seconds."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "bertsmith", *map(str, arguments)], check=True)
    return time.perf_counter() - began


def train_elmo(text: Path, out: Path, minutes: float) -> float | None:
    """Train for so many minutes, or resume; the seconds, None if the folder is there."""
    if (out / "config.json").is_file():
        return None
    chosen = [f"--set={one}" for one in (*ELMO, f"plan.budget={round(60 * minutes)}")]
    reading = ("--form", "sentences", "--max-words", WORDS)
    return bertsmith("lm", "train", text, "--kind", "elmo", *reading, "--out", out, *chosen)


def train_word2vec(text: Path, out: Path, epochs: int) -> float | None:
    """Skip-gram with 5 negatives on the same sentences, case kept; None if the folder is there."""
    if out.exists():
        return None
    shape = ("--kind", "skipgram", "--loss", "negative", "--dim", WIDTH, "--epochs", epochs)
    reading = ("--form", "sentences", "--min-count", 2, "--threads", 1)
    return bertsmith("words", "train", text, *reading, *shape, "--out", out)


def write_rows(data: Path, out: Path, most: int) -> None:
    """WikiANN's first sentences without the language in front of each word."""
    out.mkdir(parents=True, exist_ok=True)
    for name, share in SHARES.items():
        text = (data / f"wikiann_en/{name}.conll").read_text(encoding="utf-8")
        sentences = [part for part in text.split("\n\n") if part.strip()]
        chosen = sentences[: round(share * most)]
        lines = [line.removeprefix("en:") for part in chosen for line in [*part.split("\n"), ""]]
        (out / f"{name}.conll").write_text("\n".join(lines) + "\n", encoding="utf-8")


def entities(rows: Path, model: Path, out: Path, seed: int) -> dict[str, float]:
    """Entity F1 of the test sentences by a frozen encoder under the head; kept in its folder."""
    import bertsmith as library

    proof = out / "proof.json"
    if not proof.is_file():
        settings = {**HEAD, "run.seed": seed}
        library.finetune(rows, model=str(model), out=out, settings=settings)
    record = json.loads(proof.read_text(encoding="utf-8"))
    return {"f1": record["test"]["figures"]["f1"], "seconds": record["training"]["seconds"]}


def paired(first: Sequence[float], second: Sequence[float]) -> dict[str, float]:
    """The mean difference over seeds with its 95 % interval (Student)."""
    lead = np.array(first) - np.array(second)
    reach = stats.t.ppf(0.975, len(lead) - 1) * lead.std(ddof=1) / len(lead) ** 0.5
    return {"mean": lead.mean(), "low": lead.mean() - reach, "high": lead.mean() + reach}


def senses(texts: Sequence[Sequence[str]], models: dict[str, Path]) -> list[dict[str, Any]]:
    """The sense test of each word by each encoder's last layer."""
    from bertsmith import load_words
    from bertsmith.studies.road.senses import find_occurrences, sense_score
    from bertsmith.text.whole_words.rule import WordRule

    rule = WordRule()
    sentences = [[line[a:b] for a, b in rule.spans(line)] for text in texts for line in text]
    opened = {name: load_words(path) for name, path in models.items()}
    scores = []
    for word, giveaways in SENSES.items():
        found = find_occurrences(sentences, word, giveaways)
        for name, embedder in opened.items():
            read = embedder.words([" ".join(one.words) for one in found])
            vectors = [
                layers.layers[-1, one.place] for one, layers in zip(found, read, strict=True)
            ]
            score = sense_score(word, found, np.stack(vectors))
            scores.append({"encoder": name, **asdict(score), "passes": score.passes})
    return scores


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--minutes", type=float, default=30.0, help="of training ELMo")
    parser.add_argument("--epochs", type=int, default=5, help="of word2vec")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=10_000, help="of WikiANN, for training")
    parser.add_argument("--out", type=Path, default=Path("bench_out/elmo"))
    options = parser.parse_args()
    out: Path = options.out
    texts = reviews(options.data)
    text = out / "reviews.txt"
    if not text.is_file():
        write_text(texts[:-HELD_OUT], text)
    models = {"elmo": out / "elmo", "word2vec": out / "word2vec"}
    seconds = {
        "elmo": train_elmo(text, models["elmo"], options.minutes),
        "word2vec": train_word2vec(text, models["word2vec"], options.epochs),
    }
    write_rows(options.data, out / "rows", options.sentences)
    found: dict[str, Any] = {"machine": machine_facts(1), "seconds": seconds, "head": HEAD}
    found["senses"] = senses(texts[-HELD_OUT:], models)
    for one in found["senses"]:
        print(
            f"{one['word']:6} {one['encoder']:9} {one['occurrences']:4} occurrences: "
            f"{one['accuracy']:.3f}, majority {one['majority']:.3f}, "
            f"lead {one['low']:+.3f} to {one['high']:+.3f}, shuffled {one['shuffled']:.3f}"
        )
    runs = {
        name: [
            entities(out / "rows", model, out / f"{name}-{seed}", seed)
            for seed in range(options.seeds)
        ]
        for name, model in models.items()
    }
    found["entities"] = runs
    each = {name: [run["f1"] for run in some] for name, some in runs.items()}
    found["lead"] = paired(each["elmo"], each["word2vec"]) if options.seeds > 1 else None
    for name, some in each.items():
        print(f"{name:9} entity F1 {np.mean(some):.4f}: {', '.join(f'{f1:.4f}' for f1 in some)}")
    print("lead of ELMo, in pairs of seeds:", found["lead"])
    (out / "elmo.json").write_text(json.dumps(found, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
