"""Wall time of fresh processes: load all-MiniLM-L6-v2 and embed one sentence; show the help."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

SENTENCE = "A man is eating a piece of bread."
OURS = f"""
import bertsmith
print(bertsmith.load("all-MiniLM-L6-v2").encode([{SENTENCE!r}])[0, :3])
"""
THEIRS = f"""
import sys
from sentence_transformers import SentenceTransformer
print(SentenceTransformer(sys.argv[1], device="cpu").encode([{SENTENCE!r}])[0, :3])
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("bench_out/cold_start.json"))
    options = parser.parse_args()

    from bertsmith.folders.resolve import resolve

    folder = str(resolve("all-MiniLM-L6-v2"))
    commands = {
        "sentence-transformers": [sys.executable, "-c", THEIRS, folder],
        "bertsmith": [sys.executable, "-c", OURS],
        "bertsmith --help": [sys.executable, "-m", "bertsmith", "--help"],
        "python alone": [sys.executable, "-c", "pass"],
    }
    best: dict[str, float] = {}
    for _ in range(options.rounds):
        for name, command in commands.items():
            best[name] = min(best.get(name, 1e9), seconds(command))
    for name, value in best.items():
        print(f"{name:<24}{value:8.3f} s")
    ratio = best["sentence-transformers"] / best["bertsmith"]
    print(f"a cold start is {ratio:.1f} times as fast")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"seconds": best, "ratio": ratio}, indent=2) + "\n")
    return 0 if ratio > 1 and best["bertsmith --help"] < 0.3 else 1


def seconds(command: list[str]) -> float:
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
