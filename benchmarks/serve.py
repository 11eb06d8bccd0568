"""Our service against offline encoding and against FastAPI with sentence-transformers.

Both servers run with the same threads and get the same texts of mixed lengths from one generator,
`bertsmith serve bench`'s, in turn. Generator and server share the cores: the generator's CPU time
is taken off, so that a rate is texts per second of the machine that was left.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertsmith.folders.resolve import resolve
from bertsmith.serve.clients.load import LoadPlan, generate_load
from machine import machine_facts
from material import cut_texts

HERE = Path(__file__).parent
TICKS = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """A process and all that it started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += tree(int(child))
    return found


def cpu(pids: list[int]) -> float:
    """Seconds of CPU time."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


@contextlib.contextmanager
def server(command: list[str], threads: int) -> Iterator[tuple[str, int]]:
    """A server that is ready, as its address and its process id; {port} is filled in."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    filled = [part.format(port=port) for part in command]
    process = subprocess.Popen([sys.executable, *filled], env=variables, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(f"{url}/models", timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                if process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"did not start: {' '.join(filled)}")
                time.sleep(0.2)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(60)


def loaded(
    url: str, pids: list[int], texts: list[str], *, each: int, clients: int, seconds: float
) -> dict[str, Any]:
    """One run of the generator, with the CPU time of the server."""
    generate_load(
        LoadPlan(url=url, clients=clients, seconds=3, texts=texts, texts_per_request=each)
    )
    before = cpu(pids)
    report = generate_load(
        LoadPlan(url=url, clients=clients, seconds=seconds, texts=texts, texts_per_request=each)
    )
    used = cpu(pids) - before
    found = report.to_json()
    cores = len(os.sched_getaffinity(0))
    good = report.statuses["200"]
    left = 1 - found["own_cpu_share"] / cores
    return found | {
        "texts_per_second_of_what_is_left": round(found["texts_per_second"] / left, 2),
        "server_cpu_ms_per_text": round(1e3 * used / max(1, good * each), 4),
        "server_cpu_ms_per_request": round(1e3 * used / max(1, good), 4),
        "p99_over_p50": round(found["latency_ms"]["p99"] / found["latency_ms"]["p50"], 2),
    }


OFFLINE = """
import json, resource, sys, time
from bertsmith.runtime.loading import load
job = json.loads(sys.stdin.read())
with load(job["folder"], precision=job["precision"], threads=job["threads"]) as model:
    model.encode(job["texts"])
    used = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    turns, cpu, start = 0, used(), time.perf_counter()
    while time.perf_counter() - start < job["seconds"]:
        model.encode(job["texts"]); turns += 1
    spent, cpu = time.perf_counter() - start, used() - cpu
    n = turns * len(job["texts"])
    print(json.dumps({"texts_per_second": round(n / spent, 2), "cpu_ms_per_text":
        round(1e3 * cpu / n, 4), "engine": model.engine}))
"""


def offline(folder: str, texts: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """`embed` of the same texts, in a process of its own."""
    job = {
        "folder": folder,
        "precision": given.precision,
        "threads": given.threads,
        "texts": texts,
        "seconds": given.seconds / 2,
    }
    variables = os.environ | {"OMP_NUM_THREADS": str(given.threads)}
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=True,
        env=variables,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--texts", type=int, default=512)
    given = parser.parse_args()
    folder = str(resolve(given.model))
    texts = cut_texts("mixed", given.texts)
    plan = {"clients": given.clients, "seconds": given.seconds}
    print(json.dumps(machine_facts(given.threads)))
    result: dict[str, Any] = {"offline": [offline(folder, texts, given)]}
    ours = [
        *("-m", "bertsmith", "serve", f"model={folder}", "--port", "{port}", "--quiet"),
        *("--threads", str(given.threads), "--precision", given.precision),
    ]
    peer = [str(HERE / "serve_peer.py"), folder, "--port", "{port}"]
    with server(ours, given.threads) as one, server(peer, given.threads) as other:
        for each in (1, 8):
            for name, (url, pid) in (("ours", one), ("peer", other)):
                found = loaded(url, tree(pid), texts, each=each, **plan)
                result[f"{name}, {each} per request"] = found
                print(json.dumps({f"{name}, {each} per request": found}), flush=True)
    result["offline"].append(offline(folder, texts, given))
    with server([str(HERE / "serve_front.py"), folder, "{port}"], 1) as (url, pid):
        # The worker is idle, and its process is not the front's.
        short = cut_texts("short", given.texts)
        found = loaded(url, [pid], short, each=1, clients=given.clients, seconds=10)
        result["front alone, 1 per request"] = found
    print(json.dumps({"offline": result["offline"]}))
    summary(result)


def summary(result: dict[str, Any]) -> None:
    """The figures that the documentation has."""
    rate = sum(one["texts_per_second"] for one in result["offline"]) / len(result["offline"])
    spent = sum(one["cpu_ms_per_text"] for one in result["offline"]) / len(result["offline"])
    front = result["front alone, 1 per request"]
    shown: dict[str, Any] = {
        "engine": result["offline"][0]["engine"],
        "front_cpu_ms_per_request": front["server_cpu_ms_per_request"],
    }
    for each in (1, 8):
        ours, peer = (result[f"{name}, {each} per request"] for name in ("ours", "peer"))
        shown[f"{each} per request"] = {
            "share_of_offline": round(ours["texts_per_second_of_what_is_left"] / rate, 3),
            "share_of_offline_by_cpu": round(spent / ours["server_cpu_ms_per_text"], 3),
            "times_the_peer": round(
                ours["texts_per_second_of_what_is_left"] / peer["texts_per_second_of_what_is_left"],
                2,
            ),
            "times_the_peer_by_cpu": round(
                peer["server_cpu_ms_per_text"] / ours["server_cpu_ms_per_text"], 2
            ),
            "p50_ms": ours["latency_ms"]["p50"],
            "p99_ms": ours["latency_ms"]["p99"],
            "p99_over_p50": ours["p99_over_p50"],
            "statuses": ours["statuses"],
        }
    print(json.dumps(shown, indent=1))


if __name__ == "__main__":
    main()
