"""Searches against plain Python on tables of random logits: greedy, beams, every processor."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from plain_beams import plain_beams, processed
from toy_writers import TableWriter, letter_tokenizer

from bertsmith.errors import ConfigError
from bertsmith.folders.generation import GenerationDefaults
from bertsmith.runtime.generation import generator as module
from bertsmith.runtime.generation.generator import TextGenerator
from bertsmith.runtime.generation.live_rows import TextJob
from bertsmith.runtime.generation.options import Generated, GenerationOptions
from bertsmith.text.tokenizer import Tokenizer

SIZE = 14
SEP = 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return letter_tokenizer(SIZE)


def some_texts(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    words = [f"wa{chr(97 + n)}" for n in range(SIZE - 5)]
    return [" ".join(rng.choices(words, k=rng.randint(1, 6))) for _ in range(count)]


def generator(tokenizer: Tokenizer, **settings: Any) -> TextGenerator:
    """A generator over a table; settings of the writer, or of the defaults."""
    own = ("seed", "spread", "longest", "start", "causal")
    table = {name: settings.pop(name) for name in own if name in settings}
    settings.setdefault("ends", (SEP,))
    return TextGenerator(
        TableWriter(SIZE, **table),
        tokenizer,
        GenerationDefaults(**settings),
        continues=table.get("causal", False),
    )


def source_ids(made: TextGenerator, text: str) -> list[int]:
    ids = made.tokenizer.encode(text).ids.tolist()
    return ids[:-1] if made.writer.causal else ids  # type: ignore[attr-defined]


def logits_after(made: TextGenerator, ids: list[int], new: Sequence[int]) -> torch.Tensor:
    return made.writer.logits([*ids, *new])  # type: ignore[attr-defined]


def random_options(rng: random.Random, *, beams: int) -> dict[str, Any]:
    """Options of one case; most of them are often left out."""
    values: dict[str, Any] = {"max_new": rng.randint(2, 9)}
    if beams > 1:
        values |= {
            "beams": beams,
            "length_penalty": rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0]),
            "stop": rng.choice(["early", "likely", "never"]),
            "answers": rng.randint(1, beams),
        }
    if rng.random() < 0.4:
        values["no_repeat"] = rng.randint(1, 3)
    if rng.random() < 0.4:
        values["repetition_penalty"] = rng.choice([0.7, 1.3, 2.0])
    if rng.random() < 0.4:
        values["min_new"] = rng.randint(1, values["max_new"])
    if rng.random() < 0.3:
        values["forbid"] = ("waa", "wab wac")
    if rng.random() < 0.2:
        values["last"] = "[SEP]"
    if rng.random() < 0.2:
        values["first"] = "wad"
    return values


@pytest.mark.parametrize("case", range(30))
def test_beams_equal_a_plain_beam_search(case: int, tokenizer: Tokenizer) -> None:
    rng = random.Random(case)
    made = generator(
        tokenizer,
        seed=case,
        spread=rng.choice([0.5, 2.0]),
        causal=case % 3 == 0,
        start=2 if case % 3 == 1 else None,
        ends=(SEP,) if case % 4 else (SEP, 7),
        suppressed=(4,) if case % 5 == 0 else (),
    )
    options = GenerationOptions(**random_options(rng, beams=rng.randint(2, 5)))
    plan = made.plan(options)
    texts = some_texts(6, case)
    for text, found in zip(texts, made.generate(texts, options), strict=True):
        ids = source_ids(made, text)
        before = made.writer.begun(np.array(ids))
        expected = plain_beams(partial(logits_after, made, ids), plan, before)
        assert [one.ids for one in found.answers] == [new for _, new in expected]
        scores = [one.score for one in found.answers]
        assert scores == pytest.approx([score for score, _ in expected], abs=1e-4)


def plain_greedy(made: TextGenerator, text: str, options: GenerationOptions) -> tuple[int, ...]:
    plan, ids = made.plan(options), source_ids(made, text)
    before = made.writer.begun(np.array(ids))
    new: list[int] = []
    while len(new) < plan.limit(len(before)):
        scores = made.writer.logits([*ids, *new]).tolist()  # type: ignore[attr-defined]
        processed(scores, plan, before, new)
        new.append(max(range(SIZE), key=scores.__getitem__))
        if new[-1] in plan.ends:
            break
    return tuple(new)


@pytest.mark.parametrize("case", range(16))
def test_greedy_takes_the_best_token_at_every_step(case: int, tokenizer: Tokenizer) -> None:
    rng = random.Random(case)
    made = generator(tokenizer, seed=case, causal=case % 2 == 0)
    options = GenerationOptions(**random_options(rng, beams=1))
    texts = some_texts(8, case)
    for text, found in zip(texts, made.generate(texts, options), strict=True):
        assert found.answers[0].ids == plain_greedy(made, text, options)


def test_results_are_in_the_order_of_the_texts_and_equal_those_alone(tokenizer: Tokenizer) -> None:
    made = generator(tokenizer, seed=3)
    texts = some_texts(150)
    for options in (
        GenerationOptions(max_new=6),
        GenerationOptions(max_new=6, beams=3, answers=2),
        GenerationOptions(max_new=6, sample=True, answers=2, seed=5),
    ):
        together = made.generate(texts, options)
        assert together == [made.generate([text], options)[0] for text in texts]
        assert together[::-1] == made.generate(texts[::-1], options)


def test_finished_texts_leave_the_batch_at_once(tokenizer: Tokenizer) -> None:
    made = generator(tokenizer, seed=1)
    found = made.generate(some_texts(20), GenerationOptions(max_new=12))
    steps = sum(len(one.answers[0].ids) - 1 for one in found)
    assert sum(made.writer.batches) == steps  # type: ignore[attr-defined]


def test_the_score_is_the_mean_log_probability(tokenizer: Tokenizer) -> None:
    made = generator(tokenizer, seed=2)
    (found,) = made.generate(["waa wab"], GenerationOptions(max_new=5, min_new=5))
    ids, total = source_ids(made, "waa wab"), 0.0
    for token in found.answers[0].ids:
        logits = made.writer.logits(ids)  # type: ignore[attr-defined]
        total += float(torch.log_softmax(logits, dim=0)[token])
        ids = [*ids, token]
    assert found.answers[0].score == pytest.approx(total / 5, abs=1e-5)


def test_every_answer_says_why_it_stopped(tokenizer: Tokenizer) -> None:
    made = generator(tokenizer, seed=4, longest=9)

    def reasons(found: list[Generated]) -> set[str]:
        return {answer.stopped for one in found for answer in one.answers}

    texts = ["waa", "waa wab wac wad wae waf"]
    assert reasons(made.generate(texts, GenerationOptions(max_new=1, min_new=1))) == {"length"}
    for options in (GenerationOptions(min_new=7), GenerationOptions(beams=2, min_new=7)):
        long, short = made.generate(texts, options)
        assert short.stopped == "positions"
        assert len(short.answers[0].ids) == 9 - 8 + 1
        assert len(long.answers[0].ids) == 9 - 3 + 1
    ended = [one for one in made.generate(some_texts(40)) if one.stopped == "end"]
    assert ended
    assert all(one.answers[0].ids[-1] == SEP for one in ended)
    assert all("SEP" not in one.text for one in ended)
    forced = made.generate(["waa"], GenerationOptions(max_new=1, last="[SEP]"))
    assert forced[0].stopped == "length"


def test_rows_of_the_model_that_are_no_tokens_are_never_written() -> None:
    made = TextGenerator(
        TableWriter(SIZE + 20, seed=1), letter_tokenizer(SIZE), GenerationDefaults(ends=(SEP,))
    )
    for options in (
        GenerationOptions(),
        GenerationOptions(beams=3),
        GenerationOptions(sample=True),
    ):
        found = made.generate(some_texts(10), options)
        assert max(token for one in found for token in one.answers[0].ids) < SIZE


BAD: dict[str, dict[str, Any]] = {
    "max_new": {"max_new": 2.5},
    "beams": {"beams": True},
    "temperature": {"sample": True, "temperature": float("nan")},
    "forbid": {"forbid": "word"},
    "stop": {"beams": 2, "stop": "soon"},
    "by": {"by": "guess"},
    "first": {"first": 3},
    "sample": {"sample": "yes"},
    "top_k": {"sample": True, "top_k": -1},
    "no_repeat": {"no_repeat": -1},
    "repetition_penalty": {"repetition_penalty": 0.0},
}


@pytest.mark.parametrize("name", BAD)
def test_options_of_wrong_types_and_values_are_refused_by_name(
    name: str, tokenizer: Tokenizer
) -> None:
    with pytest.raises(ConfigError, match=rf"{name} \(--"):
        generator(tokenizer).generate(["waa"], GenerationOptions(**BAD[name]))


def test_a_batch_is_bounded_by_rows_tokens_and_memory() -> None:
    def job(number: int, length: int, most: int) -> TextJob:
        ids = np.zeros(length, dtype=np.int64)
        return TextJob(
            number=number, place="", ids=ids, key=0, before=(), limit=most, room=None, least=0
        )

    jobs = [job(n, 10 + n % 7, 50) for n in range(300)]
    for rows, token_bytes in ((1, 0), (4, 0), (5, 1 << 16), (500, 1)):
        batches = list(module.batches_of(jobs, rows, token_bytes))
        assert sorted(one.number for batch in batches for one in batch) == list(range(300))
        for batch in batches:
            assert len(batch) == 1 or len(batch) * rows <= module.LIVE_ROWS
            memory = sum(token_bytes * (len(one.ids) + rows * one.most) for one in batch)
            assert len(batch) == 1 or memory <= module.CACHE_BYTES
    long = list(module.batches_of([job(n, 9_000, 5) for n in range(3)], 1))
    assert [len(batch) for batch in long] == [1, 1, 1]
