"""Exchange: one request on its way through the service, and what handlers ask of the models."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.routes import PartsOfAnswer
from bertsmith.serve.served_model import CutText, ServedModel, Tokens
from bertsmith.serve.shares import Caller

if TYPE_CHECKING:
    from bertsmith.serve.service import Service

TextOrIds = str | list[int]
Result = TypeVar("Result")
EVERY_TOKEN_BATCHES = 4  # of tokens whose vectors a request may ask for
MOST_IDS = 20_000  # of a text that is given by its token ids
CUT = frozenset({"predict", "search"})  # operations that make sense of the beginning of a text


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A request under work; `stages` are seconds by stage, `cut` tokens were truncated."""

    service: Service
    caller: Caller
    request_id: str
    model: ServedModel | None = None
    stages: dict[str, float] = field(default_factory=dict)
    texts: int = 0
    tokens: int = 0
    characters: int = 0
    cut: int = 0

    @property
    def served(self) -> ServedModel:
        """The model that answers."""
        if self.model is None:
            raise RequestError(FailureKind.NOT_FOUND, "no model answers this route")
        return self.model

    def checked_texts(
        self, texts: Sequence[TextOrIds], *, most: int | None = None, name: str = "inputs"
    ) -> list[str]:
        """Texts of a request, ids decoded; none, too many or blank ones are refused."""
        self._check_count(texts, most or self.service.limits.texts, name)
        found = [self._text(text, number, name) for number, text in enumerate(texts)]
        self.texts += len(found)
        self.characters += sum(map(len, found))
        return found

    def check_ids(self, rows: Sequence[Sequence[int]], *, name: str) -> None:
        """Refuse rows of token ids that are none, too many, empty or not in the vocabulary."""
        self._check_count(rows, self.service.limits.texts, name)
        for number, ids in enumerate(rows):
            self._check_row(ids, f"{name}[{number}]", name)
        self.texts += len(rows)

    def _check_row(self, ids: Sequence[int], place: str, name: str) -> None:
        if len(ids) > MOST_IDS:
            raise RequestError(
                FailureKind.TOO_LARGE,
                f"{place} has {len(ids):,} token ids; at most {MOST_IDS:,} are read",
                field=name,
            )
        vocabulary = self.served.tokenizer.vocab_size
        if not ids or min(ids) < 0 or max(ids) >= vocabulary:
            raise RequestError(
                FailureKind.TOKENS,
                f"{place} must hold token ids from 0 to {vocabulary - 1}",
                field=name,
            )

    def _check_count(self, rows: Sequence[Any], most: int, name: str) -> None:
        if not rows:
            raise RequestError(FailureKind.EMPTY, f"{name} must not be empty", field=name)
        if len(rows) > most:
            raise RequestError(
                FailureKind.TOO_LARGE,
                f"{len(rows):,} texts; at most {most:,} are taken per request",
                field=name,
            )

    def _text(self, text: TextOrIds, number: int, name: str) -> str:
        if isinstance(text, str):
            if not text.strip():
                raise RequestError(
                    FailureKind.EMPTY, f"{name}[{number}] must not be empty", field=name
                )
            return text
        self._check_row(text, f"{name}[{number}]", name)
        return self.served.tokenizer.decode(text)

    async def read_apart(self, size: int, function: Callable[[], Result]) -> Result:
        """The result of work on `size` characters, which nobody else waits for."""
        start = time.perf_counter()
        found = await self.served.long_texts.run(size, self.caller, function)
        self.stages["tokenization"] = time.perf_counter() - start
        return found

    async def vectors(
        self,
        texts: Sequence[str],
        *,
        prompt: str | None = None,
        normalize: bool | None = None,
        truncate: bool | None = None,
        every_token: bool = False,
    ) -> list[Any]:
        """Vectors (D,) of texts, or (L, D) of every token, in their order."""
        start = time.perf_counter()
        self.served.queue.check_room(self.caller.client)
        tokens, skipped = await self.served.tokenize(texts, self.caller, prompt)
        self.account(tokens, truncate)
        self.stages["tokenization"] = time.perf_counter() - start
        if every_token:
            self._check_every_token(sum(len(one.ids) for one in tokens))
        options: dict[str, Any] = {"all": True} if every_token else {"normalize": normalize}
        if skipped and not every_token:
            options["skipped"] = skipped
        start = time.perf_counter()
        found = await self.served.vectors(tokens, options, self.caller)
        self._computed(time.perf_counter() - start)
        return found

    async def call(
        self,
        operation: str,
        rows: Sequence[Sequence[str]],
        options: Mapping[str, Any] | None = None,
        *,
        truncate: bool | None = None,
        readings: int = 1,
    ) -> list[dict[str, Any]]:
        """Results of rows of texts; a result has `tokens_cut` where a text lost its end.

        The first text of a row is read `readings` times.
        """
        given = await self._within(operation, rows)
        self._check_cut(truncate)
        start = time.perf_counter()
        counted = [(readings - 1) * row[0].tokens + sum(one.tokens for one in row) for row in given]
        self.tokens += sum(counted)
        work = [{**(options or {}), "texts": [one.text for one in row]} for row in given]
        results = await self.served.call(
            operation, list(zip(work, counted, strict=True)), self.caller
        )
        self._computed(time.perf_counter() - start)
        for number, (row, result) in enumerate(zip(given, results, strict=True)):
            if "error" in result:
                raise RequestError(FailureKind.INVALID, f"row {number}: {result['error']}")
            self.cut += int(result.get("tokens_cut", 0))
            if before := sum(one.cut for one in row):
                result["tokens_cut"] = before + int(result.get("tokens_cut", 0))
        self._check_cut(truncate)
        return results

    async def parts(self, operation: str, text: str, options: Mapping[str, Any]) -> PartsOfAnswer:
        """The parts of a result on one text, which is not cut."""
        ((one,),) = await self._within(operation, [[text]])
        self.tokens += one.tokens
        return self.served.stream(operation, {**options, "texts": [text]}, self.caller)

    async def apart(self, operation: str, text: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """The same at once; not in a batch, since it may take as long as many batches."""
        start = time.perf_counter()
        parts = await self.parts(operation, text, options)
        try:
            async with asyncio.timeout_at(self.caller.deadline):
                found = [part async for part in parts]
        except TimeoutError:
            raise RequestError(
                FailureKind.DEADLINE, "the answer was not complete before its deadline"
            ) from None
        finally:
            await parts.aclose()
        self._computed(time.perf_counter() - start)
        if "error" in found[-1]:
            raise RequestError(FailureKind.INVALID, f"row 0: {found[-1]['error']}")
        return found[-1]

    async def _within(self, operation: str, rows: Sequence[Sequence[str]]) -> list[list[CutText]]:
        start = time.perf_counter()
        self.served.queue.check_room(self.caller.client)
        flat = [text for row in rows for text in row]
        found = iter(await self.served.within(flat, self.caller, may_cut=operation in CUT))
        given = [[next(found) for _ in row] for row in rows]
        self.cut += sum(one.cut for row in given for one in row)
        self.stages["tokenization"] = time.perf_counter() - start
        return given

    def _computed(self, seconds: float) -> None:
        """Divide the time of a result into waiting and computing."""
        self.stages["queue"] = self.caller.queued
        self.stages["inference"] = max(0.0, seconds - self.caller.queued)

    def account(self, tokens: Sequence[Tokens], truncate: bool | None) -> None:
        """Count tokens, and refuse cut ones where that was asked for."""
        self.tokens += sum(len(one.ids) for one in tokens)
        self.cut += sum(one.cut for one in tokens)
        self._check_cut(truncate)

    def _check_every_token(self, tokens: int) -> None:
        """An answer with a vector per token is large: some kilobytes each."""
        most = EVERY_TOKEN_BATCHES * self.service.limits.batch_tokens
        if tokens > most:
            raise RequestError(
                FailureKind.TOO_LARGE,
                f"{tokens:,} tokens; vectors of at most {most:,} are returned per request",
                field="inputs",
            )

    def _check_cut(self, truncate: bool | None) -> None:
        strict = self.service.strict if truncate is None else not truncate
        if strict and self.cut:
            raise RequestError(
                FailureKind.TOO_LARGE,
                f"{self.cut:,} tokens do not fit the {self.served.longest} of this model: send "
                "shorter texts, or let them be truncated",
            )
