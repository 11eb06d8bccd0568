"""TextGenerator: texts in, answers out; rows of a batch leave it as soon as they have ended."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import torch

from bertsmith.errors import ConfigError, TextError, TooLongError
from bertsmith.folders.generation import GenerationDefaults
from bertsmith.runtime.generation.beam import BeamSearch
from bertsmith.runtime.generation.greedy import RowSearch
from bertsmith.runtime.generation.live_rows import TextJob
from bertsmith.runtime.generation.options import (
    GREEDY,
    Answer,
    Generated,
    GenerationOptions,
    WritingPlan,
    plan_of,
)
from bertsmith.runtime.generation.processors import Processors
from bertsmith.runtime.generation.search import Advance, Search, Written
from bertsmith.runtime.generation.stream import Spelling, TextStream
from bertsmith.runtime.generation.writer import Writer
from bertsmith.text.blocks import groups
from bertsmith.text.tokenizer import Tokenizer

CHUNK = 1_024  # texts in memory at a time, sorted by length
LIVE_ROWS = 128  # most rows of one batch: beams and answers count
CACHE_BYTES = 512 << 20  # most memory of their cache; a text that needs more is alone
SOURCE_TOKENS = 16_384  # most tokens of the sources of one batch


class Source(NamedTuple):
    """A text to write from, and its place in an error."""

    text: str
    place: str


class TextGenerator:
    """Writes with one model; a text's answers do not depend on the texts around it."""

    def __init__(
        self,
        writer: Writer,
        tokenizer: Tokenizer,
        defaults: GenerationDefaults,
        *,
        continues: bool = False,
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
        token_bytes: int = 0,
    ) -> None:
        """`continues`: texts are prompts, which new tokens continue; else they are sources.

        `turn` is held for each step of the model; `token_bytes` is what its cache needs per token.
        """
        self.writer = writer
        self.tokenizer = tokenizer
        self.defaults = defaults
        self._continues = continues
        self._turn = turn
        self._token_bytes = token_bytes

    def generate(
        self, texts: Iterable[str], options: GenerationOptions = GREEDY
    ) -> list[Generated]:
        """The answers for each text, in order."""
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise TextError(
                f"generate takes a list of texts, not {type(texts).__name__}; for one text, give "
                "[text]"
            )
        sources = (Source(text, f"text {n}") for n, text in enumerate(texts, start=1))
        return list(self.each(sources, options))

    def each(
        self, sources: Iterable[Source], options: GenerationOptions = GREEDY
    ) -> Iterator[Generated]:
        """The answers for any number of texts, in order; some are in memory at a time."""
        plan = self.plan(options)
        for some in groups(sources, CHUNK):
            yield from self._chunk(some, plan)

    def stream(self, text: str, options: GenerationOptions = GREEDY) -> Iterator[str]:
        """One answer in pieces, each as soon as it can no longer change; not with beams."""
        plan = self.plan(options)
        if plan.beams > 1 or plan.answers > 1:
            what = f"{plan.beams} beams" if plan.beams > 1 else f"{plan.answers} answers"
            place = "" if options.beams or options.answers else " (by generation_config.json)"
            raise ConfigError(
                f"a text cannot be streamed with {what}{place}: which one is the best is known at "
                "the end; give --beams 1 and --answers 1, or leave out --stream"
            )
        (job,) = self._jobs([Source(text, "the text")], plan)
        return self._pieces(job, plan)

    def plan(self, options: GenerationOptions) -> WritingPlan:
        """Everything that options and folder decide; an error if they cannot be."""
        plan = plan_of(options, self.defaults, self.tokenizer)
        left = self.writer.positions_left(np.zeros(1, dtype=np.int64))
        if options.max_new is not None and left is not None and options.max_new > left + 1:
            raise ConfigError(
                f"max_new (--max-new) is {options.max_new}, and this model has positions for at "
                f"most {left + 1} new tokens; give at most that"
            )
        return plan

    def _chunk(self, sources: Sequence[Source], plan: WritingPlan) -> Iterator[Generated]:
        jobs = self._jobs(sources, plan)
        done: list[Generated | None] = [None] * len(jobs)
        for batch in batches_of(jobs, plan.rows, self._token_bytes):
            for advance in self._advances(batch, plan):
                for job, answers in advance.finished:
                    done[job.number] = self._generated(job, answers, plan)
        return (one for one in done if one is not None)

    def _pieces(self, job: TextJob, plan: WritingPlan) -> Iterator[str]:
        shown = TextStream(self._spelling(job))
        ids: list[int] = []
        for advance in self._advances([job], plan):
            if advance.finished:
                ((_, (answer,)),) = advance.finished
                piece = shown.finish(_without_end(answer.ids, plan))
            else:
                ids.append(int(advance.tokens[0]))
                piece = shown.add(ids)
            if piece:
                yield piece

    def _advances(self, jobs: Sequence[TextJob], plan: WritingPlan) -> Iterator[Advance]:
        """The steps of a batch, until the last text has ended."""
        processors = Processors(plan, self.writer.vocab_size, self.tokenizer.vocab_size)
        search: Search = (BeamSearch if plan.beams > 1 else RowSearch)(plan, processors)
        search.enter(jobs)
        with self._turn():
            state = self.writer.begin([job.ids for job in jobs])
            logits = state.logits
            if plan.rows > 1:
                rows = torch.arange(len(jobs)).repeat_interleave(plan.rows)
                self.writer.keep(state, rows)
                logits = logits[rows.to(logits.device)]
        while True:
            # Choosing needs the scores of a few tokens here and there: on the CPU, in any case.
            advance = search.advance(logits.to("cpu", torch.float32))
            yield advance
            if not len(advance.tokens):
                return
            with self._turn():
                if advance.kept is not None:
                    self.writer.keep(state, advance.kept)
                logits = self.writer.step(state, advance.tokens)

    def _jobs(self, sources: Sequence[Source], plan: WritingPlan) -> list[TextJob]:
        for source in sources:
            if not isinstance(source.text, str):
                raise TextError(f"{source.place} is {source.text!r:.60}; give a text")
            if not source.text.strip():
                what = "prompt" if self._continues else "source"
                raise TextError(f"{source.place}: the {what} is empty; give a text to write from")
        encodings = self.tokenizer.encode_batch([source.text for source in sources])
        jobs = []
        for number, (source, encoding) in enumerate(zip(sources, encodings, strict=True)):
            inside = encoding.fields >= 0
            ids = encoding.ids
            if not inside.any():
                raise TextError(f"{source.place}: the text has no tokens; give another text")
            if self._continues:  # a closing [SEP] would end the text before it begins
                ids = ids[: int(np.flatnonzero(inside)[-1]) + 1]
            jobs.append(self._job(number, source.place, ids.astype(np.int64), plan))
        return jobs

    def _job(self, number: int, place: str, ids: np.ndarray, plan: WritingPlan) -> TextJob:
        left = self.writer.positions_left(ids)
        if left is not None and left < 0:
            what = "prompt" if self._continues else "source"
            raise TooLongError(
                f"{place}: the {what} has {len(ids):,} tokens, {-left:,} more than the positions "
                "of the model hold; shorten it"
            )
        before = self.writer.begun(ids)
        limit = plan.limit(len(before))
        if limit < 1:
            raise ConfigError(
                f"{place}: the prompt has {len(before):,} tokens, and generation_config.json "
                f"allows {plan.max_length:,} with it (max_length); give max_new (--max-new)"
            )
        return TextJob(
            number=number,
            place=place,
            ids=ids,
            key=int.from_bytes(hashlib.blake2b(ids.tobytes(), digest_size=8).digest(), "little"),
            before=tuple(before),
            limit=limit,
            room=None if left is None else left + 1,
            least=plan.least(len(before)),
        )

    def _spelling(self, job: TextJob) -> Spelling:
        return Spelling(self.tokenizer, job.before if self._continues else ())

    def _generated(self, job: TextJob, answers: Sequence[Written], plan: WritingPlan) -> Generated:
        spelling = self._spelling(job)
        return Generated(
            answers=tuple(
                Answer(
                    text=spelling.text(_without_end(one.ids, plan)),
                    ids=one.ids,
                    score=one.score,
                    stopped=one.stopped,
                )
                for one in answers
            )
        )


def _without_end(ids: Sequence[int], plan: WritingPlan) -> Sequence[int]:
    return ids[:-1] if ids and ids[-1] in plan.ends else ids


def batches_of(jobs: Sequence[TextJob], rows: int, token_bytes: int = 0) -> Iterator[list[TextJob]]:
    """Jobs by length, long ones first, as many as rows, tokens and memory of a batch allow.

    A source is in the cache once, what is written once for each of the `rows` of a text.
    """
    batch: list[TextJob] = []
    tokens = memory = 0
    for job in sorted(jobs, key=lambda one: (-len(one.ids), -one.most, one.number)):
        own = token_bytes * (len(job.ids) + rows * job.most)
        full = (len(batch) + 1) * rows > LIVE_ROWS or tokens + len(job.ids) > SOURCE_TOKENS
        if batch and (full or memory + own > CACHE_BYTES):
            yield batch
            batch, tokens, memory = [], 0, 0
        batch.append(job)
        tokens, memory = tokens + len(job.ids), memory + own
    if batch:
        yield batch
