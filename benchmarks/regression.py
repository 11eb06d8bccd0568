"""Speed of this source tree against another one (the commit before, say), in one run.

    git worktree add ../before COMMIT
    python benchmarks/regression.py ../before

Both trees run the same work in turn, in processes of their own with equal threads; the best of
several rounds counts, so that a busy machine harms both alike. Ratios are time here to time there:
above 1.05 is a loss worth looking at.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from machine import machine_facts
from material import cut_texts

HERE = Path(__file__).resolve().parents[1]
MODEL = "all-MiniLM-L6-v2"
ENCODE = """
import json, sys, time, bertsmith
texts = json.loads(open(sys.argv[1]).read())
model = bertsmith.load(sys.argv[2], precision=sys.argv[3])
model.encode(texts)  # builds and probes the fast engine, where there is one
began = time.perf_counter()
model.encode(texts)
print(time.perf_counter() - began)
"""
GENERATE = """
import json, sys, time, bertsmith
texts = [text[:60] for text in json.loads(open(sys.argv[1]).read())[:64]]
model = bertsmith.load(sys.argv[2], precision="fp32")
options = bertsmith.GenerationOptions(max_new=24, beams=4)
model.generate(texts[:8], options)
began = time.perf_counter()
model.generate(texts, options)
print(time.perf_counter() - began)
"""
SEARCH = """
import sys, time, bertsmith
with bertsmith.Index.open(sys.argv[1], precision="fp32") as index:
    questions = [f"a question about number {number}" for number in range(64)]
    index.search(questions)
    began = time.perf_counter()
    for _ in range(10):
        index.search(questions)
    print(time.perf_counter() - began)
"""
SERVE = """
import http.client, json, socket, subprocess, sys, time
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
command = [sys.executable, "-m", "bertsmith", "serve", f"m={sys.argv[2]}", "--port", str(port)]
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
service = subprocess.Popen([*command, "--precision", "fp32"], **quiet)
def ask(client, text):
    body = json.dumps({"inputs": text})
    client.request("POST", "/embed", body, {"Content-Type": "application/json"})
    answer = client.getresponse()
    answer.read()
    return answer.status
try:
    texts = json.loads(open(sys.argv[1]).read())[:300]
    for _ in range(600):
        client = http.client.HTTPConnection("127.0.0.1", port)
        try:
            if ask(client, "ready?") == 200:
                break
        except OSError:
            pass
        time.sleep(0.1)
    began = time.perf_counter()
    found = {ask(client, text) for text in texts}
    assert found == {200}, found
    print(time.perf_counter() - began)
finally:
    service.terminate()
    service.wait()
