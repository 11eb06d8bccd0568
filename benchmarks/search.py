"""Indexes: recall and speed of search, memory of a large build, similar pairs, hybrid search.

    python benchmarks/search.py vectors --rows 200000      recall, p50, exact search against faiss
    python benchmarks/search.py build --rows 1000000       memory and time of a large build
    python benchmarks/search.py stream FOLDER --rows 1000000 --model M    the same by `index build`
    python benchmarks/search.py pairs FOLDER               10,000 sentences of FOLDER/imdb
    python benchmarks/search.py database --store ADDRESS --rows 20000      an index in PostgreSQL
    python benchmarks/search.py bank FOLDER                a question bank of FOLDER/csts_zh/LCQMC

Vectors of the first two are drawn with a power-law spectrum (the first directions carry most of the
variance, as in real ones); times are CPU seconds of one thread unless said otherwise.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from machine import cpu_name

Matrix = NDArray[np.float32]
WIDTH = 384
MODEL = "all-MiniLM-L6-v2"
DTYPES = ["float32", "float16", "int8", "binary"]


class Spectrum:
    """How drawn vectors are spread: direction number i carries the deviation i ** power."""

    power = -0.75


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    kinds = ["vectors", "build", "stream", "database", "pairs", "bank"]
    parser.add_argument("what", choices=kinds)
    parser.add_argument("data", type=Path, nargs="?", help="folder with the data sets")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--width", type=int, default=WIDTH)
    parser.add_argument(
        "--dtype", default="float16", help="of build; of vectors, which has a graph"
    )
    parser.add_argument("--only", nargs="+", default=DTYPES, help="of vectors, float32 first")
    parser.add_argument("--spectrum", type=float, default=Spectrum.power, help="of drawn vectors")
    parser.add_argument("--model", default=MODEL, help="of the question bank and of stream")
    parser.add_argument("--part", default="dev", help="of LCQMC, for the question bank")
    parser.add_argument("--store", default="", help="address of a database without ?table=NAME")
    options = parser.parse_args()
    Spectrum.power = options.spectrum
    print(f"{cpu_name()}, load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if options.what == "vectors":
            measure_vectors(options, Path(folder))
        elif options.what == "build":
            measure_build(options.rows, options.width, options.dtype, Path(folder))
        elif options.what == "database":
            measure_database(options.rows, options.width, options.dtype, options.store)
        elif options.data is None:
            print("error: give the folder with the data sets")
            return 2
        elif options.what == "pairs":
            measure_pairs(options.data, Path(folder))
        elif options.what == "stream":
            stream(options.data, options.rows, options.model, options.dtype, Path(folder))
        else:
            measure_bank(options.data, options.part, options.model, Path(folder))
    return 0


def drawn(rows: int, width: int, seed: int) -> Matrix:
    """Unit vectors (n, D) of the spectrum, turned at random."""
    scale = (1 + np.arange(width, dtype=np.float32)) ** Spectrum.power
    vectors = np.random.default_rng(seed).standard_normal((rows, width), dtype=np.float32) * scale
    vectors = vectors @ directions(width)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


@cache
def directions(width: int) -> Matrix:
    turned = np.linalg.qr(np.random.default_rng(99).standard_normal((width, width)))[0]
    return np.ascontiguousarray(turned, dtype=np.float32)


class DrawnVectors:
    """A model of no cost: text number i has the vector drawn for i."""

    def __init__(self, width: int, block: int = 4_096) -> None:
        from bertsmith.search.store import EncoderRecord

        self.record = EncoderRecord(model="drawn", key="0" * 64, pooling="none")
        self.dimension = width
        self._block = block

    def texts(self, texts: Sequence[str]) -> Matrix:
        first = int(texts[0].split()[1])
        return drawn(len(texts), self.dimension, 1 + first // self._block)

    queries = texts


def rows_of(count: int) -> Iterator[tuple[str, dict[str, str]]]:
    for number in range(count):
        yield f"row {number} of w{number % 9_973} and w{number % 499}", {"label": "ab"[number % 2]}


def build(rows: int, width: int, dtype: str, path: Path | str) -> None:
    from bertsmith.search.index import add_rows, new_store
    from bertsmith.search.store import SourceRecord, StoreManifest

    encoder = DrawnVectors(width)
    manifest = StoreManifest(
        encoder=encoder.record,
        dimension=width,
        metric="cosine",
        stored=dtype,  # type: ignore[arg-type]
        rows=0,
        next_id=0,
        segmenter="bigrams",
    )
    with new_store(path, manifest, SourceRecord(name="drawn", sha256="0" * 64)) as writer:
        add_rows(writer, rows_of(rows), encoder, "drawn")


def timed(call: Callable[[], object], times: int) -> float:
    """The median CPU time in milliseconds."""
    spent = []
    for _ in range(times):
        start = time.process_time()
        call()
        spent.append(time.process_time() - start)
    return 1e3 * float(np.median(spent))


def recall(found: Sequence[Sequence[int]], true: Sequence[Sequence[int]]) -> float:
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, true, strict=True)]))


def measure_vectors(options: argparse.Namespace, folder: Path) -> None:
    """Every type; the graph, which is the same for float32 and float16, is built once."""
    import faiss
    import torch

    from bertsmith.search.folder import candidates
    from bertsmith.search.folder.store import FolderStore

    rows, width = options.rows, options.width
    queries = drawn(500, width, 0)
    threshold = candidates.EXACT_BELOW
    true: list[list[int]] = []
    for dtype in options.only:
        path = folder / dtype
        candidates.EXACT_BELOW = threshold if dtype == options.dtype else 1 << 60
        start, cpu = time.perf_counter(), time.process_time()
        build(rows, width, dtype, path)
        spent, cpu = time.perf_counter() - start, time.process_time() - cpu
        candidates.EXACT_BELOW = threshold
        with FolderStore.open(path) as store:
            size = sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) / 1e6
            print(f"{dtype}: built in {spent:.0f} s ({cpu:.0f} CPU s), {size:.0f} MB", flush=True)
            torch.set_num_threads(1)
            if store.manifest.graph is not None:
                graph = store.manifest.graph
                print(f"  graph: expansion {graph.expansion_search}, stored {graph.recall}")
                near = [[h.id for h in store.search(q[None], 10)[0]] for q in queries]
                wall = [_wall(lambda q=q: store.search(q[None], 10)) for q in queries]
                one = float(
                    np.median([timed(lambda q=q: store.search(q[None], 10), 1) for q in queries])
                )
                print(
                    f"  graph: one query p50 {one:.2f} ms CPU, {1e3 * np.median(wall):.2f} ms wall"
                )
            candidates.EXACT_BELOW = 1 << 60  # the same index, searched exactly
            if dtype == "float32":
                true = [[h.id for h in hits] for hits in store.search(queries, 10)]
            found = [[h.id for h in hits] for hits in store.search(queries, 10)]
            if store.manifest.graph is not None:
                print(f"  graph: recall@10 {recall(near, true):.4f} on 500 fresh queries")
            print(f"  without a graph: recall@10 {recall(found, true):.4f}")
            one = timed(lambda: store.search(queries[:1], 10), 9)
            many = timed(lambda: store.search(queries[:64], 10), 3) / 64
            print(f"  without a graph: {one:.2f} ms alone, {many:.2f} ms in batches of 64")
            if dtype == "float32":
                _against_faiss(faiss, store, queries)
            candidates.EXACT_BELOW = threshold


def measure_database(rows: int, width: int, dtype: str, address: str) -> None:
    """Loading, exact search and HNSW of new tables; by the clock, as the server is elsewhere."""
    from bertsmith.search.index import open_store
    from bertsmith.search.postgres import graph as graphs
    from bertsmith.search.postgres import store as stores

    queries = drawn(200, width, 0)
    found: dict[str, list[list[int]]] = {}
    for way, least in (("exact", 1 << 60), ("hnsw", 1)):
        graphs.EXACT_BELOW = stores.EXACT_BELOW = least
        sign = "&" if "?" in address else "?"
        place = f"{address}{sign}table=bench_{way}_{int(time.time())}"
        start = time.perf_counter()
        build(rows, width, dtype, place)
        spent = time.perf_counter() - start
        print(f"{way}: built in {spent:.1f} s, {rows / spent:,.0f} rows/s", flush=True)
        with open_store(place) as store:
            wall = [_wall(lambda q=q: store.search(q[None], 10)) for q in queries]  # type: ignore
            found[way] = [[hit.id for hit in hits] for hits in store.search(queries, 10)]
            print(f"  one query p50 {1e3 * np.median(wall):.1f} ms; {'; '.join(store.check())}")
    print(f"  hnsw: recall@10 {recall(found['hnsw'], found['exact']):.4f} on 200 fresh queries")


def _against_faiss(faiss: object, store: object, queries: Matrix) -> None:
    """Exact search of the same rows, one thread each, in turns."""
    faiss.omp_set_num_threads(1)  # type: ignore[attr-defined]
    flat = faiss.IndexFlatIP(queries.shape[1])  # type: ignore[attr-defined]
    for segment in store.segments:  # type: ignore[attr-defined]
        flat.add(np.ascontiguousarray(segment.vectors))
    ours: dict[int, list[float]] = {1: [], 64: []}
    theirs: dict[int, list[float]] = {1: [], 64: []}
    for _ in range(5):
        for size in (1, 64):
            part = queries[:size]
            ours[size].append(timed(lambda part=part: store.search(part, 10), 3))  # type: ignore
            theirs[size].append(timed(lambda part=part: flat.search(part, 10), 3))
    for size in (1, 64):
        own, peer = float(np.median(ours[size])), float(np.median(theirs[size]))
        print(
            f"  exact, batches of {size}: {own / size:.2f} ms a query, faiss flat "
            f"{peer / size:.2f} ms: {own / peer:.2f} of its time",
            flush=True,
        )


def _wall(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure_build(rows: int, width: int, dtype: str, folder: Path) -> None:
    start, cpu = time.perf_counter(), time.process_time()
    build(rows, width, dtype, folder / "index")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{rows:,} x {width} {dtype}: {time.perf_counter() - start:.0f} s, "
        f"{time.process_time() - cpu:.0f} CPU s, peak memory {peak:.2f} GB"
    )


def stream(data: Path, rows: int, model: str, dtype: str, folder: Path) -> None:
    """`index build` of clauses of film reviews in a process of its own, and its peak memory."""
    file = folder / "texts.txt"
    with (
        gzip.open(data / "imdb" / "IMDB_Dataset.csv.gz", "rt", encoding="utf-8") as reviews,
        file.open("w", encoding="utf-8") as texts,
    ):
        plain = (line.replace("<br />", " ") for line in reviews)
        parts = (" ".join(part.split()) for line in plain for part in re.split("[.,;:!?]", line))
        for _, part in zip(range(rows), (part for part in parts if len(part) > 15), strict=False):
            texts.write(part + "\n")
    command = [sys.executable, "-m", "bertsmith", "index", "build", str(file), "--model", model]
    start = time.perf_counter()
    done = subprocess.run(
        [*command, "--dtype", dtype, "--out", str(folder / "index"), "--quiet"],
        check=True,
        capture_output=True,
        text=True,
    )
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{rows:,} rows, {dtype}: {time.perf_counter() - start:.0f} s, "
        f"{used.ru_utime + used.ru_stime:.0f} CPU s, peak memory {used.ru_maxrss / 1e6:.2f} GB"
    )
    print(done.stdout.strip())


def sentences(data: Path, count: int) -> list[str]:
    found: list[str] = []
    with gzip.open(data / "imdb" / "IMDB_Dataset.csv.gz", "rt", encoding="utf-8") as file:
        for line in file:
            plain = line.replace("<br />", " ").replace('"', "")
            found += [part.strip() for part in plain.split(". ") if 20 < len(part) < 300]
            if len(found) >= count:
                return found[:count]
    return found


def measure_pairs(data: Path, folder: Path) -> None:
    texts = sentences(data, 10_000)
    file = folder / "texts.txt"
    file.write_text("\n".join(" ".join(text.split()) for text in texts) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "bertsmith"]
    spent = {}
    for name, rest in (
        ("embed", ["embed", MODEL, str(file), "--out", str(folder / "v.npy"), "--quiet"]),
        ("pairs", ["index", "pairs", str(file), "--model", MODEL, "-k", "1", "--quiet", "--json"]),
    ):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = subprocess.run([*command, *rest], check=True, capture_output=True, text=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent[name] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{name}: {spent[name]:.1f} CPU s", flush=True)
    from bertsmith.search.pairs import similar_pairs

    vectors = np.load(folder / "v.npy")
    start = time.process_time()
    best = similar_pairs(vectors, 1)[0]
    compared = time.process_time() - start
    same = (best.first, best.second) == brute_force(vectors)
    print(f"comparison {compared:.2f} CPU s, same pair as brute force: {same}")
    ratio = spent["pairs"] / (spent["embed"] + compared)
    print(f"pairs / (embed + comparison): {ratio:.2f}; {out.strip()[:200]}")


def brute_force(vectors: Matrix) -> tuple[int, int]:
    """The most similar pair by float64; of equal float32 scores the first."""
    exact = vectors.astype(np.float64)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    best, pair = -2.0, (0, 0)
    for row in range(len(exact) - 1):
        scores = (exact[row + 1 :] @ exact[row]).astype(np.float32)
        if scores.max() > best:
            best, pair = scores.max(), (row, row + 1 + int(scores.argmax()))
    return pair


def measure_bank(data: Path, part: str, model: str, folder: Path) -> None:
    import bertsmith
    from bertsmith.metrics.significance import paired_bootstrap

    lines = (data / "csts_zh" / "LCQMC" / f"{part}.txt").read_text(encoding="utf-8").splitlines()
    positive = [line.split("\t") for line in lines if line.endswith("\t1")]
    bank = sorted({second for _, second, _ in positive})
    (folder / "bank.txt").write_text("\n".join(bank) + "\n", encoding="utf-8")
    right: dict[str, set[str]] = {}
    for first, second, _ in positive:
        right.setdefault(first, set()).add(second)
    questions = sorted(right)
    bertsmith.build_index(folder / "bank.txt", model, folder / "index")
    ranks: dict[str, NDArray[np.float64]] = {}
    with bertsmith.Index.open(folder / "index") as index:
        for name, hybrid in (("vectors", False), ("hybrid", True)):
            found = index.search(questions, 10, hybrid=hybrid)
            ranks[name] = np.array(
                [
                    next((1 / n for n, hit in enumerate(hits, 1) if hit.text in right[q]), 0.0)
                    for q, hits in zip(questions, found, strict=True)
                ]
            )
            print(f"{name}: MRR@10 {ranks[name].mean():.4f}, first {np.mean(ranks[name] == 1):.4f}")
    difference = paired_bootstrap(
        lambda rows: float(ranks["hybrid"][rows].mean()),
        lambda rows: float(ranks["vectors"][rows].mean()),
        len(questions),
    )
    print(f"{len(bank):,} questions in the bank, {len(questions):,} asked: {difference}")


if __name__ == "__main__":
    sys.exit(main())
