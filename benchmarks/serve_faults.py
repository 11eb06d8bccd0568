"""The service under overload, greedy and slow clients, kills and signals, in figures.

    python benchmarks/serve_faults.py [answers overload fairness trickle kill terminate soak]
                                      [--seconds 20]

The model is all-MiniLM-L6-v2 in fp32; every part starts a service of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import signal
import socket
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from machine import machine_facts
from material import cut_texts
from serve import tree
from serve_side import (
    CORES,
    MODEL,
    SHORT,
    Asker,
    Side,
    cpu,
    ours,
    percentile,
    started,
    times_during,
)

LONG_TEXTS = ["one word after another makes a long text of many tokens " * 60] * 32


def answers(seconds: float) -> dict[str, Any]:
    """5,000 mixed requests of 64 clients: each gets its own answer."""
    import bertsmith

    texts = [f"{number}: {text}" for number, text in enumerate(cut_texts("mixed", 5_000))]
    with bertsmith.load(MODEL, precision="fp32") as model:
        wanted = model.encode(texts, normalize=True)
    with started(ours()) as side:
        local = threading.local()

        def one(number: int) -> tuple[int, float]:
            if not hasattr(local, "asker"):
                local.asker = Asker(side.url)
            status, value, _ = local.asker.ask(texts[number])
            if status != 200:
                return status, 0.0
            return status, float(np.abs(np.array(value[0]) - wanted[number]).max())

        with ThreadPoolExecutor(64) as threads:
            found = list(threads.map(one, range(len(texts))))
    return {
        "requests": len(found),
        "statuses": {s: sum(one[0] == s for one in found) for s in {one[0] for one in found}},
        "largest_difference": max(one[1] for one in found),
    }


def load(side: Side, **plan: Any) -> dict[str, Any]:
    from bertsmith.serve.clients.load import LoadPlan, generate_load

    return generate_load(LoadPlan(url=side.url, timeout=90, **plan)).to_json()


def overload(seconds: float) -> dict[str, Any]:
    """Ten times as many requests as can be answered, at random times."""
    texts = cut_texts("mixed", 1_000)
    with started(ours()) as side:
        load(side, clients=8, seconds=3, texts=texts, texts_per_request=16)
        peak = load(side, clients=32, seconds=seconds / 2, texts=texts, texts_per_request=16)
        rate = 10 * peak["requests_per_second"]
        over = load(side, rate=rate, seconds=seconds, texts=texts, texts_per_request=16)
        start = time.perf_counter()
        while (status := Asker(side.url).ask(SHORT)[0]) != 200:
            if time.perf_counter() - start > 60:
                break
        whole = time.perf_counter() - start
        after = load(side, clients=32, seconds=seconds / 4, texts=texts, texts_per_request=16)
    left = {name: CORES - found["own_cpu_share"] for name, found in (("p", peak), ("o", over))}
    return {
        "peak_requests_per_second": peak["requests_per_second"],
        "sent_per_second": round(rate, 1),
        "statuses": over["statuses"],
        "answered_per_second": over["requests_per_second"],
        "share_of_peak": round(over["requests_per_second"] / peak["requests_per_second"], 3),
        "share_of_peak_by_cpu_left": round(
            (over["requests_per_second"] / left["o"]) / (peak["requests_per_second"] / left["p"]), 3
        ),
        "refusal_ms": over["refusal_ms"],
        "latency_ms": over["latency_ms"],
        "first_answer_after_s": round(whole, 2),
        "last_status": status,
        "after_requests_per_second": after["requests_per_second"],
    }


def fairness(seconds: float) -> dict[str, Any]:
    """A client with 32 x 512 tokens flat out, another with short texts."""
    keys = Path(f"/tmp/serve-bench-keys-{os.getpid()}")
    keys.write_text("greedy-key-0123456789abcdef\nsmall-key-0123456789abcdef\n")
    try:
        with started([*ours(), "--keys", str(keys)]) as side:
            small = Asker(side.url, "small-key-0123456789abcdef")
            for _ in range(20):
                small.ask(SHORT)
            alone = [small.ask(SHORT)[2] for _ in range(100)]
            ended = threading.Event()
            answered: list[tuple[int, float]] = []

            def greedy() -> None:
                one = Asker(side.url, "greedy-key-0123456789abcdef")
                while not ended.is_set():
                    status, _, spent = one.ask(LONG_TEXTS)
                    answered.append((status, spent))

            threads = [threading.Thread(target=greedy) for _ in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(3)
            together = []
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                together.append(small.ask(SHORT)[2])
            ended.set()
            for thread in threads:
                thread.join()
            largest = small.info()["max_batch_tokens"]  # at the speed of this machine
    finally:
        keys.unlink()
    tokens = 32 * 256  # of a greedy request, as many as the model reads of each text
    good = [spent for status, spent in answered if status == 200]
    batch = statistics.median(good) / len(threads) * largest / tokens
    return {
        "greedy_statuses": {str(s): sum(o[0] == s for o in answered) for s, _ in answered},
        "alone_p95_ms": round(1e3 * percentile(alone, 0.95), 1),
        "together_p50_ms": round(1e3 * statistics.median(together), 1),
        "together_p95_ms": round(1e3 * percentile(together, 0.95), 1),
        "batch_tokens": largest,
        "one_batch_ms": round(1e3 * batch, 1),
        "allowed_ms": round(1e3 * (3 * percentile(alone, 0.95) + batch), 1),
        "requests": len(together),
    }


def trickle(seconds: float) -> dict[str, Any]:
    """200 connections that send a byte per second; how long they live, what others notice."""
    head = b"POST /embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    starts = [b"", head, head + b"content-length: 1000\r\n\r\n{"]
    with started(ours()) as side, contextlib.ExitStack() as stack:
        asker = Asker(side.url)
        for _ in range(20):
            asker.ask(SHORT)
        before = times_during(asker, 9.0)
        host, port = side.url.removeprefix("http://").split(":")
        slow = []
        for number in range(200):
            one = stack.enter_context(socket.create_connection((host, int(port))))
            one.sendall(starts[number % 3])
            slow.append(one)
        opened = time.perf_counter()
        stop = threading.Event()

        def drip() -> None:
            while not stop.wait(1.0):
                for one in slow:
                    with contextlib.suppress(OSError):
                        one.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        during = times_during(asker, 9.0)
        gone = []
        for one in slow:
            one.settimeout(max(0.1, 20 - (time.perf_counter() - opened)))
            with contextlib.suppress(OSError):
                while one.recv(4_096):
                    pass
            gone.append(time.perf_counter() - opened)
        stop.set()
        thread.join()
        after = times_during(asker, 9.0)
    found = {
        f"p95_{name}_ms": round(1e3 * percentile(times, 0.95), 2)
        for name, times in (("before", before), ("during", during), ("after", after))
    }
    alone = (found["p95_before_ms"] + found["p95_after_ms"]) / 2
    rise = found["p95_during_ms"] / alone - 1
    return {"gone_after_s": round(max(gone), 2), **found, "rise": round(rise, 3)}


def kill(seconds: float) -> dict[str, Any]:
    """A worker killed and one stopped under load, with a second model at work."""
    found: dict[str, Any] = {}
    for name, number in (("SIGKILL", signal.SIGKILL), ("SIGSTOP", signal.SIGSTOP)):
        with started([*ours(), f"other={MODEL}"]) as side:
            workers = [pid for pid in tree(side.process.pid) if pid != side.process.pid]
            seen: dict[str, list[tuple[float, int]]] = {"m": [], "other": []}
            stop = threading.Event()

            def asking(model: str, side: Side = side, seen: Any = seen, stop: Any = stop) -> None:
                asker = Asker(side.url)
                while not stop.is_set():
                    status, _, _ = asker.ask(SHORT, f"/models/{model}/embed")
                    seen[model].append((time.perf_counter(), status))

            threads = [threading.Thread(target=asking, args=(model,)) for model in seen]
            for thread in threads:
                thread.start()
            time.sleep(2)
            hit = time.perf_counter()
            os.kill(min(workers), number)  # that of the first model, which was started first
            time.sleep(12)
            stop.set()
            for thread in threads:
                thread.join()
            after = [(moment - hit, status) for moment, status in seen["m"] if moment > hit]
            first = next((moment for moment, status in after if status == 503), None)
            whole = next(
                (m for m, s in after if s == 200 and first is not None and m > first), None
            )
            found[name] = {
                "first_503_after_s": None if first is None else round(first, 3),
                "whole_again_after_s": None if whole is None else round(whole, 2),
                "statuses": sorted({status for _, status in after}),
                "other_model_statuses": sorted({status for _, status in seen["other"]}),
            }
    return found


def terminate(seconds: float) -> dict[str, Any]:
    """SIGTERM under load, 20 times."""
    codes, lost, times = [], 0, []
    for turn in range(20):
        with started(ours()) as side:
            statuses: list[int] = []
            accepted = threading.Event()

            def asking(side: Side = side, statuses: Any = statuses, go: Any = accepted) -> None:
                while True:
                    host = side.url.removeprefix("http://")
                    connection = http.client.HTTPConnection(host, timeout=60)
                    try:
                        connection.connect()
                    except OSError:
                        return
                    try:
                        body = json.dumps({"inputs": [SHORT] * 8})
                        kind = {"content-type": "application/json"}
                        connection.request("POST", "/embed", body, kind)
                        statuses.append(connection.getresponse().status)
                        go.set()
                    except (OSError, http.client.HTTPException):
                        statuses.append(0)
                    if statuses[-1] != 200:
                        return

            threads = [threading.Thread(target=asking) for _ in range(8)]
            for thread in threads:
                thread.start()
            accepted.wait(30)
            time.sleep(0.2 + 0.03 * turn)
            start = time.perf_counter()
            side.process.send_signal(signal.SIGTERM)
            codes.append(side.process.wait(60))
            times.append(time.perf_counter() - start)
            for thread in threads:
                thread.join()
            lost += statuses.count(0)
    return {
        "exit_codes": sorted(set(codes)),
        "unanswered": lost,
        "slowest_end_s": round(max(times), 2),
    }


def soak(seconds: float) -> dict[str, Any]:
    """70 % of the capacity for a long time: memory of the front and its worker, latency."""
    texts = cut_texts("mixed", 1_000)
    with started(ours()) as side:
        load(side, clients=8, seconds=5, texts=texts)
        peak = load(side, clients=32, seconds=15, texts=texts)
        rate = 0.7 * peak["requests_per_second"]
        length = min(30.0, seconds / 4)
        rounds = max(4, int(seconds // 30))
        used = cpu(side)
        memory: list[float] = []
        front: list[float] = []
        p99: list[float] = []
        descriptors: list[int] = []
        statuses: dict[str, int] = {}
        for _ in range(rounds):
            found = load(side, rate=rate, seconds=length, texts=texts)
            pages = [
                int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                for pid in tree(side.process.pid)
            ]
            memory.append(sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6)
            front.append(pages[0] * os.sysconf("SC_PAGE_SIZE") / 1e6)
            p99.append(found["latency_ms"]["p99"])
            descriptors.append(len(list(Path(f"/proc/{side.process.pid}/fd").iterdir())))
            for status, count in found["statuses"].items():
                statuses[status] = statuses.get(status, 0) + count
        settled = memory[min(4, len(memory) - 2) :]
        minutes = length / 60
        slope = float(np.polyfit(np.arange(len(settled)) * minutes, settled, 1)[0])
        used = cpu(side) - used
    return {
        "minutes": rounds * minutes,
        "front_cpu_s": round(used, 1),
        "rate": round(rate, 1),
        "memory_mb": [round(one, 1) for one in memory],
        "front_mb": [round(one, 1) for one in front],
        "slope_mb_per_minute": round(slope, 2),
        "p99_ms": p99,
        "descriptors": descriptors,
        "statuses": statuses,
    }


PARTS = {
    "answers": answers,
    "overload": overload,
    "fairness": fairness,
    "trickle": trickle,
    "kill": kill,
    "terminate": terminate,
    "soak": soak,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS)[:-1])
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    print(json.dumps(machine_facts(CORES)))
    for name in given.parts:
        print(name, json.dumps(PARTS[name](given.seconds), indent=1), flush=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
