"""SimBERT on Chinese questions: recall of similar sentences, and what it writes.

    python benchmarks/similar.py DATA --model ZH-BERT [--work FOLDER] [--budget 10m]

DATA holds csts_zh/ (LCQMC, AFQMC). Trained on the positive pairs of LCQMC dev and AFQMC train, rows
with a text of LCQMC test left out. Recall@10 of the partner of each positive LCQMC test pair among
all sentences of that set, by the first-token vectors before and after, and by the cosine of
character bigrams. Then 1,000 sentences are written, and targets are scored with other sources.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer

import bertsmith
from bertsmith.api.similar import written_similar
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.metrics.written_text import distinct
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.training.kinds.write.record import WritingFolder

WRITTEN = 1_000
AT = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with csts_zh/")
    parser.add_argument("--model", type=Path, required=True, help="a Chinese masked LM")
    parser.add_argument("--trained", type=Path, help="a folder of --task similar, made before")
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--work", type=Path, default=Path("bench_out/similar"))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    test = rows(options.data / "csts_zh" / "LCQMC" / "test.txt")
    trained = options.trained or train(options, {text for row in test for text in row[:2]})
    bank = sorted({text for row in test for text in row[:2]})
    partners = relevant(test, bank)
    report = {
        "sentences": len(bank),
        "queries": len(partners),
        "recall@10": {
            "first token, before": recall(vectors(first_token(options), bank), partners),
            "character bigrams": recall(bigrams(bank), partners),
            "first token, SimBERT": recall(vectors(trained, bank), partners),
        },
        "written": written(trained, [bank[at] for at in list(partners)[:WRITTEN]]),
        "wrong_source": json.loads((trained / "proof.json").read_bytes())["test"]["wrong_source"],
    }
    print(json.dumps(report, ensure_ascii=False, indent=1))
    (options.work / "similar.json").write_text(json.dumps(report, ensure_ascii=False))
    return 0


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line]


def train(options: argparse.Namespace, held_out: set[str]) -> Path:
    """The pairs, and the command as a user would type it."""
    pairs = [
        row[:2]
        for name in ("LCQMC/dev.txt", "AFQMC/train.txt")
        for row in rows(options.data / "csts_zh" / name)
        if row[2].strip() == "1" and not held_out & set(row[:2])
    ]
    file = options.work / "pairs.tsv"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    out = options.work / "simbert"
    command = [sys.executable, "-m", "bertsmith", "finetune", str(file), "--task", "similar"]
    command += ["--model", str(options.model), "--out", str(out), "--lr", "1e-3", "--batch", "32"]
    command += ["--max-length", "48", "--set", f'plan.budget="{options.budget}"']
    subprocess.run(command, check=True, env=os.environ)
    return out


def first_token(options: argparse.Namespace) -> Path:
    """The model before, with the pooling that it has afterwards."""
    out = options.work / "before"
    if not out.exists():
        loaded = load_model(options.model)
        settings = SentenceSettings(pooling=("first",))
        save_model(loaded.model, loaded.tokenizer, out, sentence=settings)
    return out


def relevant(test: list[list[str]], bank: list[str]) -> dict[int, set[int]]:
    """The numbers of the sentences that say the same as each."""
    number = {text: at for at, text in enumerate(bank)}
    found: dict[int, set[int]] = {}
    for first, second, label in test:
        if label.strip() == "1" and first != second:
            found.setdefault(number[first], set()).add(number[second])
            found.setdefault(number[second], set()).add(number[first])
    return found


def vectors(model: Path, bank: list[str]) -> np.ndarray:
    with bertsmith.load(model, precision="fp32") as loaded:
        found = loaded.encode(bank)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def bigrams(bank: list[str]) -> csr_matrix:
    counts = CountVectorizer(analyzer="char", ngram_range=(2, 2), lowercase=False)
    table = csr_matrix(counts.fit_transform(bank), dtype=np.float32)
    lengths = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)))[:, 0]
    return table.multiply(1 / np.maximum(lengths, 1e-9)[:, None]).tocsr()


def recall(table: np.ndarray | csr_matrix, partners: dict[int, set[int]]) -> float:
    """The share of the partners among the ten nearest, the sentence itself left out."""
    hits = []
    queries = list(partners)
    for start in range(0, len(queries), 500):
        some = queries[start : start + 500]
        scores = table[some] @ table.T
        scores = scores.toarray() if hasattr(scores, "toarray") else scores
        scores[np.arange(len(some)), some] = -np.inf
        best = np.argpartition(-scores, AT, axis=1)[:, :AT]
        for query, near in zip(some, best.tolist(), strict=True):
            hits.append(len(partners[query] & set(near)) / min(AT, len(partners[query])))
    return float(np.mean(hits))


def written(trained: Path, sentences: list[str]) -> dict[str, float]:
    """One drawn text for each sentence: how many differ from it, and from each other."""
    folder = WritingFolder.at(trained)
    if folder is None:
        raise SystemExit(f"{trained} was not trained to write")
    every = written_similar(folder, sentences, candidates=1)
    texts = [some[0] for some in every if some]
    return {
        "sentences": len(sentences),
        "differ from their source": len(texts) / len(sentences),
        "different": len(set(texts)) / max(1, len(texts)),
        "distinct_2": distinct(texts, 2),
    }


if __name__ == "__main__":
    sys.exit(main())
