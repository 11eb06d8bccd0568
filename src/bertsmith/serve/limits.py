"""Limits of the service: sizes, times and counts, checked together before anything starts."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from bertsmith.config import Count, Settings

Seconds = Annotated[float, Field(gt=0, le=86_400)]
QUEUE_PART = 0.6  # of the deadline


class Limits(Settings):
    """What one request, one client and all of them together may use."""

    body_bytes: Annotated[int, Field(ge=1_024)] = 2_000_000
    total_bytes: Annotated[int, Field(ge=2_048)] = 128_000_000  # of all bodies at work
    header_bytes: Annotated[int, Field(ge=1_024)] = 16_384
    header_fields: Count = 64
    head_seconds: Seconds = 10.0  # to receive the request line and all headers
    body_seconds: Seconds = 10.0  # to receive the body
    texts: Count = 32  # per request
    openai_texts: Count = 2_048  # per request of OpenAI's form
    text_tokens: Count | None = None  # per text; None: as many as the model has positions
    document_tokens: Count = 4_096  # per text that is read in windows (tags, answers)
    json_depth: Count = 32
    batch_tokens: Count = 2_048  # fewer where so many would take long
    queue_tokens: Count | None = None  # that may wait; None: `queue_seconds` of the measured speed
    connections: Count = 1_024
    deadline: Seconds = 30.0  # of a request, from its first byte to its answer
    drain: Seconds = 30.0  # after SIGTERM
    keep_alive: Seconds = 75.0  # of an idle connection

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.texts > self.openai_texts:
            raise ValueError(
                f"texts ({self.texts}) is above openai_texts ({self.openai_texts}): raise "
                "openai_texts, the limit of the form with the larger batches"
            )
        if self.text_tokens is not None and self.text_tokens > self.batch_tokens:
            raise ValueError(
                f"a text of text_tokens ({self.text_tokens}) does not fit a batch of batch_tokens "
                f"({self.batch_tokens}): raise batch_tokens or lower text_tokens"
            )
        if self.queue_tokens is not None and self.queue_tokens < self.batch_tokens:
            raise ValueError(
                f"queue_tokens ({self.queue_tokens}) is below batch_tokens ({self.batch_tokens}): "
                "full batches could never be made; raise queue_tokens"
            )
        if self.total_bytes < 2 * self.body_bytes:
            raise ValueError(
                f"total_bytes ({self.total_bytes:,}) has no room for two requests of body_bytes "
                f"({self.body_bytes:,}): raise total_bytes or lower body_bytes"
            )
        if self.drain < self.deadline:
            raise ValueError(
                f"drain ({self.drain:g} s) is shorter than deadline ({self.deadline:g} s): "
                "accepted requests could be cut off at the end; raise drain or lower deadline"
            )
        return self

    @property
    def queue_seconds(self) -> float:
        """How long a request may wait: what it takes to compute, and a slower moment, come on top.

        A request that waits for its whole deadline would be accepted and never answered.
        """
        return QUEUE_PART * self.deadline

    def lines(self) -> list[str]:
        """One line per limit, for the start of the service."""
        shown = {
            "body": f"{self.body_bytes:,} bytes, {self.total_bytes:,} of all requests at work",
            "headers": f"{self.header_bytes:,} bytes, {self.header_fields} fields",
            "time to receive": f"{self.head_seconds:g} s head, {self.body_seconds:g} s body",
            "texts per request": f"{self.texts:,}, OpenAI's form {self.openai_texts:,}",
            "tokens per text": f"{self.text_tokens:,}"
            if self.text_tokens
            else f"the model's; {self.document_tokens:,} where it reads in windows",
            "JSON depth": f"{self.json_depth}",
            "tokens per batch": f"at most {self.batch_tokens:,}",
            "waiting tokens": f"{self.queue_tokens:,}"
            if self.queue_tokens
            else f"{self.queue_seconds:g} s of the measured speed",
            "connections": f"{self.connections:,}, idle ones for {self.keep_alive:g} s",
            "deadline": f"{self.deadline:g} s per request, {self.drain:g} s to drain",
        }
        width = max(map(len, shown))
        return [f"{name:<{width}}  {value}" for name, value in shown.items()]
