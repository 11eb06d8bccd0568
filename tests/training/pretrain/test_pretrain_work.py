"""Which examples a step reads: the same for any number of ranks, each once an epoch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from toy_corpus import short_recipe, toy_corpus

from bertsmith.corpus.shards import open_corpus
from bertsmith.nn.loss import Score
from bertsmith.objectives.batch import PretrainBatch
from bertsmith.objectives.electra import constant_loss
from bertsmith.training.pretrain.workload import PretrainWorkload, split


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return open_corpus(toy_corpus(tmp_path_factory.mktemp("corpus")))


def _split(batch: PretrainBatch) -> tuple[torch.Tensor, ...]:
    return batch.inputs.ids.split(list(batch.inputs.layout.lengths))


def texts(work: PretrainWorkload, step: int, share: float = 0.0) -> list[tuple[int, ...]]:
    """The ids of every text of a step, as they stand after hiding."""
    found = []
    for batch in work.micro_batches(step, share):
        assert batch.tokens <= work.recipe.batch.micro_tokens
        found += [tuple(part.tolist()) for part in _split(batch)]
    return found


def test_any_number_of_ranks_reads_the_same_batch(corpus) -> None:
    recipe = short_recipe("bert", "batch.sequences=7")
    whole = PretrainWorkload(recipe, corpus)
    for step in range(3):
        expected = sorted(texts(whole, step))
        assert len(expected) == 7
        for world in (2, 3, 7):
            ranks = [PretrainWorkload(recipe, corpus, rank=r, world=world) for r in range(world)]
            assert sorted(text for rank in ranks for text in texts(rank, step)) == expected


def test_a_step_is_the_same_whatever_was_read_before(corpus) -> None:
    recipe = short_recipe("bert")
    walked, jumped = PretrainWorkload(recipe, corpus), PretrainWorkload(recipe, corpus)
    steps = [texts(walked, step) for step in range(9)]
    assert texts(jumped, 8) == steps[8]
    assert texts(jumped, 3) == steps[3]


def test_an_epoch_reads_each_example_once_and_masks_are_new(corpus) -> None:
    recipe = short_recipe("roberta", "batch.sequences=1", "input.max_length=32")
    work = PretrainWorkload(recipe, corpus)
    count = work._stages[0][""].count(0)
    found = [one for step in range(count) for _, one in work._numbers(step, 0, "", 1)]
    numbers = [number for one in found for number in one]
    assert sorted(numbers) == list(range(count))
    epochs = {epoch for step in (count - 1, count) for epoch, _ in work._numbers(step, 0, "", 1)}
    assert epochs == {0, 1}


def test_static_masking_repeats_its_copies(corpus) -> None:
    recipe = short_recipe(
        "roberta", "batch.sequences=2", "program.mask.copies=2", "input.max_length=32"
    )
    work = PretrainWorkload(recipe, corpus)
    count = work._stages[0][""].count(0)
    steps = -(-count // 2)
    epochs = [
        {text for step in range(e * steps, (e + 1) * steps) for text in texts(work, step)}
        for e in range(4)
    ]
    assert len(epochs[0] & epochs[1]) < 0.2 * count
    assert len(epochs[0] & epochs[2]) > 0.8 * count


def test_a_later_stage_has_longer_texts_and_as_many_tokens(corpus) -> None:
    recipe = short_recipe("fast", "batch.tokens=2048", "batch.micro_tokens=4096")
    work = PretrainWorkload(recipe, corpus)
    short, long = texts(work, 5, 0.5), texts(work, 5, 0.95)
    assert max(map(len, short)) == 128
    assert 480 < max(map(len, long)) <= 512
    assert len(short) == 16
    assert len(long) == 4


def test_held_out_documents_are_not_trained_on_and_shared_among_ranks(corpus) -> None:
    recipe = short_recipe("bert")
    train, held_out = split(recipe, corpus)
    assert len(np.intersect1d(train, held_out)) == 0
    assert len(train) + len(held_out) == len(corpus.documents) - 1
    assert len(split(short_recipe("bert", "eval.held_out=0.001"), corpus)[1]) == 2
    assert len(split(short_recipe("bert", "eval.held_out=0"), corpus)[1]) == 0
    assert list(PretrainWorkload(short_recipe("bert", "eval.held_out=0"), corpus).held_out()) == []
    whole = list(PretrainWorkload(recipe, corpus).held_out())
    halves = [list(PretrainWorkload(recipe, corpus, rank=r, world=2).held_out()) for r in range(2)]
    assert sum(b.tokens for b in whole) == sum(b.tokens for half in halves for b in half)


def test_the_baseline_of_detection_is_what_a_constant_answer_costs() -> None:
    found = constant_loss(Score(75, 100))
    targets = torch.tensor([1.0] * 75 + [0.0] * 25)
    constant = torch.full((100,), 0.75).logit()
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        constant, targets, reduction="sum"
    )
    assert float(found.sum) == pytest.approx(float(expected), rel=1e-5)
    assert float(constant_loss(Score(5, 5)).sum) == 0.0


def test_a_diagnosis_names_the_examples(corpus) -> None:
    said = PretrainWorkload(short_recipe("bert"), corpus).examples(3)
    assert "of epoch 0" in said