"""


def run(tree: Path, *arguments: str, threads: int) -> str:
    """The output of Python with the package of a tree."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "BERTSMITH_THREADS")
    variables = os.environ | dict.fromkeys(names, str(threads))
    variables |= {"PYTHONPATH": str(tree / "src"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{tree}: {' '.join(arguments[:6])} failed:\n{done.stderr[-3000:]}")
    return done.stdout


def encode(tree: Path, place: Path, precision: str, threads: int) -> float:
    """Seconds for 600 texts of mixed length."""
    texts = place / "texts.json"
    return float(run(tree, "-c", ENCODE, str(texts), MODEL, precision, threads=threads))


def seconds_per_token(log: Path) -> float:
    """The best window of a training log."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    rates = [line["tokens_per_second"] for line in lines if line.get("kind") == "train"]
    return 1.0 / max(rates)


def pretrain(tree: Path, place: Path, threads: int) -> float:
    """Seconds per token of BERT mini."""
    with tempfile.TemporaryDirectory() as out:
        given = ["--set=log.every=5", "--set=batch.tokens=4096", "--set=eval.every=1000"]
        run(
            *(tree, "-m", "bertsmith", "pretrain", "bert", "--corpus", str(place / "shards")),
            *("--out", out, "--steps", "20", "--size", "mini", "--precision", "fp32", *given),
            threads=threads,
        )
        return seconds_per_token(Path(out) / "log.jsonl")


def finetune(tree: Path, place: Path, threads: int) -> float:
    """Seconds per token of a classifier on all-MiniLM-L6-v2."""
    with tempfile.TemporaryDirectory() as out:
        given = ["--precision", "fp32", "--max-length", "128"]
        run(
            *(tree, "-m", "bertsmith", "finetune", str(place / "rows.tsv"), "--model", MODEL),
            *("--out", out, "--epochs", "1", *given),
            threads=threads,
        )
        return seconds_per_token(Path(out) / "log.jsonl")


def generate(tree: Path, place: Path, threads: int) -> float:
    """Seconds for 64 texts, four beams, by a small GPT."""
    texts, writer = str(place / "texts.json"), str(place / "writer")
    return float(run(tree, "-c", GENERATE, texts, writer, threads=threads))


def search(tree: Path, place: Path, threads: int) -> float:
    """Seconds for ten times 64 questions to an index that this tree built."""
    index = place / f"index-{tree.name}"
    if not index.exists():
        given = ("--model", MODEL, "--precision", "fp32", "--out", str(index))
        rows = str(place / "rows.tsv")
        run(tree, "-m", "bertsmith", "index", "build", rows, *given, threads=threads)
    return float(run(tree, "-c", SEARCH, str(index), threads=threads))


def serve(tree: Path, place: Path, threads: int) -> float:
    """Seconds for 300 texts, one after another, over HTTP."""
    return float(run(tree, "-c", SERVE, str(place / "texts.json"), MODEL, threads=threads))


def wall(tree: Path, threads: int, *arguments: str) -> float:
    """Seconds from start to end of a process."""
    began = time.perf_counter()
    run(tree, *arguments, threads=threads)
    return time.perf_counter() - began


def prepare(place: Path) -> None:
    """Texts, labeled rows and a corpus."""
    texts = cut_texts("mixed", 600)
    (place / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    rows = [f"{text}\t{'abc'[number % 3]}" for number, text in enumerate(texts[:480])]
    (place / "rows.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (place / "one.txt").write_text("A sentence to embed.\n", encoding="utf-8")
    documents = ["\n".join(text.split(". ")) for text in cut_texts("long", 400)]
    (place / "corpus.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    text, vocab, shards = (str(place / name) for name in ("corpus.txt", "vocab", "shards"))
    size = ("--vocab-size", "4000")
    run(HERE, "-m", "bertsmith", "vocab", "learn", text, "--out", vocab, *size, threads=2)
    built = ("corpus", "build", text, "--vocab", vocab, "--out", shards)
    run(HERE, "-m", "bertsmith", *built, threads=2)
    short = ("--steps", "2", "--size", "mini", "--precision", "fp32")
    written = ("pretrain", "gpt", "--corpus", shards, "--out", str(place / "writer"), *short)
    run(HERE, "-m", "bertsmith", *written, threads=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the other source tree")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="some of the rows")
    options = parser.parse_args()
    threads = options.threads
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        prepare(place)
        work: dict[str, Callable[[Path], float]] = {
            "encode fp32": lambda tree: encode(tree, place, "fp32", threads),
            "encode auto": lambda tree: encode(tree, place, "auto", threads),
            "pretrain": lambda tree: pretrain(tree, place, threads),
            "finetune": lambda tree: finetune(tree, place, threads),
            "generate": lambda tree: generate(tree, place, threads),
            "search": lambda tree: search(tree, place, threads),
            "serve": lambda tree: serve(tree, place, threads),
            "import": lambda tree: wall(tree, threads, "-c", "import bertsmith"),
            "--help": lambda tree: wall(tree, threads, "-m", "bertsmith", "--help"),
            "cold embed": lambda tree: wall(
                *(tree, threads, "-m", "bertsmith", "embed", MODEL, str(place / "one.txt")),
                *("--precision", "fp32", "--out", str(place / f"{time.time_ns()}.npy")),
            ),
        }
        print(json.dumps(machine_facts(threads)))
        print(f"{'':14}{'there':>12}{'here':>12}{'ratio':>8}")
        for name, measure in work.items():
            if options.only and name not in options.only:
                continue
            times: dict[Path, list[float]] = {options.other: [], HERE: []}
            for _ in range(options.rounds):
                for tree, taken in times.items():
                    taken.append(measure(tree))
            there, here = min(times[options.other]), min(times[HERE])
            print(f"{name:14}{there:12.6f}{here:12.6f}{here / there:8.3f}", flush=True)


if __name__ == "__main__":
    main()
