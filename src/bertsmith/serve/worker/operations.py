"""What a worker can do with its model: one operation per line of a table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from bertsmith.errors import BertsmithError, FolderError, TextError
from bertsmith.labeled.example import Example
from bertsmith.runtime.answers import ANSWERS, answerer_of
from bertsmith.runtime.engines.batches import row_batch
from bertsmith.runtime.generation.options import GenerationOptions
from bertsmith.runtime.loading import load
from bertsmith.runtime.selection import Precision
from bertsmith.search.index import Index
from bertsmith.serve.failures import without_paths
from bertsmith.serve.frames import Ids, Vectors
from bertsmith.serve.worker.columns import truncatable

JsonRow = dict[str, Any]
WARM_UP = "A short text that warms the model up. 用来预热的短文本。"
MEASURED_TOKENS = 4_096  # encoded at the start to measure the speed
SERVED = {  # by the ability of a model
    "tokenize": {"tokenize"},
    "embed": {"embed", "similarity", "rerank"},
    "encode": {"embed_all", "attention"},
    "fill": {"fill"},
    "generate": {"generate"},
    "correct": {"correct"},
}
PIPELINES = {  # by the pipeline of a task, as model hubs call it
    "text-classification": "classify",
    "token-classification": "tag",
    "question-answering": "answer",
    "multiple-choice": "choose",
}
ATTENTION_TOKENS = 128  # the longest text whose attention is shown


class Operations:
    """A loaded model, and an index of it where one is given."""

    def __init__(
        self,
        folder: Path,
        *,
        precision: Precision = "auto",
        threads: int | None = None,
        index: Path | None = None,
    ) -> None:
        self._folder = folder
        self.model = load(folder, precision=precision, threads=threads)
        self.index = None if index is None else Index.open(index, model=self.model)
        self._calls: dict[str, Callable[[JsonRow], JsonRow]] = {
            "fill": self._fill,
            "attention": self._attention,
            "search": self._search,
        }

    def describe(self) -> JsonRow:
        """What the front needs to know; runs the model once, so that a broken one never serves."""
        model = self.model
        warm = model.encode([WARM_UP, WARM_UP + WARM_UP])
        if warm.shape != (2, model.dimension) or not np.isfinite(warm).all():
            raise FolderError("the warm-up batch has no finite vectors: take another checkpoint")
        settings = model.settings
        return {
            "abilities": sorted(self._abilities()),
            "dimension": model.dimension,
            "max_length": model.max_length,
            "prompts": {name: model.prompt(name) for name in settings.prompts},
            "default_prompt": settings.default_prompt,
            "lowercase": settings.lowercase,
            "normalized": settings.normalize,
            "truncatable": truncatable(self._folder, settings.dense),
            "similarity": settings.similarity,
            "pooling": "+".join(settings.pooling),
            "engine": model.engine,
            "dtype": "bfloat16" if "bf16" in model.engine else "float32",
            "tokens_per_second": self._speed(),
            "labels": list(self._labels()),
            "task": model.predictor.task.name if "predict" in model.abilities else None,
            "texts": model.predictor.texts if "predict" in model.abilities else 0,
            "ranks_pairs": self._ranks_pairs(),
        }

    def rows(self, texts: list[Ids], options: Mapping[str, Any]) -> Vectors:
        """Vectors of texts given by their ids: -> (B, D), or of all tokens (T, D)."""
        if options.get("all"):
            host = self.model.host
            return np.asarray(host.hidden(row_batch(range(len(texts)), texts)).float().cpu())
        return self.model.encode_ids(
            texts, normalize=options.get("normalize"), skipped=int(options.get("skipped", 0))
        )

    def call(self, operation: str, rows: list[JsonRow]) -> list[JsonRow]:
        """The result of each row; a row that is refused has {"error": message}."""
        if operation in ANSWERS:
            return self._answers(operation, rows)
        return [_answered(self._calls[operation], row) for row in rows]

    def stream(self, operation: str, row: JsonRow) -> Iterator[JsonRow]:
        """The parts of a result, as they become certain."""
        if operation != "generate":
            raise TextError(f"the operation {operation!r} does not come in parts")
        if not row["stream"]:
            yield self._answers(operation, [row])[0]
            return
        for piece in self.model.stream(row["texts"][0], GenerationOptions(**row["options"])):
            yield {"text": piece}

    def close(self) -> None:
        """End the threads of the model."""
        self.model.close()

    def _abilities(self) -> set[str]:
        found: set[str] = set()
        for ability in self.model.abilities & SERVED.keys():
            found |= SERVED[ability]
        if "predict" in self.model.abilities:
            found.add(PIPELINES[self.model.predictor.task.kind.pipeline])
        return found | ({"search"} if self.index is not None else set())

    def _labels(self) -> tuple[str, ...]:
        return self.model.predictor.task.labels if "predict" in self.model.abilities else ()

    def _ranks_pairs(self) -> bool:
        """Whether the model is a cross-encoder: one number, or two classes, for a pair of texts."""
        if "predict" not in self.model.abilities:
            return False
        predictor = self.model.predictor
        return (
            predictor.texts == 2 and predictor.task.reads == "text" and predictor.task.outputs <= 2
        )

    def _speed(self) -> float:
        """Tokens per second of a full batch."""
        ids, _ = self.model.token_ids([WARM_UP])
        texts = [ids[0]] * max(1, MEASURED_TOKENS // len(ids[0]))
        start = time.perf_counter()
        self.model.encode_ids(texts)
        return sum(map(len, texts)) / max(time.perf_counter() - start, 1e-6)

    def _answers(self, ability: str, rows: list[JsonRow]) -> list[JsonRow]:
        """Answers to rows, those with equal settings computed together."""
        alike: dict[bytes, list[int]] = {}
        for number, row in enumerate(rows):
            key = orjson.dumps(row.get("options", {}), option=orjson.OPT_SORT_KEYS)
            alike.setdefault(key, []).append(number)
        found: dict[int, JsonRow] = {}
        for numbers in alike.values():
            some = [rows[number] for number in numbers]
            try:
                results = self._answered_alike(ability, some)
            except BertsmithError:  # of one row: the others must not fail with it
                results = [
                    _answered(lambda row: self._answered_alike(ability, [row])[0], row)
                    for row in some
                ]
            found.update(zip(numbers, results, strict=True))
        return [found[number] for number in range(len(rows))]

    def _answered_alike(self, ability: str, rows: list[JsonRow]) -> list[JsonRow]:
        """Answers to rows with equal settings."""
        answerer = answerer_of(self.model, ability, rows[0].get("options", {}))
        examples = [
            Example(source="input", line=number, id=str(number), texts=tuple(row["texts"]))
            for number, row in enumerate(rows, 1)
        ]
        return [answerer.to_json(one) for one in answerer.answers(examples, Counter())]

    def _fill(self, row: JsonRow) -> JsonRow:
        filled = self.model.fill(row["texts"][0], top=row["top"])
        return {
            "text": filled.text,
            "guesses": [[asdict(guess) for guess in one] for one in filled.guesses],
        }

    def _attention(self, row: JsonRow) -> JsonRow:
        """The attention of one layer: tokens, and (H, L, L)."""
        text = row["texts"][0]
        count = len(self.model.tokenizer.encode(text))
        most = min(ATTENTION_TOKENS, self.model.max_length or ATTENTION_TOKENS)
        if count > most:
            raise TextError(f"the text has {count} tokens; attention is shown for at most {most}")
        (found,) = self.model.attention([text], layers=[int(row["layer"])])
        return {
            "tokens": found.tokens,
            "layers": len(self.model.model.encoder.blocks),
            "attention": found.weights[0].astype(float).round(4).tolist(),
        }

    def _search(self, row: JsonRow) -> JsonRow:
        if self.index is None:
            raise TextError("no index is served: start with --index")
        hits = self.index.search(
            row["texts"], k=row["k"], where=row.get("where"), hybrid=bool(row.get("hybrid"))
        )[0]
        found: JsonRow = {"hits": [asdict(hit) for hit in hits]}
        if cut := self._query_cut(row["texts"]):
            found["tokens_cut"] = cut
        return found

    def _query_cut(self, texts: list[str]) -> int:
        """Tokens of queries that the model does not read."""
        prompt = self.index.encoder.record.query_prompt if self.index is not None else None
        prefix = "" if prompt is None else self.model.prompt(prompt)[0]
        _, cuts = self.model.tokenizer.fast_ids(
            [prefix + text for text in texts], self.model.max_length
        )
        return sum(cuts)


def _answered(function: Callable[[JsonRow], JsonRow], row: JsonRow) -> JsonRow:
    try:
        return function(row)
    except BertsmithError as error:
        return {"error": without_paths(str(error))}
