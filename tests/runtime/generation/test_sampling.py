"""Draws: the filtered distribution, draws by it, and draws that no batch changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from toy_writers import TableWriter, letter_tokenizer
from transformers import LogitsProcessorList
from transformers.generation import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from bertsmith.folders.generation import GenerationDefaults
from bertsmith.random_keys import uniforms
from bertsmith.runtime.generation.generator import TextGenerator
from bertsmith.runtime.generation.options import GenerationOptions, WritingPlan
from bertsmith.runtime.generation.sample import filtered, inverse
from bertsmith.runtime.generation.search import largest

CASES = [
    (1.0, 0, 1.0),
    (0.7, 5, 1.0),
    (1.3, 0, 0.8),
    (0.9, 20, 0.6),
    (2.0, 50, 0.95),
    (1.0, 1, 0.5),
]


@pytest.mark.parametrize(("temperature", "top_k", "top_p"), CASES)
@pytest.mark.parametrize("size", [40, 9_000])
def test_the_filtered_distribution_is_that_of_transformers(
    temperature: float, top_k: int, top_p: float, size: int
) -> None:
    scores = torch.randn(16, size, generator=torch.Generator().manual_seed(1)) * 3
    theirs = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k:
        theirs.append(TopKLogitsWarper(top_k))
    if top_p < 1:
        theirs.append(TopPLogitsWarper(top_p))
    expected = theirs(torch.zeros(16, 1, dtype=torch.long), scores.clone()).softmax(dim=1)
    plan = WritingPlan(sample=True, temperature=temperature, top_k=top_k, top_p=top_p)
    ids, probabilities = filtered(scores, plan)
    whole = torch.zeros(16, size, dtype=torch.double).scatter_(1, ids, probabilities)
    assert (whole - expected).abs().max() < 1e-5


def test_draws_follow_the_distribution() -> None:
    scores = torch.randn(1, 12, generator=torch.Generator().manual_seed(2))
    ids, probabilities = filtered(scores, WritingPlan(sample=True, top_k=8, temperature=1.4))
    numbers = torch.from_numpy(uniforms(7, np.arange(10_000)))
    drawn = ids[0][inverse(probabilities.expand(10_000, -1), numbers)]
    counts = np.bincount(drawn.numpy(), minlength=12)[ids[0].numpy()]
    assert chisquare(counts, 10_000 * probabilities[0].numpy()).pvalue > 0.001


def test_10_000_answers_of_one_text_follow_the_distribution() -> None:
    writer, tokenizer = TableWriter(30, seed=5, spread=1.0), letter_tokenizer(30)
    made = TextGenerator(writer, tokenizer, GenerationDefaults(ends=(3,)))
    options = {"max_new": 1, "sample": True, "top_k": 10, "answers": 1_000}
    first = [
        answer.ids[0]
        for seed in range(10)
        for answer in made.generate(["waa"], GenerationOptions(**options, seed=seed))[0].answers
    ]
    logits = writer.logits(tokenizer.encode("waa").ids.tolist())
    ids, probabilities = filtered(logits[None], made.plan(GenerationOptions(**options)))
    counts = np.bincount(first, minlength=30)[ids[0].numpy()]
    assert counts.sum() == 10_000
    assert chisquare(counts, 10_000 * probabilities[0].numpy()).pvalue > 0.001


def test_a_draw_at_the_upper_end_is_a_token_that_may_be_drawn() -> None:
    probabilities = torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.double)
    for number in (0.0, 0.4999, 1 - 2**-53):
        place = inverse(probabilities, torch.tensor([number], dtype=torch.double))
        assert probabilities[0, place] > 0


def test_answers_differ_by_seed_and_number_and_are_equal_otherwise() -> None:
    made = TextGenerator(
        TableWriter(40, seed=1, spread=0.3), letter_tokenizer(40), GenerationDefaults(ends=(3,))
    )

    def answers(**options: object) -> list[tuple[int, ...]]:
        (found,) = made.generate(["waa wab"], GenerationOptions(sample=True, max_new=12, **options))
        return sorted(one.ids for one in found.answers)

    assert answers(seed=1, answers=3) == answers(seed=1, answers=3)
    assert len(set(answers(seed=1, answers=5))) == 5
    assert answers(seed=1) != answers(seed=2)
    assert answers(seed=1)[0] in answers(seed=1, answers=4)


def test_the_largest_are_those_of_a_sort() -> None:
    scores = torch.randn(7, 5_003, generator=torch.Generator().manual_seed(3))
    scores[2, 5_002] = 99.0
    values, columns = largest(scores, 9)
    expected = scores.topk(9)
    assert torch.equal(values, expected.values)
    assert torch.equal(columns, expected.indices)
