"""word2vec side by side with gensim (corpus_file): speed, memory and quality of the same settings.

Every run is a process of its own; the sides take turns, on the same file, with equal threads.
CPU seconds are those of all threads. Parts:

- speed: words per CPU second of training alone (gensim's vocabulary is not counted, our tables are)
- file: from a text file to saved vectors, vocabulary included, with peak memory
- quality: analogies among the first 30,000 words, and Spearman on four lists of rated pairs
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORDS = 4_000_000
MODES = {
    "skipgram+negative": ("skipgram", "negative"),
    "skipgram+hierarchical": ("skipgram", "hierarchical"),
    "cbow+negative": ("cbow", "negative"),
    "cbow+hierarchical": ("cbow", "hierarchical"),
}
PAIRS = ("WS-353-ALL", "MEN-TR-3k", "SIMLEX-999", "MTurk-771")
FIRST = 30_000
MIN_COUNT, RATES = 5, {"skipgram": 0.025, "cbow": 0.05}


def main() -> int:
    options = arguments()
    if options.part == "run":
        print(json.dumps(run(json.loads(options.data))))
        return 0
    data = Path(options.data)
    with tempfile.TemporaryDirectory(prefix="bertsmith-words-") as work:
        text = options.text or write_text(data, Path(work))
        rows = [
            row
            for mode in options.modes
            for dim in options.dims
            for row in compare(options, text, mode, dim)
        ]
    report(options.part, rows)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["speed", "file", "quality", "run"])
    parser.add_argument("data", help="folder with imdb/, wordsim/ and analogy/")
    parser.add_argument("--text", type=Path, help="a file of tokenized lines instead of reviews")
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=list(MODES))
    parser.add_argument("--dims", nargs="+", type=int, default=[100])
    parser.add_argument("--sides", nargs="+", default=["gensim", "auto"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--out", type=Path, default=Path("bench_out/word_vectors.jsonl"))
    return parser.parse_args()


def write_text(data: Path, work: Path) -> Path:
    from classic_text import reviews

    path = work / "reviews.txt"
    reviews(data, WORDS)[0].write(path)
    return path


def compare(options: argparse.Namespace, text: Path, mode: str, dim: int) -> list[dict[str, Any]]:
    """Every side for every seed, in turns."""
    rows = []
    model, loss = MODES[mode]
    epochs = options.epochs or (1 if options.part == "speed" else 5)
    for seed in options.seeds:
        for side in options.sides:
            job = {
                **{"side": side, "model": model, "loss": loss, "dim": dim, "epochs": epochs},
                **{"threads": options.threads, "seed": seed, "text": str(text)},
                "data": options.data if options.part == "quality" else None,
            }
            command = [sys.executable, __file__, "run", json.dumps(job)]
            ended = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(ended.stdout.splitlines()[-1])
            row = {"part": options.part, "mode": mode, **job, **found}
            rows.append(
                {name: value for name, value in row.items() if name not in ("text", "data")}
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def run(job: dict[str, Any]) -> dict[str, Any]:
    """One side in this process."""
    began, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory(prefix="bertsmith-words-") as work:
        side = gensim_side if job["side"] == "gensim" else own_side
        trained = side(job, Path(work))
        found = {
            **trained,
            "file_cpu": time.process_time() - cpu,
            "file_wall": time.perf_counter() - began,
            "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        if job["data"] is not None:
            found |= quality(Path(work) / "vectors.bin", Path(job["data"]))
    return found


def timed(train: Callable[[], object], words: int) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    train()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"train_cpu": cpu, "train_wall": wall, "words_per_cpu_second": words / cpu}


def gensim_side(job: dict[str, Any], work: Path) -> dict[str, float]:
    from gensim.models import Word2Vec

    hierarchical = job["loss"] == "hierarchical"
    model = Word2Vec(
        vector_size=job["dim"],
        min_count=MIN_COUNT,
        sg=int(job["model"] == "skipgram"),
        hs=int(hierarchical),
        negative=0 if hierarchical else 5,
        workers=job["threads"],
        epochs=job["epochs"],
        seed=job["seed"],
        alpha=RATES[job["model"]],
    )
    model.build_vocab(corpus_file=job["text"])
    total = model.corpus_total_words

    def train() -> None:
        model.train(
            corpus_file=job["text"],
            total_examples=model.corpus_count,
            total_words=total,
            epochs=job["epochs"],
        )

    found = timed(train, total * job["epochs"])
    model.wv.save_word2vec_format(work / "vectors.bin", binary=True)
    return found


def own_side(job: dict[str, Any], work: Path) -> dict[str, float]:
    from bertsmith.classic.stream.stream import WordReading, build_words
    from bertsmith.classic.word2vec.settings import Word2VecSettings
    from bertsmith.classic.word2vec.train import train_word2vec

    reading = WordReading(
        split="spaces", segmenter="character", form="sentences", block_bytes=1 << 20
    )  # the blocks that `train_word_vectors` reads
    stream = build_words([Path(job["text"])], work / "words", min_count=MIN_COUNT, reading=reading)
    settings = Word2VecSettings(
        model=job["model"],
        loss=job["loss"],
        dim=job["dim"],
        epochs=job["epochs"],
        seed=job["seed"],
    )

    def train() -> None:
        train_word2vec(stream, settings, work / "model", threads=job["threads"], engine=job["side"])

    found = timed(train, len(stream.ids) * job["epochs"])
    (work / "model" / "vectors.bin").rename(work / "vectors.bin")
    return found


def quality(vectors: Path, data: Path) -> dict[str, float]:
    from bertsmith.api.word_vectors import evaluate_word_vectors

    files = [data / "analogy/questions-words.txt"]
    files += [data / f"wordsim/EN-{name}.txt" for name in PAIRS]
    found = evaluate_word_vectors(vectors, files, most=FIRST)
    total = found.totals()[0]
    return {
        "analogies": total.accuracy,
        "questions": total.known,
        "similarity": statistics.mean(one.spearman for one in found.similarity),
    }


def report(part: str, rows: list[dict[str, Any]]) -> None:
    """Means by side, and the ratio or difference to gensim."""
    figures = {
        "speed": ("words_per_cpu_second", "train_wall"),
        "file": ("file_cpu", "file_wall", "megabytes"),
        "quality": ("analogies", "similarity"),
    }[part]
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["mode"], row["dim"], row["side"]), []).append(row)
    for (mode, dim, side), some in groups.items():
        values = {name: statistics.mean(row[name] for row in some) for name in figures}
        peer = groups.get((mode, dim, "gensim"))
        line = f"{mode:22} {dim:4} {side:8}"
        for name, value in values.items():
            line += f"  {name} {value:,.4f}"
            if peer is not None and side != "gensim":
                other = statistics.mean(row[name] for row in peer)
                line += (
                    f" ({value - other:+.4f})" if part == "quality" else f" ({value / other:.2f})"
                )
        print(line)


if __name__ == "__main__":
    sys.exit(main())
