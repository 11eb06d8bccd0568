"""Exchange: one request on its way through the service, and what handlers ask of the models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.served_model import Caller, ServedModel, Tokens

if TYPE_CHECKING:
    from bertsmith.serve.service import Service

TextOrIds = str | list[int]


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
        most = most or self.service.limits.texts
        if not texts:
            raise RequestError(FailureKind.EMPTY, f"{name} must not be empty", field=name)
        if len(texts) > most:
            raise RequestError(
                FailureKind.TOO_LARGE,
                f"{len(texts):,} texts; at most {most:,} are taken per request",
                field=name,
            )
        found = [self._text(text, number, name) for number, text in enumerate(texts)]
        self.texts += len(found)
        self.characters += sum(map(len, found))
        return found

    def _text(self, text: TextOrIds, number: int, name: str) -> str:
        if isinstance(text, str):
            if not text.strip():
                raise RequestError(
                    FailureKind.EMPTY, f"{name}[{number}] must not be empty", field=name
                )
            return text
        vocabulary = self.served.tokenizer.vocab_size
        if not text or not all(0 <= one < vocabulary for one in text):
            raise RequestError(
                FailureKind.TOKENS,
                f"{name}[{number}] must hold token ids from 0 to {vocabulary - 1}",
                field=name,
            )
        return self.served.tokenizer.decode(text)

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
        tokens, skipped = self.served.tokenize(texts, prompt)
        self.account(tokens, truncate)
        self.stages["tokenization"] = time.perf_counter() - start
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
        rows: Sequence[dict[str, Any]],
        texts: Sequence[Sequence[str]],
        *,
        truncate: bool | None = None,
    ) -> list[dict[str, Any]]:
        """Results of JSON rows; `texts` are those of each row, for their number of tokens."""
        start = time.perf_counter()
        flat = [text for row in texts for text in row]
        ids, _ = self.served.tokenizer.fast_ids(flat, None) if flat else ([], [])
        sizes = iter(len(one) for one in ids)
        counted = [sum(next(sizes) for _ in row) for row in texts]
        self.tokens += sum(counted)
        self.stages["tokenization"] = time.perf_counter() - start
        start = time.perf_counter()
        pairs = list(zip(rows, counted, strict=True))
        results = await self.served.call(operation, pairs, self.caller)
        self._computed(time.perf_counter() - start)
        for number, result in enumerate(results):
            if "error" in result:
                raise RequestError(FailureKind.INVALID, f"row {number}: {result['error']}")
        self.cut += sum(int(result.get("tokens_cut", 0)) for result in results)
        self._check_cut(truncate)
        return results

    def _computed(self, seconds: float) -> None:
        """Divide the time of a result into waiting and computing."""
        self.stages["queue"] = self.caller.queued
        self.stages["inference"] = max(0.0, seconds - self.caller.queued)

    def account(self, tokens: Sequence[Tokens], truncate: bool | None) -> None:
        """Count tokens, and refuse cut ones where that was asked for."""
        self.tokens += sum(len(one.ids) for one in tokens)
        self.cut += sum(one.cut for one in tokens)
        self._check_cut(truncate)

    def _check_cut(self, truncate: bool | None) -> None:
        strict = self.service.strict if truncate is None else not truncate
        if strict and self.cut:
            raise RequestError(
                FailureKind.TOO_LARGE,
                f"{self.cut:,} tokens do not fit the {self.served.longest} of this model: send "
                "shorter texts, or let them be truncated",
            )
