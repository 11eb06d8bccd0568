"""The service among many: connections that pipeline, and a client that takes all it can.

    python benchmarks/serve_crowds.py [pipeline admission] [--seconds 30] [--clients 8]

The model is all-MiniLM-L6-v2 in fp32; every part starts a service of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from machine import machine_facts
from serve import tree
from serve_side import (
    CORES,
    SHORT,
    Asker,
    Side,
    cpu,
    cpu_of,
    ours,
    percentile,
    resident,
    started,
    times_during,
)

LIVE = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n"
GREEDY, SMALL = "127.0.0.1", "127.0.0.2"  # two addresses of this machine are two clients
LONG_TEXTS = ["one word after another makes a long text of many tokens " * 40] * 32


@contextlib.contextmanager
def pipelining(side: Side, clients: int) -> Iterator[list[int]]:
    """So many connections that send requests without waiting; the bytes of their answers."""
    host, port = side.url.removeprefix("http://").split(":")
    ended = threading.Event()
    answered = [0] * clients

    def one(number: int) -> None:
        with socket.create_connection((host, int(port))) as connection:
            connection.settimeout(0.2)

            def read() -> None:
                while not ended.is_set():
                    with contextlib.suppress(TimeoutError):
                        part = connection.recv(1 << 16)
                        answered[number] += len(part)
                        if not part:
                            return

            reader = threading.Thread(target=read)
            reader.start()
            block, at = LIVE * 1_000, 0
            while not ended.is_set():
                try:
                    at = (at + connection.send(block[at:])) % len(block)
                except TimeoutError:
                    continue
                except OSError:
                    break
            reader.join()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield answered
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def pipeline(seconds: float, clients: int) -> dict[str, Any]:
    """Connections that pipeline /health/live, and one that sends a short text at a time."""
    with started(ours()) as side:
        asker = Asker(side.url)
        times_during(asker, 3.0)
        alone = times_during(asker, seconds / 3)
        before, used = resident(side), cpu(side)
        with pipelining(side, clients) as answered:
            together = times_during(asker, seconds)
            during, used = resident(side), cpu(side) - used
        time.sleep(6.0)
        after = resident(side)
    p95 = percentile(alone, 0.95), percentile(together, 0.95)
    return {
        "connections": clients,
        "answered_mb": round(sum(answered) / 1e6, 1),
        "front_mb": {"before": round(before, 1), "during": round(during, 1), "after": after},
        "front_cpu_s": round(used, 1),
        "p50_ms": [round(1e3 * statistics.median(one), 2) for one in (alone, together)],
        "p95_ms": [round(1e3 * one, 2) for one in p95],
        "p95_times": round(p95[1] / p95[0], 2),
    }


class From:
    """A client of an address of this machine, with a connection of its own."""

    def __init__(self, url: str, address: str) -> None:
        host = url.removeprefix("http://")
        self._connection = http.client.HTTPConnection(host, timeout=90, source_address=(address, 0))

    def ask(self, body: bytes) -> tuple[int, float]:
        """Status and seconds."""
        start = time.perf_counter()
        self._connection.request("POST", "/embed", body, {"content-type": "application/json"})
        answer = self._connection.getresponse()
        answer.read()
        return answer.status, time.perf_counter() - start


def admission(seconds: float, clients: int) -> dict[str, Any]:
    """64 greedy connections of one address; another client sends one short text each .2 s."""
    short = json.dumps({"inputs": SHORT}).encode()
    with started(ours()) as side:
        small = From(side.url, SMALL)

        def paced(length: float) -> list[tuple[int, float]]:
            found = []
            end = time.perf_counter() + length
            while time.perf_counter() < end:
                found.append(small.ask(short))
                time.sleep(0.2)
            return found

        paced(3.0)
        alone = [spent for _, spent in paced(seconds / 3)]
        tree_before = {pid: cpu_of(pid) for pid in tree(side.process.pid)}
        # A process of its own: the threads of this one would wait for each other.
        command = [sys.executable, __file__, "greedy", side.url, "--clients", str(clients)]
        with subprocess.Popen(
            [*command, "--seconds", str(seconds + 5)], stdout=subprocess.PIPE, text=True
        ) as crowd:
            time.sleep(5.0)
            together = paced(seconds)
            assert crowd.stdout is not None
            greedy = json.loads(crowd.stdout.read())
        spent = {pid: round(cpu_of(pid) - was, 1) for pid, was in tree_before.items()}
        batch = Asker(side.url).info()["max_batch_tokens"]
    times = [spent for status, spent in together if status == 200]
    return {
        "greedy_connections": clients,
        "greedy_statuses": greedy,
        "cpu_s": list(spent.values()),
        "small_statuses": dict(Counter(status for status, _ in together)),
        "alone_p95_ms": round(1e3 * percentile(alone, 0.95), 1),
        "together_p50_ms": round(1e3 * statistics.median(times or [0.0]), 1),
        "together_p95_ms": round(1e3 * percentile(times or [0.0], 0.95), 1),
        "batch_tokens": batch,
    }


def take(url: str, seconds: float, clients: int) -> None:
    """So many connections, each with the next request as soon as one is answered."""
    long = json.dumps({"inputs": LONG_TEXTS}).encode()
    statuses: Counter[int] = Counter()
    end = time.perf_counter() + seconds

    def one() -> None:
        connection = From(url, GREEDY)
        while time.perf_counter() < end:
            statuses[connection.ask(long)[0]] += 1

    threads = [threading.Thread(target=one) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(statuses))


PARTS = {"pipeline": (pipeline, 8), "admission": (admission, 64)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=None)
    if sys.argv[1:2] == ["greedy"]:
        take(sys.argv[2], float(sys.argv[6]), int(sys.argv[4]))
        return
    given = parser.parse_args()
    print(json.dumps(machine_facts(CORES)))
    for name in given.parts:
        part, clients = PARTS[name]
        found = part(given.seconds, given.clients or clients)
        print(name, json.dumps(found, indent=1), flush=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
