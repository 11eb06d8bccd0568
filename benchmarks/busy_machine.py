"""Two threads on a busy machine: how long OpenMP should spin before a waiting thread sleeps.

A process for each spin count stays alive and takes turns with the others, first alone, then next to
competing processes (one per core). Prints milliseconds and ratios; a ratio above 1 is slower.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from machine import machine_facts

SPIN_VARIABLES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")
DEFAULT = "libgomp's own"  # 300,000 rounds, some milliseconds
COMPETITOR = "while True: pass"
SECONDS = 0.4  # of one setting's turn on one job
JOBS = ("feed-forward", "encoder, 1 text", "encoder, 32 texts", "training step")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--counts", default="0,1000,2000,5000,20000,100000")
    parser.add_argument("--out", type=Path, default=Path("bench_out/busy_machine.json"))
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        return serve(options.child)

    facts = machine_facts(options.threads)
    print(f"{facts['cpu']}, {facts['cores']} cores, load {facts['load_at_start']} at the start")
    settings: dict[str, tuple[str | None, int]] = {"one thread": (None, 1), DEFAULT: (None, 0)}
    settings |= {f"spin {count}": (count, 0) for count in options.counts.split(",")}
    sides = {
        name: start(spin, threads or options.threads) for name, (spin, threads) in settings.items()
    }
    results = {}
    for competitors in (0, int(str(facts["cores"]))):
        noise = [subprocess.Popen([sys.executable, "-c", COMPETITOR]) for _ in range(competitors)]
        try:
            results[f"{competitors} competing"] = measure(sides, options.rounds, idle=not noise)
        finally:
            for process in noise:
                process.kill()
                process.wait()
        show(f"{competitors} competing processes", results[f"{competitors} competing"])
    for side in sides.values():
        side.communicate()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    record = {"machine": facts, "milliseconds": results}
    options.out.write_text(json.dumps(record, indent=2) + "\n")
    return 0


def start(spin: str | None, threads: int) -> subprocess.Popen[str]:
    """A process with that spin count, waiting for the name of a job on its standard input."""
    variables = {name: value for name, value in os.environ.items() if name not in SPIN_VARIABLES}
    if spin is not None:
        variables["GOMP_SPINCOUNT"] = spin
    return subprocess.Popen(
        [sys.executable, __file__, "--child", str(threads)],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def measure(
    sides: dict[str, subprocess.Popen[str]], rounds: int, *, idle: bool
) -> dict[str, dict[str, float]]:
    """Milliseconds by job and setting: best round when alone, median round when busy."""
    times: dict[str, dict[str, list[float]]] = {job: {name: [] for name in sides} for job in JOBS}
    for _ in range(rounds):
        for job in JOBS:
            for name, side in sides.items():
                times[job][name].append(turn(side, job))
    pick = min if idle else statistics.median
    return {
        job: {name: 1e3 * pick(values) for name, values in by_name.items()}
        for job, by_name in times.items()
    }


def turn(side: subprocess.Popen[str], job: str) -> float:
    """Median seconds of a job in one process."""
    assert side.stdin is not None
    assert side.stdout is not None
    side.stdin.write(f"{job}\n")
    side.stdin.flush()
    return float(side.stdout.readline())


def show(title: str, results: dict[str, dict[str, float]]) -> None:
    print(f"\n{title}: ms (ratio to one thread)")
    for job, by_name in results.items():
        print(f"  {job}")
        for name, value in by_name.items():
            print(f"    {name:<16}{value:9.2f}  {value / by_name['one thread']:6.2f}")
    sys.stdout.flush()


def serve(threads: int) -> int:
    """The child: the median seconds of each job named on standard input."""
    import torch

    torch.set_num_threads(threads)
    jobs = dict(zip(JOBS, build_jobs(), strict=True))
    for run in jobs.values():
        run()
    for line in sys.stdin:
        run = jobs[line.strip()]
        seconds: list[float] = []
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end or len(seconds) < 3:
            before = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - before)
        print(statistics.median(seconds), flush=True)
    return 0


def build_jobs() -> list[Callable[[], object]]:
    """The jobs, in the order of JOBS: few large products, many small ones, both, and gradients."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    block = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
    rows = torch.randn(512, 256)
    layer = nn.TransformerEncoderLayer(384, 12, 1536, 0.0, "gelu", batch_first=True)
    encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).eval()
    one, many = torch.randn(1, 16, 384), torch.randn(32, 32, 384)
    tuned = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train()
    optimizer = torch.optim.AdamW(tuned.parameters(), lr=1e-4)

    def inference(module: nn.Module, inputs: torch.Tensor) -> Callable[[], object]:
        def run() -> object:
            with torch.inference_mode():
                return module(inputs)

        return run

    def step() -> object:
        optimizer.zero_grad()
        tuned(many).square().mean().backward()
        return optimizer.step()

    return [inference(block, rows), inference(encoder, one), inference(encoder, many), step]


if __name__ == "__main__":
    sys.exit(main())
