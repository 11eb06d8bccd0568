"""States that are carried and reset, against one long pass; nothing is seen ahead."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from tiny_words import random_words, tiny_settings, tiny_words
from torch import Tensor

from bertsmith.classic.neural.network import NeuralNetwork
from bertsmith.classic.neural.reading import Lanes, NeuralBatch, Reset, WordLines, text_batches

KINDS = [
    ("nnlm", {"order": 4}),
    ("nnlm", {"order": 2}),
    ("nnlm", {"order": 6, "direct": True}),
    ("lstm", {"layers": 1}),
    ("lstm", {"layers": 3}),
    ("gru", {"layers": 2}),
]
WORDS = 12


def network(kind: str, changes: dict[str, object]) -> NeuralNetwork:
    model = tiny_settings(kind, **changes).build(np.arange(WORDS + 1, 0, -1)).double()
    return model.eval()


def column(ids: list[int]) -> NeuralBatch:
    """One text whose words are all predicted."""
    tokens = torch.tensor(ids)[:, None]
    return NeuralBatch(
        inputs=torch.cat([torch.zeros(1, 1, dtype=torch.long), tokens[:-1]]),
        targets=tokens,
        real=torch.ones_like(tokens, dtype=torch.bool),
    )


def some_ids(count: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(1, WORDS, size=count).tolist()


def piece(batch: NeuralBatch, start: int, end: int) -> NeuralBatch:
    rows = slice(start, end)
    return replace(
        batch,
        inputs=batch.inputs[rows],
        targets=batch.targets[rows],
        real=batch.real[rows],
        continues=start > 0,
    )


@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_states_carried_over_windows_give_the_rows_of_one_long_pass(
    kind: str, changes: dict[str, object]
) -> None:
    model, batch = network(kind, changes), column(some_ids(17))
    whole = model.rows(batch)
    for window in (1, 2, 5):
        parts = [model.rows(piece(batch, at, at + window)) for at in range(0, 17, window)]
        torch.testing.assert_close(torch.cat(parts), whole)


@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_a_state_that_is_reset_gives_the_rows_of_a_text_of_its_own(
    kind: str, changes: dict[str, object]
) -> None:
    model = network(kind, changes)
    first, second = some_ids(7), some_ids(6, seed=1)
    apart = torch.cat([model.rows(column(first)), model.rows(column(second))])
    joined = column([*first, *second])
    joined.inputs[7, 0] = 0
    resets = torch.zeros_like(joined.real)
    resets[7, 0] = True
    torch.testing.assert_close(model.rows(replace(joined, resets=resets)), apart)
    assert not torch.allclose(model.rows(joined)[8:], apart[8:]) or changes.get("order") == 2
    # and with the reset in a window that is not the first
    parts = [
        model.rows(replace(piece(joined, at, at + 3), resets=resets[at : at + 3]))
        for at in range(0, 13, 3)
    ]
    torch.testing.assert_close(torch.cat(parts), apart)


@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_a_later_word_changes_nothing_before_it(kind: str, changes: dict[str, object]) -> None:
    model, ids = network(kind, changes), some_ids(9)
    before = model.rows(column(ids))
    for place in range(9):
        other = [*ids]
        other[place] = other[place] % (WORDS - 1) + 1
        after = model.rows(column(other))
        assert torch.equal(after[: place + 1], before[: place + 1])
        if place < 8:
            assert not torch.equal(after[place + 1], before[place + 1])


@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_neighbors_and_windows_change_nothing(kind: str, changes: dict[str, object]) -> None:
    model = network(kind, changes)
    texts = [np.array(some_ids(size, seed=size), dtype=np.int32) for size in (3, 11, 1, 8, 11)]
    alone = [model.rows(column(text.tolist())) for text in texts]
    for window, most in ((50, 1000), (4, 1000), (4, 9), (3, 1)):
        found: list[list[Tensor]] = [[] for _ in texts]
        for batch in text_batches(texts, window=window, most=most):
            rows = model.rows(batch)
            order = torch.full(batch.real.shape, -1)
            order[batch.real] = torch.arange(len(rows))
            assert batch.texts is not None
            for place, text in enumerate(batch.texts.tolist()):
                found[text].append(rows[order[batch.real[:, place], place]])
        for parts, wanted in zip(found, alone, strict=True):
            torch.testing.assert_close(torch.cat(parts), wanted)


def test_direct_connections_are_those_of_the_paper() -> None:
    model = network("nnlm", {"order": 3, "direct": True, "hidden": 5})
    batch = column([4, 7, 2])
    body, softmax = model.body, model.softmax
    vectors = body.embedding.weight
    # what stands before the third word: the words 4 and 7
    x = torch.cat([vectors[4], vectors[7]])
    hidden = torch.tanh(body.dense.weight @ x + body.dense.bias)
    direct, outputs = softmax.weight[:, 5:], softmax.weight[:, :5]
    y = softmax.bias + direct @ x + outputs @ hidden
    found = softmax.log_probabilities(model.rows(batch))[2]
    torch.testing.assert_close(found, y.log_softmax(0))


@pytest.mark.parametrize("reset", ["document", "none"])
@pytest.mark.parametrize("lanes", [1, 3, 7])
def test_lanes_read_every_word_once_an_epoch_after_the_word_before_it(
    reset: Reset, lanes: int
) -> None:
    lines = WordLines.of_stream(random_words(23))
    reader = Lanes(lines, reset, lanes=lanes, window=5, seed=4)
    orders = []
    for epoch in range(2):
        batches = [reader.batch(epoch * reader.steps + step) for step in range(reader.steps)]
        inputs, targets, real, resets = (
            torch.cat([getattr(batch, name) for batch in batches]).T
            for name in ("inputs", "targets", "real", "resets")
        )
        tokens = targets[real]
        assert len(tokens) == lines.predictions
        bounds = lines.bounds(reset)
        texts = [lines.tokens(int(a), int(b)) for a, b in pairwise(bounds)]
        assert sorted(tokens.tolist()) == sorted(np.concatenate(texts).tolist())
        # inputs are the words before, but where a text begins
        begins = resets[real].clone()
        before = torch.cat([torch.zeros(1, dtype=torch.long), tokens[:-1]])
        starts = torch.zeros(lanes, resets.shape[1], dtype=torch.bool)
        starts[:, 0] = True
        begins &= ~starts[real] | (inputs[real] == 0)
        assert torch.equal(inputs[real][~begins], before[~begins])
        assert not inputs[real][begins].any()
        assert resets[:, 0].all()
        orders.append(tokens.tolist())
    assert (orders[0] == orders[1]) == (reset == "none")


@pytest.mark.parametrize("kind", ["nnlm", "lstm", "gru"])
def test_a_model_in_training_carries_its_lanes(kind: str) -> None:
    stream = random_words(9, every=9)
    settings = tiny_settings(kind, reset="none")
    model = settings.build(np.arange(WORDS + 1, 0, -1)).double().train()
    lines = WordLines.of_stream(stream)
    reader = Lanes(lines, "none", lanes=3, window=4, seed=0)
    states = [model.rows(reader.batch(step)) for step in range(reader.steps)]
    found = torch.cat(states)
    batches = [reader.batch(step) for step in range(reader.steps)]
    targets = torch.cat([batch.targets for batch in batches])
    inputs = torch.cat([batch.inputs for batch in batches])
    real = torch.cat([batch.real for batch in batches])
    whole = NeuralBatch(inputs=inputs, targets=targets, real=real)
    torch.testing.assert_close(found, model.eval().rows(whole))


def test_tokens_of_lines_end_with_a_line_end() -> None:
    lines = WordLines.of_stream(tiny_words([[1, 2], [], [3]], vocabulary=5, documents=[1]))
    assert lines.tokens(0, 3).tolist() == [2, 3, 0, 0, 4, 0]
    assert lines.tokens(1, 2).tolist() == [0]
    assert lines.bounds("document").tolist() == [0, 1, 3]
    part = lines.part(1, 3)
    assert part.tokens(0, 2).tolist() == [0, 4, 0]
    assert part.documents.tolist() == [0, 2]
