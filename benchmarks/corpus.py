"""MB of raw text a second: `bertsmith corpus build` against transformers' tokenizer + group_texts.

Both read the same files, with the same vocabulary and the same cores. transformers gets the better
of its two ways: one process with threads in Rust, or one process a core (datasets' num_proc). Its
blocks stay in memory; bertsmith splits sentences, finds word boundaries and writes to disk with
fsync. They take turns, round after round, and the best round of each counts.

    python benchmarks/corpus.py DATA      (DATA holds imdb/ and uer_corpora_zh/)
"""

from __future__ import annotations

import argparse
import csv
import gzip
import itertools
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

BATCH = 1000  # texts a call, as datasets.map has it
BLOCK = 512
IMDB = "imdb/IMDB_Dataset.csv.gz"
SETS = ("english", "chinese", "chinese-words")
CHINESE = ("CLUECorpusSmall_bert_sampled.txt", "CLUECorpusSmall_sampled.txt", "chnsenticorp.txt")


def main() -> int:
    options = arguments()
    os.environ |= {
        "HF_HUB_OFFLINE": "1",
        "RAYON_NUM_THREADS": str(options.threads),
        "TOKENIZERS_PARALLELISM": "true",
    }
    chinese = [options.data / "uer_corpora_zh" / name for name in CHINESE]
    known = {
        "english": ("imdb (English, .csv.gz)", [options.data / IMDB], "review", "character"),
        "chinese": ("uer_corpora_zh (Chinese, .txt)", chinese, None, "character"),
        "chinese-words": ("uer_corpora_zh, words by jieba", chinese, None, "jieba"),
    }
    sets = {known[name][0]: known[name][1:] for name in options.sets}
    missing = [str(path) for paths, *_ in sets.values() for path in paths if not path.exists()]
    if missing:
        print(f"missing: {', '.join(dict.fromkeys(missing))}")
        return 2
    work = Path(tempfile.mkdtemp(prefix="bertsmith-bench-"))
    try:
        results = {name: measure(options, work, *given) for name, given in sets.items()}
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for name, found in results.items():
        print_result(name, found)
    from machine import machine_facts

    report = {"machine": machine_facts(options.threads), "sets": results}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {options.out}")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="whose vocabulary for English")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("bench_out/corpus.json"))
    return parser.parse_args()


def measure(
    options: argparse.Namespace, work: Path, paths: list[Path], field: str | None, segmenter: str
) -> dict[str, float]:
    vocab = work / "vocab"
    if not vocab.exists():
        from bertsmith.folders.read import load_tokenizer

        load_tokenizer(options.model).save(vocab)
    if field is None:
        vocab = chinese_vocabulary(work, paths)
    size = sum(len(text.encode()) for text in texts_of(paths, field))
    seconds: dict[str, float] = {}
    for _ in range(options.rounds):
        for name, run in (
            ("bertsmith", lambda: build(paths, vocab, work / "out", field, segmenter, options)),
            ("transformers, threads", lambda: peer_threads(paths, vocab, field)),
            ("transformers, processes", lambda: peer_processes(paths, vocab, field, options)),
        ):
            start = time.perf_counter()
            run()
            taken = time.perf_counter() - start
            seconds[name] = min(taken, seconds.get(name, taken))
    return {"megabytes": size / 1e6} | {name: size / 1e6 / t for name, t in seconds.items()}


def chinese_vocabulary(work: Path, paths: list[Path]) -> Path:
    """Both sides get a vocabulary that knows the characters: learned once, from the same text."""
    place = work / "vocab-zh"
    if not place.exists():
        from bertsmith.text.learn import learn_vocabulary

        learn_vocabulary(texts_of(paths, None), size=12_000).save(place)
    return place


def build(
    paths: list[Path],
    vocab: Path,
    out: Path,
    field: str | None,
    segmenter: str,
    options: argparse.Namespace,
) -> None:
    from bertsmith.corpus.build import CorpusSettings, build_corpus
    from bertsmith.labeled import DataSpec
    from bertsmith.text.tokenizer import Tokenizer

    shutil.rmtree(out, ignore_errors=True)
    reading = DataSpec(text=(field,)) if field else DataSpec()
    settings = CorpusSettings(reading=reading, segmenter=segmenter)
    build_corpus(paths, Tokenizer.from_folder(vocab), out, settings, workers=options.threads)


def texts_of(paths: list[Path], field: str | None) -> Iterator[str]:
    """The texts as transformers' users read them: the csv module, or lines."""
    csv.field_size_limit(1 << 28)
    for path in paths:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8", newline="" if field else None) as file:
            if field:
                yield from (row[field] for row in csv.DictReader(file))
            else:
                yield from (line.rstrip("\n") for line in file if line.strip())


def batches(paths: list[Path], field: str | None) -> Iterator[list[str]]:
    texts = texts_of(paths, field)
    while batch := list(itertools.islice(texts, BATCH)):
        yield batch


def group_texts(tokens: list[list[int]]) -> list[list[int]]:
    """All texts of a batch in one, cut into blocks; the rest is dropped, as run_mlm does it."""
    joined = list(itertools.chain(*tokens))
    return [joined[at : at + BLOCK] for at in range(0, len(joined) // BLOCK * BLOCK, BLOCK)]


def tokenizer_of(vocab: Path):
    import logging

    from transformers import AutoTokenizer

    logging.disable(logging.WARNING)
    return AutoTokenizer.from_pretrained(vocab, use_fast=True)


def ids_of(tokenizer, batch: list[str]) -> list[list[int]]:
    found = tokenizer(
        batch, add_special_tokens=True, return_attention_mask=False, return_token_type_ids=False
    )
    return group_texts(found["input_ids"])


def peer_threads(paths: list[Path], vocab: Path, field: str | None) -> None:
    tokenizer = tokenizer_of(vocab)
    for batch in batches(paths, field):
        ids_of(tokenizer, batch)


class _Peer:
    tokenizer = None


def start_peer(vocab: Path) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _Peer.tokenizer = tokenizer_of(vocab)


def run_peer(batch: list[str]) -> int:
    import numpy as np

    # datasets stores arrow arrays: the blocks go back as one array, not as Python lists.
    return np.array(ids_of(_Peer.tokenizer, batch), dtype=np.int32).nbytes


def peer_processes(
    paths: list[Path], vocab: Path, field: str | None, options: argparse.Namespace
) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.threads, start_peer, (vocab,)) as pool:
        for _ in pool.imap(run_peer, batches(paths, field)):
            continue


def print_result(name: str, found: dict[str, float]) -> None:
    print(f"{name}: {found['megabytes']:.1f} MB")
    best = max(value for key, value in found.items() if key.startswith("transformers"))
    for key, value in found.items():
        if key != "megabytes":
            print(f"  {key:<26} {value:6.2f} MB/s")
    print(f"  ratio to the better of transformers' ways: {found['bertsmith'] / best:.2f}")


if __name__ == "__main__":
    sys.exit(main())
