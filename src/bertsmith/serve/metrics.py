"""Metrics in Prometheus' form, under the names of text-embeddings-inference where it has them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_TOKENS = (1, 4, 16, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192)
STAGES = ("receive", "tokenization", "queue", "inference", "write")


class Metrics:
    """Counts of one service. Labels come from tables of the program, never from a request."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "te_request_count", "Requests", ("route", "status"), registry=self.registry
        )
        self._failures = Counter(
            "te_request_failure", "Failed requests", ("err",), registry=self.registry
        )
        self._durations = Histogram(
            "te_request_duration",
            "Seconds per request",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._stages = Histogram(
            "te_request_stage_duration",
            "Seconds per request and stage",
            ("stage",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._batches = Histogram(
            "te_batch_next_tokens",
            "Tokens per batch",
            ("model",),
            buckets=_TOKENS,
            registry=self.registry,
        )
        self._texts = Histogram(
            "te_batch_next_size",
            "Texts per batch",
            ("model",),
            buckets=_TOKENS,
            registry=self.registry,
        )
        self._queue = Gauge("te_queue_size", "Waiting texts", ("model",), registry=self.registry)
        self._restarts = Gauge(
            "bertsmith_worker_restarts", "Restarts of a worker", ("model",), registry=self.registry
        )
        self._lost_lines = Gauge(
            "bertsmith_log_lines_lost",
            "Requests that are missing in the log",
            registry=self.registry,
        )

    def request(self, route: str, status: int, seconds: float) -> None:
        """One request was answered."""
        self._requests.labels(route, str(status)).inc()
        self._durations.labels(route).observe(seconds)

    def failure(self, kind: str) -> None:
        """One request failed."""
        self._failures.labels(kind).inc()

    def stage(self, stage: str, seconds: float) -> None:
        """One stage of a request took so long."""
        self._stages.labels(stage).observe(seconds)

    def batch(self, model: str, texts: int, tokens: int) -> None:
        """A batch goes to the worker."""
        self._batches.labels(model).observe(tokens)
        self._texts.labels(model).observe(texts)

    def state(self, model: str, waiting: int, restarts: int) -> None:
        """The queue and the worker of a model as they are now."""
        self._queue.labels(model).set(waiting)
        self._restarts.labels(model).set(restarts)

    def lost_lines(self, count: int) -> None:
        """So many lines of the log could not be written until now."""
        self._lost_lines.set(count)

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self.registry)
