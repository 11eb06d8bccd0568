"""A bounded load generator: requests for vectors from many clients, and how they were answered."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import ssl
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import count, cycle, islice
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.serve.clients.transport import MOST_BODY, Transport
from bertsmith.serve.http.addresses import is_loopback

TEXTS = (  # of mixed lengths, where no file is given
    "a short text",
    "今天天气很好",
    "The library closes at six, but the reading room stays open until nine in the evening.",
    "服务在一台普通的机器上运行,许多人同时发送长短不一的文本,每个请求都应当很快得到回答。",
    "One sentence of some length, with a few clauses, follows another, " * 4,
)
MOST_OPEN = 1_000  # requests of the open loop on their way
NOT_SENT, NO_ANSWER = "not sent", "no answer"
PROBE_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """What is sent: until `seconds` are over or `requests` were sent.

    `rate` None is the closed loop: each of `clients` sends one request after another. A rate is
    requests per second at random times, the open loop.
    """

    url: str
    key: str | None = None
    clients: int = 8
    rate: float | None = None
    seconds: float = 10.0
    requests: int = 1_000_000
    texts_per_request: int = 1
    texts: Sequence[str] = TEXTS
    timeout: float = 60.0
    seed: int = 0
    allow_remote: bool = False


@dataclass(slots=True)
class LoadReport:
    """What came back; `latencies` are seconds of requests that were answered with 200.

    `refusals` are those of requests that were refused with 429.
    """

    plan: LoadPlan
    statuses: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    refusals: list[float] = field(default_factory=list)
    seconds: float = 0.0
    own_cpu: float = 0.0  # seconds of CPU time of the generator

    def to_json(self) -> dict[str, Any]:
        """The figures: rates per second, latency in milliseconds."""
        good = self.statuses["200"]
        return {
            "requests": sum(self.statuses.values()),
            "seconds": round(self.seconds, 3),
            "requests_per_second": round(good / self.seconds, 2),
            "texts_per_second": round(good * self.plan.texts_per_request / self.seconds, 2),
            "latency_ms": _percentiles(self.latencies),
            "refusal_ms": _percentiles(self.refusals),
            "statuses": dict(sorted(self.statuses.items())),
            "own_cpu_share": round(self.own_cpu / self.seconds, 3),
        }


def generate_load(plan: LoadPlan) -> LoadReport:
    """Load a service and measure; a ServiceError where nothing answers at all."""
    transport = Transport(plan.url, key=plan.key, timeout=PROBE_SECONDS, retries=0)
    host = urlsplit(plan.url).hostname or ""
    if not (plan.allow_remote or is_loopback(host)):
        raise ConfigError(
            f"{host} is another machine: --allow-remote if its owner agreed to the load"
        )
    models = transport.ask("GET", "/models")
    transport.close()
    able = [name for name, info in models.items() if "embed" in info["abilities"]]
    if not able:
        raise ConfigError(f"{plan.url} has no model that makes vectors")
    return asyncio.run(_Generator(plan, able[0]).run())


class _Generator:
    """One run of a plan."""

    def __init__(self, plan: LoadPlan, model: str) -> None:
        self.plan = plan
        self.report = LoadReport(plan)
        parts = urlsplit(plan.url)
        self._host, self._secure = parts.hostname or "", parts.scheme == "https"
        self._port = parts.port or (443 if self._secure else 80)
        self._requests = cycle(self._bodies(model, parts.netloc, parts.path.rstrip("/")))
        self._left = count()
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    def _bodies(self, model: str, netloc: str, prefix: str) -> list[bytes]:
        """As many different requests as there are texts, made before the clock runs."""
        texts = cycle(self.plan.texts)
        key = f"authorization: Bearer {self.plan.key}\r\n" if self.plan.key else ""
        requests = []
        for _ in self.plan.texts:
            rows = list(islice(texts, self.plan.texts_per_request))
            value = {"input": rows, "model": model, "encoding_format": "base64"}
            body = json.dumps(value).encode()
            head = (
                f"POST {prefix}/v1/embeddings HTTP/1.1\r\nhost: {netloc}\r\n{key}"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            requests.append(head.encode("latin-1") + body)
        return requests

    async def run(self) -> LoadReport:
        """Send, wait for the last answers, measure."""
        before, start = _cpu(), time.perf_counter()
        self._end = start + self.plan.seconds
        work: Coroutine[Any, Any, Any] = self._open() if self.plan.rate else self._closed()
        await work
        self.report.seconds = max(time.perf_counter() - start, 1e-9)
        self.report.own_cpu = _cpu() - before
        for _, writer in self._idle:
            writer.close()
        return self.report

    def _may_send(self) -> bool:
        return time.perf_counter() < self._end and next(self._left) < self.plan.requests

    async def _closed(self) -> None:
        async def client() -> None:
            while self._may_send():
                if not await self._send(time.perf_counter()):
                    await asyncio.sleep(0.01)  # a service that is gone must not make this spin

        await asyncio.gather(*(client() for _ in range(self.plan.clients)))

    async def _open(self) -> None:
        draw = random.Random(self.plan.seed)  # noqa: S311 - arrival times are no secret
        rate = self.plan.rate or 1.0
        running: set[asyncio.Task[bool]] = set()
        planned = time.perf_counter()
        while self._may_send():
            planned += draw.expovariate(rate)
            await asyncio.sleep(max(0.0, planned - time.perf_counter()))
            if len(running) >= MOST_OPEN:
                self.report.statuses[NOT_SENT] += 1
                continue
            task = asyncio.create_task(self._send(planned))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running)

    async def _send(self, start: float) -> bool:
        """One request; whether it was answered."""
        try:
            async with asyncio.timeout(self.plan.timeout):
                status = await self._answered(next(self._requests))
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            self.report.statuses[NO_ANSWER] += 1  # time-outs are OSErrors, too
            return False
        self.report.statuses[status] += 1
        if status in ("200", "429"):
            times = self.report.latencies if status == "200" else self.report.refusals
            times.append(time.perf_counter() - start)
        return True

    async def _answered(self, request: bytes) -> str:
        """The status of a request, its answer read to the end."""
        if self._idle:
            reader, writer = self._idle.pop()
        else:
            context = ssl.create_default_context() if self._secure else None
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=context)
        try:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            length = int(fields.get("content-length", ""))
            if length > MOST_BODY:
                raise ValueError(length)
            await reader.readexactly(length)
            status = head.partition(" ")[2][:3]
        except BaseException:
            writer.close()
            raise
        if fields.get("connection") == "close":
            writer.close()
        else:
            self._idle.append((reader, writer))
        return status


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """In milliseconds; none of no seconds."""
    if not seconds:
        return {}
    values = np.percentile(np.array(seconds), (50, 95, 99))
    return {f"p{p}": round(1e3 * float(v), 2) for p, v in zip((50, 95, 99), values, strict=True)}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
